/* What was live over time: the series of a dump, and what grew between two moments. Room: tools.
 * Context: one thread.
 *
 * One rule: a moment within a slot counts as the nearer boundary of the slot. Only at boundaries
 * the held bytes are known exactly. */
#ifndef MEMLOG_TOOLS_ANALYZER_REPORT_TIMELINE_H
#define MEMLOG_TOOLS_ANALYZER_REPORT_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/time_text.h"
#include "ipc/wire/ml_status.h"
#include "tools/analyzer/report/report.h"

/* What is said of a dump that has none. */
#define ML_TIMELINE_NONE                                                                           \
    "it has no timeline: its processes ended in an instant, or an older memlog wrote it; memlog "  \
    "report shows what it has"

/* What a stack held at both ends of the span, and in between. */
struct ml_timeline_change {
    const struct ml_profile_process *process;
    uint32_t node; /* ML_STACKS_NONE: blocks without a stack */
    uint64_t from_bytes, to_bytes;
    uint64_t most_bytes; /* known in between; at least the larger of both */
    bool is_partial;     /* its series began within the span: what it held before is not known */
};

struct ml_timeline {
    const struct ml_report *report;
    uint64_t first_ms, last_ms;         /* CLOCK_MONOTONIC; of all series */
    uint64_t from_ms, to_ms;            /* the span */
    struct ml_timeline_change *changes; /* by growth, the largest first */
    size_t changes_count;
    struct ml_timeline_change *passed; /* more in between than at both ends; most first */
    size_t passed_count;
};

/* ML_TIME_NONE: to that end of the dump. */
struct ml_timeline_span {
    struct ml_time from, to;
};

/* Errors: ML_ENV_MISSING: the dump has no series, or none of that time. ML_PEER_FORM: the span ends
 * before it begins. *out_error (static) tells which. ML_ENV_MEMORY. The report is borrowed. */
ML_NODISCARD enum ml_status ml_timeline_init(
    struct ml_timeline *timeline,
    const struct ml_report *report,
    const struct ml_timeline_span *span,
    const char **out_error
);
void ml_timeline_fini(struct ml_timeline *timeline);

/* How much more it held in between than at both ends. */
uint64_t ml_timeline_passed_bytes(const struct ml_timeline_change *change);

/* The tree's series; NULL: only some processes of the dump are loaded. */
const struct ml_profile_series *ml_timeline_tree(const struct ml_timeline *timeline);

/* A process's series; NULL: it has none. */
const struct ml_profile_series *
ml_timeline_sums(const struct ml_timeline *timeline, const struct ml_profile_process *process);

/* What a series held at that boundary. Before its first point it is the first point's value. */
uint64_t ml_series_at(const struct ml_profile_series *series, uint64_t ms);

/* The most that it held between two moments. False: it has no point there. */
bool ml_series_most(
    const struct ml_profile_series *series, uint64_t from_ms, uint64_t to_ms, uint64_t *out_bytes
);

/* The next point after `at`, which advances. Neighbours are joined until points_max are left (0:
 * all). False: there is none. */
bool ml_series_next(
    const struct ml_profile_series *series,
    size_t points_max,
    size_t *at,
    struct ml_profile_point *out_point
);

/* Print the most that the series held in each part of the timeline's span, a bar a part. The
 * highest bar is the most of all. */
void ml_timeline_put_curve(
    FILE *out,
    const struct ml_timeline *timeline,
    const struct ml_profile_series *series,
    unsigned columns
);

/* "leaking", or module+offset: the innermost frame that is no allocator frame. */
enum { ML_TIMELINE_NAME_BYTES = 1024 };
void ml_timeline_name(
    const struct ml_stacks *stacks, uint32_t node, char out_name[ML_TIMELINE_NAME_BYTES]
);

/* The forms. JSON and CSV have every point, or points_max of them; JSON of many processes has
 * fewer still. `has_stacks`: the series of stacks, too. */
void ml_timeline_text(
    const struct ml_timeline *timeline, const struct ml_report_style *style, FILE *out
);
void ml_timeline_json(
    const struct ml_timeline *timeline, size_t points_max, bool has_stacks, FILE *out
);
void ml_timeline_csv(const struct ml_timeline *timeline, size_t points_max, FILE *out);
void ml_timeline_html(const struct ml_timeline *timeline, FILE *out);

#endif
