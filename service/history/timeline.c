#include "service/history/timeline.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t ns_a_second = 1000000000;

const struct ml_series_shape ml_timeline_sums_shape = {
    .slot_ns = 250000000, .slots = 512, .has_totals = true};
const struct ml_series_shape ml_timeline_stack_shape = {.slot_ns = 1000000000, .slots = 128};

enum { STACKS_BYTES = ML_TIMELINE_STACKS * sizeof(struct ml_timeline_stack) };

struct ml_timeline_log *ml_timeline_new(struct ml_budget *budget) {
    struct ml_timeline_log *timeline = ml_budget_new(budget, sizeof(*timeline));
    if (timeline != NULL) {
        ml_series_init(&timeline->sums, &ml_timeline_sums_shape);
    }
    return timeline;
}

static void drop_stack(struct ml_timeline_stack *stack, struct ml_budget *budget) {
    ml_series_fini(&stack->series, budget);
    ml_budget_free(budget, stack->cells, stack->cells_capacity * sizeof(*stack->cells));
    *stack = (struct ml_timeline_stack){0};
}

void ml_timeline_drop_stacks(struct ml_timeline_log *timeline, struct ml_budget *budget) {
    for (uint32_t i = 0; i < timeline->stacks_count; i++) {
        drop_stack(&timeline->stacks[i], budget);
    }
    ml_budget_free(budget, timeline->stacks, STACKS_BYTES);
    timeline->stacks = NULL;
    timeline->stacks_count = 0;
}

void ml_timeline_free(struct ml_timeline_log *take_timeline, struct ml_budget *budget) {
    if (take_timeline == NULL) {
        return;
    }
    ml_timeline_drop_stacks(take_timeline, budget);
    ml_series_fini(&take_timeline->sums, budget);
    ml_budget_free(budget, take_timeline, sizeof(*take_timeline));
}

/* ---- what a stack holds */

static struct ml_timeline_stack *find_stack(struct ml_timeline_log *timeline, uint32_t node) {
    for (uint32_t i = 0; i < timeline->stacks_count; i++) {
        if (timeline->stacks[i].node == node) {
            return &timeline->stacks[i];
        }
    }
    return NULL;
}

/* Add a cell to the stack. Without memory it is left out, and the series shows less than there
 * is. */
static void add_cell(struct ml_timeline_stack *stack, struct ml_budget *budget, uint32_t number) {
    if (stack->cells_count == stack->cells_capacity) {
        const uint32_t wanted = stack->cells_capacity == 0 ? 4 : stack->cells_capacity * 2;
        uint32_t *cells = ml_budget_resize(
            budget, stack->cells, stack->cells_capacity * sizeof(*cells), wanted * sizeof(*cells)
        );
        if (cells == NULL) {
            return;
        }
        stack->cells = cells;
        stack->cells_capacity = wanted;
    }
    stack->cells[stack->cells_count++] = number;
}

/* Add the cells that are new since the last note. */
static void find_new_cells(
    struct ml_timeline_log *timeline, struct ml_budget *budget, const struct ml_cells *cells
) {
    for (uint32_t i = timeline->cells_seen; i < cells->count; i++) {
        struct ml_timeline_stack *stack = find_stack(timeline, ml_cell_node(cells->cells[i].key));
        if (stack != NULL) {
            add_cell(stack, budget, i);
        }
    }
    timeline->cells_seen = cells->count;
}

static uint64_t live_of(const struct ml_timeline_stack *stack, const struct ml_cells *cells) {
    uint64_t live_bytes = 0;
    for (uint32_t i = 0; i < stack->cells_count; i++) {
        live_bytes += cells->cells[stack->cells[i]].live_bytes;
    }
    return live_bytes;
}

/* What the stack held when its process held most. */
static uint64_t
peak_share_of(const struct ml_timeline_stack *stack, const struct ml_tracker *tracker) {
    uint64_t share_bytes = 0;
    for (uint32_t i = 0; i < stack->cells_count; i++) {
        const struct ml_cell *cell = &tracker->cells.cells[stack->cells[i]];
        share_bytes += ml_tracker_peak_share(tracker, cell).bytes;
    }
    return share_bytes;
}

/* ---- who is large */

/* A stack that may get a series. */
struct candidate {
    uint32_t node;
    bool is_new;         /* all of its cells are newer than the last look */
    uint64_t live_bytes; /* now, or at a new peak since the last look if that is more */
};

