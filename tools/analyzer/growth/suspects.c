#include "tools/analyzer/growth/suspects.h"

#include <stdlib.h>
#include <string.h>

#include "tools/analyzer/model/memory.h"
#include "tools/analyzer/suppressions/suppress.h"

/* Less growth than that, or than this part of the process's peak, is nobody's leak. */
enum { LEAST_GROWN_BYTES = 16 << 10, LEAST_GROWN_PART = 1000 };

/* A stack that was followed. */
struct followed {
    char name[ML_TOLD_NAME_BYTES];
    const struct ml_profile_series *series;
    uint32_t node;
    struct ml_profile_totals own; /* of the process, at the dump */
};

static int order_names(const void *left, const void *right) {
    const struct followed *a = left;
    const struct followed *b = right;
    const int by_name = strcmp(a->name, b->name);

    if (by_name != 0) {
        return by_name;
    }
    return a->own.live_bytes != b->own.live_bytes ? (a->own.live_bytes < b->own.live_bytes ? 1 : -1)
                                                  : (a->node > b->node) - (a->node < b->node);
}

static int order_times(const void *left, const void *right) {
    const uint64_t a = *(const uint64_t *)left;
    const uint64_t b = *(const uint64_t *)right;

    return (a > b) - (a < b);
}

/* The steady ones by slope, all others by kind and growth. */
static int order_growths(const struct ml_growth *a, const struct ml_growth *b) {
    static const int ranks[] = {
        [ML_GROWTH_STEADY] = 0,
        [ML_GROWTH_FREED] = 1,
        [ML_GROWTH_SLOWING] = 2,
        [ML_GROWTH_LEVELLED] = 3,
        [ML_GROWTH_NONE] = 4,
        [ML_GROWTH_SHORT] = 5};

    if (ranks[a->kind] != ranks[b->kind]) {
        return ranks[a->kind] - ranks[b->kind];
    }
    if (a->kind == ML_GROWTH_STEADY && a->bytes_per_s != b->bytes_per_s) {
        return a->bytes_per_s < b->bytes_per_s ? 1 : -1;
    }
    return (a->grown_bytes < b->grown_bytes) - (a->grown_bytes > b->grown_bytes);
}

static int order_suspects(const void *left, const void *right) {
    const struct ml_suspect *a = left;
    const struct ml_suspect *b = right;
    const int by_growth = order_growths(&a->growth, &b->growth);

    if (by_growth != 0) {
        return by_growth;
    }
    return a->process != b->process ? (a->process > b->process) - (a->process < b->process)
                                    : strcmp(a->name, b->name);
}

static int order_processes(const void *left, const void *right) {
    const struct ml_suspect_process *a = left;
    const struct ml_suspect_process *b = right;
    const int by_growth = order_growths(&a->growth, &b->growth);

    return by_growth != 0 ? by_growth : (a->process > b->process) - (a->process < b->process);
}

static uint64_t least_grown(const struct ml_profile_process *process) {
    const uint64_t part = process->totals.peak_bytes / LEAST_GROWN_PART;

    return part > LEAST_GROWN_BYTES ? part : LEAST_GROWN_BYTES;
}

/* The least of the slot that ends there or later. Before its first slot a stack was not followed:
 * it counts with what it held then, which is no growth. */
static uint64_t least_at(const struct ml_profile_series *series, size_t *at, uint64_t end_ms) {
    while (*at + 1 < series->points_count && series->points[*at].end_ms < end_ms) {
        (*at)++;
    }
    return series->points[*at].end_ms < end_ms ? series->points[*at].last_bytes
                                               : series->points[*at].least_bytes;
}

/* The ends of slots of some series. */
struct ends {
    uint64_t *ms;
    size_t count, capacity;
};

static bool add_end(struct ends *ends, uint64_t end_ms) {
    if (!ML_GROW(ends->ms, ends->capacity, ends->count + 1)) {
        return false;
    }
    ends->ms[ends->count++] = end_ms;
    return true;
}

/* Add the slots' ends. The service keeps time without a change as one slot, which is cut again: it
 * is known throughout. */
