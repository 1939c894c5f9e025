#include "client/recording/heaps.h"

#include "client/recording/hook.h"
#include "client/recording/record.h"
#include "client/recording/sampler.h"
#include "client/sampling/poisson.h"
#include "client/stream/overrun.h"

/* ---- what the stream calls a block */

#define FOLDED (ML_ADDRESS_MAX >> 1)

static uint64_t mix(uint64_t bits) {
    bits = (bits ^ bits >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ bits >> 27) * UINT64_C(0x94d049bb133111eb);
    return bits ^ bits >> 31;
}

/* The stream has room for 56 bits. Pointers, handles and numbers are what they are; all others are
 * told apart by 55 bits of a hash. */
static uint64_t address_of(uint64_t id) {
    return id != 0 && id < FOLDED ? id : FOLDED | (mix(id) & (FOLDED - 1));
}

/* Of the set of sampled blocks, where no address of malloc's is. */
static uint64_t key_of(const struct ml_name *heap, uint64_t address) {
    return mix(address + ((uint64_t)heap->id << 56)) | UINT64_C(1) << 63;
}

/* ---- on the thread's lane */

/* In the real allocator a program may report of a heap, too. The lane is at rest then. */
static bool may_join(const struct ml_thread *thread) {
    return thread->phase == ML_PHASE_NEXT && thread->lane != NULL &&
           thread->generation == ml_process.generation && ml_process_state() == ML_GATE_RECORDING;
}

static struct ml_hook enter(struct ml_thread *thread, uintptr_t frame) {
    if (ml_likely(!may_join(thread))) {
        return ml_hook_enter(thread, frame);
    }
    const struct ml_hook hook = {
        .lane = thread->lane, .outer_phase = thread->phase, .outer_frame = thread->hook_frame};
    thread->hook_frame = frame;
    return hook;
}

/* At what interval the heap is recorded now; 1: every block. */
static uint64_t interval_of(const struct ml_thread *thread, const struct ml_name *heap) {
    const uint64_t forced =
        atomic_load_explicit(&ml_process.gate_page->overrun_bytes, memory_order_relaxed);
    const uint64_t wanted = heap->interval_bytes != 0 ? heap->interval_bytes : thread->interval;
    const uint64_t most = wanted < ML_SAMPLING_MAX_BYTES ? wanted : ML_SAMPLING_MAX_BYTES;
    const uint64_t interval = most > forced ? most : forced;
    return interval > 1 ? interval : 1;
}

static void note_in(_Atomic uint64_t *stream, const struct ml_lane *lane) {
    if (ml_unlikely(atomic_load_explicit(stream, memory_order_relaxed) != ml_name_stream(lane))) {
        atomic_store_explicit(stream, ml_name_stream(lane), memory_order_release);
    }
}

static bool is_in(const _Atomic uint64_t *stream, const struct ml_lane *lane) {
    return atomic_load_explicit(stream, memory_order_acquire) == ml_name_stream(lane);
}

/* Whether the block is recorded, and then what it stands for. */
static bool decide(
    struct ml_thread *thread,
    struct ml_lane *lane,
    const struct ml_heap_block *block,
    struct ml_event_block *event
) {
    const uint64_t interval = interval_of(thread, block->heap);
    if (ml_likely(interval == 1)) {
        note_in(&block->heap->exact_in, lane);
        return true;
    }
    note_in(&block->heap->sampled_in, lane);
    if (event->size_bytes >= interval) {
        event->weight_bytes = event->size_bytes;
        event->weight_blocks = 1;
    } else if (ml_poisson_distance(&thread->random, interval) > event->size_bytes) {
        thread->skipped = 1;
        return false;
    } else {
        const struct ml_poisson_weights weights =
            ml_poisson_weigh(&thread->random, &lane->chances, interval, event->size_bytes);
        event->weight_bytes = weights.bytes;
        event->weight_blocks = weights.blocks;
    }
    ml_sampled_set_add(&ml_process.sampled, key_of(block->heap, event->address));
    return true;
}

static void record_alloc(
    struct ml_thread *thread,
    struct ml_lane *lane,
    const struct ml_unwind_entry *entry,
    const struct ml_heap_block *block
) {
    const uint64_t most = ML_SIZE_MAX_BYTES - 1;
    struct ml_event_block event = {
        .address = address_of(block->id),
        .size_bytes = block->size_bytes < most ? block->size_bytes : most,
        .heap = (uint8_t)block->heap->id};
    if (!decide(thread, lane, block, &event)) {
        return;
    }
    ml_name_define(lane, block->heap);
    if (block->type != NULL) {
        ml_name_define(lane, block->type);
        event.type = (uint16_t)block->type->id;
    }
    event.node = ml_record_node(lane, entry);
    uint8_t *op = ml_lane_room(lane);
    ml_lane_busy(lane);
    uint8_t *pos = ml_lane_put_time(lane, op + 1);
    pos = ml_put_alloc_typed(op, pos, &lane->state, &event);
    ml_lane_count(lane);
    ml_lane_publish(lane, pos);
}

void ml_heap_alloc(const struct ml_unwind_entry *entry, const struct ml_heap_block *block) {
    struct ml_thread *thread = ml_this_thread();
    const struct ml_hook hook = enter(thread, entry->sp);
    if (hook.lane != NULL) {
        const uint32_t phase = ml_hook_recording(thread);
        record_alloc(thread, hook.lane, entry, block);
        ml_hook_calling(thread, phase);
    }
    ml_hook_leave(thread, &hook);
}

/* False: the free needs no record, as its block was passed over. *out_op: how it is recorded. */
static bool is_needed(
    struct ml_thread *thread,
    const struct ml_lane *lane,
    const struct ml_name *heap,
    uint64_t address,
    unsigned *out_op
) {
    *out_op = ML_OP_FREE;
    if (ml_likely(!is_in(&heap->sampled_in, lane))) {
        return true;
    }
    const enum ml_sampled sampled =
        ml_sampled_set_remove(&ml_process.sampled, key_of(heap, address));
    if (sampled == ML_SAMPLED_NOT && !is_in(&heap->exact_in, lane)) {
        thread->skipped = 1;
        return false;
    }
    *out_op |= sampled == ML_SAMPLED_YES ? 0 : ML_FREE_UNSURE;
    *out_op |= thread->skipped != 0 ? ML_FREE_SKIPPED : 0;
    return true;
}

static void record_free(
    struct ml_thread *thread, struct ml_lane *lane, struct ml_name *heap, uint64_t address
) {
    unsigned op = 0;
    if (!is_needed(thread, lane, heap, address, &op)) {
        return;
    }
    ml_name_define(lane, heap);
    uint8_t *first = ml_lane_room(lane);
    ml_lane_busy(lane);
    uint8_t *pos = ml_lane_put_time(lane, first + 1);
    pos = ml_put_free_of_heap(first, pos, &lane->state, address, op, heap->id);
    ml_lane_count(lane);
    ml_lane_publish(lane, pos);
}

void ml_heap_free(const struct ml_unwind_entry *entry, struct ml_name *heap, uint64_t id) {
    struct ml_thread *thread = ml_this_thread();
    const struct ml_hook hook = enter(thread, entry->sp);
    if (hook.lane != NULL) {
        const uint32_t phase = ml_hook_recording(thread);
        record_free(thread, hook.lane, heap, address_of(id));
        ml_hook_calling(thread, phase);
    }
    ml_hook_leave(thread, &hook);
}
