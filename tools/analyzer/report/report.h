/* A dump, told: `memlog report`, as text for a person and as JSON for a program. Room: tools.
 * Context: one thread.
 *
 * One rule: both tell the same figures, those of the dump; nothing is rounded in JSON. */
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

/* What a report's lists are about. */
enum ml_report_list {
    ML_LIST_USUAL,  /* stacks that are live, and those of the peak */
    ML_LIST_STACKS, /* stacks by `metric` and `order` */
    ML_LIST_ROWS    /* `breakdown`, by `metric` */
};

struct ml_report {
    const struct ml_profile *profile;
    const struct ml_stacks *stacks;
    const char *file_path;     /* as the user named it */
    uint32_t pid;              /* what is shown is of this process alone; 0: of all */
    size_t limit;              /* lines that are shown of each list; 0: the form's own default */
    bool is_every_frame_shown; /* operator new and the like are frames as others, also in text */
    enum ml_report_list list;
    enum ml_metric metric;
    enum ml_breakdown_by by;
    enum ml_breakdown_order order;
    const struct ml_breakdown *breakdown; /* sorted; of ML_LIST_ROWS */
};

/* JSON for programs, with version 1 of its members; without a limit every stack. */
void ml_report_json(const struct ml_report *report, FILE *out);

/* The same without any stack. */
void ml_report_json_processes(const struct ml_report *report, FILE *out);

struct ml_report_style {
    unsigned width; /* columns that lines should fit */
    bool colour;
};

/* The text. */
void ml_report_text(const struct ml_report *report, const struct ml_report_style *style, FILE *out);

/* The list alone as comma-separated values with a line of titles (RFC 4180): rows of the breakdown,
 * or stacks, their frames joined by ';', outermost first. */
void ml_report_csv(const struct ml_report *report, FILE *out);

/* The answer and who holds most, one line each: what a run says at its end. */
void ml_report_summary(
    const struct ml_report *report, const struct ml_report_style *style, FILE *out
);

/* Sort by the change in one figure, largest first. */
void ml_report_diff_sort(struct ml_diff *diff, enum ml_metric metric);

/* What changed between sides[0] and sides[1]; the limit is that of sides[1]. */
void ml_report_diff_json(
    const struct ml_report sides[ML_DIFF_SIDES], const struct ml_diff *diff, FILE *out
);
/* What grew alone, largest first, as catapult's diff_heap_profiler lists leaks: count, size,
 * count_by_type, stackframes (innermost first). The limit is that of sides[1]. */
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
