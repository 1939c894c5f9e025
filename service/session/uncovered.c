#include "service/session/uncovered.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "service/session/coverage.h"
#include "service/session/snapshot_internal.h"

/* A name, a reason and two numbers. */
enum { TEXT_BYTES = 512, NAME_BYTES = 64 };

static const struct ml_snapshot_process *
largest_unseen(const struct ml_snapshot *snapshot, uint32_t *out_count) {
    const struct ml_snapshot_process *largest = NULL;
    *out_count = 0;
    for (uint32_t i = 0; i < snapshot->processes_count; i++) {
        const struct ml_snapshot_process *process = &snapshot->processes[i];
        if (process->unseen.count_bytes == 0) {
            continue;
        }
        *out_count += process->folded_processes > 0 ? process->folded_processes : 1;
        if (largest == NULL || process->coverage_private_bytes > largest->coverage_private_bytes) {
            largest = process;
        }
    }
    return largest;
}

/* Counts the processes without a profile, and finds the one with most private memory. A fork that
 * allocated nothing hides nothing if it has little memory. */
static uint32_t unrecorded(
    const struct ml_snapshot *snapshot, const struct memlog_service_unrecorded **out_largest
) {
    uint32_t count = 0;
    *out_largest = NULL;
    for (uint32_t i = 0; i < snapshot->order.unrecorded.count; i++) {
        const struct memlog_service_unrecorded *one = &snapshot->order.unrecorded.items[i];
        if (!one->idle || one->footprint_bytes > ML_COVERAGE_SMALL_BYTES) {
            count += one->folded_processes > 0 ? one->folded_processes : 1;
            if (*out_largest == NULL || one->footprint_bytes > (*out_largest)->footprint_bytes) {
                *out_largest = one;
            }
        }
    }
    return count;
}

/* Add a part to the line, unless the count is 0. */
static void add(char text[TEXT_BYTES], uint64_t count, const char *one, const char *several) {
    const size_t used = strlen(text);
    if (count > 0) {
        (void)snprintf(
            text + used,
            TEXT_BYTES - used,
            "%s%" PRIu64 " %s",
            used > 0 ? "; " : "",
            count,
            count == 1 ? one : several
        );
    }
}

/* In the words of the report (base/uncovered.h). */
static void
add_reason(char text[TEXT_BYTES], uint32_t count, const struct memlog_service_unrecorded *one) {
    const size_t used = strlen(text);
    (void)snprintf(
        text + used,
        TEXT_BYTES - used,
        "%s %.*s: %.*s",
        count == 1 ? ":" : ", such as",
        one->name.count_bytes < NAME_BYTES ? (int)one->name.count_bytes : NAME_BYTES,
        one->name.data,
        (int)one->reason.count_bytes,
        one->reason.data
    );
}

bool ml_snapshot_uncover(struct ml_snapshot *snapshot) {
    uint32_t unseen = 0;
    const struct ml_snapshot_process *largest = largest_unseen(snapshot, &unseen);
    const struct memlog_service_unrecorded *other = NULL;
    const uint32_t without = unrecorded(snapshot, &other);
    char text[TEXT_BYTES];
    text[0] = 0;
    if (largest != NULL) {
        (void)snprintf(text, sizeof(text), "%s: %s", largest->name.data, largest->unseen.data);
        add(text, unseen - 1, "more process is not all seen", "more processes are not all seen");
    }
    add(text, without, "process was not recorded", "processes were not recorded");
    if (largest == NULL && other != NULL && other->reason.count_bytes > 0) {
        add_reason(text, without, other);
    }
    if (without == 0) {
        add(text,
            snapshot->order.not_profiled.count,
            "program ran without memlog",
            "programs ran without memlog");
    }
    add(text,
        snapshot->order.list_missed,
        "process ended before memlog saw it",
        "processes ended before memlog saw them");
    return ml_snapshot_copy_string(text, &snapshot->uncovered);
}
