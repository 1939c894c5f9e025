/* What the parts of the text report share. Room: tools. Context: one thread.
 *
 * One rule: every byte that came out of a dump goes through ml_report_put: controls in a name must
 * not reach a terminal. */
#ifndef MEMLOG_TOOLS_ANALYZER_REPORT_INTERNAL_H
#define MEMLOG_TOOLS_ANALYZER_REPORT_INTERNAL_H

#include <stdint.h>
#include <stdio.h>

#include "base/json_writer.h"
#include "tools/analyzer/formats/units.h"
#include "tools/analyzer/report/report.h"

/* Longest name that is shown; the rest of a longer one is cut. */
enum { ML_REPORT_NAME_BYTES = 1024 };

struct ml_report_page {
    const struct ml_report *report;
    const struct ml_report_style *style;
    FILE *out;
    bool is_summary; /* the end of a run: few lines */
};

/* Print to the page. These marks of a format become terminal sequences, or nothing without colour.
 */
#define ML_BOLD "\001"
#define ML_DIM "\002"
#define ML_WARN "\003"
#define ML_PLAIN "\004"
__attribute__((format(printf, 2, 3))) void
ml_report_print(const struct ml_report_page *page, const char *format, ...);

/* A blank line, a title, and beside it what it means. */
void ml_report_heading(const struct ml_report_page *page, const char *title, const char *rest);

/* Text of a dump, printable (base/printable.h). */
void ml_report_put(const struct ml_report_page *page, const char *text);

/* The same of a sentence that begins at that column: it goes on below itself where the width ends.
 */
void ml_report_put_wrapped(const struct ml_report_page *page, size_t column, const char *text);

/* How many lines that takes; a word that is longer than a line counts as if it were not. */
size_t ml_report_lines_of(const struct ml_report_page *page, size_t column, const char *text);

/* "10:00:00.123Z" of a time of day; UTC, as every time that is told. */
struct ml_units ml_report_time_of_day(uint64_t realtime_ns);

/* Whose losses there are, in the order in which a person should care: why, and what to do. */
void ml_report_losses(const struct ml_report_page *page);

/* What of a process's private memory the heap explains, as it was read, and what of it is known to
 * go unseen; nothing when there is nothing to say. */
void ml_report_coverage(
    const struct ml_report_page *page, const struct ml_profile_process *process
);

/* Whose memory went unseen, in one sentence; in a summary a line for each kind of process, largest
 * first, in four lines at most. Nothing when everybody's was seen. */
void ml_report_uncovered(const struct ml_report_page *page);

/* What the programs waited for room in their pipes; nothing when they did not. */
void ml_report_waits(const struct ml_report_page *page);
void ml_report_sampling(const struct ml_report_page *page);

/* "5 of 12", and that stacks were left out where they were: what stands beside a list's title. */
enum { ML_REPORT_REST_BYTES = 96 };
const char *ml_report_rest(
    const struct ml_report *report, size_t shown, size_t count, char out_rest[ML_REPORT_REST_BYTES]
);

/* "Who holds what is live", or what else it is that the lists show as live. */
const char *ml_report_live_title(const struct ml_profile *profile);

/* "" for one, else "s". */
const char *ml_report_plural(uint64_t count);

/* How much is live, was live at the peak, was allocated; what was lost. */
void ml_report_answer(const struct ml_report_page *page);

/* "running", "exit 0", "signal 9". */
void ml_report_state(const struct ml_profile_process *process, char *out_state, size_t out_bytes);

/* A row for each process, largest first; who ran without memlog, and why. */
void ml_report_processes(const struct ml_report_page *page);
void ml_report_not_profiled(const struct ml_report_page *page);

/* The tree's stacks that have any of the metric, largest first. NULL: no memory. Owner: the
 * caller's. */
struct ml_stack *ml_report_sorted(
    const struct ml_report_page *page,
    enum ml_metric metric,
    enum ml_breakdown_order order,
    size_t *out_count
);

/* One line of a stack. */
struct ml_report_line {
    const char *name;   /* NULL: `module` and `offset` stand for it */
    const char *module; /* "": none */
    const char *file;   /* "": not known */
    uint64_t offset;
    uint32_t source_line;
};

/* Its name, or module and offset in `buffer`. */
const char *
ml_report_line_name(const struct ml_report_line *line, char buffer[ML_REPORT_NAME_BYTES]);

/* "inner < outer < ...": the callers that have names, allocator frames left out unless there is
 * nothing else. */
enum { ML_REPORT_CALLERS_BYTES = 256 };
void ml_report_callers(
    const struct ml_report_page *page, uint32_t node, char out_callers[ML_REPORT_CALLERS_BYTES]
);

/* The lines of a stack that say something, innermost first. NULL for none. Owner: the caller's. */
struct ml_report_line *
ml_report_lines(const struct ml_stacks *stacks, uint32_t node, size_t *out_count);

/* A stack's frames, one a line. */
void ml_report_frames(const struct ml_report_page *page, uint32_t node);

/* Members of JSON objects: the six figures; "frames"; "dump". */
void ml_report_json_totals(struct ml_json *json, const struct ml_profile_totals *totals);
/* Live is of those that run, left of those that ended; "ended_shown": the tree's stacks count both.
 */
void ml_report_json_tree(struct ml_json *json, const struct ml_profile *profile);
void ml_report_json_frames(struct ml_json *json, const struct ml_stacks *stacks, uint32_t node);
void ml_report_json_dump(struct ml_json *json, const struct ml_report *report);

/* Members "by" and "rows". */
void ml_report_json_rows(struct ml_json *json, const struct ml_report *report);

/* Rows by function, module, thread or size, as the report wishes. */
void ml_report_breakdown(const struct ml_report_page *page);

/* The lists of stacks and what has no names. */
void ml_report_stacks(const struct ml_report_page *page);
void ml_report_nameless(const struct ml_report_page *page);

#endif
