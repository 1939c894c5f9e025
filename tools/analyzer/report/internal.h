/* What the parts of the text report share. Room: tools. Context: one thread.
 *
 * One rule: every text of a dump is printed by ml_report_put. A control character in a name must
 * not reach a terminal. */
#ifndef MEMLOG_TOOLS_ANALYZER_REPORT_INTERNAL_H
#define MEMLOG_TOOLS_ANALYZER_REPORT_INTERNAL_H

#include <stdint.h>
#include <stdio.h>

#include "base/json_writer.h"
#include "tools/analyzer/formats/units.h"
#include "tools/analyzer/report/report.h"

/* A longer name is cut. */
enum { ML_REPORT_NAME_BYTES = 1024 };

struct ml_report_page {
    const struct ml_report *report;
    const struct ml_report_style *style;
    FILE *out;
    bool is_summary; /* the first screen: a few lines */
};

/* Print to the page. These marks of a format become terminal sequences, or nothing without colour.
 */
#define ML_BOLD "\001"
#define ML_DIM "\002"
#define ML_WARN "\003"
#define ML_PLAIN "\004"
__attribute__((format(printf, 2, 3))) void
ml_report_print(const struct ml_report_page *page, const char *format, ...);

/* A blank line, then a title with `rest` beside it. */
void ml_report_heading(const struct ml_report_page *page, const char *title, const char *rest);

/* Print a text of the dump safely (base/printable.h). */
void ml_report_put(const struct ml_report_page *page, const char *text);

/* The same for a sentence that begins at that column. It is wrapped to the page's width. */
void ml_report_put_wrapped(const struct ml_report_page *page, size_t column, const char *text);

/* How many lines that takes. A word longer than a line counts as a word that fits. */
size_t ml_report_lines_of(const struct ml_report_page *page, size_t column, const char *text);

/* "10:00:00.123Z". All times are shown in UTC. */
struct ml_units ml_report_time_of_day(uint64_t realtime_ns);

/* What was lost, why, and what to do; the most important first. */
void ml_report_losses(const struct ml_report_page *page);

/* How much of a process's private memory the heap explains, and what is known to be unseen. Prints
 * nothing when neither is known. */
void ml_report_coverage(
    const struct ml_report_page *page, const struct ml_profile_process *process
);

/* Processes whose memory was not seen, in one sentence. A summary has up to four lines instead, one
 * for each kind of process, the largest first. Prints nothing when all memory was seen. */
void ml_report_uncovered(const struct ml_report_page *page);

/* How long the programs waited for room in their pipes. Prints nothing when they did not. */
void ml_report_waits(const struct ml_report_page *page);
void ml_report_sampling(const struct ml_report_page *page);

/* Whether the interval of some process changed while it was recorded. */
bool ml_report_sampling_changed(const struct ml_profile *profile);

/* The text beside a list's title: "5 of 12", and whether stacks were left out. */
enum { ML_REPORT_REST_BYTES = 96 };
const char *ml_report_rest(
    const struct ml_report *report, size_t shown, size_t count, char out_rest[ML_REPORT_REST_BYTES]
);

/* "Who holds what is live", or the title of what the dump shows as live. */
const char *ml_report_live_title(const struct ml_profile *profile);

/* "" for one, else "s". */
const char *ml_report_plural(uint64_t count);

/* The private memory of the tree and of its largest processes, and what it is made of. A summary
 * has the tree's alone. Prints nothing when none was read. */
void ml_report_whole(const struct ml_report_page *page);

/* The first line: the program, and that text beside it. */
void ml_report_title(const struct ml_report_page *page, const char *text);

/* Why the dump was taken, which stack is guilty, and which components grew. Prints nothing of a
 * dump that nothing triggered. */
void ml_report_trigger(const struct ml_report_page *page);

/* What memlog has cost, of the process that it cost most. Prints nothing without a promise. */
void ml_report_overhead(const struct ml_report_page *page);

/* What was lost or not seen, how long programs waited, and what trouble the service had. A summary
 * has nothing of a dump that is complete. */
void ml_report_warnings(const struct ml_report_page *page);

/* What changes no figure: stacks that are not whole, and what the service's sandbox lacks. */
void ml_report_notes(const struct ml_report_page *page);

