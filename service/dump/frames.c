#include "service/dump/frames.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

/* Look-ups, or comparisons of a sort, between two rests: some 300 us if each misses the cache. A
 * million nodes take seconds. */
enum { STEPS_A_REST = 2048 };

enum { FRAMES_ROOM_MIN = 1 << 11 };

/* Set while a frame's number is still that of its first use, not of its order. */
static const uint32_t FRAME_MET = UINT32_C(1) << 31;

static void step(struct ml_dump_frames *frames) {
    if (++frames->steps == STEPS_A_REST) {
        frames->steps = 0;
        if (frames->sink->rest != NULL) {
            frames->sink->rest(frames->sink->context);
        }
    }
}

/* Ids are given one after the other, and most of their nodes are there. So a node is no further
 * from its id's share of the way than there are nodes missing: the search begins there, in strides
 * that double. */
uint32_t ml_dump_node_find(const struct ml_snapshot_process *process, uint32_t id) {
    const struct ml_snapshot_node *nodes = process->nodes;
    const uint32_t count = process->nodes_count;

    if (count == 0 || id < nodes[0].id || id > nodes[count - 1].id) {
        return ML_DUMP_NO_INDEX;
    }
    uint32_t low = (uint32_t
    )((uint64_t)(id - nodes[0].id) * (count - 1) / ((uint64_t)nodes[count - 1].id - nodes[0].id + 1)
    );
    uint32_t high = low + 1;
    for (uint32_t stride = 1; nodes[low].id > id; stride *= 2) {
        high = low;
        low = low > stride ? low - stride : 0;
    }
    for (uint32_t stride = 1; high < count && nodes[high].id <= id; stride *= 2) {
        low = high;
        high = stride < count - high ? high + stride : count;
    }
    /* nodes[low].id <= id, and that of `high` is greater or beyond the end. */
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (nodes[middle].id <= id) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return nodes[low].id == id ? low : ML_DUMP_NO_INDEX;
}

uint32_t ml_dump_module_find(const struct ml_snapshot_process *process, uint32_t id) {
    for (uint32_t i = 0; id != 0 && i < process->modules_count; i++) {
        if (process->modules[i].id == id) {
            return i;
        }
    }
    return ML_DUMP_NO_INDEX;
}

const struct ml_string *ml_dump_module_path(
    const struct ml_snapshot_process *process, const struct ml_snapshot_module *module
) {
    return module->path.count_bytes > 0        ? &module->path
           : process->exe_path.count_bytes > 0 ? &process->exe_path
                                               : &process->name;
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
            frames->parent_index[i] = ml_dump_node_find(process, node->parent);
            if (frames->parent_index[i] == ML_DUMP_NO_INDEX) {
                return ML_BUG_CONTRACT;
            }
        }
    }
    return ML_OK;
}

/* Factors that no client can guess: frames with chosen hashes would delay every dump. They come
 * from the random bytes that the kernel gives each program. */