static bool add_ends(struct ends *ends, const struct ml_profile_series *series, uint64_t flat_ms) {
    uint64_t start_ms = series->from_ms;

    for (size_t i = 0; i < series->points_count; i++) {
        const struct ml_profile_point *point = &series->points[i];
        if (point->least_bytes == point->most_bytes) {
            for (uint64_t ms = start_ms + flat_ms; ms < point->end_ms; ms += flat_ms) {
                if (!add_end(ends, ms)) {
                    return false;
                }
            }
        }
        if (!add_end(ends, point->end_ms)) {
            return false;
        }
        start_ms = point->end_ms;
    }
    return true;
}

static void make_unique(struct ends *ends) {
    size_t count = 0;

    ML_SORT(ends->ms, ends->count, order_times);
    for (size_t i = 0; i < ends->count; i++) {
        if (count == 0 || ends->ms[count - 1] != ends->ms[i]) {
            ends->ms[count++] = ends->ms[i];
        }
    }
    ends->count = count;
}

/* Where the first of them begins. */
static uint64_t begins(const struct followed *stacks, size_t count, uint64_t *out_to_ms) {
    uint64_t from_ms = UINT64_MAX;

    *out_to_ms = 0;
    for (size_t i = 0; i < count; i++) {
        const struct ml_profile_series *series = stacks[i].series;
        const uint64_t to_ms = series->points[series->points_count - 1].end_ms;
        from_ms = series->from_ms < from_ms ? series->from_ms : from_ms;
        *out_to_ms = to_ms > *out_to_ms ? to_ms : *out_to_ms;
    }
    return from_ms;
}

/* Judge the sum of the stacks' series: at each end of a slot of one of them, what each held least
 * in its slot. False: no memory. */
static bool judge_stacks(
    const struct followed *stacks, size_t count, uint64_t least_bytes, struct ml_growth *out
) {
    enum { LOOK_MS = 1000, FLAT_PARTS = 128 };
    uint64_t to_ms = 0;
    const uint64_t from_ms = begins(stacks, count, &to_ms);
    const uint64_t part_ms = to_ms > from_ms ? (to_ms - from_ms) / FLAT_PARTS : 0;
    struct ml_growth_low *lows = NULL;
    struct ends ends = {.count = 0};
    bool is_ok = false;

    for (size_t i = 0; i < count; i++) {
        if (!add_ends(&ends, stacks[i].series, part_ms > LOOK_MS ? part_ms : LOOK_MS)) {
            goto out;
        }
    }
    make_unique(&ends);
    lows = calloc(ends.count + 1, sizeof *lows);
    if (!lows) {
        goto out;
    }
    for (size_t i = 0; i < ends.count; i++) {
        lows[i].end_ms = ends.ms[i];
    }
    for (size_t i = 0; i < count; i++) {
        size_t at = 0;
        for (size_t j = 0; j < ends.count; j++) {
            lows[j].bytes += least_at(stacks[i].series, &at, lows[j].end_ms);
        }
    }
    *out = ml_growth_judge(lows, ends.count, from_ms, least_bytes);
    is_ok = true;
out:
    free(ends.ms);
    free(lows);
    return is_ok;
}

/* The process's own figures of that stack. */
static struct ml_profile_totals own_of(const struct ml_stack_list *list, uint32_t node) {
    for (size_t i = 0; i < list->count; i++) {
        if (list->stacks[i].node == node) {
            return list->stacks[i].own;
        }
    }
    return (struct ml_profile_totals){0};
}

static size_t follow(
    const struct ml_report_page *page,
    size_t number,
    struct followed *out_stacks,
    struct ml_suspect_process *out
) {
    const struct ml_report *report = page->report;
    const struct ml_profile_process *process = &report->profile->processes[number];
    size_t count = 0;

    *out =
        (struct ml_suspect_process){.process = process, .live_bytes = process->totals.live_bytes};
    for (size_t i = 0; i < process->series_count; i++) {
        const size_t series = process->series_first + i;
        struct followed *stack = &out_stacks[count];
        struct ml_told told;
        if (!report->profile->series[series].is_stack ||
            ml_suppressed_has(report->suppressed, report->stacks->series[series])) {
            continue;
        }
        *stack = (struct followed
        ){.series = &report->profile->series[series], .node = report->stacks->series[series]};
        stack->own = own_of(&report->stacks->processes[number], stack->node);
        ml_report_tell(page, stack->node, &told);
        snprintf(stack->name, sizeof stack->name, "%s", told.frames[told.asker].name);
        out->followed_bytes += stack->own.live_bytes;
        count++;
    }
    out->followed_count = count;
    ML_SORT(out_stacks, count, order_names);
    return count;
}

