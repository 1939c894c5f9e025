/* Whose memory a dump cannot tell of. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/profile.h"

/* Of memlog-service: service/coverage.h. */
static const uint64_t small_bytes = (uint64_t)8 << 20;

bool ml_profile_hides(const struct ml_profile_process *other) {
    return !other->idle || other->footprint_bytes > small_bytes;
}

static uint64_t processes_of(const struct ml_profile_process *process) {
    return process->folded_processes > 0 ? process->folded_processes : 1;
}

static uint64_t unrecorded(const struct ml_profile *profile) {
    uint64_t count = 0;

    for (size_t i = 0; i < profile->others_count; i++) {
        count += ml_profile_hides(&profile->others[i]) ? processes_of(&profile->others[i]) : 0;
    }
    return count;
}

/* The one with most private memory of those in which something went unseen; NULL: there is none. */
static const struct ml_profile_process *
largest_unseen(const struct ml_profile *profile, uint64_t *out_count) {
    const struct ml_profile_process *largest = NULL;

    *out_count = 0;
    for (size_t i = 0; i < profile->processes_count; i++) {
        const struct ml_profile_process *process = &profile->processes[i];
        if (process->unseen.count_bytes == 0) {
            continue;
        }
        *out_count += processes_of(process);
        if (!largest || process->coverage_private_bytes > largest->coverage_private_bytes) {
            largest = process;
        }
    }
    return largest;
}

static bool is_silent(const struct ml_profile *profile) {
    for (size_t i = 0; i < profile->processes_count; i++) {
        if (profile->processes[i].allocator.count_bytes == 0) {
            return true;
        }
    }
    return false;
}

bool ml_profile_is_covered(const struct ml_profile *profile) {
    uint64_t count = 0;

    return profile->uncovered.count_bytes == 0 && !largest_unseen(profile, &count) &&
           unrecorded(profile) == 0 && profile->not_profiled_count == 0 &&
           profile->list_missed == 0 && !is_silent(profile);
}

/* One more part of the line; nothing of a count of 0. */
static void add(char *text, uint64_t count, const char *one, const char *several) {
    const size_t used = strlen(text);

    if (count > 0) {
        snprintf(
            text + used,
            ML_UNCOVERED_BYTES - used,
            "%s%" PRIu64 " %s",
            used > 0 ? "; " : "",
            count,
            count == 1 ? one : several
        );
    }
}

const char *
ml_profile_uncovered(const struct ml_profile *profile, char out_text[ML_UNCOVERED_BYTES]) {
    uint64_t unseen = 0;
    const struct ml_profile_process *largest = largest_unseen(profile, &unseen);
    const uint64_t without = unrecorded(profile);

    out_text[0] = '\0';
    if (ml_profile_is_covered(profile)) {
        return out_text;
    }
    if (largest) {
        snprintf(
            out_text,
            ML_UNCOVERED_BYTES,
            "%.64s: %.320s",
            largest->name.bytes,
            largest->unseen.bytes
        );
        add(out_text, unseen - 1, "more process is not all seen", "more processes are not all seen"
        );
    }
    add(out_text, without, "process was not recorded", "processes were not recorded");
    if (without == 0) {
        add(out_text,
            profile->not_profiled_count,
            "program ran without memlog",
            "programs ran without memlog");
    }
    add(out_text,
        profile->list_missed,
        "process ended before memlog saw it",
        "processes ended before memlog saw them");
    if (out_text[0] == '\0') {
        snprintf(
            out_text,
            ML_UNCOVERED_BYTES,
            "%s",
            profile->uncovered.count_bytes > 0
                ? profile->uncovered.bytes
                : "the dump does not say which allocators its processes had"
        );
    }
    return out_text;
}
