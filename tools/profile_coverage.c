/* Whose memory a dump cannot tell of. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/profile.h"
#include "tools/words.h"

/* Of memlog-service: service/coverage.h. */
static const uint64_t small_bytes = (uint64_t)8 << 20;

bool ml_profile_hides(const struct ml_profile_process *other) {
    return !other->idle || other->footprint_bytes > small_bytes;
}

static uint64_t processes_of(const struct ml_profile_process *process) {
    return process->folded_processes > 0 ? process->folded_processes : 1;
}

/* Processes of one kind, and the most that one of them had. */
struct group {
    const struct ml_profile_process *largest; /* NULL: there is none */
    uint64_t processes;
    uint64_t most_bytes; /* of those beside the largest */
};

uint64_t ml_profile_private_bytes(const struct ml_profile_process *process) {
    return process->not_recorded ? process->footprint_bytes : process->coverage_private_bytes;
}

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static void take(struct group *group, const struct ml_profile_process *process) {
    group->processes += processes_of(process);
    if (!group->largest ||
        ml_profile_private_bytes(process) > ml_profile_private_bytes(group->largest)) {
        group->most_bytes = group->largest ? ml_profile_private_bytes(group->largest) : 0;
        group->largest = process;
    } else {
        group->most_bytes = larger(group->most_bytes, ml_profile_private_bytes(process));
    }
}

static struct group unrecorded(const struct ml_profile *profile) {
    struct group group = {.largest = NULL};

    for (size_t i = 0; i < profile->others_count; i++) {
        if (ml_profile_hides(&profile->others[i])) {
            take(&group, &profile->others[i]);
        }
    }
    return group;
}

static struct group unseen(const struct ml_profile *profile) {
    struct group group = {.largest = NULL};

    for (size_t i = 0; i < profile->processes_count; i++) {
        if (profile->processes[i].unseen.count_bytes > 0) {
            take(&group, &profile->processes[i]);
        }
    }
    return group;
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
    return profile->uncovered.count_bytes == 0 && !unseen(profile).largest &&
           !unrecorded(profile).largest && profile->not_profiled_count == 0 &&
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

/* What they had, behind their number. */
static void add_size(char *text, uint64_t count, uint64_t most_bytes) {
    const size_t used = strlen(text);
    char words[ML_WORDS_BYTES];

    if (count > 0 && most_bytes > 0) {
        snprintf(
            text + used,
            ML_UNCOVERED_BYTES - used,
            count == 1 ? " (%s private memory)" : " (%s private memory at most, each)",
            ml_words_size(most_bytes, words)
        );
    }
}

static void add_unseen(char *text, const struct group *group) {
    const struct ml_profile_process *largest = group->largest;

    snprintf(text, ML_UNCOVERED_BYTES, "%.64s: %.320s", largest->name.bytes, largest->unseen.bytes);
    if (!strstr(largest->unseen.bytes, "private memory")) { /* else it says it itself */
        add_size(text, 1, ml_profile_private_bytes(largest));
    }
    add(text,
        group->processes - processes_of(largest),
        "more process is not all seen",
        "more processes are not all seen");
    add_size(text, group->processes - processes_of(largest), group->most_bytes);
}

const char *
ml_profile_uncovered(const struct ml_profile *profile, char out_text[ML_UNCOVERED_BYTES]) {
    const struct group some = unseen(profile);
    const struct group without = unrecorded(profile);

    out_text[0] = '\0';
    if (ml_profile_is_covered(profile)) {
        return out_text;
    }
    if (some.largest) {
        add_unseen(out_text, &some);
    }
    add(out_text, without.processes, "process was not recorded", "processes were not recorded");
    if (without.largest) {
        add_size(out_text, without.processes, ml_profile_private_bytes(without.largest));
    } else {
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
