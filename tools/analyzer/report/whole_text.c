/* The first lines of a report: the private memory of the tree and of its largest processes. Room:
 * tools.
 *
 * One rule: each line is true of one moment. Processes that have ended were largest at different
 * moments, so the sum of all is of the moment at which together they had most. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/printable.h"
#include "tools/analyzer/formats/units.h"
#include "tools/analyzer/report/internal.h"
#include "tools/analyzer/whole/mapped.h"
#include "tools/analyzer/whole/whole.h"
#include "tools/analyzer/names/function_name.h"

enum {
    BEHIND_TITLE_COLUMN = 15,
    NAME_COLUMNS = 10,
    LINES_MAX = 3,
    WORTH_A_LINE_PART = 20 /* at least this part of the largest */
};

struct line {
    const struct ml_profile_process *process;
    struct ml_whole whole;
};

static uint64_t bytes_of(const struct line *line) {
    const uint64_t bytes = ml_whole_bytes(&line->whole);

    return bytes > line->whole.most_bytes ? bytes : line->whole.most_bytes;
}

static int order_lines(const void *left, const void *right) {
    const uint64_t a = bytes_of(left);
    const uint64_t b = bytes_of(right);

    return (a < b) - (a > b);
}

/* The sum with its moment beside it, or below it on a narrow page. */
static void
put_sum_of(const struct ml_report_page *page, const struct ml_whole *whole, uint64_t realtime_ns) {
    enum { MOMENT_COLUMNS = sizeof " at 10:00:00.123Z" - 1, NARROW_COLUMNS = 80 };
    const bool is_narrow = page->style->width < NARROW_COLUMNS;
    const size_t room = page->style->width - BEHIND_TITLE_COLUMN;
    char text[ML_WHOLE_TEXT_BYTES];

    ml_whole_text(whole, is_narrow ? room : room - MOMENT_COLUMNS, text);
    ml_report_print(
        page,
        "%s" ML_DIM "%s%*s at %s" ML_PLAIN "\n",
        text,
        is_narrow ? "\n" : "",
        is_narrow ? BEHIND_TITLE_COLUMN - 1 : 0,
        "",
        ml_report_time_of_day(realtime_ns).text
    );
}

static void put_sum(const struct ml_report_page *page, const struct ml_whole *whole) {
    char text[ML_WHOLE_TEXT_BYTES];

    fprintf(
        page->out, "%s\n", ml_whole_text(whole, page->style->width - BEHIND_TITLE_COLUMN, text)
    );
}

static void put_below(const struct ml_report_page *page, const char *text) {
    ml_report_print(page, "%*s" ML_DIM, BEHIND_TITLE_COLUMN, "");
    ml_report_put_wrapped(page, BEHIND_TITLE_COLUMN, text);
    ml_report_print(page, ML_PLAIN "\n");
}

static void put_notes(const struct ml_report_page *page, const struct ml_whole *whole) {
    char text[ML_WHOLE_TEXT_BYTES];

    if (ml_whole_notes(whole, text)[0] != '\0') {
        put_below(page, text);
    }
}

/* Whether notably more was read of it than what its parts are known of. */
static bool had_more(const struct line *line) {
    enum { NOTABLE_BYTES = 1 << 20 };

    return line->whole.most_bytes > ml_whole_bytes(&line->whole) + NOTABLE_BYTES;
}

/* When its parts were read, where that is another moment than the dump's, and the most that was
 * read of it. "": there is nothing to say. */
static const char *moment(
    const struct ml_report_page *page,
    const struct line *line,
    bool is_in_list,
    char out_text[ML_WHOLE_TEXT_BYTES]
) {
    const struct ml_profile_process *process = line->process;
    const uint64_t read_ns = ml_profile_regions_ns(page->report->profile, process);
    const bool is_running = process->state == MEMLOG_SERVICE_PROCESS_STATE_RUNNING;
    const bool is_past = had_more(line);

    out_text[0] = '\0';
    if ((!is_running || is_past) && process->regions_count > 0) {
        snprintf(
            out_text,
            ML_WHOLE_TEXT_BYTES,
            "%sat %s%s%s",
            is_past || is_in_list ? "read " : "its largest reading, ",
            ml_report_time_of_day(read_ns).text,
            is_past ? "; at most it had " : "",
            is_past ? ml_units_size(line->whole.most_bytes).text : ""
        );
    }
    return out_text;
}

/* Of the only process: the moment and the notes, in one line where they fit. */
static void put_reading(
    const struct ml_report_page *page, const struct line *line, const struct ml_whole *whole
) {
    char when[ML_WHOLE_TEXT_BYTES];
    char notes[ML_WHOLE_TEXT_BYTES];
    char text[2 * ML_WHOLE_TEXT_BYTES];
    const bool has_both =
        moment(page, line, false, when)[0] != '\0' && ml_whole_notes(whole, notes)[0] != '\0';

    snprintf(text, sizeof text, "%s%s%s", when, has_both ? "; " : "", ml_whole_notes(whole, notes));
    if (text[0] != '\0') {
        put_below(page, text);
    }
}

static void put_process(const struct ml_report_page *page, const struct line *line) {
    char name[ML_REPORT_NAME_BYTES];

    ml_function_name_fit(line->process->name.bytes, NAME_COLUMNS, name, sizeof name);
    fputs("    ", page->out);
    ml_report_put(page, name);
    fprintf(page->out, "%*s ", (int)(NAME_COLUMNS - ml_printable_columns(name)), "");
    put_sum(page, &line->whole);
}

