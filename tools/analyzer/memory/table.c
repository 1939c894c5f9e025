#include "tools/analyzer/memory/table.h"

#include <stdlib.h>
#include <string.h>

#include "tools/analyzer/memory/owners.h"

uint64_t ml_figure_of(const struct ml_component_figures *figures, enum ml_figure figure) {
    switch (figure) {
    case ML_FIGURE_RESIDENT:
        return figures->private + figures->shared;
    case ML_FIGURE_PRIVATE:
        return figures->private;
    case ML_FIGURE_SWAPPED:
        return figures->swapped;
    default:
        return figures->proportional;
    }
}

bool ml_component_table_init(struct ml_component_table *table, struct ml_policy *policy) {
    *table = (struct ml_component_table){.policy = policy, .text = ml_row_text_new()};
    return table->text != NULL;
}

void ml_component_table_fini(struct ml_component_table *table) {
    for (size_t i = 0; i < table->lines_count; i++) {
        free(table->lines[i].name);
        free(table->lines[i].values);
    }
    for (size_t i = 0; i < table->dumps_count; i++) {
        free(table->dumps[i].path);
    }
    free(table->lines);
    free(table->dumps);
    free(table->text);
    *table = (struct ml_component_table){0};
}

/* A process of the dump, recorded or not; NULL behind the last. */
static const struct ml_profile_process *
process_at(const struct ml_profile *profile, size_t number) {
    if (number < profile->processes_count) {
        return &profile->processes[number];
    }
    number -= profile->processes_count;
    return number < profile->others_count ? &profile->others[number] : NULL;
}

static bool is_left_by_exec(const struct ml_profile_process *process) {
    return process->state == MEMLOG_SERVICE_PROCESS_STATE_REPLACED;
}

/* Of an image that was left by exec the next one of the same process counts. */
static bool is_counted(const struct ml_profile *profile, const struct ml_profile_process *process) {
    return process->regions_count > 0 && !is_left_by_exec(process) &&
           ml_profile_is_shown(profile, process);
}

/* A process that counts, but is not told. */
static bool is_unread(const struct ml_profile *profile, const struct ml_profile_process *process) {
    return process->regions_count == 0 && ml_profile_is_shown(profile, process);
}

/* The objects of all processes that count. False: no memory. */
static bool sharing_make(const struct ml_profile *profile, struct ml_sharing *sharing) {
    const struct ml_profile_process *process = NULL;
    bool done = true;

    for (size_t i = 0; done && (process = process_at(profile, i)) != NULL; i++) {
        done = !is_counted(profile, process) || ml_sharing_add(sharing, process);
    }
    ml_sharing_finish(sharing);
    return done;
}

/* A line without figures. NULL: no memory. */
static struct ml_component_line *
line_new(struct ml_component_table *table, uint32_t pid, const char *name) {
    struct ml_component_line *line = NULL;

    if (!ML_GROW(table->lines, table->lines_capacity, table->lines_count + 1)) {
        return NULL;
    }
    line = &table->lines[table->lines_count];
    *line = (struct ml_component_line
    ){.dump = table->dumps_count - 1, .pid = pid, .name = strdup(name)};
    if (!line->name) {
        return NULL;
    }
    table->lines_count++;
    return line;
}

/* False: no memory. */
static bool line_add(
    struct ml_component_line *line, size_t component, const struct ml_component_figures *figures
) {
    if (component >= line->values_count) {
        struct ml_component_figures *values =
            realloc(line->values, (component + 1) * sizeof *values);
        if (!values) {
            return false;
        }
        memset(
            values + line->values_count, 0, (component + 1 - line->values_count) * sizeof *values
        );
        line->values = values;
        line->values_count = component + 1;
    }
    ml_component_figures_add(&line->values[component], figures);
    return true;
}

static bool rows_sort(
    struct ml_component_table *table,
    const struct ml_stacks *stacks,
    const struct ml_rows *rows,
    struct ml_component_line *line
) {
    for (size_t i = 0; i < rows->count; i++) {
        const uint32_t component =
            ml_policy_component(table->policy, stacks, &rows->items[i], table->text);
        if (component == ML_STRING_NONE || !line_add(line, component, &rows->items[i].figures)) {
            return false;
        }
    }
    line->all = rows->all;
    line->moved = rows->moved;
    return true;
}

/* Add a line to that of all. */
static bool sum_add(struct ml_component_line *sum, const struct ml_component_line *line) {
    bool done = true;

    for (size_t i = 0; done && i < line->values_count; i++) {
        done = line_add(sum, i, &line->values[i]);
    }
    ml_component_figures_add(&sum->all, &line->all);
    sum->moved = (int64_t)((uint64_t)sum->moved + (uint64_t)line->moved);
    sum->page_tables += line->page_tables;
    sum->kernel_stacks += line->kernel_stacks;
    return done;
}

static bool process_add(
    struct ml_component_table *table,
    const struct ml_stacks *stacks,
    const struct ml_sharing *sharing,
    const struct ml_profile_process *process
) {
    struct ml_component_line *line = line_new(table, process->pid, process->name.bytes);
    struct ml_rows rows = {0};
    const bool done = line && ml_rows_add(&rows, stacks, sharing, process) &&
                      rows_sort(table, stacks, &rows, line);

    ml_rows_fini(&rows);
    if (done) {
        line->page_tables = process->status.page_tables_bytes;
        line->kernel_stacks = process->status.kernel_stacks_bytes;
    }
    return done && sum_add(&table->lines[table->dumps[line->dump].first_line], line);
}

