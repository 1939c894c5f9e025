#include "service/uncovered.h"

#include <inttypes.h>
#include <stdio.h>

#include "service/snapshot_internal.h"

/* A name, a reason and two numbers. */
enum { TEXT_BYTES = 512 };

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

bool ml_snapshot_uncover(struct ml_snapshot *snapshot) {
    uint32_t unseen = 0;
    const struct ml_snapshot_process *largest = largest_unseen(snapshot, &unseen);
    char text[TEXT_BYTES];
    int count = 0;
    text[0] = 0;
    if (largest != NULL) {
        count = snprintf(text, sizeof(text), "%s: %s", largest->name.bytes, largest->unseen.bytes);
        if (unseen > 1) {
            count += snprintf(
                text + count,
                sizeof(text) - (size_t)count,
                "; and %" PRIu32 " more processes",
                unseen - 1
            );
        }
    }
    if (snapshot->not_profiled_count > 0) {
        (void)snprintf(
            text + count,
            sizeof(text) - (size_t)count,
            "%s%" PRIu32 " programs ran without memlog",
            count > 0 ? "; " : "",
            snapshot->not_profiled_count
        );
    }
    return ml_snapshot_copy_string(text, &snapshot->uncovered);
}
