/* A dump as Chrome's memory-infra trace, gzipped JSON: `memlog convert --to=chrome`. For catapult's
 * trace viewer (chrome://tracing, trace_viewer_full.html) and its scripts. Room: tools. Context:
 * one thread.
 *
 * One rule: each process's heap is a heaps_v2 dump whose sums are the report's. Several dumps of a
 * run, one after another, are several dumps in one trace.
 *
 * Shape: one event "v" for each process, all of one dump under one id; stacks are nodes with
 *        parents, from 1, unique over all dumps of a process; values are a node's own. A frame
 * without a name is "pc:ADDRESS", the address as its process had it. Numbers in hex, as the viewer
 * reads them. Source: Chromium's json_exporter of mid-2018. Mappings and components:
 * tools/analyzer/formats/chrome_memory.h. */
#ifndef MEMLOG_TOOLS_ANALYZER_FORMATS_CHROME_TRACE_H
#define MEMLOG_TOOLS_ANALYZER_FORMATS_CHROME_TRACE_H

#include <stdbool.h>
#include <stdio.h>

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/formats/sender.h"
#include "tools/analyzer/model/profile.h"
#include "tools/analyzer/stacks/metric.h"
#include "tools/analyzer/stacks/stacks.h"

/* What an upload tells beside Chromium's members, in members of our own that are all called
 * "memlog": tools/analyzer/formats/chrome_heap.h has the processes', metadata the report's.
 * Strings are borrowed. */
struct ml_chrome_report {
    const char *guid;
    const struct ml_sender *sender;
    const char *build_id; /* of the program, in hex; "": none */
};

/* One dump. */
struct ml_chrome_dump {
    const struct ml_chrome_report *report; /* NULL: it is no upload */
    bool lists_unrecorded;                 /* name processes without a profile; not for uploads */
    bool lists_regions;                    /* all mappings and components; not for uploads */
    bool tells_heaps; /* those that programs report, and types; or the lists are by them */
    const struct ml_stacks *stacks;
    /* List only modules that have a frame without a name: for pruned stacks, where the list of all
     * modules would be the larger part. */
    bool needed_modules_only;
    /* Merge processes that have only sums left after pruning into one. */
    bool others_as_one;
};

/* How many processes `others_as_one` merges; 0: fewer than two, not merged. */
size_t ml_chrome_trace_others(const struct ml_stacks *stacks);

/* Write the metric's bytes and blocks of every process; its peak is its own.
 *
 * Errors: ML_ENV_MEMORY; ML_ENV_SYSTEM when the file refuses. */
ML_NODISCARD enum ml_status ml_chrome_trace_write(
    const struct ml_chrome_dump *dumps, size_t dumps_count, enum ml_metric metric, FILE *out
);

#endif
