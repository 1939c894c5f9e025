/* The report's text on what was not recorded, and on how long programs waited for their pipes. */
#include <inttypes.h>
#include <stdio.h>

#include "tools/analyzer/formats/units.h"
#include "tools/analyzer/report/internal.h"

enum {
    BEHIND_TITLE_COLUMN = 15,
    NOTABLE_PART = 100 /* of the run, that is told among few lines */
};

/* Why events were dropped, and what helps, in the order in which they are printed. */
struct reason {
    uint64_t count;
    const char *why;
    const char *next;
};

static void
put_reasons(const struct ml_report_page *page, const struct ml_profile_accounting *accounting) {
    const struct reason reasons[] = {
        {accounting->overrun,
         "its pipe stayed full for a second and more",
         "--memlog-buffer-bytes=1M buffers more"},
        {accounting->no_lane,
         "more threads at once than memlog follows",
         "nothing helps but fewer threads at once"},
        {accounting->nested,
         "signal handlers interrupted each other inside the allocator",
         "handlers should not allocate"},
        {accounting->no_pipe,
         "the program closed the descriptor that it is recorded through, or forbade its use "
         "(seccomp)",
         "memlog's descriptors are the ones from 900 on"},
        {accounting->refused,
         "the service had stopped reading it",
         "please report what is said above"},
        {accounting->unaccounted, "for no reason that is known", "please report this as a fault"},
    };

    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
        if (reasons[i].count > 0) {
            fprintf(
                page->out,
                "      %s: %s (%s)\n",
                ml_units_count(reasons[i].count).text,
                reasons[i].why,
                reasons[i].next
            );
        }
    }
}

static void put_file_trouble(const struct ml_report_page *page) {
    const struct ml_profile *profile = page->report->profile;

    if (profile->bad_is) {
        fprintf(
            page->out, "    the file: %s (byte %" PRIu64 ")\n", profile->bad_is, profile->bad_at
        );
    } else if (profile->truncated) {
        fputs("    the file: it was cut off before its end\n", page->out);
    }
}

static void put_gap(const struct ml_report_page *page, const struct ml_profile_gap *gap) {
    const struct ml_profile *profile = page->report->profile;

    fprintf(
        page->out,
        "    nothing was seen from %s to %s: ",
        ml_report_time_of_day(ml_profile_timestamp_ns(profile, &gap->from)).text,
        ml_report_time_of_day(ml_profile_timestamp_ns(profile, &gap->to)).text
    );
    ml_report_put(page, gap->reason.bytes);
    putc('\n', page->out);
}

/* Their number alone. The section of unrecorded processes has the reasons. */
static void put_lost_forks(const struct ml_report_page *page) {
    const uint64_t count = page->report->profile->lost_forks;

    if (count > 0) {
        fprintf(
            page->out,
            "    %s forked %s could not be recorded: what %s allocated and freed is missing\n",
            ml_units_count(count).text,
            count == 1 ? "child" : "children",
            count == 1 ? "it" : "they"
        );
    }
}

static void
put_process(const struct ml_report_page *page, const struct ml_profile_process *process) {
    fprintf(page->out, "    %" PRIu32 " ", process->pid);
    ml_report_put(page, process->name.bytes);
    if (process->lost_events > 0) {
        fprintf(
            page->out,
            ": %s of %s events were lost",
            ml_units_count(process->lost_events).text,
            ml_units_count(process->events + process->lost_events).text
        );
    }
    if (process->trouble.count_bytes > 0) {
        fputs(": ", page->out);
        ml_report_put(page, process->trouble.bytes);
    } else if (process->partial) {
        fputs(": the file holds only a part of its stacks", page->out);
    }
    putc('\n', page->out);
    put_reasons(page, &process->accounting);
}

void ml_report_losses(const struct ml_report_page *page) {
    const struct ml_profile *profile = page->report->profile;

    put_file_trouble(page);
    for (size_t i = 0; i < profile->gaps_count; i++) {
        put_gap(page, &profile->gaps[i]);
    }
    put_lost_forks(page);
    for (size_t i = 0; i < profile->processes_count; i++) {
        const struct ml_profile_process *process = &profile->processes[i];
        if (!process->complete || process->lost_events > 0 || process->partial) {
            put_process(page, process);
        }
    }
}

static struct ml_units span_of(uint64_t span_ns) {
    return span_ns < 1000000 ? (struct ml_units){.text = "less than 1 ms"} : ml_units_span(span_ns);
}

void ml_report_waits(const struct ml_report_page *page) {
    const struct ml_profile *profile = page->report->profile;
    const struct ml_profile_process *longest = NULL;
    const uint64_t span_ns = profile->now.monotonic_ns - profile->run_start.monotonic_ns;
    uint64_t waits = 0;
    uint64_t waited_ns = 0;
    char text[ML_REPORT_NAME_BYTES];

    for (size_t i = 0; i < profile->processes_count; i++) {
        const struct ml_profile_process *process = &profile->processes[i];
        waits += process->accounting.waits;
        waited_ns += process->accounting.waited_ns;
        if (!longest || process->accounting.longest_wait_ns > longest->accounting.longest_wait_ns) {
            longest = process;
        }
    }
    if (waits == 0 || (page->is_summary && waited_ns < span_ns / NOTABLE_PART)) {
        return;
    }
    snprintf(
        text,
        sizeof text,
        "%s time%s for memlog, %s in all, at most %s (process %" PRIu32 ")",
        ml_units_count(waits).text,
        ml_report_plural(waits),
        span_of(waited_ns).text,
        span_of(longest->accounting.longest_wait_ns).text,
        longest->pid
    );
    fputs("  waited       ", page->out);
    ml_report_put_wrapped(page, BEHIND_TITLE_COLUMN, text);
    ml_report_print(
        page, "\n               " ML_DIM "--memlog-buffer-bytes=1M makes it less" ML_PLAIN "\n"
    );
}
