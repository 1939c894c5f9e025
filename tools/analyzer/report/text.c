#include "tools/analyzer/report/report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "tools/analyzer/formats/units.h"
#include "tools/analyzer/names/function_name.h"
#include "tools/analyzer/report/internal.h"
#include "tools/analyzer/report/unrecorded.h"
#include "tools/analyzer/whole/grown.h"

enum { BEHIND_TITLE_COLUMN = 15, TRIGGER_BYTES = 1024 };

void ml_report_print(const struct ml_report_page *page, const char *format, ...) {
    static const char *const sequences[] = {"", "\033[1m", "\033[2m", "\033[33m", "\033[0m"};
    enum { MARKS_END = sizeof sequences / sizeof sequences[0] };
    va_list arguments;
    char *text = NULL;

    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0) {
        text = NULL; /* no memory */
    }
    va_end(arguments);
    for (const char *at = text; at && *at; at++) {
        if ((unsigned char)*at >= MARKS_END) {
            putc(*at, page->out);
        } else if (page->style->colour) {
            fputs(sequences[(unsigned char)*at], page->out);
        }
    }
    free(text);
}

void ml_report_heading(const struct ml_report_page *page, const char *title, const char *rest) {
    ml_report_print(page, "\n" ML_BOLD "%s" ML_PLAIN, title);
    if (rest[0]) {
        ml_report_print(page, "  " ML_DIM "%s" ML_PLAIN, rest);
    }
    putc('\n', page->out);
}

const char *ml_report_plural(uint64_t count) {
    return count == 1 ? "" : "s";
}

void ml_report_put(const struct ml_report_page *page, const char *text) {
    ml_printable_put_text(page->out, text);
}

/* Bytes at the text's start that stay in one line: a word, or a part of a sum, "+ 12.5 heap". */
static size_t unbroken(const char *text) {
    const bool is_part_of_sum = strncmp(text, "+ ", 2) == 0 || strncmp(text, "= ", 2) == 0;
    size_t count = strcspn(text, " ");

    for (int words = is_part_of_sum ? 3 : 1; words > 1 && text[count] == ' '; words--) {
        count += 1 + strcspn(text + count + 1, " ");
    }
    return count;
}

/* The number of lines that the text takes. `is_written`: print them, too. */
static size_t
wrap(const struct ml_report_page *page, size_t column, const char *text, bool is_written) {
    const size_t first_column = column;
    char word[ML_REPORT_NAME_BYTES];
    size_t lines = 1;

    while (*text) {
        size_t count = unbroken(text);
        size_t columns = 0;
        bool is_new_line = false;

        count = count < sizeof word - 1 ? count : sizeof word - 1;
        memcpy(word, text, count);
        word[count] = '\0';
        columns = ml_printable_columns(word);
        text += count;
        is_new_line = column + columns >= page->style->width && column > first_column;
        lines += is_new_line;
        if (is_written && is_new_line) {
            fprintf(page->out, "\n%*s", (int)first_column, "");
        } else if (is_written && column > first_column) {
            putc(' ', page->out);
        }
        column = is_new_line ? first_column : column + (column > first_column);
        if (is_written) {
            ml_report_put(page, word);
        }
        column += columns;
        text += strspn(text, " ");
    }
    return lines;
}

void ml_report_put_wrapped(const struct ml_report_page *page, size_t column, const char *text) {
    (void)wrap(page, column, text, true);
}

size_t ml_report_lines_of(const struct ml_report_page *page, size_t column, const char *text) {
    return wrap(page, column, text, false);
}

/* "live  5.3 MiB  1,204 blocks  what it means" */
static void put_amount(
    const struct ml_report_page *page,
    const char *title,
    uint64_t bytes,
    uint64_t blocks,
    double bytes_error,
    const char *meaning
) {
    enum { FIGURES_COLUMNS = 46 };
    const bool is_exact = !(bytes_error > 0);
    const bool is_narrow = FIGURES_COLUMNS + strlen(meaning) > page->style->width;

    ml_report_print(
        page,
        "  %-9s " ML_BOLD "%11s" ML_PLAIN "%s%s %13s block%s%s%s%*s" ML_DIM "%s" ML_PLAIN "\n",
        title,
        ml_units_size(bytes).text,
        is_exact ? "" : " \u00b1 ",
        is_exact ? "" : ml_units_size((uint64_t)(bytes_error + 0.5)).text,
        ml_units_count(blocks).text,
        ml_report_plural(blocks),
        blocks == 1 ? " " : "",
        is_narrow ? "\n" : "",
        is_narrow ? BEHIND_TITLE_COLUMN : 2,
        "",
        meaning
    );
}

