/* What the heap explains of a process's memory, and whose memory went unseen, in words. Room:
 * tools.
 *
 * One rule: words say what was read, and no more: of memory that the heap does not explain nobody
 * here knows whose it is. */
#include <stdio.h>

#include "tools/report_internal.h"
#include "tools/words.h"

enum {
    UNDER_NAME_COLUMN = 9, /* of the table of processes */
    BEHIND_TITLE_COLUMN = 15,
    TEXT_BYTES = 512
};

/* A peak that much above what is live is worth its words. */
static bool was_much_larger(uint64_t peak_bytes, uint64_t live_bytes) {
    const uint64_t least_bytes = (uint64_t)1 << 20;

    return peak_bytes > live_bytes && peak_bytes - live_bytes >= least_bytes &&
           peak_bytes - live_bytes >= live_bytes / 4;
}

/* A sentence under a process's line. */
static void put_below(const struct ml_report_page *page, const char *text) {
    fprintf(page->out, "%*s%s", UNDER_NAME_COLUMN, "", ml_report_dim(page));
    ml_report_put_wrapped(page, UNDER_NAME_COLUMN, text);
    fprintf(page->out, "%s\n", ml_report_plain(page));
}

static void
put_reading(const struct ml_report_page *page, const struct ml_profile_process *process) {
    char text[TEXT_BYTES];
    char peak[TEXT_BYTES] = "";
    char private_words[ML_WORDS_BYTES];
    char heap_words[ML_WORDS_BYTES];

    if (process->coverage_heap_bytes > process->coverage_private_bytes) {
        snprintf(peak, sizeof peak, ", not all of it touched");
    } else if (was_much_larger(process->totals.peak_bytes, process->coverage_heap_bytes)) {
        snprintf(
            peak,
            sizeof peak,
            " (%s at its peak: an allocator may keep what was freed)",
            ml_words_size(process->totals.peak_bytes, heap_words)
        );
    }
    snprintf(
        text,
        sizeof text,
        "private memory %s %s: heap %s live%s",
        ml_words_size(process->coverage_private_bytes, private_words),
        process->state == ML_STATE_RUNNING ? "when last read" : "at its largest reading",
        ml_words_size(process->coverage_heap_bytes, heap_words),
        peak
    );
    put_below(page, text);
}

void ml_report_coverage(
    const struct ml_report_page *page, const struct ml_profile_process *process
) {
    if (process->coverage_private_bytes > 0) {
        put_reading(page, process);
    }
    if (process->unseen.count_bytes > 0) {
        char text[TEXT_BYTES];

        snprintf(text, sizeof text, "not seen: %s", process->unseen.bytes);
        put_below(page, text);
    }
}

void ml_report_uncovered(const struct ml_report_page *page) {
    char text[ML_UNCOVERED_BYTES];

    if (ml_profile_uncovered(page->report->profile, text)[0] == '\0') {
        return;
    }
    fprintf(page->out, "  %sNOT COVERED%s  ", ml_report_warn(page), ml_report_plain(page));
    ml_report_put_wrapped(page, BEHIND_TITLE_COLUMN, text);
    putc('\n', page->out);
}
