#include "client/recording/heaps.h"

#include "client/recording/sampler.h"
#include "client/sampling/poisson.h"
#include "client/stream/overrun.h"

/* ---- what the stream calls a block */

#define FOLDED (ML_ADDRESS_MAX / 2)

static uint64_t mix(uint64_t bits) {
    bits = (bits ^ bits >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ bits >> 27) * UINT64_C(0x94d049bb133111eb);
    return bits ^ bits >> 31;
}

uint64_t ml_heap_hash(uint64_t id) {
    return FOLDED | (mix(id) & (FOLDED - 1));
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

/* The fast path may take the heap's blocks, unless some were passed over. */
static void note_plain(struct ml_name *heap, const struct ml_lane *lane) {
    const uint64_t stream = ml_name_stream(lane);
    uint64_t seen = atomic_load_explicit(&heap->plain_in, memory_order_relaxed);
    if (ml_unlikely(
            seen != stream && seen != ~stream && heap->interval_bytes <= 1 &&
            !ml_name_is_in(&heap->sampled_in, lane)
        )) {
        (void)atomic_compare_exchange_strong(&heap->plain_in, &seen, stream);
    }
}

static void note_passed_over(struct ml_name *heap, const struct ml_lane *lane) {
    note_in(&heap->sampled_in, lane);
    if (ml_unlikely(atomic_load(&heap->plain_in) != ~ml_name_stream(lane))) {
        atomic_store(&heap->plain_in, ~ml_name_stream(lane));
    }
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
    note_passed_over(block->heap, lane);
    if (event->size_bytes >= interval) {
        event->weight_bytes = event->size_bytes;
        event->weight_blocks = 1;
    } else if (ml_poisson_distance(&thread->random, interval) > event->size_bytes) {
        thread->skipped++;
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
    struct ml_event_block event = {
        .address = ml_heap_address(block->id),
        .size_bytes = ml_heap_size(block->size_bytes),
        .heap = (uint8_t)block->heap->id};
    if (!decide(thread, lane, block, &event)) {
        return;
    }
    ml_name_define(lane, block->heap);
    if (event.weight_blocks == 0) {
        note_plain(block->heap, lane);
    }
    if (block->type != NULL) {
        ml_name_define(lane, block->type);
        event.type = (uint16_t)block->type->id;
    }
    ml_heap_record_alloc(lane, entry, &event);
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
    if (ml_likely(!ml_name_is_in(&heap->sampled_in, lane))) {
        return true;
    }
    const enum ml_sampled sampled =
        ml_sampled_set_remove(&ml_process.sampled, key_of(heap, address));
    if (sampled == ML_SAMPLED_NOT && !ml_name_is_in(&heap->exact_in, lane)) {
        thread->skipped++;
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
    ml_heap_record_free(lane, address, op, heap->id);
}

void ml_heap_free(const struct ml_unwind_entry *entry, struct ml_name *heap, uint64_t id) {
    struct ml_thread *thread = ml_this_thread();
    const struct ml_hook hook = enter(thread, entry->sp);
    if (hook.lane != NULL) {
        const uint32_t phase = ml_hook_recording(thread);
        record_free(thread, hook.lane, heap, ml_heap_address(id));
        ml_hook_calling(thread, phase);
    }
    ml_hook_leave(thread, &hook);
}