struct ml_units ml_report_time_of_day(uint64_t realtime_ns) {
    struct ml_units time = {.text = "an unknown time"};
    const struct ml_units whole = ml_units_time_ms(realtime_ns);

    /* 2026-11-21T10:00:00.123Z -> 10:00:00.123Z */
    if (strlen(whole.text) >= sizeof "2026-11-21T10:00:00.123Z" - 1) {
        snprintf(time.text, sizeof time.text, "%s", whole.text + sizeof "2026-11-21T" - 1);
    }
    return time;
}

static void put_holding(
    const struct ml_report_page *page,
    const char *title,
    const struct ml_profile_holding *holding,
    const char *meaning
) {
    const struct ml_profile_totals totals = {
        .variances = {.live_bytes = holding->bytes_variance, .total_bytes = 1}};
    struct ml_profile_spread errors;

    (void)ml_profile_standard_errors(&totals, &errors);
    put_amount(page, title, holding->bytes, holding->blocks, errors.live_bytes, meaning);
}

/* What is live, and what ended processes left. When no process runs, print the latter alone. */
static void put_held(const struct ml_report_page *page) {
    const struct ml_profile *profile = page->report->profile;
    const bool anyone_runs = ml_profile_anyone_runs(profile);
    const char *at_exit = ml_profile_processes(profile) > 1 ? "at the exit of each, never freed"
                                                            : "at exit, never freed";

    if (anyone_runs) {
        put_holding(page, "live", &profile->running, "at the dump");
    }
    if (!anyone_runs || profile->left.blocks > 0) {
        put_holding(page, "left", &profile->left, anyone_runs ? "by ended processes" : at_exit);
    }
}

bool ml_report_sampling_changed(const struct ml_profile *profile) {
    for (size_t i = 0; i < profile->processes_count; i++) {
        if (profile->processes[i].sampling_changes_count > 1) {
            return true;
        }
    }
    return false;
}

static void put_title(const struct ml_report_page *page) {
    const struct ml_profile *profile = page->report->profile;
    const uint64_t processes = ml_profile_processes(profile);
    const uint64_t images = ml_profile_images(profile);
    char in_images[ML_UNITS_BYTES + 32] = "";
    char text[TRIGGER_BYTES];

    if (images != processes) {
        snprintf(in_images, sizeof in_images, " in %" PRIu64 " program images", images);
    }
    snprintf(
        text,
        sizeof text,
        "%" PRIu64 " process%s%s, %s, dump at %s",
        processes,
        processes == 1 ? "" : "es",
        in_images,
        ml_units_span(profile->now.monotonic_ns - profile->run_start.monotonic_ns).text,
        profile->reason == 0 ? "the end" : ml_profile_reason_name(profile->reason)
    );
    ml_report_title(page, text);
}

void ml_report_title(const struct ml_report_page *page, const char *text) {
    char program[ML_REPORT_NAME_BYTES];

    ml_function_name_fit(
        page->report->profile->program.bytes, page->style->width / 3, program, sizeof program
    );
    ml_report_print(page, ML_BOLD);
    ml_report_put(page, program);
    ml_report_print(page, ML_PLAIN "  " ML_DIM);
    ml_report_put_wrapped(page, ml_printable_columns(program) + 2, text);
    ml_report_print(page, ML_PLAIN "\n");
}

/* Why the dump was taken, and which stack is guilty. */
static void put_trigger(const struct ml_report_page *page) {
    const struct ml_profile_trigger *trigger = &page->report->profile->trigger;
    char callers[ML_REPORT_CALLERS_BYTES];
    char text[TRIGGER_BYTES];

    if (trigger->kind == 0) {
        return;
    }
    if (trigger->kind == ML_PROFILE_TRIGGER_ASKED) {
        fputs("  asked for    ", page->out); /* the reason is the text of the request */
        snprintf(text, sizeof text, "%s", trigger->reason.bytes);
    } else {
        fputs("  taken for    ", page->out);
        snprintf(
            text,
            sizeof text,
            "%s: %s",
            ml_profile_trigger_name(trigger->kind),
            trigger->reason.bytes
        );
    }
    ml_report_put_wrapped(page, BEHIND_TITLE_COLUMN, text);
    putc('\n', page->out);
    if (page->report->stacks->guilty != ML_STACKS_NONE) {
        ml_report_callers(page, page->report->stacks->guilty, callers);
        ml_report_print(
            page,
            "  guilty       " ML_BOLD "%s" ML_PLAIN " in ",
            ml_units_size(trigger->node_bytes).text
        );
        ml_report_put(page, callers);
        putc('\n', page->out);
    }
}

