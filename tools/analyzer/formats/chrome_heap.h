/* The heaps of one process as in Chrome's traces, a heaps_v2 member: stacks as nodes with parents,
 * names as numbered strings, a column for each figure of each heap. Room: tools. Context: one
 * thread.
 *
 * One rule: a node's values are its own, not its callees', so that the columns add up to the
 * report's sums.
 *
 * Source: Chromium's json_exporter of mid-2018. */
#ifndef MEMLOG_TOOLS_ANALYZER_FORMATS_CHROME_HEAP_H
#define MEMLOG_TOOLS_ANALYZER_FORMATS_CHROME_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json_writer.h"
#include "ipc/wire/ml_status.h"
#include "tools/analyzer/stacks/metric.h"
#include "tools/analyzer/stacks/stacks.h"

/* The last numbers used; all zero before a process's first heap. They continue over its heaps of
 * later dumps in the same file: to readers process and number identify a node for ever. Each
 * process has its own numbers, as in Chromium's traces: similar heaps then have similar text, which
 * compresses well. */
struct ml_chrome_numbers {
    uint64_t node, string;
};

/* The parts of which a heap is written; all borrowed. */
struct ml_chrome_heap {
    const struct ml_stacks *stacks;
    const struct ml_stack_list *list;         /* the process's own, or its details */
    bool has_heaps;                           /* it is a list of details */
    const struct ml_profile_process *process; /* whose heaps and types these are */
    enum ml_metric metric;
    /* For each of the stacks' files: added to an offset it gives the process's own address. */
    const uint64_t *file_biases;
    /* Nodes are also there for stacks that hold nothing of the metric, but peak or total, and
     * ml_chrome_heap_write writes these figures as a member of ours, "memlog", behind the heaps. */
    bool tells_all_figures;
    /* Of its live blocks: those that a process has left behind that is no more in the tree. */
    uint64_t left_bytes, left_blocks;
};

/* Whether the stack is in the heap: its metric is not 0, or another figure that is told. */
bool ml_chrome_heap_shows(
    const struct ml_stack *stack, enum ml_metric metric, bool tells_all_figures
);

/* What the viewer calls the process's heap. A "/" would divide the name. */
enum { ML_CHROME_HEAP_NAME_BYTES = 256 };
const char *ml_chrome_heap_name(
    const struct ml_profile_process *process,
    uint32_t heap,
    char out_name[ML_CHROME_HEAP_NAME_BYTES]
);

/* Whether the heap of that number in process->heaps is one of those that are asked for. */
bool ml_chrome_heap_tells(
    const struct ml_profile *profile, const struct ml_profile_process *process, size_t number
);

/* Write the member with its name, and with tells_all_figures one more:
 *
 * Shape:  "memlog": {"version": 1, "role": NAME, "sampling_bytes": N, "processes": N,
 *         "private_bytes": N, "left_bytes": N, "left_blocks": N, "heaps": {NAME: {"nodes": [],
 * "types": [], "peak_counts": [], "peak_sizes": [], "total_counts": [], "total_sizes": []}}}. With
 *         --overhead "promised_ppm": N, "cost_ppm": N too. A row
 * has the node and type of its stack, as in heaps_v2; peaks are shares of the peak of all processes
 * together. Errors: ML_ENV_MEMORY: what was written is no whole member. */
ML_NODISCARD enum ml_status ml_chrome_heap_write(
    struct ml_json *json, const struct ml_chrome_heap *heap, struct ml_chrome_numbers *numbers
);

#endif
