#include "service/dump_frames.h"

#include <stdlib.h>
#include <string.h>

/* Look-ups, or comparisons of a sort, between two rests: some 300 us where each misses the
 * cache. A million nodes take seconds. */
enum { STEPS_A_REST = 2048 };

static void step(struct ml_dump_frames *frames) {
    if (++frames->steps == STEPS_A_REST) {
        frames->steps = 0;
        if (frames->sink->rest != NULL) {
            frames->sink->rest(frames->sink->context);
        }
    }
}

/* The index of the node with that id; ML_DUMP_NO_INDEX if there is none. */
static uint32_t node_find(const struct ml_snapshot_process *process, uint32_t id) {
    uint32_t low = 0;
    uint32_t high = process->nodes_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (process->nodes[middle].id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < process->nodes_count && process->nodes[low].id == id ? low : ML_DUMP_NO_INDEX;
}

static enum ml_status parents_resolve(struct ml_dump_frames *frames) {
    const struct ml_snapshot_process *process = frames->process;

    for (uint32_t i = 0; i < process->nodes_count; i++) {
        const struct ml_snapshot_node *node = &process->nodes[i];
        if ((i > 0 && node->id <= process->nodes[i - 1].id) || node->parent >= node->id) {
            return ML_BUG_CONTRACT;
        }
        step(frames);
        frames->parent_index[i] = ML_DUMP_NO_INDEX;
        if (node->parent != 0) {
            frames->parent_index[i] = node_find(process, node->parent);
            if (frames->parent_index[i] == ML_DUMP_NO_INDEX) {
                return ML_BUG_CONTRACT;
            }
        }
    }
    return ML_OK;
}

enum ml_status ml_dump_frames_init(
    struct ml_dump_frames *frames,
    const struct ml_snapshot_process *process,
    const struct ml_dump_sink *sink
) {
    /* One more than needed: an empty array is an array, too. */
    size_t nodes = (size_t)process->nodes_count + 1;

    *frames = (struct ml_dump_frames){.process = process, .sink = sink};
    frames->parent_index = calloc(nodes, sizeof *frames->parent_index);
    frames->frame = calloc(nodes, sizeof *frames->frame);
    frames->used = calloc(nodes, sizeof *frames->used);
    frames->stacks = calloc((size_t)process->cells_count + 1, sizeof *frames->stacks);
    if (!frames->parent_index || !frames->frame || !frames->used || !frames->stacks) {
        return ML_ENV_MEMORY;
    }
    return parents_resolve(frames);
}

void ml_dump_frames_fini(struct ml_dump_frames *frames) {
    free(frames->parent_index);
    free(frames->frame);
    free(frames->used);
    free(frames->stacks);
    *frames = (struct ml_dump_frames){0};
}

static int order_stacks(const void *left, const void *right, void *context) {
    const struct ml_dump_stack *a = left;
    const struct ml_dump_stack *b = right;

    step(context);
    return (a->node_index > b->node_index) - (a->node_index < b->node_index);
}

/* One stack for each cell of the heap, then those of the same node made one. */
static void stacks_collect(struct ml_dump_frames *frames, uint16_t heap) {
    const struct ml_snapshot_process *process = frames->process;
    uint32_t count = 0;
    uint32_t merged = 0;

    for (uint32_t i = 0; i < process->cells_count; i++) {
        const struct ml_snapshot_cell *cell = &process->cells[i];
        step(frames);
        if (cell->heap == heap) {
            frames->stacks[count++] = (struct ml_dump_stack){
                .node_index = cell->node == 0 ? ML_DUMP_NO_INDEX : node_find(process, cell->node),
                .live_bytes = cell->own.live_bytes,
                .live_blocks = cell->own.live_blocks,
                .total_bytes = cell->own.total_bytes,
                .total_blocks = cell->own.total_blocks,
            };
        }
    }
    qsort_r(frames->stacks, count, sizeof frames->stacks[0], order_stacks, frames);
    for (uint32_t i = 0; i < count; i++) {
        const struct ml_dump_stack *one = &frames->stacks[i];
        step(frames);
        struct ml_dump_stack *last = merged > 0 ? &frames->stacks[merged - 1] : NULL;
        if (last && last->node_index == one->node_index) {
            last->live_bytes += one->live_bytes;
            last->live_blocks += one->live_blocks;
            last->total_bytes += one->total_bytes;
            last->total_blocks += one->total_blocks;
        } else {
            frames->stacks[merged++] = *one;
        }
    }
    frames->stacks_count = merged;
}

/* By what a frame shows, then by index, so that one frame's nodes lie together in a fixed order. */
static int order_used(const void *left, const void *right, void *context) {
    struct ml_dump_frames *frames = context;
    const struct ml_snapshot_node *nodes = frames->process->nodes;
    uint32_t left_index = *(const uint32_t *)left;
    uint32_t right_index = *(const uint32_t *)right;
    const struct ml_snapshot_node *a = &nodes[left_index];
    const struct ml_snapshot_node *b = &nodes[right_index];

    step(frames);
    if (a->frame != b->frame) {
        return (a->frame > b->frame) - (a->frame < b->frame);
    }
    if (a->module != b->module) {
        return (a->module > b->module) - (a->module < b->module);
    }
    if (a->address != b->address) {
        return (a->address > b->address) - (a->address < b->address);
    }
    if (a->string != b->string) {
        return (a->string > b->string) - (a->string < b->string);
    }
    return (left_index > right_index) - (left_index < right_index);
}

static bool same_frame(const struct ml_snapshot_node *a, const struct ml_snapshot_node *b) {
    return a->frame == b->frame && a->module == b->module && a->address == b->address &&
           a->string == b->string;
}

void ml_dump_frames_take(struct ml_dump_frames *frames, uint16_t heap) {
    const struct ml_snapshot_node *nodes = frames->process->nodes;
    uint32_t used_count = 0;

    frames->frames_count = 0;
    frames->has_no_stack = false;
    memset(frames->frame, 0, (size_t)frames->process->nodes_count * sizeof frames->frame[0]);
    stacks_collect(frames, heap);

    for (uint32_t i = 0; i < frames->stacks_count; i++) {
        uint32_t at = frames->stacks[i].node_index;
        frames->has_no_stack = frames->has_no_stack || at == ML_DUMP_NO_INDEX;
        while (at != ML_DUMP_NO_INDEX && frames->frame[at] == 0) {
            frames->frame[at] = 1;
            frames->used[used_count++] = at;
            at = frames->parent_index[at];
            step(frames);
        }
    }
    if (used_count > 0) {
        qsort_r(frames->used, used_count, sizeof frames->used[0], order_used, frames);
    }
    for (uint32_t i = 0; i < used_count; i++) {
        uint32_t index = frames->used[i];
        step(frames);
        if (frames->frames_count == 0 ||
            !same_frame(&nodes[frames->used[frames->frames_count - 1]], &nodes[index])) {
            frames->used[frames->frames_count++] = index;
        }
        frames->frame[index] = frames->frames_count;
    }
}

bool ml_dump_frames_next_heap(
    const struct ml_dump_frames *frames, uint32_t from, uint16_t *out_heap
) {
    const struct ml_snapshot_process *process = frames->process;
    uint32_t best = UINT32_MAX;

    for (uint32_t i = 0; i < process->cells_count; i++) {
        uint32_t heap = process->cells[i].heap;
        if (heap >= from && heap < best) {
            best = heap;
        }
    }
    if (best == UINT32_MAX) {
        return false;
    }
    *out_heap = (uint16_t)best;
    return true;
}
