/* The text report's table of processes, and who is not in it. Room: tools. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/function_name.h"
#include "base/printable.h"
#include "tools/report_internal.h"
#include "tools/words.h"

enum { PROCESSES_SHOWN = 20 };

/* Columns of the process table beside the name. */
enum { PROCESS_FIGURES_COLUMNS = 66, NAME_COLUMNS_MIN = 14, NAME_COLUMNS_MAX = 32 };

static void put_state(const struct ml_profile_process *process, char *out_state, size_t out_bytes) {
    switch (process->state) {
    case ML_STATE_EXITED:
        if (process->folded_processes > 0 && process->exit_code == -1) {
            snprintf(out_state, out_bytes, "exited"); /* not all of them with one code */
            break;
        }
        snprintf(out_state, out_bytes, "exit %" PRId32, process->exit_code);
        break;
    case ML_STATE_KILLED:
        if (process->folded_processes > 0 && process->signal == 0) {
            snprintf(out_state, out_bytes, "killed");
            break;
        }
        snprintf(out_state, out_bytes, "signal %" PRIu32, process->signal);
        break;
    default:
        snprintf(out_state, out_bytes, "%s", ml_profile_state_name(process->state));
        break;
    }
}

/* An entry that stands for several; its figures are their sums. */
static void
put_folded(const struct ml_report_page *page, const struct ml_profile_process *process) {
    char count[ML_WORDS_BYTES];
    char failed[ML_WORDS_BYTES];

    fprintf(
        page->out,
        "%7s  %sthe sums of %s such processes",
        "",
        ml_report_dim(page),
        ml_words_count(process->folded_processes, count)
    );
    if (process->folded_failed > 0) {
        fprintf(page->out, ", %s failed", ml_words_count(process->folded_failed, failed));
    }
    fprintf(page->out, "; see --keep-processes%s\n", ml_report_plain(page));
}

static size_t name_columns(const struct ml_report_page *page) {
    size_t width = page->style->width;

    if (width < PROCESS_FIGURES_COLUMNS + NAME_COLUMNS_MIN) {
        return NAME_COLUMNS_MIN;
    }
    width -= PROCESS_FIGURES_COLUMNS;
    return width < NAME_COLUMNS_MAX ? width : NAME_COLUMNS_MAX;
}

static void
put_process(const struct ml_report_page *page, const struct ml_profile_process *process) {
    char state[ML_WORDS_BYTES];
    char live[ML_WORDS_BYTES];
    char peak[ML_WORDS_BYTES];
    char total[ML_WORDS_BYTES];
    char name[ML_REPORT_NAME_BYTES];
    size_t columns = name_columns(page);

    put_state(process, state, sizeof state);
    ml_function_name_fit(process->name.bytes, columns, name, sizeof name);
    fprintf(page->out, "%7" PRIu32 "  ", process->pid);
    ml_report_put(page, name);
    fprintf(
        page->out,
        "%*s  %-9s %-9s %11s %11s %11s\n",
        (int)(columns - ml_printable_columns(name)),
        "",
        ml_profile_role_name(process->role),
        state,
        ml_words_size(process->totals.live_bytes, live),
        ml_words_size(process->totals.peak_bytes, peak),
        ml_words_size(process->totals.total_bytes, total)
    );
    if (process->folded_processes > 0) {
        put_folded(page, process);
    }
    ml_report_coverage(page, process);
    if (process->inherited_bytes > 0) {
        fprintf(
            page->out,
            "%7s  %sshared with its parent since the fork: %s%s\n",
            "",
            ml_report_dim(page),
            ml_words_size(process->inherited_bytes, live),
            ml_report_plain(page)
        );
    }
}

/* Largest first: peak, then allocated. */
static int order_processes(const void *left, const void *right) {
    const struct ml_profile_totals *a = &(*(const struct ml_profile_process *const *)left)->totals;
    const struct ml_profile_totals *b = &(*(const struct ml_profile_process *const *)right)->totals;

    if (a->peak_bytes != b->peak_bytes) {
        return a->peak_bytes < b->peak_bytes ? 1 : -1;
    }
    return (a->total_bytes < b->total_bytes) - (a->total_bytes > b->total_bytes);
}

void ml_report_processes(const struct ml_report_page *page) {
    const struct ml_profile *profile = page->report->profile;
    const struct ml_profile_process **order = calloc(profile->processes_count + 1, sizeof *order);
    size_t columns = name_columns(page);
    size_t shown = profile->processes_count;

    if (!order) {
        return;
    }
    for (size_t i = 0; i < profile->processes_count; i++) {
        order[i] = &profile->processes[i];
    }
    qsort(order, profile->processes_count, sizeof *order, order_processes);
    shown = shown < PROCESSES_SHOWN ? shown : PROCESSES_SHOWN;
    ml_report_heading(page, "Processes", shown > 1 ? "largest peak first" : "");
    fprintf(
        page->out,
        "%s%7s  %-*s  %-9s %-9s %11s %11s %11s%s\n",
        ml_report_dim(page),
        "pid",
        (int)columns,
        "name",
        "role",
        "state",
        "live",
        "peak",
        "allocated",
        ml_report_plain(page)
    );
    for (size_t i = 0; i < shown; i++) {
        put_process(page, order[i]);
    }
    if (shown < profile->processes_count) {
        fprintf(page->out, "         ... and %zu smaller ones\n", profile->processes_count - shown);
    }
    free(order);
}

void ml_report_not_profiled(const struct ml_report_page *page) {
    const struct ml_profile *profile = page->report->profile;
    size_t count = 0;

    for (size_t i = 0; i < profile->not_profiled_count; i++) {
        const struct ml_profile_not_profiled *one = &profile->not_profiled[i];
        if (one->is_listed) {
            continue; /* told among the processes that were not recorded */
        }
        if (count == 0) {
            ml_report_heading(page, "Not profiled", "these ran without memlog");
        }
        if (count++ >= PROCESSES_SHOWN) {
            continue;
        }
        fprintf(page->out, "%7" PRIu32 "  ", one->pid);
        ml_report_put(page, one->path.bytes);
        fputs(one->path.count_bytes > 0 ? ": " : "", page->out);
        ml_report_put(page, one->reason.bytes);
        putc('\n', page->out);
    }
    if (count > PROCESSES_SHOWN) {
        fprintf(page->out, "         ... and %zu more\n", count - PROCESSES_SHOWN);
    }
}
