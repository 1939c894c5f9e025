/* The report's text on processes whose sampling interval changed while they ran, and on what memlog
 * costs them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/analyzer/formats/units.h"
#include "tools/analyzer/report/internal.h"

enum { TOLD_MAX = 6, OVERHEAD_BYTES = 384, BEHIND_TITLE_COLUMN = 15 };

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

/* ---- what memlog costs, by --overhead */

static const char *percent(uint32_t ppm, char text[ML_UNITS_BYTES]) {
    enum { PPM_PER_PERCENT = 10000, TEN_PERCENT = 10 * PPM_PER_PERCENT };
    snprintf(
        text,
        ML_UNITS_BYTES,
        ppm % PPM_PER_PERCENT == 0 || ppm >= TEN_PERCENT ? "%.0f %%"
        : ppm < PPM_PER_PERCENT / 10                     ? "%.2f %%"
                                                         : "%.1f %%",
        (double)ppm / PPM_PER_PERCENT
    );
    return text;
}

/* What it costs the process that it costs most. */
static void cost_text(
    const struct ml_profile *profile,
    uint32_t promised_ppm,
    const struct ml_profile_process *most,
    char text[OVERHEAD_BYTES]
) {
    char cost[ML_UNITS_BYTES];
    char promised[ML_UNITS_BYTES];
    char why[OVERHEAD_BYTES / 2] = "";

    percent(promised_ppm, promised);
    if (!most) {
        snprintf(
            text, OVERHEAD_BYTES, "%s promised; no process ran long enough to measure it", promised
        );
        return;
    }
    if (ml_profile_cost_ppm(most) > promised_ppm &&
        most->overhead.passing_ppm > most->overhead.recording_ppm) {
        snprintf(
            why,
            sizeof why,
            ": its calls of the allocator cost %s, sampled or not",
            percent(most->overhead.passing_ppm, cost)
        );
    } else if (profile->processes_count > 1) {
        snprintf(why, sizeof why, ", the most of all");
    }
    snprintf(
        text,
        OVERHEAD_BYTES,
        "%s of the processor time of %.64s %" PRIu32 ", %s promised%s",
        percent(ml_profile_cost_ppm(most), cost),
        most->name.bytes ? most->name.bytes : "",
        most->pid,
        promised,
        why
    );
}

void ml_report_overhead(const struct ml_report_page *page) {
    const struct ml_profile *profile = page->report->profile;
    const uint32_t promised_ppm = ml_profile_promised_ppm(profile);
    uint64_t shortest = UINT64_MAX;
    char text[OVERHEAD_BYTES];

    for (size_t i = 0; i < profile->processes_count; i++) {
        const uint64_t finest = profile->processes[i].overhead.shortest_bytes;
        shortest = finest != 0 && finest < shortest ? finest : shortest;
    }
    if (promised_ppm == 0) {
        return;
    }
    cost_text(profile, promised_ppm, ml_profile_costliest(profile), text);
    if (shortest < ml_profile_sampling_bytes(profile)) {
        const size_t used = strlen(text);
        snprintf(
            text + used,
            sizeof text - used,
            "; a sample every %s to %s",
            ml_units_size(shortest).text,
            ml_units_size(ml_profile_sampling_bytes(profile)).text
        );
    }
    fputs("  overhead     ", page->out);
    ml_report_put_wrapped(page, BEHIND_TITLE_COLUMN, text);
    putc('\n', page->out);
}
