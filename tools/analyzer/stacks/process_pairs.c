#include "tools/analyzer/stacks/process_pairs.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static bool same_process(const struct ml_profile_process *a, const struct ml_profile_process *b) {
    return a->pid == b->pid && ml_profile_text_eq(a->name, b->name);
}

static bool same_arguments(
    const struct ml_profile_process *a, const struct ml_profile_process *b, size_t from
) {
    if (a->role != b->role || a->arguments_count != b->arguments_count) {
        return false;
    }
    for (size_t i = from; i < a->arguments_count; i++) {
        if (!ml_profile_text_eq(a->arguments[i], b->arguments[i])) {
            return false;
        }
    }
    return true;
}

static bool same_work(const struct ml_profile_process *a, const struct ml_profile_process *b) {
    return ml_profile_text_eq(a->name, b->name) && same_arguments(a, b, 0);
}

/* The first processes, whatever their names. Images before an exec do not pair with those after
 * it. */
static bool both_first(const struct ml_profile_process *a, const struct ml_profile_process *b) {
    return a->parent_id == 0 && b->parent_id == 0 &&
           (a->state == MEMLOG_SERVICE_PROCESS_STATE_REPLACED) ==
               (b->state == MEMLOG_SERVICE_PROCESS_STATE_REPLACED);
}

/* Another build of the program, which may have another name. */
static bool same_part(const struct ml_profile_process *a, const struct ml_profile_process *b) {
    return a->arguments_count > 1 && same_arguments(a, b, 1);
}

/* Pair the processes that have no pair yet. */
static void pair_by(
    const struct ml_profile *before,
    const struct ml_profile *after,
    bool (*same)(const struct ml_profile_process *, const struct ml_profile_process *),
    struct ml_process_pair *pairs,
    bool *taken
) {
    for (size_t a = 0; a < after->processes_count; a++) {
        for (size_t b = 0; pairs[a].before == SIZE_MAX && b < before->processes_count; b++) {
            if (!taken[b] && same(&before->processes[b], &after->processes[a])) {
                pairs[a].before = b;
                taken[b] = true;
            }
        }
    }
}

bool ml_process_pairs(
    const struct ml_profile *before,
    const struct ml_profile *after,
    struct ml_process_pair **out_pairs,
    size_t *out_count
) {
    size_t before_count = before ? before->processes_count : 0;
    struct ml_process_pair *pairs =
        calloc(before_count + after->processes_count + 1, sizeof *pairs);
    bool *taken = calloc(before_count + 1, sizeof *taken);
    size_t count = 0;

    if (!pairs || !taken) {
        free(pairs);
        free(taken);
        return false;
    }
    for (; count < after->processes_count; count++) {
        pairs[count] = (struct ml_process_pair){.before = SIZE_MAX, .after = count};
    }
    if (before) {
        pair_by(before, after, same_process, pairs, taken);
        pair_by(before, after, same_work, pairs, taken);
        pair_by(before, after, both_first, pairs, taken);
        pair_by(before, after, same_part, pairs, taken);
    }
    for (size_t b = 0; b < before_count; b++) {
        if (!taken[b]) {
            pairs[count++] = (struct ml_process_pair){.before = b, .after = SIZE_MAX};
        }
    }
    free(taken);
    *out_pairs = pairs;
    *out_count = count;
    return true;
}
