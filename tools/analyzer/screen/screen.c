#include "tools/analyzer/screen/screen.h"

#include <inttypes.h>
#include <string.h>

#include "base/printable.h"
#include "base/shell_word.h"
#include "tools/analyzer/formats/units.h"
#include "tools/analyzer/report/internal.h"
#include "tools/analyzer/report/timeline.h"
#include "tools/analyzer/screen/holders.h"

enum {
    BEHIND_TITLE_COLUMN = 15,
    HOLDERS_SHOWN = 5,
    LEFT_HOLDERS_SHOWN = 2, /* beside those of the peak */
    CURVE_COLUMNS_MAX = 40,
    CURVE_COLUMNS_MIN = 8,
    LINE_BYTES = 512
};

/* Live bytes of this share of the peak are told apart from it; of the other, they are the peak. */
enum { WORTH_A_LIST_PERCENT = 10, SAME_AS_PEAK_PERCENT = 90 };

/* A holder with so much is told in detail, and one with less than that is one of many. */
enum { DETAILS_PERCENT = 20, WORTH_A_LINE_PER_MILLE = 5 };

static bool is_at_least(uint64_t part, uint64_t whole, uint64_t percent) {
    return (double)part * 100 >= (double)whole * (double)percent;
}

/* What the title says of completeness; NULL: that needs lines of its own. */
static const char *complete_in_title(const struct ml_profile *profile, char out[LINE_BYTES]) {
    const uint64_t interval_bytes = ml_profile_sampling_bytes(profile);
    struct ml_profile_spread errors;

    if (!ml_profile_is_complete(profile)) {
        return NULL;
    }
    if (profile->heap.bytes) {
        snprintf(
            out,
            LINE_BYTES,
            "of the heap %.64s %s",
            profile->heap.bytes,
            ml_profile_standard_errors(&profile->tree, &errors)
                ? "estimates from samples (\u00b1 one standard error)"
                : "every block that was reported"
        );
    } else if (interval_bytes > 1) {
        snprintf(
            out,
            LINE_BYTES,
            "estimated from a sample every %s%s (\u00b1 one standard error)",
            ml_units_size(interval_bytes).text,
            ml_report_sampling_changed(profile) ? " at times" : ""
        );
    } else {
        snprintf(
            out,
            LINE_BYTES,
            "%sno event lost%s",
            ml_profile_is_covered(profile) ? "complete: " : "",
            profile->list_blind_ns > 0 ? " of all processes that memlog saw" : ""
        );
    }
    return out;
}

static void put_title(const struct ml_report_page *page) {
    const struct ml_profile *profile = page->report->profile;
    const uint64_t processes = ml_profile_processes(profile);
    const uint64_t images = ml_profile_images(profile);
    char more[LINE_BYTES];
    char text[2 * sizeof more];
    const char *complete = complete_in_title(profile, more);
    size_t at = 0;

    at = (size_t
    )snprintf(text, sizeof text, "%" PRIu64 " process%s", processes, processes == 1 ? "" : "es");
    if (images != processes) {
        at +=
            (size_t)snprintf(text + at, sizeof text - at, " in %" PRIu64 " program images", images);
    }
    at += (size_t)snprintf(
        text + at,
        sizeof text - at,
        ", %s",
        ml_units_span(profile->now.monotonic_ns - profile->run_start.monotonic_ns).text
    );
    if (profile->reason != 0) {
        at += (size_t)snprintf(
            text + at, sizeof text - at, ", dump at %s", ml_profile_reason_name(profile->reason)
        );
    } else if (profile->processes_count == 1) {
        char state[ML_UNITS_BYTES];
        ml_report_state(&profile->processes[0], state, sizeof state);
        at += (size_t)snprintf(text + at, sizeof text - at, ", %s", state);
    }
    if (complete) {
        snprintf(text + at, sizeof text - at, ", %s", complete);
    }
    ml_report_title(page, text);
}

static const struct ml_profile_series *series_of(const struct ml_profile *profile) {
    for (size_t i = 0; i < profile->series_count; i++) {
        const struct ml_profile_series *series = &profile->series[i];
        if (!series->is_stack && (series->process_id == 0 || profile->processes_count == 1)) {
            return series;
        }
    }
    return NULL;
}