/* A line for each of the largest. */
static void
put_processes(const struct ml_report_page *page, const struct line *lines, size_t count) {
    for (size_t i = 0; i < count && i < LINES_MAX; i++) {
        if (bytes_of(&lines[i]) < bytes_of(&lines[0]) / WORTH_A_LINE_PART) {
            break;
        }
        char when[ML_WHOLE_TEXT_BYTES];
        put_process(page, &lines[i]);
        if (moment(page, &lines[i], true, when)[0] != '\0') {
            put_below(page, when);
        }
    }
}

/* Name what is mapped, of those that get a line. */
static void name_mapped(struct ml_mapped_names *names, struct line *lines, size_t count) {
    for (size_t i = 0; i < count && i < LINES_MAX; i++) {
        ml_mapped_names_add(names, &lines[i].whole, lines[i].process);
    }
}

/* Those whose memory was read, largest first. `is_running`: of those that run. NULL: no memory.
 * Owner: the caller. */
static struct line *lines_of(const struct ml_profile *profile, bool is_running, size_t *out_count) {
    const size_t all = profile->processes_count + profile->others_count;
    struct line *lines = calloc(all + 1, sizeof *lines);

    *out_count = 0;
    for (size_t i = 0; lines && i < all; i++) {
        const struct ml_profile_process *process =
            i < profile->processes_count ? &profile->processes[i]
                                         : &profile->others[i - profile->processes_count];
        struct line *line = &lines[*out_count];
        if (is_running != (process->state == MEMLOG_SERVICE_PROCESS_STATE_RUNNING)) {
            continue;
        }
        *line = (struct line){.process = process};
        ml_whole_add(&line->whole, process);
        *out_count += bytes_of(line) > 0 ? 1 : 0;
    }
    if (lines) {
        qsort(lines, *out_count, sizeof *lines, order_lines);
    }
    return lines;
}

static void put_running(
    const struct ml_report_page *page,
    const struct line *lines,
    size_t count,
    struct ml_mapped_names *names
) {
    struct ml_whole whole;

    ml_whole_of_running(page->report->profile, &whole);
    for (size_t i = 0; i < count; i++) {
        ml_mapped_names_add(names, &whole, lines[i].process);
    }
    put_sum(page, &whole);
    if (page->is_summary) {
        put_notes(page, &whole);
        return;
    }
    if (count > 1) {
        put_processes(page, lines, count);
        put_notes(page, &whole);
    } else {
        put_reading(page, &lines[0], &whole);
    }
}

/* The sum of when all together had most; false: it was never read. */
static bool put_peak(const struct ml_report_page *page, struct ml_mapped_names *names) {
    const struct ml_profile *profile = page->report->profile;
    struct ml_whole whole;
    char text[ML_WHOLE_TEXT_BYTES];

    if (!ml_whole_of_tree_peak(profile, &whole) || whole.components.all.private == 0) {
        return false;
    }
    for (size_t i = 0; i < profile->processes_count; i++) {
        struct ml_profile_process then;
        if (ml_profile_at_tree_peak(&profile->processes[i], &then)) {
            ml_mapped_names_add(names, &whole, &then);
        }
    }
    if (page->is_summary) {
        put_sum_of(page, &whole, ml_profile_tree_peak_ns(profile));
        return true;
    }
    put_sum(page, &whole);
    snprintf(
        text,
        sizeof text,
        "of %s process%s at %s, when together they had most; below, each at its own largest "
        "reading",
        ml_units_count(whole.read_count).text,
        whole.read_count == 1 ? "" : "es",
        ml_report_time_of_day(ml_profile_tree_peak_ns(profile)).text
    );
    put_below(page, text);
    return true;
}

static void put_ended(
    const struct ml_report_page *page,
    const struct line *lines,
    size_t count,
    struct ml_mapped_names *names
) {
    const struct ml_profile *profile = page->report->profile;
    struct ml_whole whole = {0};

    if (profile->processes_count + profile->others_count == 1) {
        if (page->is_summary && !had_more(&lines[0]) && lines[0].process->regions_count > 0) {
            put_sum_of(page, &lines[0].whole, ml_profile_regions_ns(profile, lines[0].process));
            put_notes(page, &lines[0].whole);
            return;
        }
        put_sum(page, &lines[0].whole);
        put_reading(page, &lines[0], &lines[0].whole);
        return;
    }
    if (!put_peak(page, names) && !page->is_summary) {
        fputs("each process at its largest reading\n", page->out);
    }
    if (!page->is_summary) {
        put_processes(page, lines, count);
    }
    for (size_t i = 0; i < count && i < LINES_MAX; i++) {
        whole.heapless_count += lines[i].whole.heapless_count;
        whole.sampled_count += lines[i].whole.sampled_count;
    }
    put_notes(page, &whole);
}

/* A summary has no line for processes that ended at different times and were never read together.
 */
static bool has_a_sum(const struct ml_report_page *page, bool anyone_runs) {
    const struct ml_profile *profile = page->report->profile;
    struct ml_whole whole;

    return !page->is_summary || anyone_runs ||
           profile->processes_count + profile->others_count == 1 ||
           (ml_whole_of_tree_peak(profile, &whole) && whole.components.all.private > 0);
}

void ml_report_whole(const struct ml_report_page *page) {
    const bool anyone_runs = ml_profile_anyone_runs(page->report->profile);
    size_t count = 0;
    struct line *lines = lines_of(page->report->profile, anyone_runs, &count);

    if (lines && count > 0 && has_a_sum(page, anyone_runs)) {
        struct ml_mapped_names names;
        ml_mapped_names_init(&names, page->report->stacks);
        name_mapped(&names, lines, count);
        fputs("  private      ", page->out);
        if (anyone_runs) {
            put_running(page, lines, count, &names);
        } else {
            put_ended(page, lines, count, &names);
        }
        ml_mapped_names_fini(&names);
    }
    free(lines);
}