/* Which components the named process has more of than at an earlier reading. The heap's stacks are
 * not guilty of what the heap does not explain. */
static void put_grown(const struct ml_report_page *page) {
    const struct ml_profile *profile = page->report->profile;
    const uint32_t id = profile->trigger.process_id;
    struct ml_grown grown;
    char components[ML_GROWN_TEXT_BYTES];
    char text[TRIGGER_BYTES];

    for (size_t i = 0; profile->trigger.kind != 0 && i < profile->processes_count; i++) {
        const struct ml_profile_process *process = &profile->processes[i];
        if (process->id != id || !ml_grown_of(process, &grown) || grown.all <= 0) {
            continue;
        }
        const struct ml_profile_process earlier = {.regions_boottime_ns = grown.since_boottime_ns};
        fputs("  grew         ", page->out);
        snprintf(
            text,
            sizeof text,
            "%s since %s: %s",
            ml_units_size((uint64_t)grown.all).text,
            ml_report_time_of_day(ml_profile_regions_ns(profile, &earlier)).text,
            ml_grown_text(&grown, components)
        );
        ml_report_put_wrapped(page, BEHIND_TITLE_COLUMN, text);
        putc('\n', page->out);
    }
}

/* Of a heap that programs report, which has an interval of its own. */
static void put_heaps_completeness(const struct ml_report_page *page) {
    struct ml_profile_spread errors;

    if (ml_profile_standard_errors(&page->report->profile->tree, &errors)) {
        fputs("  complete     estimated from samples (\u00b1 one standard error)\n", page->out);
    } else {
        fputs(
            "  complete     every block that was reported of this heap was recorded\n", page->out
        );
    }
}

/* Whether events were lost, or memory was not seen. */
static void put_completeness(const struct ml_report_page *page) {
    const struct ml_profile *profile = page->report->profile;

    if (!ml_profile_is_complete(profile)) {
        ml_report_print(page, "  " ML_WARN "NOT COMPLETE" ML_PLAIN "\n");
        ml_report_losses(page);
    } else if (profile->processes_count == 0) {
        fputs(
            profile->not_profiled_count > 0 || profile->others_count > 0
                ? "  nothing      no process was recorded, and below stands why\n"
                : "  nothing      no process was recorded: none was of a kind that --memlog=MODE "
                  "takes, or memlog doctor\n               PROGRAM tells why\n",
            page->out
        );
    } else if (page->is_summary) {
        /* its title says so */
    } else if (profile->heap.bytes) {
        put_heaps_completeness(page);
    } else if (ml_profile_sampling_bytes(profile) > 1) {
        fprintf(
            page->out,
            "  complete     estimated from samples, one every %s on average%s (\u00b1 one standard "
            "error)\n",
            ml_units_size(ml_profile_sampling_bytes(profile)).text,
            ml_report_sampling_changed(profile) ? " at times" : ""
        );
    } else if (ml_profile_is_covered(profile)) {
        fprintf(
            page->out,
            "  complete     every allocation that memlog saw was recorded, none was lost%s\n",
            profile->list_blind_ns > 0 ? ", of all processes that memlog saw" : ""
        );
    } else {
        fputs("  complete     of what memlog sees no event was lost\n", page->out);
    }
    ml_report_uncovered(page);
}

/* How many stacks are incomplete, and what the check of the unwinder found. Prints nothing without
 * either. */
static void put_stack_quality(const struct ml_report_page *page) {
    const struct ml_profile *profile = page->report->profile;
    uint64_t cut = 0;
    uint64_t broken = 0;
    uint64_t checked = 0;
    uint64_t differed = 0;

    for (size_t i = 0; i < profile->processes_count; i++) {
        cut += profile->processes[i].truncated_stacks;
        broken += profile->processes[i].broken_stacks;
        checked += profile->processes[i].unwind_checked;
        differed += profile->processes[i].unwind_differed;
    }
    if (cut > 0 || broken > 0) {
        fprintf(
            page->out,
            "  stacks       %s too deep and cut, %s not walked to the end\n",
            ml_units_count(cut).text,
            ml_units_count(broken).text
        );
    }
    if (checked > 0) {
        ml_report_print(
            page, differed > 0 ? "  " ML_WARN "unwinder" ML_PLAIN "     " : "  unwinder     "
        );
        fprintf(
            page->out,
            "%s stacks checked against libunwind, %s differed\n",
            ml_units_count(checked).text,
            ml_units_count(differed).text
        );
    }
}

