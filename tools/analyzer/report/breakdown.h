/* Who holds what, told by something else than the stack: function, module, thread, size,
 * process. Room:
 * tools. Context: one thread.
 *
 * One rule: the rows' own figures (`self`) add up to the dump's; `cumulative` counts a stack once
 * for whatever stands in it, however often. */
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
    ML_BY_FUNCTION, /* `self`: the innermost that is no allocator frame
                     * (tools/analyzer/stacks/allocator_frames.h)
                     */
    ML_BY_MODULE,   /* likewise, the file that it is in */
    ML_BY_THREAD,   /* as named at the stack's root */
    ML_BY_SIZE,     /* blocks of 2^n and more bytes, below 2^(n+1) */
    ML_BY_PROCESS   /* each image a row; peak: its share of the tree's */
};

struct ml_breakdown_row {
    const char *name;    /* a size: "4.0 KiB and more" */
    const char *module;  /* of a function, its file without folder; of a process, what tells it from
                            others of its name; else "" */
    uint32_t id, pid;    /* of a process */
    uint64_t size_bytes; /* of a size: the least that it counts */
    struct ml_profile_totals self, cumulative;
    uint64_t temporary_blocks; /* of self: freed as the next event of the allocating thread */
};

/* Texts live as long as it. */
struct ml_breakdown {
    struct ml_breakdown_row *rows;
    size_t rows_count, rows_capacity;
    struct ml_frame_tree frames;
    struct ml_index index; /* rows by what they are */
    struct ml_arena arena;
};

/* Break the whole dump's list down. With `is_every_frame_shown` the innermost frame has it,
 * whatever it is. Errors: ML_ENV_MEMORY. _fini in any case. */
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

#endif
