/* The timeline for a terminal. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "tools/analyzer/report/internal.h"
#include "tools/analyzer/report/timeline.h"
#include "tools/analyzer/names/function_name.h"

/* Columns of the table beside the curve; rows of the table, and of the list of changes. */
enum {
    NAME_COLUMNS = 22,
    FIGURES_COLUMNS = 3 * 12,
    CURVE_COLUMNS_MAX = 60,
    ROWS = 20,
    CHANGES = 10
};

struct row {
    const struct ml_profile_process *process; /* NULL: the tree */
    const struct ml_profile_series *series;
    uint64_t most_bytes;
};

static int order_rows(const void *left, const void *right) {
    const struct row *a = left;
    const struct row *b = right;

    return (a->most_bytes < b->most_bytes) - (a->most_bytes > b->most_bytes);
}

void ml_timeline_put_curve(
    FILE *out,
    const struct ml_timeline *timeline,
    const struct ml_profile_series *series,
    unsigned columns
) {
    static const char *const bars[] = {
        "\u2581", "\u2582", "\u2583", "\u2584", "\u2585", "\u2586", "\u2587", "\u2588"};
    enum { BARS = sizeof bars / sizeof bars[0] };
    const uint64_t span_ms = timeline->to_ms - timeline->from_ms;
    uint64_t most_bytes = 0;

    (void)ml_series_most(series, timeline->from_ms, timeline->to_ms, &most_bytes);

    for (unsigned i = 0; i < columns; i++) {
        const double part = (double)span_ms / columns;
        const uint64_t from_ms = timeline->from_ms + (uint64_t)(part * i);
        const uint64_t to_ms = timeline->from_ms + (uint64_t)(part * (i + 1)) + 1;
        uint64_t bytes = 0;

        if (!ml_series_most(series, from_ms, to_ms, &bytes)) {
            putc(' ', out);
        } else {
            const double height = most_bytes > 0 ? (double)bytes / (double)most_bytes : 0;
            fputs(bars[(size_t)(height * (BARS - 1) + 0.5) % BARS], out);
        }
    }
}

static void put_row(
    const struct ml_report_page *page, const struct ml_timeline *timeline, const struct row *row
) {
    const unsigned beside = 2 + NAME_COLUMNS + 2 + FIGURES_COLUMNS;
    unsigned columns = page->style->width > beside + 8 ? page->style->width - beside : 8;
    char name[ML_REPORT_NAME_BYTES];
    char fitted[ML_REPORT_NAME_BYTES];
    const struct ml_profile_point *last = &row->series->points[row->series->points_count - 1];

    columns = columns > CURVE_COLUMNS_MAX ? CURVE_COLUMNS_MAX : columns;
    if (row->process) {
        snprintf(name, sizeof name, "%s %" PRIu32, row->process->name.bytes, row->process->pid);
    } else {
        snprintf(name, sizeof name, "all together");
    }
    ml_function_name_fit(name, NAME_COLUMNS, fitted, sizeof fitted);
    fputs("  ", page->out);
    ml_report_put(page, fitted);
    fprintf(page->out, "%*s  ", (int)(NAME_COLUMNS - ml_printable_columns(fitted)), "");
    ml_timeline_put_curve(page->out, timeline, row->series, columns);
    fprintf(
        page->out,
        "%12s%12s%12s\n",
        ml_units_size(ml_series_at(row->series, timeline->to_ms)).text,
        ml_units_size(row->most_bytes).text,
        ml_units_size(last->total_bytes).text
    );
}

static void put_curves(const struct ml_report_page *page, const struct ml_timeline *timeline) {
    const struct ml_profile *profile = timeline->report->profile;
    const size_t limit = page->report->limit > 0 ? page->report->limit : ROWS;
    struct row *rows = calloc(profile->processes_count + 1, sizeof *rows);
    const struct ml_profile_series *tree = ml_timeline_tree(timeline);
    size_t count = 0;
    const size_t first = tree && profile->processes_count > 1 ? 1 : 0;

    if (!rows) {
        return;
    }
    if (first == 1) {
        rows[count++].series = tree;
        (void)ml_series_most(tree, timeline->from_ms, timeline->to_ms, &rows[0].most_bytes);
    }
    for (size_t i = 0; i < profile->processes_count; i++) {
        struct row row = {.process = &profile->processes[i]};
        row.series = ml_timeline_sums(timeline, row.process);
        if (row.series &&
            ml_series_most(row.series, timeline->from_ms, timeline->to_ms, &row.most_bytes)) {
            rows[count++] = row;
        }
    }
    qsort(rows + first, count - first, sizeof *rows, order_rows);
    ml_report_heading(
        page, "Live bytes", "each row as high as its most; at the end, most, allocated"
    );
    if (count == first) {
        fputs(
            profile->processes_count == 0
                ? "  no process was recorded; memlog report tells why\n"
                : "  nothing is known of so short a time: memlog looks each 250 ms; memlog report "
                  "has the sums\n",
            page->out
        );
    }
    for (size_t i = 0; i < count && i < limit + first; i++) {
        put_row(page, timeline, &rows[i]);
    }
    if (count > limit + first) {
        fprintf(page->out, "  ... %zu more processes: --limit=%zu\n", count - limit - first, count);
    }
    free(rows);
}

