/* Two dumps, stack by stack. Room: tools. Context: one thread.
 *
 * One rule: two stacks are equal when their functions and files are, whatever the addresses: the
 * dumps may come from two builds. A file may have another name in the other dump
 * (tools/analyzer/stacks/module_pairs.h). Frames without names are compared by file and address. */
#ifndef MEMLOG_TOOLS_ANALYZER_REPORT_DIFF_H
#define MEMLOG_TOOLS_ANALYZER_REPORT_DIFF_H

#include <stddef.h>
#include <stdint.h>

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/model/profile.h"
#include "tools/analyzer/report/breakdown.h"
#include "tools/analyzer/stacks/stacks.h"

enum ml_diff_side { ML_DIFF_FROM = 0, ML_DIFF_TO = 1, ML_DIFF_SIDES = 2 };

struct ml_diff_stack {
    struct ml_profile_totals
        sides[ML_DIFF_SIDES]; /* of the whole trees; peaks are shares of the tree's peak */
    enum ml_diff_side side;   /* the side that has `node`: TO, if both have */
    uint32_t node;            /* ML_STACKS_NONE: blocks without a stack */
};

/* A type or a heap that either dump has. The texts live as long as the groups. */
struct ml_diff_group {
    const char *name;
    const char *known; /* how a type is known; else "" */
    struct ml_profile_totals sides[ML_DIFF_SIDES];
};

/* Largest change first. Empty: all zero. */
struct ml_diff_groups {
    struct ml_diff_group *rows;
    size_t count, capacity;
    struct ml_breakdown breakdowns[ML_DIFF_SIDES]; /* have the texts */
};

/* Every stack of either dump. */
struct ml_diff {
    struct ml_diff_groups types, heaps; /* as ml_diff_groups_init() makes them, or empty */
    struct ml_diff_stack *stacks;
    size_t count, capacity;
};

/* Compare two dumps whose names were found. Errors: ML_ENV_MEMORY; _fini is needed even then. */
ML_NODISCARD enum ml_status
ml_diff_init(struct ml_diff *diff, const struct ml_stacks *from, const struct ml_stacks *to);
/* Of the groups, too. */
void ml_diff_fini(struct ml_diff *diff);

/* Compare by ML_BY_TYPE or ML_BY_HEAP. Nothing, where neither dump has types, or other heaps than
 * malloc's. Errors: ML_ENV_MEMORY; _fini is needed even then. */
ML_NODISCARD enum ml_status ml_diff_groups_init(
    struct ml_diff_groups *groups,
    const struct ml_stacks *from,
    const struct ml_stacks *to,
    enum ml_breakdown_by by,
    enum ml_metric metric
);
void ml_diff_groups_fini(struct ml_diff_groups *groups);

#endif
