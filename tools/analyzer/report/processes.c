/* The text report's table of processes, and the list of programs that ran without memlog. Room:
 * tools. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "tools/analyzer/formats/process_words.h"
#include "tools/analyzer/formats/units.h"
#include "tools/analyzer/report/internal.h"
#include "tools/analyzer/names/function_name.h"

enum { PROCESSES_SHOWN = 20 };

/* Columns of the process table beside the name: pid, state and three figures. Role and held bytes
 * have a column only where they are needed. */
enum {
    PROCESS_FIGURES_COLUMNS = 54,
    ROLE_COLUMNS = 10,
    HELD_COLUMNS = 11,
    NAME_COLUMNS_MIN = 14,
    NAME_COLUMNS_MAX = 32
};

/* The layout of the table. */
struct table {
    size_t name_columns;
    bool has_roles;   /* a process has a role other than "main" ... */
    bool roles_below; /* ... but the page is too narrow for a column */
    bool has_held;    /* there are several processes, which share the tree's peak */
};

void ml_report_state(const struct ml_profile_process *process, char *out_state, size_t out_bytes) {
    switch (process->state) {
    case MEMLOG_SERVICE_PROCESS_STATE_EXITED:
        if (process->folded_processes > 0 && process->exit_code == -1) {
            snprintf(out_state, out_bytes, "exited"); /* their exit codes differ */
            break;
        }
        snprintf(out_state, out_bytes, "exit %" PRId32, process->exit_code);
        break;
    case MEMLOG_SERVICE_PROCESS_STATE_KILLED:
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

/* The line of an entry that stands for several processes. Its figures are their sums. */
static void
put_folded(const struct ml_report_page *page, const struct ml_profile_process *process) {
    ml_report_print(
        page,
        "%7s  " ML_DIM "the sums of %s such processes",
        "",
        ml_units_count(process->folded_processes).text
    );
    if (process->folded_failed > 0) {
        fprintf(page->out, ", %s failed", ml_units_count(process->folded_failed).text);
    }
    ml_report_print(page, "; see --keep-processes" ML_PLAIN "\n");
}

static struct table table_of(const struct ml_report_page *page) {
    const struct ml_profile *profile = page->report->profile;
    struct table table = {.has_held = profile->processes_count > 1};
    size_t taken = PROCESS_FIGURES_COLUMNS;

    for (size_t i = 0; i < profile->processes_count; i++) {
        const char *role = ml_process_role(profile, &profile->processes[i]);
        table.has_roles = table.has_roles || (role[0] && strcmp(role, "main") != 0);
    }
    taken += table.has_held ? (size_t)HELD_COLUMNS : 0;
    table.roles_below =
        table.has_roles && page->style->width < taken + ROLE_COLUMNS + NAME_COLUMNS_MIN;
    table.has_roles = table.has_roles && !table.roles_below;
    taken += table.has_roles ? (size_t)ROLE_COLUMNS : 0;
    table.name_columns = page->style->width < taken + NAME_COLUMNS_MIN ? NAME_COLUMNS_MIN
                                                                       : page->style->width - taken;
    if (table.name_columns > NAME_COLUMNS_MAX) {
        table.name_columns = NAME_COLUMNS_MAX;
    }
    return table;
}

/* The command line, cut to one line. The role is in front if it has no column. */
static void put_words(
    const struct ml_report_page *page,
    const struct table *table,
    const struct ml_profile_process *process
) {
    enum { INDENT = 9, MARK = 3 };
    const char *role = table->roles_below ? ml_process_role(page->report->profile, process) : "";
    const size_t columns = page->style->width - INDENT;
    char words[ML_REPORT_NAME_BYTES];
    size_t at = (size_t)snprintf(words, sizeof words, "%s%s", role, role[0] ? ": " : "");

    ml_process_words(page->report->profile, process, words + at, sizeof words - at);
    if (!words[0]) {
        return;
    }
    ml_report_print(page, "%*s" ML_DIM, INDENT, "");
    if (ml_printable_columns(words) > columns) {
        words[ml_printable_head(words, columns - MARK)] = '\0';
        ml_report_put(page, words);
        fputs("...", page->out);
    } else {
        ml_report_put(page, words);
    }
    ml_report_print(page, ML_PLAIN "\n");
}

static void put_process(
    const struct ml_report_page *page,
    const struct table *table,
    const struct ml_profile_process *process
) {
    char state[ML_UNITS_BYTES];
    char name[ML_REPORT_NAME_BYTES];

    ml_report_state(process, state, sizeof state);
    ml_function_name_fit(process->name.bytes, table->name_columns, name, sizeof name);
    fprintf(page->out, "%7" PRIu32 "  ", process->pid);
    ml_report_put(page, name);
    fprintf(page->out, "%*s  ", (int)(table->name_columns - ml_printable_columns(name)), "");
    if (table->has_roles) {
        fprintf(page->out, "%-9s ", ml_process_role(page->report->profile, process));
    }
    fprintf(page->out, "%-9s %10s ", state, ml_units_size(process->totals.live_bytes).text);
    if (table->has_held) {
        fprintf(page->out, "%10s ", ml_units_size(process->held_at_tree_peak_bytes).text);
    }
    fprintf(
        page->out,
        "%10s %10s\n",
        ml_units_size(process->totals.peak_bytes).text,
        ml_units_size(process->totals.total_bytes).text
    );
    put_words(page, table, process);
    if (process->folded_processes > 0) {
        put_folded(page, process);
    }
    ml_report_coverage(page, process);
    if (process->inherited_bytes > 0) {
        ml_report_print(
            page,
            "%7s  " ML_DIM "shared with its parent since the fork: %s" ML_PLAIN "\n",
            "",
            ml_units_size(process->inherited_bytes).text
        );
    }
}

/* Largest first: what it held at the tree's peak, then its own peak, then allocated. */
static int order_processes(const void *left, const void *right) {
    const struct ml_profile_process *one = *(const struct ml_profile_process *const *)left;
    const struct ml_profile_process *other = *(const struct ml_profile_process *const *)right;
    const struct ml_profile_totals *a = &one->totals;
    const struct ml_profile_totals *b = &other->totals;

    if (one->held_at_tree_peak_bytes != other->held_at_tree_peak_bytes) {
        return one->held_at_tree_peak_bytes < other->held_at_tree_peak_bytes ? 1 : -1;
    }
    if (a->peak_bytes != b->peak_bytes) {
        return a->peak_bytes < b->peak_bytes ? 1 : -1;
    }
    return (a->total_bytes < b->total_bytes) - (a->total_bytes > b->total_bytes);
}

void ml_report_processes(const struct ml_report_page *page) {
    const struct ml_profile *profile = page->report->profile;
    const struct ml_profile_process **order = calloc(profile->processes_count + 1, sizeof *order);
    const struct table table = table_of(page);
    size_t shown = profile->processes_count;

    if (!order || profile->processes_count == 0) {
        free(order);
        return;
    }
    for (size_t i = 0; i < profile->processes_count; i++) {
        order[i] = &profile->processes[i];
    }
    qsort(order, profile->processes_count, sizeof *order, order_processes);
    const size_t wanted = page->report->limit > 0 ? page->report->limit : PROCESSES_SHOWN;
    shown = shown < wanted ? shown : wanted;
    ml_report_heading(
        page, "Processes", shown > 1 ? "by what they held when all together held most" : ""
    );
    ml_report_print(page, ML_DIM "%7s  %-*s  ", "pid", (int)table.name_columns, "name");
    ml_report_print(
        page,
        "%s%-9s %10s %s%10s %10s" ML_PLAIN "\n",
        table.has_roles ? "role      " : "",
        "state",
        ml_profile_anyone_runs(profile) ? "live" : "left",
        table.has_held ? "   at peak " : "",
        table.has_held ? "own peak" : "peak",
        "allocated"
    );
    for (size_t i = 0; i < shown; i++) {
        put_process(page, &table, order[i]);
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
            continue; /* the section of unrecorded processes has it */
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