static void put_change(const struct ml_report_page *page, const struct ml_timeline_change *change) {
    const bool grew = change->to_bytes > change->from_bytes;
    const uint64_t by =
        grew ? change->to_bytes - change->from_bytes : change->from_bytes - change->to_bytes;
    char name[ML_TIMELINE_NAME_BYTES];
    char fitted[ML_REPORT_NAME_BYTES];
    char callers[ML_REPORT_CALLERS_BYTES];

    ml_report_print(
        page, "  " ML_BOLD "%s%-11s" ML_PLAIN, grew ? "+" : "-", ml_units_size(by).text
    );
    ml_timeline_name(page->report->stacks, change->node, name);
    ml_function_name_fit(name, page->style->width - 40, fitted, sizeof fitted);
    ml_report_put(page, fitted);
    fputs("  in ", page->out);
    ml_report_put(page, change->process->name.bytes);
    fprintf(page->out, " %" PRIu32 "\n", change->process->pid);
    ml_report_callers(page, change->node, callers);
    ml_report_print(
        page,
        "              " ML_DIM "%s to %s",
        ml_units_size(change->from_bytes).text,
        ml_units_size(change->to_bytes).text
    );
    if (change->is_partial) {
        fputs(", at least: not followed before", page->out);
    }
    if (callers[0]) {
        fputs(", ", page->out);
        ml_report_put(page, callers);
    }
    ml_report_print(page, ML_PLAIN "\n");
}

/* Stacks that held more in between than at both ends. They explain the curve's maximum. */
static void put_passed(const struct ml_report_page *page, const struct ml_timeline *timeline) {
    enum { LEAST_SHARE = 100 };
    const size_t limit = page->report->limit > 0 ? page->report->limit : CHANGES;
    const uint64_t largest =
        timeline->passed_count > 0 ? ml_timeline_passed_bytes(&timeline->passed[0]) : 0;

    for (size_t i = 0; i < timeline->passed_count && i < limit; i++) {
        const struct ml_timeline_change *change = &timeline->passed[i];
        char callers[ML_REPORT_CALLERS_BYTES];

        if (ml_timeline_passed_bytes(change) < largest / LEAST_SHARE) {
            break;
        }
        if (i == 0) {
            ml_report_heading(
                page,
                "What came and went",
                "the most that was seen of each; between two looks only its process's peak is known"
            );
        }
        ml_report_print(
            page, "  " ML_BOLD "%-12s" ML_PLAIN, ml_units_size(change->most_bytes).text
        );
        ml_report_callers(page, change->node, callers);
        ml_report_put(page, callers);
        fputs("  in ", page->out);
        ml_report_put(page, change->process->name.bytes);
        fprintf(page->out, " %" PRIu32 "\n", change->process->pid);
    }
}

static void put_changes(const struct ml_report_page *page, const struct ml_timeline *timeline) {
    const size_t limit = page->report->limit > 0 ? page->report->limit : CHANGES;
    size_t shown = 0;

    ml_report_heading(page, "What grew", "of the stacks that hold most, in that time");
    for (size_t i = 0; i < timeline->changes_count && shown < limit; i++) {
        if (timeline->changes[i].to_bytes > timeline->changes[i].from_bytes) {
            put_change(page, &timeline->changes[i]);
            shown++;
        }
    }
    if (timeline->changes_count == 0) {
        fputs("  No stack was followed then; memlog report has them all.\n", page->out);
    } else if (shown == 0) {
        fputs("  Nothing.\n", page->out);
    }
    shown = 0;
    for (size_t i = timeline->changes_count; i > 0 && shown < limit / 2; i--) {
        if (timeline->changes[i - 1].to_bytes < timeline->changes[i - 1].from_bytes) {
            if (shown == 0) {
                ml_report_heading(page, "What shrank", "");
            }
            put_change(page, &timeline->changes[i - 1]);
            shown++;
        }
    }
}

void ml_timeline_text(
    const struct ml_timeline *timeline, const struct ml_report_style *style, FILE *out
) {
    const struct ml_report *report = timeline->report;
    const struct ml_report_page page = {.report = report, .style = style, .out = out};

    ml_report_put(&page, report->profile->program.bytes);
    fprintf(
        out,
        "\n%s to %s, %s\n",
        ml_report_time_of_day(ml_profile_realtime_ms(report->profile, timeline->from_ms) * 1000000)
            .text,
        ml_report_time_of_day(ml_profile_realtime_ms(report->profile, timeline->to_ms) * 1000000)
            .text,
        ml_units_span((timeline->to_ms - timeline->from_ms) * 1000000).text
    );
    put_curves(&page, timeline);
    put_changes(&page, timeline);
    put_passed(&page, timeline);
}
