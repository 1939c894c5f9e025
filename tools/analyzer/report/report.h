/* `memlog report`: a dump as text for people and as JSON for programs. Room: tools. Context: one
 * thread.
 *
 * One rule: both show the dump's own figures. JSON rounds none of them. */
#ifndef MEMLOG_TOOLS_ANALYZER_REPORT_REPORT_H
#define MEMLOG_TOOLS_ANALYZER_REPORT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "tools/analyzer/model/profile.h"
#include "tools/analyzer/report/breakdown.h"
#include "tools/analyzer/report/diff.h"
#include "tools/analyzer/stacks/metric.h"
#include "tools/analyzer/stacks/stacks.h"

/* What the lists of a report show. */
enum ml_report_list {
    ML_LIST_USUAL,  /* live stacks, and those of the peak */
    ML_LIST_STACKS, /* stacks by `metric` and `order` */
    ML_LIST_ROWS    /* `breakdown`, by `metric` */
};

struct ml_report {
    const struct ml_profile *profile;
    const struct ml_stacks *stacks;
    const char *file_path;     /* as the user named it */
    uint32_t pid;              /* of the one process to show; 0: all */
    size_t limit;              /* lines of each list; 0: the form's own default */
    bool is_every_frame_shown; /* allocator frames are shown, too, also in text */
    enum ml_report_list list;
    enum ml_metric metric;
    enum ml_breakdown_by by;
    enum ml_breakdown_order order;
    const struct ml_breakdown *breakdown;   /* sorted; for ML_LIST_ROWS */
    const struct ml_groups *groups;         /* for JSON; NULL: none */
    const struct ml_suppressed *suppressed; /* known leaks that were left out; NULL: none */
};

/* Version 1 of the JSON. Without a limit it has every stack. */
void ml_report_json(const struct ml_report *report, FILE *out);

/* The same without any stack. */
void ml_report_json_processes(const struct ml_report *report, FILE *out);

struct ml_report_style {
    unsigned width; /* columns that lines should fit */
    bool colour;
};

void ml_report_text(const struct ml_report *report, const struct ml_report_style *style, FILE *out);

/* The list alone as comma-separated values (RFC 4180) behind a line of titles. It has the rows of
 * the breakdown, or stacks with their frames joined by ';', outermost first. */
void ml_report_csv(const struct ml_report *report, FILE *out);

/* "inner < outer < ...": the callers of a stack that have names, in so many columns. Of the report
 * the stacks alone count. */
enum { ML_REPORT_CALLERS_BYTES = 256 };
void ml_report_callers_of(
    const struct ml_report *report,
    uint32_t node,
    size_t columns,
    char out_callers[ML_REPORT_CALLERS_BYTES]
);

/* Sort by the change in one figure, largest first. */
void ml_report_diff_sort(struct ml_diff *diff, enum ml_metric metric);

/* What changed between the sides. The limit is that of ML_DIFF_TO, here and below. */
void ml_report_diff_json(
    const struct ml_report sides[ML_DIFF_SIDES], const struct ml_diff *diff, FILE *out
);
/* Only what grew, the largest first, as catapult's diff_heap_profiler lists leaks: count, size,
 * count_by_type, stackframes (innermost first). */
void ml_report_diff_leaks(
    const struct ml_report sides[ML_DIFF_SIDES],
    const struct ml_diff *diff,
    enum ml_metric metric,
    FILE *out
);
void ml_report_diff_text(
    const struct ml_report sides[ML_DIFF_SIDES],
    const struct ml_diff *diff,
    enum ml_metric metric,
    const struct ml_report_style *style,
    FILE *out
);

#endif
