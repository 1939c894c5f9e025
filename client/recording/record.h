/* Events, from what a hook knows to bytes in the lane. Room: client (private). Context: inside a
 * hook, on its lane.
 *
 * One rule: the stamp of an alloc is taken after the real call returned, that of a free before the
 * real call starts. */
#ifndef MEMLOG_CLIENT_RECORDING_RECORD_H
#define MEMLOG_CLIENT_RECORDING_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "client/state/visible.h"
#include "client/stream/lane.h"
#include "client/unwind/unwind.h"

/* The node of a stack that is not the expected one. */
ML_HOT uint32_t ml_record_node_slow(struct ml_lane *lane, struct ml_unwind_entry entry);

static inline __attribute__((always_inline)) uint32_t
ml_record_node(struct ml_lane *lane, const struct ml_unwind_entry *entry) {
    struct ml_unwind_memo *memo = &lane->unwind.memo;
    const struct ml_unwind_process *process = ml_process.unwind;
    const uint64_t unloads = atomic_load_explicit(&process->unloads, memory_order_relaxed);
    struct ml_memo_stack *stack = ml_unwind_memo_expected(memo, unloads, entry);
    return ml_likely(stack != NULL) ? ml_memo_found(memo, &process->memos, stack)
                                    : ml_record_node_slow(lane, *entry);
}

/* The node of a function that is called from `entry`'s stack later, by another thread. */
uint32_t
ml_record_call(struct ml_lane *lane, const struct ml_unwind_entry *entry, const void *function);

/* The block is new; its stack starts at `entry`. Inline, a kilobyte of code, for the hook that
 * records most events. */
static inline __attribute__((always_inline)) void ml_record_alloc_here(
    struct ml_lane *lane, const struct ml_unwind_entry *entry, const void *block, size_t size_bytes
) {
    const uint32_t node = ml_record_node(lane, entry);
    uint8_t *op = ml_lane_room(lane);
    ml_lane_busy(lane);
    uint8_t *pos = ml_lane_put_time(lane, op + 1);
    pos = ml_put_alloc_rest(op, pos, &lane->state, (uintptr_t)block, size_bytes, node);
    ml_lane_count(lane);
    ml_lane_publish(lane, pos);
}

/* The same for all others. */
ML_HOT void ml_record_alloc(
    struct ml_lane *lane, const struct ml_unwind_entry *entry, const void *block, size_t size_bytes
);

/* The same for a sampled block, which stands for others too. */
void ml_record_alloc_sampled(
    struct ml_lane *lane,
    const struct ml_unwind_entry *entry,
    const void *block,
    size_t size_bytes,
    uint64_t weight_bytes,
    uint64_t weight_blocks
);

/* The block is about to be freed, or (op ML_OP_RESIZE) about to be given to realloc. With op may
 * stand ML_FREE_SKIPPED and ML_FREE_UNSURE. In line, and for all others. */
static inline __attribute__((always_inline)) void
ml_record_free_here(struct ml_lane *lane, const void *block, unsigned op) {
    uint8_t *first = ml_lane_room(lane);
    ml_lane_busy(lane);
    uint8_t *pos = ml_lane_put_time(lane, first + 1);
    pos = ml_put_free_rest(first, pos, &lane->state, (uintptr_t)block, op);
    ml_lane_count(lane);
    ml_lane_publish(lane, pos);
}
ML_HOT void ml_record_free(struct ml_lane *lane, const void *block, unsigned op);

/* That realloc failed: the block of the lane's last RESIZE is as it was. */
void ml_record_cancel(struct ml_lane *lane);

/* The START record, first in lane 0. */
void ml_record_start(struct ml_lane *lane, uint64_t fork_serial);

/* This lane is now that thread's; its name where the stack mode wants it. */
void ml_record_thread(struct ml_lane *lane);

/* A text that may be referred to. 0: there are too many. */
uint32_t ml_record_string(struct ml_lane *lane, const uint8_t *bytes, uint32_t count_bytes);

/* A module that dlclose has unmapped. */
void ml_record_unload(void *lane, uint32_t module_id);

#endif