/* "  peak         44.5 MiB at 15:34:58.005Z  ▁▂▄▆█  in 200,005 blocks" */
static void put_peak(const struct ml_report_page *page) {
    const struct ml_profile *profile = page->report->profile;
    const struct ml_profile_series *series = series_of(profile);
    const struct ml_profile_totals *tree = &profile->tree;
    struct ml_profile_spread errors;
    char text[LINE_BYTES];
    char blocks[LINE_BYTES];
    size_t used = BEHIND_TITLE_COLUMN;

    (void)ml_profile_standard_errors(tree, &errors);
    snprintf(
        text,
        sizeof text,
        "%s%s%s",
        ml_units_size(tree->peak_bytes).text,
        errors.peak_bytes > 0 ? " \u00b1 " : "",
        errors.peak_bytes > 0 ? ml_units_size((uint64_t)(errors.peak_bytes + 0.5)).text : ""
    );
    ml_report_print(page, "  peak         " ML_BOLD "%s" ML_PLAIN, text);
    used += ml_printable_columns(text);
    if (tree->peak_bytes > 0) {
        snprintf(
            text,
            sizeof text,
            " at %s",
            ml_report_time_of_day(ml_profile_realtime_ns(profile, profile->tree_peak_ticks)).text
        );
        fputs(text, page->out);
        used += ml_printable_columns(text);
    }
    snprintf(
        blocks,
        sizeof blocks,
        " in %s block%s",
        ml_units_count(tree->peak_blocks).text,
        ml_report_plural(tree->peak_blocks)
    );
    if (used + ml_printable_columns(blocks) <= page->style->width) {
        ml_report_print(page, ML_DIM "%s" ML_PLAIN, blocks);
        used += ml_printable_columns(blocks);
    }
    if (series && used + 3 + CURVE_COLUMNS_MIN <= page->style->width) {
        const size_t room = page->style->width - used - 3;
        const struct ml_timeline timeline = {
            .report = page->report,
            .from_ms = series->from_ms,
            .to_ms = series->points[series->points_count - 1].end_ms};
        fputs("   ", page->out);
        ml_timeline_put_curve(
            page->out,
            &timeline,
            series,
            (unsigned)(room < CURVE_COLUMNS_MAX ? room : CURVE_COLUMNS_MAX)
        );
    }
    putc('\n', page->out);
}

/* "  left         75.3 KiB at exit, never freed, in 3 blocks" */
static void put_figure(
    const struct ml_report_page *page,
    const char *title,
    uint64_t bytes,
    double bytes_error,
    const char *rest
) {
    char amount[LINE_BYTES];

    snprintf(
        amount,
        sizeof amount,
        "%s%s%s",
        ml_units_size(bytes).text,
        bytes_error > 0 ? " \u00b1 " : "",
        bytes_error > 0 ? ml_units_size((uint64_t)(bytes_error + 0.5)).text : ""
    );
    ml_report_print(page, "  %-12s " ML_BOLD "%s" ML_PLAIN " ", title, amount);
    ml_report_put_wrapped(page, BEHIND_TITLE_COLUMN + ml_printable_columns(amount) + 1, rest);
    putc('\n', page->out);
}

static void put_held(
    const struct ml_report_page *page,
    const char *title,
    const struct ml_profile_holding *holding,
    const char *when
) {
    const uint64_t peak_bytes = page->report->profile->tree.peak_bytes;
    const struct ml_profile_totals totals = {
        .variances = {.live_bytes = holding->bytes_variance, .total_bytes = 1}};
    struct ml_profile_spread errors;
    char share[ML_UNITS_BYTES] = "";
    char rest[LINE_BYTES];

    (void)ml_profile_standard_errors(&totals, &errors);
    /* Who ran at different times may have left more than was ever held at one. */
    if (holding->bytes <= peak_bytes && peak_bytes > 0) {
        snprintf(
            share,
            sizeof share,
            ", %.0f %% of the peak",
            100.0 * (double)holding->bytes / (double)peak_bytes
        );
    }
    snprintf(
        rest,
        sizeof rest,
        "%s, in %s block%s%s",
        when,
        ml_units_count(holding->blocks).text,
        ml_report_plural(holding->blocks),
        share
    );
    put_figure(page, title, holding->bytes, errors.live_bytes, rest);
}

static void put_figures(const struct ml_report_page *page) {
    const struct ml_profile *profile = page->report->profile;
    const bool anyone_runs = ml_profile_anyone_runs(profile);
    const char *at_exit = ml_profile_processes(profile) > 1 ? "at the exit of each, never freed"
                                                            : "at exit, never freed";
    struct ml_profile_spread errors;
    char rest[LINE_BYTES];

    put_peak(page);
    if (anyone_runs) {
        put_held(page, "live", &profile->running, "at the dump");
    }
    if (!anyone_runs || profile->left.blocks > 0) {
        put_held(page, "left", &profile->left, anyone_runs ? "by ended processes" : at_exit);
    }
    (void)ml_profile_standard_errors(&profile->tree, &errors);
    snprintf(
        rest,
        sizeof rest,
        "over the whole run, in %s block%s",
        ml_units_count(profile->tree.total_blocks).text,
        ml_report_plural(profile->tree.total_blocks)
    );
    put_figure(page, "allocated", profile->tree.total_bytes, errors.total_bytes, rest);
}