/* Add the function of the first stacks of these. Returns how many stacks it has; 0: no memory. */
static size_t add_function(
    struct ml_suspects *suspects,
    const struct ml_profile_process *process,
    const struct followed *stacks,
    size_t count
) {
    struct ml_suspect *suspect = &suspects->suspects[suspects->count];

    *suspect = (struct ml_suspect){.process = process, .node = stacks[0].node};
    snprintf(suspect->name, sizeof suspect->name, "%s", stacks[0].name);
    for (size_t i = 0; i < count && strcmp(stacks[i].name, stacks[0].name) == 0; i++) {
        suspect->live_bytes += stacks[i].own.live_bytes;
        suspect->live_blocks += stacks[i].own.live_blocks;
        suspect->total_blocks += stacks[i].own.total_blocks;
        suspect->stacks_count++;
    }
    if (!judge_stacks(stacks, suspect->stacks_count, least_grown(process), &suspect->growth)) {
        return 0;
    }
    suspects->count++;
    return suspect->stacks_count;
}

static void note_times(struct ml_suspects *suspects, const struct ml_profile_series *series) {
    const uint64_t to_ms = series->points[series->points_count - 1].end_ms;

    suspects->from_ms = series->from_ms < suspects->from_ms ? series->from_ms : suspects->from_ms;
    suspects->to_ms = to_ms > suspects->to_ms ? to_ms : suspects->to_ms;
}

/* False: no memory. */
static bool add_process(
    struct ml_suspects *suspects,
    const struct ml_report_page *page,
    size_t number,
    struct followed *stacks
) {
    const struct ml_profile_process *process = &page->report->profile->processes[number];
    const struct ml_profile_series *sums = &page->report->profile->series[process->series_first];
    struct ml_suspect_process *added = &suspects->processes[suspects->processes_count];
    const struct followed whole = {.series = sums};
    size_t count = 0;

    if (process->series_count == 0 || sums->is_stack) {
        return true;
    }
    count = follow(page, number, stacks, added);
    note_times(suspects, sums);
    if (!judge_stacks(&whole, 1, least_grown(process), &added->growth)) {
        return false;
    }
    suspects->processes_count++;
    for (size_t i = 0; i < count;) {
        const size_t added_stacks = add_function(suspects, process, stacks + i, count - i);
        if (added_stacks == 0) {
            return false;
        }
        i += added_stacks;
    }
    return true;
}

enum ml_status ml_suspects_init(struct ml_suspects *suspects, const struct ml_report *report) {
    const struct ml_report_style style = {.width = 80};
    const struct ml_report_page page = {.report = report, .style = &style, .out = NULL};
    const struct ml_profile *profile = report->profile;
    enum ml_status status = ML_ENV_MEMORY;
    struct followed *stacks = calloc(profile->series_count + 1, sizeof *stacks);

    *suspects = (struct ml_suspects){.report = report, .from_ms = UINT64_MAX};
    suspects->suspects = calloc(profile->series_count + 1, sizeof *suspects->suspects);
    suspects->processes = calloc(profile->processes_count + 1, sizeof *suspects->processes);
    if (!stacks || !suspects->suspects || !suspects->processes) {
        goto out;
    }
    for (size_t i = 0; i < profile->processes_count; i++) {
        if (!add_process(suspects, &page, i, stacks)) {
            goto out;
        }
    }
    ML_SORT(suspects->suspects, suspects->count, order_suspects);
    ML_SORT(suspects->processes, suspects->processes_count, order_processes);
    status = suspects->processes_count > 0 ? ML_OK : ML_ENV_MISSING;
out:
    free(stacks);
    return status;
}

void ml_suspects_fini(struct ml_suspects *suspects) {
    free(suspects->suspects);
    free(suspects->processes);
    *suspects = (struct ml_suspects){0};
}