static void put_figures(const struct ml_report_page *page) {
    const struct ml_profile *profile = page->report->profile;
    char peak[2 * ML_UNITS_BYTES];
    struct ml_profile_spread errors;

    if (profile->tree.peak_bytes == 0) {
        snprintf(peak, sizeof peak, "nothing was ever held");
    } else {
        snprintf(
            peak,
            sizeof peak,
            "%sat %s",
            profile->processes_count > 1 ? "all together, " : "",
            ml_report_time_of_day(ml_profile_realtime_ns(profile, profile->tree_peak_ticks)).text
        );
    }
    (void)ml_profile_standard_errors(&profile->tree, &errors);
    put_held(page);
    put_amount(
        page, "peak", profile->tree.peak_bytes, profile->tree.peak_blocks, errors.peak_bytes, peak
    );
    put_amount(
        page,
        "allocated",
        profile->tree.total_bytes,
        profile->tree.total_blocks,
        errors.total_bytes,
        "over the whole run"
    );
}

void ml_report_trigger(const struct ml_report_page *page) {
    put_trigger(page);
    put_grown(page);
}

/* Prints nothing for an empty text. */
static void put_wrapped_warning(
    const struct ml_report_page *page, const char *title, const char *front, const char *text
) {
    char words[TRIGGER_BYTES];

    if (text[0]) {
        snprintf(words, sizeof words, "%s%s", front, text);
        ml_report_print(page, "  " ML_WARN "%-12s" ML_PLAIN " ", title);
        ml_report_put_wrapped(page, BEHIND_TITLE_COLUMN, words);
        putc('\n', page->out);
    }
}

void ml_report_warnings(const struct ml_report_page *page) {
    const struct ml_profile *profile = page->report->profile;

    put_completeness(page);
    ml_report_overhead(page);
    ml_report_waits(page);
    put_wrapped_warning(page, "service", "", profile->service_trouble.bytes);
}

void ml_report_notes(const struct ml_report_page *page) {
    put_stack_quality(page);
    put_wrapped_warning(page, "sandbox", "missing: ", page->report->profile->sandbox_missing.bytes);
}

/* What the memory is, in figures; and what was lost. */
static void put_answer(const struct ml_report_page *page) {
    put_title(page);
    putc('\n', page->out);
    ml_report_trigger(page);
    ml_report_whole(page);
    if (page->report->profile->processes_count > 0) {
        put_figures(page); /* without a process there are no figures, not even 0 */
    }
    ml_report_warnings(page);
    ml_report_notes(page);
}

/* Temporary blocks, where they are many. */
static void put_temporary(const struct ml_report_page *page) {
    enum { WORTH_A_LINE_PERCENT = 10 };
    const struct ml_stack_list *list = &page->report->stacks->tree;
    uint64_t total = page->report->profile->tree.total_blocks;
    uint64_t temporary = 0;

    for (size_t i = 0; i < list->count; i++) {
        temporary += list->stacks[i].temporary_blocks;
    }
    if (temporary == 0 || temporary < total / 100 * WORTH_A_LINE_PERCENT) {
        return;
    }
    fprintf(
        page->out,
        "  temporary    %s block%s (%.0f %%) freed at once: --sort=temporary\n",
        ml_units_count(temporary).text,
        ml_report_plural(temporary),
        100.0 * (double)temporary / (double)total
    );
}

static void put_more(const struct ml_report_page *page) {
    if (page->report->list == ML_LIST_USUAL && !page->report->stacks->is_filtered &&
        page->report->profile->processes_count > 0) {
        ml_report_print(
            page,
            "\n" ML_DIM "More: --by=function, --metric=total, --focus=REGEX, --help" ML_PLAIN "\n"
        );
    }
}

void ml_report_text(
    const struct ml_report *report, const struct ml_report_style *style, FILE *out
) {
    const struct ml_report_page page = {.report = report, .style = style, .out = out};

    if (!report->profile->has_run) {
        fputs("Nothing is left of this dump: it was cut off within its first bytes.\n", out);
        return;
    }
    put_answer(&page);
    if (!report->stacks->is_filtered) {
        put_temporary(&page); /* counted over all stacks, of which a filter drops some */
    }
    ml_report_processes(&page);
    ml_report_sampling(&page);
    ml_report_unrecorded(&page);
    ml_report_not_profiled(&page);
    ml_report_stacks(&page);
    if (report->list == ML_LIST_USUAL) {
        ml_report_pins(&page);
    }
    ml_report_nameless(&page);
    ml_report_script_hints(&page);
    put_more(&page);
}