static bool
dump_new(struct ml_component_table *table, const struct ml_profile *profile, const char *path) {
    if (!ML_GROW(table->dumps, table->dumps_capacity, table->dumps_count + 1)) {
        return false;
    }
    table->dumps[table->dumps_count] = (struct ml_component_dump
    ){.path = strdup(path),
      .time_ns =
          profile->is_at_tree_peak ? ml_profile_tree_peak_ns(profile) : profile->now.realtime_ns,
      .is_ended = !ml_profile_anyone_runs(profile),
      .is_tree_peak = profile->is_at_tree_peak,
      .dropped = profile->is_at_tree_peak ? profile->tree_views_dropped : 0,
      .first_line = table->lines_count};
    table->dumps_count++;
    return table->dumps[table->dumps_count - 1].path != NULL &&
           line_new(table, 0, profile->program.bytes) != NULL;
}

/* Of one whose mappings may not be read the kernel still tells what is resident. */
static uint64_t resident_bytes(const struct ml_profile_process *process) {
    const struct ml_profile_status *status = &process->status;

    return status->is_unreadable
               ? status->anonymous_bytes + status->file_bytes + status->shared_bytes
               : process->resident_bytes;
}

bool ml_component_table_add(
    struct ml_component_table *table, const struct ml_stacks *stacks, const char *path
) {
    const struct ml_profile *profile = stacks->profile;
    const struct ml_profile_process *process = NULL;
    struct ml_sharing sharing = {0};
    bool done = dump_new(table, profile, path) && sharing_make(profile, &sharing);

    for (size_t i = 0; done && (process = process_at(profile, i)) != NULL; i++) {
        struct ml_component_dump *dump = &table->dumps[table->dumps_count - 1];
        if (is_counted(profile, process)) {
            done = process_add(table, stacks, &sharing, process);
            dump->heapless += process->recording == ML_PROFILE_RECORDED && !process->heap_was_laid;
            dump->sampled += process->recording == ML_PROFILE_RECORDED && !process->heap_was_laid &&
                             process->sampling_bytes > 1;
        } else if (is_unread(profile, process)) {
            dump->unread++;
            dump->unread_bytes += resident_bytes(process);
        } else if (profile->is_at_tree_peak && !is_left_by_exec(process)) {
            dump->absent += ml_profile_stands_for(process);
        }
    }
    if (done) {
        struct ml_component_dump *dump = &table->dumps[table->dumps_count - 1];
        dump->held_by_others = ml_sharing_held_by_others(&sharing);
        dump->end_lines = table->lines_count;
    }
    ml_sharing_fini(&sharing);
    return done;
}

uint64_t
ml_component_value(const struct ml_component_line *line, size_t component, enum ml_figure figure) {
    return component < line->values_count ? ml_figure_of(&line->values[component], figure) : 0;
}

int64_t ml_component_remainder(const struct ml_component_line *line, enum ml_figure figure) {
    uint64_t left = ml_figure_of(&line->all, figure);

    for (size_t i = 0; i < line->values_count; i++) {
        left -= ml_figure_of(&line->values[i], figure);
    }
    return (int64_t)left;
}

bool ml_rows_of_dump(struct ml_rows *rows, const struct ml_stacks *stacks, size_t *out_unread) {
    const struct ml_profile *profile = stacks->profile;
    const struct ml_profile_process *process = NULL;
    struct ml_sharing sharing = {0};
    bool done = sharing_make(profile, &sharing);

    *out_unread = 0;
    for (size_t i = 0; done && (process = process_at(profile, i)) != NULL; i++) {
        if (is_counted(profile, process)) {
            done = ml_rows_add(rows, stacks, &sharing, process);
        }
        *out_unread += is_unread(profile, process);
    }
    ml_sharing_fini(&sharing);
    return done;
}

struct order {
    size_t component;
    uint64_t bytes; /* the most in any line */
};

static int order_compare(const void *left, const void *right) {
    const struct order *a = left, *b = right;

    if (a->bytes != b->bytes) {
        return a->bytes < b->bytes ? 1 : -1;
    }
    return (a->component > b->component) - (a->component < b->component);
}

size_t *ml_component_order(
    const struct ml_component_table *table, enum ml_figure figure, size_t *out_count
) {
    const size_t count = table->policy->components.count;
    struct order *orders = calloc(count + 1, sizeof *orders);
    size_t *numbers = calloc(count + 1, sizeof *numbers);
    size_t kept = 0;

    for (size_t i = 0; orders && numbers && i < count; i++) {
        uint64_t most = 0;
        for (size_t line = 0; line < table->lines_count; line++) {
            const uint64_t bytes = ml_component_value(&table->lines[line], i, figure);
            most = bytes > most ? bytes : most;
        }
        if (most > 0) {
            orders[kept++] = (struct order){.component = i, .bytes = most};
        }
    }
    if (orders && numbers) {
        ML_SORT(orders, kept, order_compare);
        for (size_t i = 0; i < kept; i++) {
            numbers[i] = orders[i].component;
        }
    } else {
        free(numbers);
        numbers = NULL;
    }
    free(orders);
    *out_count = kept;
    return numbers;
}
