/* How much of a process's memory the heap explains, and whose memory was not seen, as text. Room:
 * tools.
 *
 * One rule: the text says what was read, and no more. Who owns memory that the heap does not
 * explain is not known here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/analyzer/formats/units.h"
#include "tools/analyzer/report/internal.h"
#include "tools/analyzer/report/unseen_groups.h"
#include "tools/analyzer/whole/whole.h"

enum {
    UNDER_NAME_COLUMN = 9, /* of the table of processes */
    BEHIND_TITLE_COLUMN = 15,
    HANG_COLUMNS = 2, /* further indentation of continued lines */
    SUMMARY_LINES = 4,
    TEXT_BYTES = 512
};

static const char behind_title[] = "               ";

/* Whether the peak is so far above the live bytes that the text names it. */
static bool was_much_larger(uint64_t peak_bytes, uint64_t live_bytes) {
    const uint64_t least_bytes = (uint64_t)1 << 20;

    return peak_bytes > live_bytes && peak_bytes - live_bytes >= least_bytes &&
           peak_bytes - live_bytes >= live_bytes / 4;
}

/* A sentence under a process's line. */
static void put_below(const struct ml_report_page *page, const char *text) {
    ml_report_print(page, "%*s" ML_DIM, UNDER_NAME_COLUMN, "");
    ml_report_put_wrapped(page, UNDER_NAME_COLUMN, text);
    ml_report_print(page, ML_PLAIN "\n");
}

static void
put_reading(const struct ml_report_page *page, const struct ml_profile_process *process) {
    char text[TEXT_BYTES];
    char peak[TEXT_BYTES] = "";

    if (process->coverage_heap_bytes > process->coverage_private_bytes) {
        snprintf(peak, sizeof peak, ", not all of it touched");
    } else if (was_much_larger(process->totals.peak_bytes, process->coverage_heap_bytes)) {
        snprintf(
            peak,
            sizeof peak,
            " (%s at its peak: an allocator may keep what was freed)",
            ml_units_size(process->totals.peak_bytes).text
        );
    }
    snprintf(
        text,
        sizeof text,
        "private memory %s %s: heap %s live%s",
        ml_units_size(process->coverage_private_bytes).text,
        process->state == MEMLOG_SERVICE_PROCESS_STATE_RUNNING ? "when last read"
                                                               : "at its largest reading",
        ml_units_size(process->coverage_heap_bytes).text,
        peak
    );
    put_below(page, text);
}

/* All of "private 330 MiB = 12 heap + 1 slack + ...", by the kernel's figures. */
static void
put_components(const struct ml_report_page *page, const struct ml_profile_process *process) {
    struct ml_whole whole = {0};
    char sum[ML_WHOLE_TEXT_BYTES];
    char notes[ML_WHOLE_TEXT_BYTES];
    char text[3 * ML_WHOLE_TEXT_BYTES];

    ml_whole_add(&whole, process);
    ml_whole_text(&whole, 0, sum);
    ml_whole_notes(&whole, notes);
    snprintf(
        text, sizeof text, "private %s%s%s%s", sum, notes[0] ? " (" : "", notes, notes[0] ? ")" : ""
    );
    put_below(page, text);
}

void ml_report_coverage(
    const struct ml_report_page *page, const struct ml_profile_process *process
) {
    if (process->coverage_was_read) {
        put_reading(page, process);
    }
    if (process->regions_count > 0) {
        put_components(page, process);
    }
    if (process->unseen.count_bytes > 0) {
        char text[TEXT_BYTES];

        snprintf(text, sizeof text, "not seen: %s", process->unseen.bytes);
        put_below(page, text);
    }
}

/* Print the text in at most `lines` lines. A longer text is cut behind a word. */
static void put_lines(const struct ml_report_page *page, char *text, size_t lines) {
    size_t used = strlen(text);

    while (ml_report_lines_of(page, BEHIND_TITLE_COLUMN + HANG_COLUMNS, text) > lines) {
        while (used > 0 && text[used - 1] != ' ') {
            used--;
        }
        while (used > 0 && strchr(" ,:", text[used - 1])) {
            used--;
        }
        if (used == 0) {
            break; /* one long word */
        }
        snprintf(text + used, sizeof "...", "...");
    }
    ml_report_put_wrapped(page, BEHIND_TITLE_COLUMN + HANG_COLUMNS, text);
    putc('\n', page->out);
}

/* One line for each kind of process. Lines that are left over go to the largest kinds, whose text
 * is cut otherwise. */
static void put_unseen(const struct ml_report_page *page, size_t lines_max) {
    const struct ml_profile *profile = page->report->profile;
    const size_t room = lines_max - (profile->list_missed > 0);
    size_t count = 0;
    struct ml_unseen_group *groups = ml_unseen_groups(profile, ML_UNSEEN_ANYBODY, &count);
    const size_t shown = count > room ? room - 1 : count;
    size_t over = room - shown - (shown < count);
    const char *indent = "";
    char text[ML_UNSEEN_WORDS_BYTES];

    for (size_t i = 0; groups && i < shown; i++) {
        size_t lines = 0;
        ml_unseen_group_words(&groups[i], false, text);
        lines = ml_report_lines_of(page, BEHIND_TITLE_COLUMN + HANG_COLUMNS, text);
        if (lines > over + 1) {
            ml_unseen_group_words(&groups[i], true, text);
            lines = ml_report_lines_of(page, BEHIND_TITLE_COLUMN + HANG_COLUMNS, text);
        }
        lines = lines < over + 1 ? lines : over + 1;
        over -= lines - 1;
        fputs(indent, page->out);
        put_lines(page, text, lines);
        indent = behind_title;
    }
    if (groups && shown < count) {
        fprintf(
            page->out, "%s%s\n", indent, ml_unseen_rest_words(groups + shown, count - shown, text)
        );
        indent = behind_title;
    }
    if (profile->list_missed > 0) {
        fprintf(
            page->out,
            "%sat least %s process%s ended before memlog saw %s\n",
            indent,
            ml_units_count(profile->list_missed).text,
            profile->list_missed == 1 ? "" : "es",
            profile->list_missed == 1 ? "it" : "them"
        );
    } else if (count == 0) {
        ml_profile_uncovered(profile, text);
        put_lines(page, text, lines_max);
    }
    free(groups);
}

void ml_report_uncovered(const struct ml_report_page *page) {
    char text[ML_UNCOVERED_BYTES];

    if (ml_profile_uncovered(page->report->profile, text)[0] == '\0') {
        return;
    }
    ml_report_print(page, "  " ML_WARN "NOT COVERED" ML_PLAIN "  ");
    if (page->is_summary) {
        put_unseen(page, SUMMARY_LINES);
        return;
    }
    ml_report_put_wrapped(page, BEHIND_TITLE_COLUMN, text);
    putc('\n', page->out);
}