/* Whether a name would tell more. */
static bool is_nameless(const struct ml_screen_holder *holder) {
    return holder->name[0] == '(';
}

/* Whether some of them have no name. */
static bool put_holders(
    const struct ml_report_page *page, const char *title, enum ml_metric metric, size_t shown
) {
    const uint64_t whole_bytes = ml_metric_bytes(&page->report->profile->tree, metric);
    struct ml_holders holders;
    bool lacks_names = false;

    if (ml_holders_init(&holders, page, metric, shown) && holders.count > 0) {
        ml_report_heading(
            page,
            title,
            page->report->stacks->is_filtered ? "of the stacks that were asked for" : ""
        );
        for (size_t i = 0; i < holders.shown; i++) {
            const struct ml_screen_holder *holder = &holders.holders[i];
            const bool is_large = is_at_least(holder->bytes, whole_bytes, DETAILS_PERCENT);
            if (i > 0 && page->report->limit == 0 &&
                !is_at_least(holder->bytes * 10, whole_bytes, WORTH_A_LINE_PER_MILLE)) {
                break;
            }
            ml_holders_put(page, holder, whole_bytes, i == 0 || is_large);
            lacks_names = lacks_names || is_nameless(holder);
        }
    }
    ml_holders_fini(&holders);
    return lacks_names;
}

static void put_lists(const struct ml_report_page *page) {
    const struct ml_profile *profile = page->report->profile;
    const struct ml_profile_totals *tree = &profile->tree;
    const char *live_title = ml_report_live_title(profile);
    const size_t limit = page->report->limit;

    bool lacks_names = false;

    if (is_at_least(tree->live_bytes, tree->peak_bytes, SAME_AS_PEAK_PERCENT)) {
        lacks_names =
            put_holders(page, live_title, ML_METRIC_LIVE, limit > 0 ? limit : HOLDERS_SHOWN);
    } else {
        lacks_names = put_holders(
            page, "Who held the peak", ML_METRIC_PEAK, limit > 0 ? limit : HOLDERS_SHOWN
        );
        if (is_at_least(tree->live_bytes, tree->peak_bytes, WORTH_A_LIST_PERCENT)) {
            lacks_names =
                put_holders(
                    page, live_title, ML_METRIC_LIVE, limit > 0 ? limit : LEFT_HOLDERS_SHOWN
                ) ||
                lacks_names;
        }
    }
    if (lacks_names) {
        ml_report_print(
            page,
            "  " ML_DIM "Names are missing: --full tells of which files, and why" ML_PLAIN "\n"
        );
    }
}

static void put_next(const struct ml_report_page *page) {
    static const char command[] = "memlog report --full ";
    static const char others[] = ", or flamegraph, timeline";
    char dump[LINE_BYTES];

    if (page->report->file_path && ml_shell_word(page->report->file_path, dump, sizeof dump)) {
        const size_t columns = 6 + strlen(command) + ml_printable_columns(dump) + strlen(others);
        ml_report_print(page, "\n" ML_DIM "Next" ML_PLAIN "  %s", command);
        ml_report_put(page, dump);
        ml_report_print(
            page, ML_DIM "%s" ML_PLAIN "\n", columns <= page->style->width ? others : ""
        );
    }
}

static bool is_any_note(const struct ml_profile *profile) {
    bool is_any = profile->sandbox_missing.bytes[0] != '\0';

    for (size_t i = 0; i < profile->processes_count; i++) {
        const struct ml_profile_process *process = &profile->processes[i];
        is_any = is_any || process->truncated_stacks > 0 || process->broken_stacks > 0 ||
                 process->unwind_checked > 0;
    }
    return is_any;
}

void ml_screen(
    const struct ml_report *report, const struct ml_report_style *style, bool is_run_end, FILE *out
) {
    const struct ml_report_page page = {
        .report = report, .style = style, .out = out, .is_summary = true};

    const bool has_figures = report->profile->processes_count > 0;

    if (!report->profile->has_run || (!has_figures && !is_run_end)) {
        ml_report_text(report, style, out); /* why there is nothing is a long story */
        return;
    }
    put_title(&page);
    ml_report_trigger(&page);
    ml_report_whole(&page);
    if (has_figures) {
        put_figures(&page);
    }
    ml_report_warnings(&page);
    put_lists(&page);
    if (is_any_note(report->profile)) {
        fputc('\n', out); /* behind the answer, which they do not change */
        ml_report_notes(&page);
    }
    if (!is_run_end) {
        put_next(&page);
    }
}
