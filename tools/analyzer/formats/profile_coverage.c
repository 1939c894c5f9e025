/* Which processes' memory a dump does not cover. */
#include <stdio.h>

#include "base/uncovered.h"
#include "tools/analyzer/model/profile.h"

bool ml_profile_hides(const struct ml_profile_process *other) {
    return ml_uncovered_hides(other->recording == ML_PROFILE_IDLE, other->footprint_bytes);
}

uint64_t ml_profile_private_bytes(const struct ml_profile_process *process) {
    return process->recording == ML_PROFILE_RECORDED ? process->coverage_private_bytes
                                                     : process->footprint_bytes;
}

static struct ml_uncovered uncovered_of(const struct ml_profile *profile) {
    struct ml_uncovered uncovered = {
        .not_profiled = profile->not_profiled_count, .missed = profile->list_missed};

    for (size_t i = 0; i < profile->processes_count; i++) {
        const struct ml_profile_process *process = &profile->processes[i];
        ml_uncovered_add_unseen(
            &uncovered,
            process->name.bytes,
            process->unseen.bytes,
            process->unseen.count_bytes,
            process->coverage_private_bytes,
            ml_profile_stands_for(process)
        );
    }
    for (size_t i = 0; i < profile->others_count; i++) {
        const struct ml_profile_process *other = &profile->others[i];
        ml_uncovered_add_unrecorded(
            &uncovered,
            other->name.bytes,
            other->not_recorded_reason.bytes,
            other->recording == ML_PROFILE_IDLE,
            other->footprint_bytes,
            ml_profile_stands_for(other)
        );
    }
    return uncovered;
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
    const struct ml_uncovered uncovered = uncovered_of(profile);

    return profile->uncovered.count_bytes == 0 && !ml_uncovered_is_any(&uncovered) &&
           !is_silent(profile);
}

const char *
ml_profile_uncovered(const struct ml_profile *profile, char out_text[ML_UNCOVERED_BYTES]) {
    const struct ml_uncovered uncovered = uncovered_of(profile);

    ml_uncovered_words(&uncovered, out_text);
    if (out_text[0] == '\0' && !ml_profile_is_covered(profile)) {
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
