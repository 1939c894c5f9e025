/* Blocks of heaps that the program reports itself (client/memlog.h). Room: client (private).
 * Context: any thread, a signal handler too; inside a hooked allocator too, whose own call is
 * another event.
 *
 * One rule: a heap is sampled by its own interval. Each block is drawn for itself: whether it is
 * recorded depends on its size, the interval and chance alone, as for malloc's. */
#ifndef MEMLOG_CLIENT_RECORDING_HEAPS_H
#define MEMLOG_CLIENT_RECORDING_HEAPS_H

#include <stdint.h>

#include "client/recording/hook.h"
#include "client/recording/names.h"
#include "client/recording/record.h"

/* What the program calls a block. */
struct ml_heap_block {
    struct ml_name *heap;
    uint64_t id; /* any */
    uint64_t size_bytes;
    struct ml_name *type; /* NULL: none */
};

uint64_t ml_heap_hash(uint64_t id);

/* What the stream, which has room for 56 bits, calls a block. Pointers, handles and numbers are
 * what they are; all others are told apart by 55 bits of a hash. */
static inline uint64_t ml_heap_address(uint64_t id) {
    return ml_likely(id - 1 < ML_ADDRESS_MAX / 2 - 1) ? id : ml_heap_hash(id);
}

static inline uint64_t ml_heap_size(uint64_t size_bytes) {
    return size_bytes < ML_SIZE_MAX_BYTES - 1 ? size_bytes : ML_SIZE_MAX_BYTES - 1;
}

/* The block is new; its stack starts at `entry`. */
void ml_heap_alloc(const struct ml_unwind_entry *entry, const struct ml_heap_block *block);

/* It is about to be given back. */
void ml_heap_free(const struct ml_unwind_entry *entry, struct ml_name *heap, uint64_t id);

/* ---- the fast path, in line: what malloc's hook does, for a heap of which every block is
 * recorded. Whatever else there is to know takes the slow path, which does all of it. */

/* The lane of the thread that has entered, if each block of that heap is recorded there as it is.
 * NULL: not, or not known. */
static inline struct ml_lane *
ml_heap_plain_lane(const struct ml_thread *thread, const struct ml_name *heap) {
    struct ml_lane *lane = thread->lane;
    return ml_likely(
               lane != NULL && heap != NULL &&
               atomic_load_explicit(&heap->plain_in, memory_order_acquire) == ml_name_stream(lane)
           )
               ? lane
               : NULL;
}

static inline __attribute__((always_inline)) void ml_heap_record_alloc(
    struct ml_lane *lane, const struct ml_unwind_entry *entry, struct ml_event_block *event
) {
    event->node = ml_record_node(lane, entry);
    uint8_t *op = ml_lane_room(lane);
    ml_lane_busy(lane);
    uint8_t *pos = ml_lane_put_time(lane, op + 1);
    pos = ml_put_alloc_typed(op, pos, &lane->state, event);
    ml_lane_count(lane);
    ml_lane_publish(lane, pos);
}

static inline __attribute__((always_inline)) void
ml_heap_record_free(struct ml_lane *lane, uint64_t address, unsigned op, uint32_t heap) {
    uint8_t *first = ml_lane_room(lane);
    ml_lane_busy(lane);
    uint8_t *pos = ml_lane_put_time(lane, first + 1);
    pos = ml_put_free_of_heap(first, pos, &lane->state, address, op, heap);
    ml_lane_count(lane);
    ml_lane_publish(lane, pos);
}

/* `type` NULL: none. False: nothing was done. */
static inline __attribute__((always_inline)) bool ml_heap_alloc_here(
    const struct ml_unwind_entry *entry,
    uint32_t heap,
    uint64_t id,
    uint64_t size_bytes,
    const struct ml_name *type
) {
    struct ml_thread *thread = ml_this_thread();
    if (ml_unlikely(!ml_hook_enter_plain(thread, entry->sp))) {
        return false;
    }
    struct ml_lane *lane = ml_heap_plain_lane(thread, ml_name_heap(heap));
    if (lane != NULL && type != NULL && !ml_name_is_in(&type->defined, lane)) {
        lane = NULL;
    }
    if (ml_likely(lane != NULL)) {
        struct ml_event_block event = {
            .address = ml_heap_address(id),
            .size_bytes = ml_heap_size(size_bytes),
            .heap = (uint8_t)heap,
            .type = type != NULL ? (uint16_t)type->id : 0};
        thread->phase = ML_PHASE_RECORD;
        atomic_signal_fence(memory_order_seq_cst);
        ml_heap_record_alloc(lane, entry, &event);
    }
    ml_hook_leave_plain(thread);
    return lane != NULL;
}

/* Likewise. */
static inline __attribute__((always_inline)) bool
ml_heap_free_here(const struct ml_unwind_entry *entry, uint32_t heap, uint64_t id) {
    struct ml_thread *thread = ml_this_thread();
    if (ml_unlikely(!ml_hook_enter_plain(thread, entry->sp))) {
        return false;
    }
    struct ml_lane *lane = ml_heap_plain_lane(thread, ml_name_heap(heap));
    if (ml_likely(lane != NULL)) {
        thread->phase = ML_PHASE_RECORD;
        atomic_signal_fence(memory_order_seq_cst);
        ml_heap_record_free(lane, ml_heap_address(id), ML_OP_FREE, heap);
    }
    ml_hook_leave_plain(thread);
    return lane != NULL;
}

#endif