/* "running", "exit 0", "signal 9". */
void ml_report_state(const struct ml_profile_process *process, char *out_state, size_t out_bytes);

/* One row a process, the largest first; then what ran without memlog, and why. */
void ml_report_processes(const struct ml_report_page *page);
void ml_report_not_profiled(const struct ml_report_page *page);

/* The tree's stacks in which the metric is not zero, the largest first. NULL: no memory. Owner: the
 * caller. */
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
    bool is_script;  /* a function of code that a run-time made */
    bool is_runtime; /* one of the run-time's own scripts: node's */
};

/* The line's name; without one module and offset, written to `buffer`. */
const char *
ml_report_line_name(const struct ml_report_line *line, char buffer[ML_REPORT_NAME_BYTES]);

/* The frames of a stack that tell a reader most, innermost first; at least one. */
enum { ML_TOLD_MAX = 6, ML_TOLD_NAME_BYTES = 128 };
struct ml_told_frame {
    char name[ML_TOLD_NAME_BYTES]; /* brief; "(no names in libm.so.6)" */
    char file[ML_TOLD_NAME_BYTES]; /* "": not known */
    uint32_t line;
    bool is_script;
};
struct ml_told {
    struct ml_told_frame frames[ML_TOLD_MAX];
    size_t count;
    size_t
        asker; /* the frame that needs the memory: the innermost one, or the innermost script's */
};
void ml_report_tell(const struct ml_report_page *page, uint32_t node, struct ml_told *out);

/* "inner < outer < ...", of the frames that ml_report_tell() chooses. In so many columns, or in
 * those beside a list's figures. */
void ml_report_callers_in(
    const struct ml_report_page *page,
    uint32_t node,
    size_t columns,
    char out_callers[ML_REPORT_CALLERS_BYTES]
);
void ml_report_callers(
    const struct ml_report_page *page, uint32_t node, char out_callers[ML_REPORT_CALLERS_BYTES]
);

/* The lines of a stack that are worth showing, innermost first. NULL: none. Owner: the caller. */
struct ml_report_line *
ml_report_lines(const struct ml_stacks *stacks, uint32_t node, size_t *out_count);

/* A stack's frames, one a line. */
void ml_report_frames(const struct ml_report_page *page, uint32_t node);

/* Members of a JSON object: the six figures, "frames", "dump". */
void ml_report_json_totals(struct ml_json *json, const struct ml_profile_totals *totals);
/* The figures of pages, of a stack or a row of that process (NULL: of the tree); nothing where they
 * are not known. */
void ml_report_json_pages(
    struct ml_json *json,
    const struct ml_profile *profile,
    const struct ml_profile_process *process,
    const struct ml_profile_totals *totals
);
/* Their sum as the member "heap_pages": null where it is not known. */
void ml_report_json_heap_pages(
    struct ml_json *json,
    const struct ml_profile *profile,
    const struct ml_profile_process *process,
    const struct ml_profile_totals *totals
);
/* "live" is of running processes, "left" of ended ones. "ended_shown": the stacks count both. */
void ml_report_json_tree(struct ml_json *json, const struct ml_profile *profile);
void ml_report_json_frames(struct ml_json *json, const struct ml_stacks *stacks, uint32_t node);
void ml_report_json_dump(struct ml_json *json, const struct ml_report *report);

/* Member "types" of a stack of the tree, by its node; nothing unless the groups are of stacks. */
void ml_report_json_types(struct ml_json *json, const struct ml_groups *groups, uint32_t node);
/* Member "stacks" of a row, by its name, `limit` at most; nothing unless they are of such rows. */
void ml_report_json_stacks_below(
    struct ml_json *json, const struct ml_groups *groups, const char *name, size_t limit
);

/* Members "by" and "rows". */
void ml_report_json_rows(struct ml_json *json, const struct ml_report *report);

/* Rows by function, module, thread or size, as the report asks. */
void ml_report_breakdown(const struct ml_report_page *page);

/* Which stacks' blocks keep pages of which little is used; prints nothing where that is little. */
void ml_report_pins(const struct ml_report_page *page);

/* The lists of stacks, and the files without names. */
void ml_report_stacks(const struct ml_report_page *page);
void ml_report_nameless(const struct ml_report_page *page);

/* Run-times whose functions have no names, and what would give them some. */
void ml_report_script_hints(const struct ml_report_page *page);

#endif