/* Keep the ML_TIMELINE_ENTERING largest, the largest first. */
static uint32_t rank(struct candidate *largest, uint32_t count, const struct candidate *candidate) {
    if (count == ML_TIMELINE_ENTERING && largest[count - 1].live_bytes >= candidate->live_bytes) {
        return count;
    }
    count += count < ML_TIMELINE_ENTERING;
    uint32_t at = count - 1;
    while (at > 0 && largest[at - 1].live_bytes < candidate->live_bytes) {
        largest[at] = largest[at - 1];
        at--;
    }
    largest[at] = *candidate;
    return count;
}

/* The largest stacks, by a sum for each node. */
static uint32_t find_largest(
    const struct ml_timeline_log *timeline,
    const struct ml_tracker *tracker,
    bool is_new_peak,
    struct candidate largest[static ML_TIMELINE_ENTERING]
) {
    const struct ml_cells *cells = &tracker->cells;
    uint32_t nodes_end = 1;
    for (uint32_t i = 0; i < cells->count; i++) {
        const uint32_t node = ml_cell_node(cells->cells[i].key);
        nodes_end = node >= nodes_end ? node + 1 : nodes_end;
    }
    struct candidate *nodes = calloc(nodes_end, sizeof(*nodes));
    uint32_t count = 0;
    for (uint32_t i = 0; nodes != NULL && i < cells->count; i++) {
        struct candidate *node = &nodes[ml_cell_node(cells->cells[i].key)];
        const uint64_t peak_bytes =
            is_new_peak ? ml_tracker_peak_share(tracker, &cells->cells[i]).bytes : 0;
        const uint64_t live_bytes = cells->cells[i].live_bytes;
        node->live_bytes += live_bytes > peak_bytes ? live_bytes : peak_bytes;
        if (node->node == 0) {
            /* Cells are in order of arrival. */
            node->is_new = i >= timeline->cells_looked && timeline->looked_ns != 0;
        }
        node->node = 1;
    }
    for (uint32_t i = 0; nodes != NULL && i < nodes_end; i++) {
        nodes[i].node = i;
        if (nodes[i].live_bytes > 0) {
            count = rank(largest, count, &nodes[i]);
        }
    }
    free(nodes);
    return count;
}

/* A place for a stack that holds so much. NULL: every present stack holds about as much. */
static struct ml_timeline_stack *place_for(
    struct ml_timeline_log *timeline,
    struct ml_budget *budget,
    const struct ml_cells *cells,
    uint64_t live_bytes
) {
    if (timeline->stacks_count < ML_TIMELINE_STACKS) {
        return &timeline->stacks[timeline->stacks_count++];
    }
    struct ml_timeline_stack *least = &timeline->stacks[0];
    uint64_t least_bytes = live_of(least, cells);
    for (uint32_t i = 1; i < timeline->stacks_count; i++) {
        const uint64_t bytes = live_of(&timeline->stacks[i], cells);
        if (bytes < least_bytes) {
            least = &timeline->stacks[i];
            least_bytes = bytes;
        }
    }
    if (live_bytes <= least_bytes + least_bytes / 8) {
        return NULL;
    }
    drop_stack(least, budget);
    return least;
}

static void enter(
    struct ml_timeline_log *timeline,
    struct ml_budget *budget,
    const struct ml_cells *cells,
    const struct candidate *candidate
) {
    struct ml_timeline_stack *stack = place_for(timeline, budget, cells, candidate->live_bytes);
    if (stack == NULL) {
        return;
    }
    *stack = (struct ml_timeline_stack){.node = candidate->node};
    ml_series_init(&stack->series, &ml_timeline_stack_shape);
    for (uint32_t i = 0; i < cells->count; i++) {
        if (ml_cell_node(cells->cells[i].key) == candidate->node) {
            add_cell(stack, budget, i);
        }
    }
    if (candidate->is_new) {
        const struct ml_series_now nothing = {0};
        ml_series_note(&stack->series, budget, timeline->looked_ns, &nothing);
    }
}

/* Look for the largest stacks. */
static void look(
    struct ml_timeline_log *timeline,
    struct ml_budget *budget,
    const struct ml_tracker *tracker,
    uint64_t ns
) {
    const struct ml_cells *cells = &tracker->cells;
    const bool is_new_peak = tracker->totals.peak_bytes > timeline->stacks_peak_bytes;
    struct candidate largest[ML_TIMELINE_ENTERING];
    if (timeline->stacks == NULL) {
        timeline->stacks = ml_budget_new(budget, STACKS_BYTES);
        if (timeline->stacks == NULL) {
            return;
        }
        /* A process begins with nothing, so all of its stacks are new. */
        timeline->looked_ns = timeline->sums.first_ns;
    }
    const uint32_t count = find_largest(timeline, tracker, is_new_peak, largest);
    for (uint32_t i = 0; i < count; i++) {
        if (find_stack(timeline, largest[i].node) == NULL) {
            enter(timeline, budget, cells, &largest[i]);
        }
    }
    timeline->cells_looked = cells->count;
    timeline->looked_ns = ns;
    const uint64_t seconds = 1 + cells->count / ML_TIMELINE_CELLS_A_SECOND;
    timeline->next_look_ns = ns + seconds * ns_a_second;
}

