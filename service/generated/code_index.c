#include "service/generated/code_index.h"

#include <stdlib.h>

enum { LINES_ROOM_MIN = 256 };

enum ml_status
ml_code_index_init(struct ml_code_index *index, struct ml_budget *budget, uint32_t targets_count) {
    const size_t count = (size_t)targets_count + 1; /* an empty array is an array, too */
    *index = (struct ml_code_index){.budget = budget, .targets_count = targets_count};
    index->targets = ml_budget_new(budget, count * sizeof(*index->targets));
    index->by_time = ml_budget_new(budget, count * sizeof(*index->by_time));
    index->cover = ml_budget_new(budget, 2 * count * sizeof(*index->cover));
    return index->targets != NULL && index->by_time != NULL && index->cover != NULL ? ML_OK
                                                                                    : ML_ENV_MEMORY;
}

void ml_code_index_fini(struct ml_code_index *index) {
    const size_t count = (size_t)index->targets_count + 1;
    struct ml_budget *budget = index->budget;
    if (budget != NULL) {
        ml_budget_free(budget, index->targets, count * sizeof(*index->targets));
        ml_budget_free(budget, index->by_time, count * sizeof(*index->by_time));
        ml_budget_free(budget, index->cover, 2 * count * sizeof(*index->cover));
        ml_budget_free(budget, index->lines, index->lines_capacity * sizeof(*index->lines));
    }
    *index = (struct ml_code_index){.budget = NULL};
}

static int order_addresses(const void *left, const void *right) {
    const struct ml_code_target *a = left;
    const struct ml_code_target *b = right;
    return (a->address > b->address) - (a->address < b->address);
}

static int order_times(const void *left, const void *right, void *context) {
    const struct ml_code_target *targets = context;
    const uint64_t a = targets[*(const uint32_t *)left].time;
    const uint64_t b = targets[*(const uint32_t *)right].time;
    return (a > b) - (a < b);
}

void ml_code_index_sort(struct ml_code_index *index) {
    const uint32_t count = index->targets_count;
    qsort(index->targets, count, sizeof(*index->targets), order_addresses);
    for (uint32_t i = 0; i < count; i++) {
        index->by_time[i] = i;
    }
    qsort_r(index->by_time, count, sizeof(*index->by_time), order_times, index->targets);
}

/* The first target at or behind the address. */
static uint32_t first_from(const struct ml_code_index *index, uint64_t address) {
    uint32_t low = 0;
    uint32_t high = index->targets_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (index->targets[middle].address < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The last line over a target: the lines of all its ancestors in the tree cover it. */
static uint32_t line_over(const struct ml_code_index *index, uint32_t target) {
    uint32_t line = 0;
    for (uint32_t at = target + index->targets_count; at >= 1; at /= 2) {
        line = index->cover[at] > line ? index->cover[at] : line;
    }
    return line;
}

/* Targets of before that time get what lies over them now. */
static void settle_until(struct ml_code_index *index, uint64_t time) {
    while (index->settled_count < index->targets_count) {
        const uint32_t target = index->by_time[index->settled_count];
        if (index->targets[target].time >= time) {
            return;
        }
        index->targets[target].line = line_over(index, target);
        index->settled_count++;
    }
}

/* Lay a line over targets [first, end): over the fewest nodes of the tree that are just these. */
static void lay(struct ml_code_index *index, uint32_t first, uint32_t end, uint32_t line) {
    uint32_t low = first + index->targets_count;
    uint32_t high = end + index->targets_count;
    for (; low < high; low /= 2, high /= 2) {
        if (low % 2 == 1) {
            index->cover[low++] = line;
        }
        if (high % 2 == 1) {
            index->cover[--high] = line;
        }
    }
}

static enum ml_status keep_line(struct ml_code_index *index, const struct ml_code_line *line) {
    if (index->lines_count >= ML_CODE_LINES_MAX) {
        return ML_PEER_LIMIT;
    }
    if (index->lines_count == index->lines_capacity) {
        const uint32_t capacity =
            index->lines_capacity == 0 ? LINES_ROOM_MIN : 2 * index->lines_capacity;
        struct ml_code_line *larger = ml_budget_resize(
            index->budget,
            index->lines,
            index->lines_capacity * sizeof(*larger),
            capacity * sizeof(*larger)
        );
        if (larger == NULL) {
            return ML_ENV_MEMORY;
        }
        index->lines = larger;
        index->lines_capacity = capacity;
    }
    index->lines[index->lines_count++] = *line;
    return ML_OK;
}

enum ml_status ml_code_index_add(
    struct ml_code_index *index,
    uint64_t start,
    uint64_t end,
    uint64_t time,
    const struct ml_code_line *line
) {
    const uint32_t first = first_from(index, start);
    if (first == index->targets_count || index->targets[first].address >= end) {
        return ML_OK;
    }
    settle_until(index, time);
    const enum ml_status status = keep_line(index, line);
    if (status == ML_OK) {
        lay(index, first, first_from(index, end), index->lines_count);
    }
    return status;
}

void ml_code_index_settle(struct ml_code_index *index) {
    settle_until(index, UINT64_MAX);
    while (index->settled_count < index->targets_count) { /* those that ask for the last name */
        const uint32_t target = index->by_time[index->settled_count++];
        index->targets[target].line = line_over(index, target);
    }
}
