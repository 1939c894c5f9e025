/* The frames that the stacks of one heap of a process use, numbered for interning. Room: service.
 * Context: one thread.
 *
 * One rule: memory is bounded: two numbers for each node of the process, and little for each cell
 * and each frame. */
#ifndef MEMLOG_SERVICE_DUMP_FRAMES_H
#define MEMLOG_SERVICE_DUMP_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/wire/ml_status.h"
#include "service/dump/sink.h"
#include "service/snapshot/snapshot.h"

/* Beyond every index. */
#define ML_DUMP_NO_INDEX UINT32_MAX

/* One callstack: all cells of one heap at one node. */
struct ml_dump_stack {
    uint32_t node_index; /* ML_DUMP_NO_INDEX: no stack */
    uint64_t live_bytes, live_blocks, total_bytes, total_blocks;
};

/* A frame, which several nodes may show. */
struct ml_dump_frame {
    uint32_t node_index; /* of one of them */
    uint32_t met;
};

struct ml_dump_frames {
    const struct ml_snapshot_process *process;
    const struct ml_dump_sink *sink; /* rests between steps */
    uint32_t steps;                  /* since the last rest */
    uint32_t *parent_index;          /* of each node; ML_DUMP_NO_INDEX at the root */
    uint32_t *frame;                 /* of each node: number of its frame, from 1; 0: not used */
    struct ml_dump_frame *frames;    /* by number - 1: kind, module, address, string rise */
    uint32_t frames_count, frames_room;
    uint32_t *table; /* while they are taken: numbers by what frames show, open addressing */
    uint32_t table_places;
    uint64_t factors[2];          /* of its hash */
    struct ml_dump_stack *stacks; /* room for every cell */
    uint32_t stacks_count;
};

/* The index of the node with that id; ML_DUMP_NO_INDEX: there is none. */
uint32_t ml_dump_node_find(const struct ml_snapshot_process *process, uint32_t id);

/* The same of a module; of the ids, 0 is none. */
uint32_t ml_dump_module_find(const struct ml_snapshot_process *process, uint32_t id);

/* The file of a module; the main program's is the process's own. */
const struct ml_string *ml_dump_module_path(
    const struct ml_snapshot_process *process, const struct ml_snapshot_module *module
);

/* Errors: ML_ENV_MEMORY; ML_BUG_CONTRACT for unsorted nodes or a parent that is not among them.
 * After an error only _fini is allowed. A cell of an unknown node counts as one without a stack. */
ML_NODISCARD enum ml_status ml_dump_frames_init(
    struct ml_dump_frames *frames,
    const struct ml_snapshot_process *process,
    const struct ml_dump_sink *sink
);
void ml_dump_frames_fini(struct ml_dump_frames *frames);

/* Take the stacks of one heap. Errors: ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status ml_dump_frames_take(struct ml_dump_frames *frames, uint16_t heap);

/* The smallest heap id >= from that has cells; false if there is none. */
bool ml_dump_frames_next_heap(
    const struct ml_dump_frames *frames, uint32_t from, uint16_t *out_heap
);

#endif
