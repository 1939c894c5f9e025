/* Who holds what, by function, module, source file or line, thread, size, process, type, heap or
 * scope. Room: tools.
 * Context: one thread.
 *
 * One rule: the rows' own figures (`self`) add up to the dump's, but for heaps: each stands beside
 * the dump's own, which is malloc's. `cumulative` counts a stack once
 * for each row in it, even if the row is in it twice. */
#ifndef MEMLOG_TOOLS_ANALYZER_REPORT_BREAKDOWN_H
#define MEMLOG_TOOLS_ANALYZER_REPORT_BREAKDOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/stacks/frame_tree.h"
#include "tools/analyzer/stacks/metric.h"
#include "tools/analyzer/stacks/stacks.h"

enum ml_breakdown_by {
    ML_BY_FUNCTION, /* `self`: the innermost that is no allocator frame (allocator_frames.h) */
    ML_BY_MODULE,   /* the file of that function */
    ML_BY_THREAD,   /* as named at the stack's root */
    ML_BY_SIZE,     /* blocks of 2^n to 2^(n+1) - 1 bytes */
    ML_BY_PROCESS,  /* one row an image; its peak is its share of the tree's */
    ML_BY_TYPE,     /* stacks/types.h; malloc's blocks, or those of the chosen heap */
    ML_BY_HEAP,     /* malloc's, and each that programs reported; peaks are the sum of processes' */
    ML_BY_SCOPE,    /* `self`: the innermost that was open; client/memlog.h */
    ML_BY_FILE,     /* the source file of that function; its module where nobody knows it */
    ML_BY_LINE      /* the same, and the line */
};

static inline bool ml_breakdown_is_of_sources(enum ml_breakdown_by by) {
    return by == ML_BY_FILE || by == ML_BY_LINE;
}

/* Whether rows of that kind have callees. Without callees `cumulative` equals `self`. */
static inline bool ml_breakdown_is_of_frames(enum ml_breakdown_by by) {
    return by == ML_BY_FUNCTION || by == ML_BY_MODULE || by == ML_BY_SCOPE ||
           ml_breakdown_is_of_sources(by);
}

struct ml_breakdown_row {
    const char *name;    /* a size: "4.0 KiB and more" */
    const char *module;  /* a function's file without folder; what tells a process from others of
                            its name; how a type is known; that no line is known; else "" */
    uint32_t id, pid;    /* of a process */
    const char *file;    /* of a source file or line; NULL: not known, `name` is a module */
    uint32_t line;       /* of a line; 0: not known */
    uint64_t size_bytes; /* of a size: the smallest block in it */
    struct ml_profile_totals self, cumulative;
    uint64_t temporary_blocks; /* of self: freed by the next event of the thread */
};

/* The rows' texts live as long as the breakdown. */
struct ml_breakdown {
    struct ml_breakdown_row *rows;
    size_t rows_count, rows_capacity;
    struct ml_frame_tree frames;
    struct ml_index index; /* finds a row */
    struct ml_arena arena;
};

/* Break down the list of the whole tree. `is_every_frame_shown`: the innermost frame holds the
 * blocks, even an allocator frame. Errors: ML_ENV_MEMORY. _fini is needed in any case. */
ML_NODISCARD enum ml_status ml_breakdown_init(
    struct ml_breakdown *breakdown,
    const struct ml_stacks *stacks,
    enum ml_breakdown_by by,
    bool is_every_frame_shown
);
void ml_breakdown_fini(struct ml_breakdown *breakdown);

/* What rows are ordered by, largest first. */
enum ml_breakdown_order { ML_ORDER_SELF, ML_ORDER_CUMULATIVE, ML_ORDER_BLOCKS, ML_ORDER_TEMPORARY };
void ml_breakdown_sort(
    struct ml_breakdown *breakdown, enum ml_metric metric, enum ml_breakdown_order order
);

/* A heap broken down two ways: the types below each stack of the tree, or the stacks below each row
 * of types or heaps. What stands below a stack or a row adds up to it. */
enum ml_groups_of { ML_GROUPS_NONE, ML_GROUPS_OF_STACKS, ML_GROUPS_OF_TYPES, ML_GROUPS_OF_HEAPS };

/* An empty one is all zero. Each node's place is the type or heap, its parent the functions. */
struct ml_groups {
    enum ml_groups_of of;
    const struct ml_stacks *stacks;
    struct ml_stack_list list; /* by what is above, then the largest first */
};

/* Nothing is made of stacks without types. Nodes are added to `stacks`. Errors: ML_ENV_MEMORY;
 * _fini is needed even then. */
ML_NODISCARD enum ml_status
ml_groups_init(struct ml_groups *groups, struct ml_stacks *stacks, enum ml_groups_of of);
void ml_groups_fini(struct ml_groups *groups);

#endif