static void take_factors(struct ml_dump_frames *frames) {
    const void *random = (const void *)getauxval(AT_RANDOM);

    if (random) {
        memcpy(frames->factors, random, sizeof frames->factors);
    }
    for (size_t i = 0; i < sizeof frames->factors / sizeof frames->factors[0]; i++) {
        frames->factors[i] = (frames->factors[i] + i + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1;
    }
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
    frames->stacks = calloc((size_t)process->cells_count + 1, sizeof *frames->stacks);
    if (!frames->parent_index || !frames->frame || !frames->stacks) {
        return ML_ENV_MEMORY;
    }
    take_factors(frames);
    return parents_resolve(frames);
}

void ml_dump_frames_fini(struct ml_dump_frames *frames) {
    free(frames->parent_index);
    free(frames->frame);
    free(frames->frames);
    free(frames->table);
    free(frames->stacks);
    *frames = (struct ml_dump_frames){0};
}

static int order_stacks(const void *left, const void *right, void *context) {
    const struct ml_dump_stack *a = left;
    const struct ml_dump_stack *b = right;

    step(context);
    return (a->node_index > b->node_index) - (a->node_index < b->node_index);
}

/* One stack for each cell of the heap; those of one node are then merged. */
static void stacks_collect(struct ml_dump_frames *frames, uint16_t heap) {
    const struct ml_snapshot_process *process = frames->process;
    uint32_t count = 0;
    uint32_t merged = 0;

    for (uint32_t i = 0; i < process->cells_count; i++) {
        const struct ml_snapshot_cell *cell = &process->cells[i];
        step(frames);
        if (cell->heap == heap) {
            frames->stacks[count++] = (struct ml_dump_stack){
                .node_index =
                    cell->node == 0 ? ML_DUMP_NO_INDEX : ml_dump_node_find(process, cell->node),
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

/* By the content of a frame. */
static int order_frames(const void *left, const void *right, void *context) {
    struct ml_dump_frames *frames = context;
    const struct ml_snapshot_node *nodes = frames->process->nodes;
    const struct ml_snapshot_node *a = &nodes[((const struct ml_dump_frame *)left)->node_index];
    const struct ml_snapshot_node *b = &nodes[((const struct ml_dump_frame *)right)->node_index];

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
    return (a->string > b->string) - (a->string < b->string);
}

static bool same_frame(const struct ml_snapshot_node *a, const struct ml_snapshot_node *b) {
    return a->frame == b->frame && a->module == b->module && a->address == b->address &&
           a->string == b->string;
}

/* The place of that frame in the table, or the free one where it goes. */
static uint32_t *
place_of(const struct ml_dump_frames *frames, const struct ml_snapshot_node *node) {
    uint64_t hash = node->address * frames->factors[0] +
                    ((uint64_t)node->string << 32 | node->module) * frames->factors[1] +
                    node->frame * (frames->factors[0] ^ frames->factors[1]);
    uint32_t mask = frames->table_places - 1;
    uint32_t at = (uint32_t)((hash >> 32) * frames->table_places >> 32);

    while (
        frames->table[at] != 0 &&
        !same_frame(&frames->process->nodes[frames->frames[frames->table[at] - 1].node_index], node)
    ) {
        at = (at + 1) & mask;
    }
    return &frames->table[at];
}

/* Make room for one more frame; the table stays half empty. */
static bool frames_grow(struct ml_dump_frames *frames) {
    uint32_t room = frames->frames_room == 0 ? FRAMES_ROOM_MIN : 2 * frames->frames_room;
    struct ml_dump_frame *larger = reallocarray(frames->frames, room, sizeof *larger);

    if (!larger) {
        return false;
    }
    frames->frames = larger;
    free(frames->table); /* it is filled again from what was met */
    frames->table = calloc((size_t)room * 2, sizeof *frames->table);
    if (!frames->table) {
        return false;
    }
    frames->table_places = room * 2;
    frames->frames_room = room;
    for (uint32_t i = 0; i < frames->frames_count; i++) {
        step(frames);
        *place_of(frames, &frames->process->nodes[frames->frames[i].node_index]) = i + 1;
    }
    return true;
}

/* The frame's number in the order of first use, from 1; 0: no memory. */
static uint32_t frame_met(struct ml_dump_frames *frames, uint32_t node_index) {
    uint32_t *place = NULL;

    if (frames->frames_count == frames->frames_room && !frames_grow(frames)) {
        return 0;
    }
    place = place_of(frames, &frames->process->nodes[node_index]);
    if (*place == 0) {
        frames->frames[frames->frames_count] =
            (struct ml_dump_frame){.node_index = node_index, .met = frames->frames_count};
        *place = ++frames->frames_count;
    }
    return *place;
}

/* Number the frames in their order, at all used nodes. The table is no longer needed, and holds the
 * new number of each old one. */
static void frames_order(struct ml_dump_frames *frames) {
    if (frames->frames_count == 0) {
        return;
    }
    qsort_r(frames->frames, frames->frames_count, sizeof frames->frames[0], order_frames, frames);
    for (uint32_t i = 0; i < frames->frames_count; i++) {
        frames->table[frames->frames[i].met] = i + 1;
    }
    for (uint32_t i = 0; i < frames->stacks_count; i++) {
        uint32_t at = frames->stacks[i].node_index;
        while (at != ML_DUMP_NO_INDEX && (frames->frame[at] & FRAME_MET) != 0) {
            frames->frame[at] = frames->table[(frames->frame[at] & ~FRAME_MET) - 1];
            at = frames->parent_index[at];
            step(frames);
        }
    }
}

/* Forget the frames of the former heap. */
static void clear_used(struct ml_dump_frames *frames) {
    for (uint32_t i = 0; i < frames->stacks_count; i++) {
        uint32_t at = frames->stacks[i].node_index;
        while (at != ML_DUMP_NO_INDEX && frames->frame[at] != 0) {
            frames->frame[at] = 0;
            at = frames->parent_index[at];
            step(frames);
        }
    }
}

enum ml_status ml_dump_frames_take(struct ml_dump_frames *frames, uint16_t heap) {
    frames->frames_count = 0;
    clear_used(frames);
    free(frames->table); /* another heap may have few, and there may be many heaps */
    frames->table = NULL;
    frames->frames_room = 0;
    stacks_collect(frames, heap);

    for (uint32_t i = 0; i < frames->stacks_count; i++) {
        uint32_t at = frames->stacks[i].node_index;
        while (at != ML_DUMP_NO_INDEX && frames->frame[at] == 0) {
            const uint32_t number = frame_met(frames, at);
            if (number == 0) {
                return ML_ENV_MEMORY;
            }
            frames->frame[at] = number | FRAME_MET;
            at = frames->parent_index[at];
            step(frames);
        }
    }
    frames_order(frames);
    return ML_OK;
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
