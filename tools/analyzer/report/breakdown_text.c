#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "base/printable.h"
#include "ipc/wire/event.h"
#include "tools/analyzer/formats/units.h"
#include "tools/analyzer/report/internal.h"
#include "tools/analyzer/names/function_name.h"

enum {
    ROWS_SHOWN = 20,      /* by default */
    FIGURES_COLUMNS = 62, /* columns in front of the name */
    NAME_COLUMNS_MIN = 24,
};

enum { TITLE_BYTES = 64 };

static const char *title_of(const struct ml_report *report, char out_title[TITLE_BYTES]) {
    static const char *const rows[] = {
        "Functions",
        "Files",
        "Threads",
        "Sizes",
        "Processes",
        "Types",
        "Heaps",
        "Scopes",
        "Source files",
        "Source lines"};
    static const char *const figures[] = {
        "live bytes", "the peak", "bytes allocated", "resident bytes", "waste", "pages held alone"};
    const bool is_over =
        report->metric == ML_METRIC_LIVE && !ml_profile_anyone_runs(report->profile);

    snprintf(
        out_title,
        TITLE_BYTES,
        "%s by %s",
        rows[report->by],
        is_over ? "what was left" : figures[report->metric]
    );
    return out_title;
}

static double percent(uint64_t part, uint64_t whole) {
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

static void put_titles(const struct ml_report_page *page) {
    bool cumulative = ml_breakdown_is_of_frames(page->report->by);

    ml_report_print(
        page,
        ML_DIM "%11s %6s  %18s %10s %10s" ML_PLAIN "\n",
        cumulative ? "itself" : "bytes",
        "",
        cumulative ? "with callees" : "",
        "blocks",
        "temporary"
    );
}

/* How many columns of what stands beside the name tell something: of a sentence all. */
static size_t least_of(const struct ml_report *report, const struct ml_breakdown_row *row) {
    return ml_breakdown_is_of_sources(report->by) ? ml_printable_columns(row->module) - 1 : 0;
}

static void put_row(const struct ml_report_page *page, const struct ml_breakdown_row *row) {
    const struct ml_report *report = page->report;
    uint64_t whole = ml_metric_bytes(&report->profile->tree, report->metric);
    uint64_t self = ml_metric_bytes(&row->self, report->metric);
    uint64_t cumulative = ml_metric_bytes(&row->cumulative, report->metric);
    size_t columns = page->style->width > FIGURES_COLUMNS + NAME_COLUMNS_MIN
                         ? page->style->width - FIGURES_COLUMNS
                         : NAME_COLUMNS_MIN;
    char name[ML_REPORT_NAME_BYTES];

    ml_report_print(page, ML_BOLD "%11s" ML_PLAIN, ml_units_size(self).text);
    if (report->by == ML_BY_HEAP) { /* they are no parts of malloc's */
        fprintf(page->out, " %6s  ", "");
    } else {
        fprintf(page->out, " %5.1f%%  ", percent(self, whole));
    }
    if (ml_breakdown_is_of_frames(report->by)) {
        fprintf(
            page->out, "%11s %5.1f%%", ml_units_size(cumulative).text, percent(cumulative, whole)
        );
    } else {
        fprintf(page->out, "%11s %6s", "", "");
    }
    fprintf(page->out, " %10s ", ml_units_count(ml_metric_blocks(&row->self, report->metric)).text);
    fprintf(page->out, "%10s  ", ml_units_count(row->temporary_blocks).text);
    if (ml_breakdown_is_of_sources(report->by)) {
        ml_file_name_fit(row->name, columns, name, sizeof name);
    } else {
        ml_function_name_fit(row->name, columns, name, sizeof name);
    }
    ml_report_put(page, name);
    if (row->module[0] && ml_printable_columns(name) + 2 + least_of(report, row) < columns) {
        ml_report_print(page, "  " ML_DIM);
        ml_function_name_fit(
            row->module, columns - ml_printable_columns(name) - 2, name, sizeof name
        );
        ml_report_put(page, name);
        ml_report_print(page, ML_PLAIN);
    }
    putc('\n', page->out);
}

static size_t rows_wanted(const struct ml_report *report, size_t by_default) {
    size_t wanted = report->limit > 0 ? report->limit : by_default;

    return wanted < report->breakdown->rows_count ? wanted : report->breakdown->rows_count;
}

/* A row that the text leaves out. */
static bool is_empty(const struct ml_report *report, const struct ml_breakdown_row *row) {
    return ml_metric_bytes(&row->cumulative, report->metric) == 0 &&
           (report->order != ML_ORDER_TEMPORARY || row->temporary_blocks == 0);
}

static bool has_scopes(const struct ml_breakdown *breakdown) {
    bool has = false;

    for (size_t i = 0; i < breakdown->frames.frames_count; i++) {
        has = has || breakdown->frames.frames[i].kind == ML_FRAME_SCOPE;
    }
    return has;
}

/* Of types that blocks themselves tell nobody knows what was at the peak, or was ever allocated. */
static bool is_live_only(const struct ml_breakdown_row *row) {
    return strcmp(row->module, ml_profile_known_word(ML_TYPE_BY_VTABLE)) == 0 ||
           strcmp(row->module, ml_profile_known_word(ML_TYPE_BY_PYTHON)) == 0;
}

/* What is to be said of types. */
static void put_type_notes(const struct ml_report_page *page) {
    const struct ml_breakdown *breakdown = page->report->breakdown;
    bool has_vtables = false;

    for (size_t i = 0; i < breakdown->rows_count; i++) {
        has_vtables = has_vtables || is_live_only(&breakdown->rows[i]);
    }
    if (has_vtables && page->report->metric != ML_METRIC_LIVE) {
        fputs(
            "  (what lies in blocks tells the types of live ones alone: those are not in this "
            "list)\n",
            page->out
        );
    }
}

/* A narrow screen has no room for it in the rows. */
static void put_source_notes(const struct ml_report_page *page) {
    const struct ml_breakdown *breakdown = page->report->breakdown;
    bool lacks = false;

    for (size_t i = 0; i < breakdown->rows_count; i++) {
        lacks = lacks || (!breakdown->rows[i].file && breakdown->rows[i].module[0]);
    }
    if (lacks) {
        fputs("  (code without line information stands under its module's name)\n", page->out);
    }
}

void ml_report_breakdown(const struct ml_report_page *page) {
    const struct ml_breakdown *breakdown = page->report->breakdown;
    size_t wanted = rows_wanted(page->report, ROWS_SHOWN);
    char rest[ML_REPORT_REST_BYTES];
    char title[TITLE_BYTES];

    while (wanted > 0 && is_empty(page->report, &breakdown->rows[wanted - 1])) {
        wanted--;
    }
    ml_report_heading(
        page,
        title_of(page->report, title),
        ml_report_rest(page->report, wanted, breakdown->rows_count, rest)
    );
    if (page->report->by == ML_BY_THREAD && breakdown->rows_count == 1) {
        fputs(
            "  (threads have names with --memlog-stack-mode=native-with-thread-names)\n", page->out
        );
    }
    if (page->report->by == ML_BY_SCOPE && !has_scopes(breakdown)) {
        fputs(
            "  (stacks have the scopes of a program that opens them, by memlog.h, with\n"
            "  --memlog-stack-mode=mixed, or pseudo: those alone)\n",
            page->out
        );
    }
    if (page->report->by == ML_BY_TYPE) {
        put_type_notes(page);
    }
    if (ml_breakdown_is_of_sources(page->report->by)) {
        put_source_notes(page);
    }
    put_titles(page);
    for (size_t i = 0; i < wanted; i++) {
        put_row(page, &breakdown->rows[i]);
    }
}

/* ---- JSON */

void ml_report_json_rows(struct ml_json *json, const struct ml_report *report) {
    static const char *const names[] = {
        "function", "module", "thread", "size", "process", "type", "heap", "scope", "file", "line"};
    size_t count = rows_wanted(report, SIZE_MAX);

    ml_json_string_member(json, "by", names[report->by]);
    ml_json_open_member(json, "rows", '[');
    for (size_t i = 0; i < count; i++) {
        const struct ml_breakdown_row *row = &report->breakdown->rows[i];

        ml_json_line(json);
        ml_json_open(json, '{');
        ml_json_string_member(json, "name", row->name);
        if (report->by == ML_BY_FUNCTION) {
            ml_json_string_member(json, "module", row->module);
        } else if (report->by == ML_BY_PROCESS) {
            ml_json_number_member(json, "id", row->id);
            ml_json_number_member(json, "pid", row->pid);
            ml_json_string_member(json, "command", row->module);
        } else if (report->by == ML_BY_SIZE) {
            ml_json_number_member(json, "size_bytes", row->size_bytes);
        } else if (report->by == ML_BY_TYPE) {
            ml_json_string_member(json, "known_by", row->module);
            ml_json_bool_member(json, "live_only", is_live_only(row));
        }
        if (ml_breakdown_is_of_sources(report->by)) {
            ml_json_string_member(json, "file", row->file ? row->file : "");
        }
        if (report->by == ML_BY_LINE) {
            ml_json_number_member(json, "line", row->line);
        }
        ml_report_json_totals(json, &row->self);
        ml_json_number_member(json, "temporary_blocks", row->temporary_blocks);
        ml_report_json_pages(json, report->profile, NULL, &row->self);
        if (ml_breakdown_is_of_frames(report->by)) {
            ml_json_open_member(json, "cumulative", '{');
            ml_report_json_totals(json, &row->cumulative);
            ml_report_json_pages(json, report->profile, NULL, &row->cumulative);
            ml_json_close(json, '}');
        }
        if (report->groups) {
            ml_report_json_stacks_below(
                json, report->groups, row->name, report->limit > 0 ? report->limit : SIZE_MAX
            );
        }
        ml_json_close(json, '}');
    }
    ml_json_close(json, ']');
}

/* ---- comma-separated values */

static void csv_totals(FILE *out, const struct ml_profile_totals *totals) {
    fprintf(
        out,
        "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64,
        totals->live_bytes,
        totals->live_blocks,
        totals->peak_bytes,
        totals->peak_blocks,
        totals->total_bytes,
        totals->total_blocks
    );
}

/* At the end of the line, so that the columns before it stay; empty where they are not known. */
static void
csv_pages(FILE *out, const struct ml_report *report, const struct ml_profile_totals *totals) {
    const struct ml_profile_pages *pages = &totals->pages;

    if (ml_profile_knows_pages(report->profile)) {
        fprintf(
            out,
            ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\r\n",
            pages->resident_bytes,
            pages->alone_bytes,
            pages->waste_bytes
        );
    } else {
        fputs(",,,\r\n", out);
    }
}

#define CSV_PAGES ",resident_bytes,pinned_bytes,waste_bytes\r\n"
#define CSV_FIGURES "live_bytes,live_blocks,peak_bytes,peak_blocks,total_bytes,total_blocks"
#define CSV_CUMULATIVE                                                                             \
    "cumulative_live_bytes,cumulative_live_blocks,cumulative_peak_bytes,cumulative_peak_blocks,"   \
    "cumulative_total_bytes,cumulative_total_blocks"

static void csv_rows(const struct ml_report *report, FILE *out) {
    size_t count = rows_wanted(report, SIZE_MAX);

    fputs(CSV_FIGURES ",temporary_blocks," CSV_CUMULATIVE ",name,module" CSV_PAGES, out);
    for (size_t i = 0; i < count; i++) {
        const struct ml_breakdown_row *row = &report->breakdown->rows[i];

        csv_totals(out, &row->self);
        fprintf(out, ",%" PRIu64 ",", row->temporary_blocks);
        csv_totals(out, &row->cumulative);
        putc(',', out);
        ml_csv_text(out, row->name);
        putc(',', out);
        ml_csv_text(out, row->module);
        csv_pages(out, report, &row->self);
    }
}

static void csv_frames(const struct ml_report *report, uint32_t node, FILE *out) {
    size_t count = 0;
    struct ml_report_line *lines = ml_report_lines(report->stacks, node, &count);

    ml_csv_open(out);
    for (size_t i = count; i > 0; i--) {
        char buffer[ML_REPORT_NAME_BYTES];

        ml_csv_put(out, ml_report_line_name(&lines[i - 1], buffer), ';', i == count);
    }
    ml_csv_close(out);
    free(lines);
}

static void csv_stacks(const struct ml_report *report, FILE *out) {
    const struct ml_report_page page = {.report = report, .out = out};
    size_t count = 0;
    struct ml_stack *stacks = ml_report_sorted(&page, report->metric, report->order, &count);

    fputs(CSV_FIGURES ",temporary_blocks,thread,stack" CSV_PAGES, out);
    for (size_t i = 0; i < count && (report->limit == 0 || i < report->limit); i++) {
        csv_totals(out, &stacks[i].own);
        fprintf(out, ",%" PRIu64 ",", stacks[i].temporary_blocks);
        ml_csv_text(out, ml_stacks_thread(report->stacks, stacks[i].node).bytes);
        putc(',', out);
        csv_frames(report, stacks[i].node, out);
        csv_pages(out, report, &stacks[i].own);
    }
    free(stacks);
}

void ml_report_csv(const struct ml_report *report, FILE *out) {
    if (report->list == ML_LIST_ROWS) {
        csv_rows(report, out);
    } else {
        csv_stacks(report, out);
    }
}
