/* The report's text on processes whose sampling interval changed while they ran. */
#include <inttypes.h>
#include <stdio.h>

#include "tools/analyzer/formats/units.h"
#include "tools/analyzer/report/internal.h"

enum { TOLD_MAX = 6 };

static void put_change(
    const struct ml_report_page *page, const struct ml_profile_process *process, size_t index
) {
    const uint64_t ticks = process->sampling_changes[index].ticks;
    const uint64_t interval_bytes = process->sampling_changes[index].interval_bytes;

    fprintf(
        page->out,
        "               from %s on %s%s\n",
        ml_report_time_of_day(ml_profile_realtime_ns(page->report->profile, ticks)).text,
        interval_bytes > 1 ? "one every " : "",
        interval_bytes > 1 ? ml_units_size(interval_bytes).text : "every allocation"
    );
}

static void
put_process(const struct ml_report_page *page, const struct ml_profile_process *process) {
    const size_t count = process->sampling_changes_count;
    const size_t first = count <= TOLD_MAX ? count : TOLD_MAX - 1;
    const uint64_t hidden = process->sampling_left_out + (count - first) - (first < count ? 1 : 0);

    fprintf(page->out, "  %8" PRIu32 " ", process->pid);
    ml_report_put(page, process->name.bytes);
    putc('\n', page->out);
    for (size_t i = 0; i < first; i++) {
        put_change(page, process, i);
    }
    if (hidden > 0) {
        fprintf(
            page->out,
            "               ... %s more change%s, the longest interval %s ...\n",
            ml_units_count(hidden).text,
            ml_report_plural(hidden),
            ml_units_size(process->sampling_bytes).text
        );
    }
    if (first < count) {
        put_change(page, process, count - 1);
    }
}

void ml_report_sampling(const struct ml_report_page *page) {
    const struct ml_profile *profile = page->report->profile;
    bool any = false;

    for (size_t i = 0; i < profile->processes_count; i++) {
        if (profile->processes[i].sampling_changes_count > 1) {
            fputs(any ? "" : "\nProcesses whose sampling interval changed:\n", page->out);
            any = true;
            put_process(page, &profile->processes[i]);
        }
    }
}