static void note_stacks(
    struct ml_timeline_log *timeline,
    struct ml_budget *budget,
    const struct ml_tracker *tracker,
    uint64_t ns
) {
    const struct ml_cells *cells = &tracker->cells;
    const bool is_new_peak = tracker->totals.peak_bytes > timeline->stacks_peak_bytes;
    find_new_cells(timeline, budget, cells);
    if (ns >= timeline->next_look_ns) {
        look(timeline, budget, tracker, ns);
    }
    for (uint32_t i = 0; i < timeline->stacks_count; i++) {
        struct ml_timeline_stack *stack = &timeline->stacks[i];
        const struct ml_series_now now = {
            .live_bytes = live_of(stack, cells),
            .most_bytes = is_new_peak ? peak_share_of(stack, tracker) : 0};
        ml_series_note(&stack->series, budget, ns, &now);
    }
    timeline->stacks_peak_bytes = tracker->totals.peak_bytes;
    timeline->stacks_ns = ns;
}

/* Whether its stacks are due: once in each slot. A second after the last look is too late, as looks
 * come late: now and then a slot would have none, and show what had grown as unchanged. A process
 * that has just begun has none yet. */
static bool stacks_are_due(const struct ml_timeline_log *timeline, uint64_t ns, bool is_exact) {
    const uint64_t slot_ns = ml_timeline_stack_shape.slot_ns;
    return ns >= timeline->sums.first_ns + slot_ns && (timeline->is_stale || is_exact) &&
           (is_exact || ns / slot_ns > timeline->stacks_ns / slot_ns);
}

void ml_timeline_note(
    struct ml_timeline_log *timeline,
    struct ml_budget *budget,
    const struct ml_tracker *tracker,
    uint64_t ns,
    bool is_exact
) {
    const struct ml_totals *totals = &tracker->totals;
    const bool is_still = timeline->noted_bytes == totals->total_bytes &&
                          timeline->noted_blocks == totals->total_blocks &&
                          timeline->noted_live_bytes == totals->live_bytes;
    if (!is_still || is_exact) {
        const struct ml_series_now now = {
            .live_bytes = totals->live_bytes,
            .most_bytes = totals->peak_bytes > timeline->noted_peak_bytes ? totals->peak_bytes : 0,
            .total_bytes = totals->total_bytes,
            .total_blocks = totals->total_blocks};
        ml_series_note(&timeline->sums, budget, ns, &now);
        timeline->noted_bytes = totals->total_bytes;
        timeline->noted_blocks = totals->total_blocks;
        timeline->noted_live_bytes = totals->live_bytes;
        timeline->noted_peak_bytes = totals->peak_bytes;
        timeline->is_stale = true;
    }
    if (stacks_are_due(timeline, ns, is_exact)) {
        note_stacks(timeline, budget, tracker, ns);
        timeline->is_stale = false;
    }
}

/* ---- as a snapshot has it */

bool ml_timeline_copy_series(
    const struct ml_series *series, struct ml_snapshot_series *out_series
) {
    out_series->from_ms = series->first_ns / 1000000;
    out_series->points = calloc(ml_series_points_max(series), sizeof(*out_series->points));
    if (out_series->points == NULL) {
        return false;
    }
    out_series->points_count = ml_series_points(series, out_series->points);
    /* The level below covers most slots of a level, so a quarter of the room is free. */
    const size_t taken = out_series->points_count > 0 ? out_series->points_count : 1;
    struct ml_snapshot_point *points =
        realloc(out_series->points, taken * sizeof(*out_series->points));
    out_series->points = points != NULL ? points : out_series->points;
    return true;
}

bool ml_timeline_copy(
    const struct ml_timeline_log *timeline, struct ml_snapshot_process *out_process
) {
    out_process->series = calloc(1 + timeline->stacks_count, sizeof(*out_process->series));
    if (out_process->series == NULL) {
        return false;
    }
    bool copied =
        ml_timeline_copy_series(&timeline->sums, &out_process->series[out_process->series_count++]);
    for (uint32_t i = 0; i < timeline->stacks_count && copied; i++) {
        const struct ml_timeline_stack *stack = &timeline->stacks[i];
        struct ml_snapshot_series *copy = &out_process->series[out_process->series_count++];
        copy->node = stack->node;
        copy->is_stack = true;
        copied = ml_timeline_copy_series(&stack->series, copy);
    }
    return copied;
}
