/* What becomes of a chunk: opened, filled with records, into the pipe, or dropped. */
#include "client/stream/lane.h"

#include <string.h>

#include "client/stream/decoy.h"
#include "client/stream/overrun.h"
#include "client/stream/pipe.h"
#include "client/stream/salvage.h"
#include "client/stream/stack_table.h"

enum {
    /* Most bytes of definitions kept of a dropped chunk: the next one must hold events as well. */
    SALVAGE_MAX_BYTES = ML_CHUNK_MAX_BYTES / 2
};

/* Plain counters of the lane header: this thread alone writes them, the service reads them whenever
 * it likes. */
static void header_add(uint64_t *counter, uint64_t amount) {
    _Atomic uint64_t *atomic = (_Atomic uint64_t *)counter;
    atomic_store_explicit(
        atomic, atomic_load_explicit(atomic, memory_order_relaxed) + amount, memory_order_relaxed
    );
}

static uint8_t *frame_of(const struct ml_lane *lane, uint64_t number) {
    return ml_process.staging + ml_staging_slot_offset(lane->index, number, ml_process.slots);
}

/* Restartable: may be repeated from its start. */
static void open_chunk(struct ml_lane *lane, uint64_t number) {
    lane->number = number;
    lane->start = frame_of(lane, number) + ML_FRAME_HEADER_BYTES;
    lane->origin = (number << ML_PUBLISHED_SHIFT) - (uintptr_t)lane->start;
    lane->limit = lane->start + ML_CHUNK_MAX_BYTES - ML_EVENT_HOT_MAX_BYTES;
    lane->state = (struct ml_event_state){0};
    lane->lease.again = 0; /* the chunk before, with the last stamp, may be lost */
    lane->produced_before = lane->header->produced;
    ml_lane_publish(lane, lane->start);
}

void ml_lane_begin(struct ml_lane *lane, uint32_t profile) {
    struct ml_staging_lane *header = lane->header;
    lane->unsent = ml_profile_first_chunk(profile);
    lane->next = 0;
    lane->interval = 0;
    lane->thread_node = 0;
    header->lost_chunks = 0;
    header->lost_events = 0;
    header->produced = 0;
    header->waited_ns = 0;
    header->longest_wait_ns = 0;
    header->waits = 0;
    __atomic_store_n(&header->sent, lane->unsent, __ATOMIC_RELEASE);
    open_chunk(lane, lane->unsent);
    lane->tag = ml_stack_tag(profile);
    lane->profile = profile;
}

/* Records of a closed chunk: its frame header tells. The memfd is open in other processes too, so
 * what it says is bounded. */
static size_t records_bytes(const uint8_t *frame) {
    uint16_t end_bytes = 0;
    memcpy(&end_bytes, frame, sizeof(end_bytes));
    return end_bytes < ML_CHUNK_MAX_BYTES ? end_bytes : ML_CHUNK_MAX_BYTES;
}

static void pass(struct ml_lane *lane) {
    lane->unsent++;
    atomic_store_explicit(
        (_Atomic uint64_t *)&lane->header->sent, lane->unsent, memory_order_release
    );
}

/* Drop the oldest chunk that is not in the pipe. */
static void drop_oldest(struct ml_lane *lane, enum ml_pipe_answer why) {
    const uint8_t *frame = frame_of(lane, lane->unsent);
    const uint64_t events = ml_salvage_events(frame + ML_FRAME_HEADER_BYTES, records_bytes(frame));
    if (why == ML_PIPE_FULL) {
        header_add(&lane->header->lost_events, events);
    } else {
        __atomic_fetch_add(&ml_process_staging_header()->lost_no_pipe, events, __ATOMIC_RELAXED);
    }
    pass(lane);
    /* Stored after `sent`: a reader that sees the chunk counted also sees that it will not be
     * sent. */
    _Atomic uint64_t *lost = (_Atomic uint64_t *)&lane->header->lost_chunks;
    const uint64_t before = atomic_load_explicit(lost, memory_order_relaxed);
    atomic_store_explicit(lost, before + 1, memory_order_release);
    lane->dropped = 1;
}

static void count_wait(struct ml_staging_lane *header, uint64_t waited_ns) {
    header_add(&header->waited_ns, waited_ns);
    header->waits++;
    if (waited_ns > header->longest_wait_ns) {
        header->longest_wait_ns = waited_ns;
    }
}

/* Put into the pipe what it takes. Wait, and at last drop, only if the next chunk needs the
 * slot. */
static void send_closed(struct ml_lane *lane) {
    uint64_t started_ns = 0;
    while (lane->unsent <= lane->number && !ml_decoy_is(lane)) {
        uint8_t *frame = frame_of(lane, lane->unsent);
        const enum ml_pipe_answer answer =
            ml_pipe_put(frame, ML_FRAME_HEADER_BYTES + records_bytes(frame));
        if (ml_unlikely(ml_overrun_samples())) {
            ml_overrun_put(answer);
        }
        if (answer == ML_PIPE_TAKEN) {
            ml_pipe_moves();
            pass(lane);
            continue;
        }
        if (answer == ML_PIPE_FULL && lane->number + 1 < lane->unsent + ml_process.slots) {
            break;
        }
        if (answer == ML_PIPE_FULL) {
            const uint64_t now_ns = ml_sys_monotonic_ns();
            const uint64_t start_ns = started_ns == 0 ? now_ns : started_ns;
            if (ml_pipe_wait(now_ns, start_ns + ML_PIPE_WAIT_MAX_NS)) {
                started_ns = start_ns;
                continue;
            }
        }
        drop_oldest(lane, answer);
    }
    if (started_ns != 0) {
        count_wait(lane->header, ml_sys_monotonic_ns() - started_ns);
    }
}

/* The chunk that was in the open one's slot was dropped: repeat its definitions in the open one.
 * Late definitions also resolve references that came before them. */
static void salvage(struct ml_lane *lane, size_t count_bytes) {
    struct ml_salvage kept;
    ml_salvage_definitions(lane->start, count_bytes, SALVAGE_MAX_BYTES, &kept);
    lane->state = kept.state;
    ml_lane_publish(lane, lane->start + kept.bytes);
    for (uint32_t i = 0; i < kept.timed_count; i++) {
        ml_lane_record(lane, &kept.timed[i]);
    }
}

void ml_lane_flush(struct ml_lane *lane) {
    const size_t count_bytes = (size_t)(lane->pos - lane->start);
    if (count_bytes == 0) {
        return;
    }
    if (ml_unlikely(ml_decoy_is(lane))) {
        ml_decoy_rewind(lane);
        return;
    }
    const struct ml_frame_header header = {
        .chunk_number = lane->number,
        .end_bytes = (uint16_t)count_bytes,
        .start_bytes = 0,
        .lane = (uint16_t)lane->index,
        .thread_id = lane->thread_id,
    };
    ml_frame_header_write(frame_of(lane, lane->number), &header);
    lane->dropped = 0;
    send_closed(lane);
    if (ml_unlikely(ml_decoy_is(lane))) { /* since the last look */
        ml_decoy_rewind(lane);
        return;
    }
    const size_t slot_bytes = records_bytes(frame_of(lane, lane->number + 1));
    lane->next = lane->number + 1;
    atomic_signal_fence(memory_order_seq_cst);
    open_chunk(lane, lane->next);
    atomic_signal_fence(memory_order_seq_cst);
    lane->next = 0;
    if (lane->dropped != 0) {
        salvage(lane, slot_bytes);
    }
}

void ml_lane_repair(struct ml_lane *lane) {
    if (lane->next != 0) {
        open_chunk(lane, lane->next);
        atomic_signal_fence(memory_order_seq_cst);
        lane->next = 0;
        return;
    }
    const size_t count_bytes = (size_t)(lane->pos - lane->start);
    lane->header->produced = lane->produced_before + ml_salvage_events(lane->start, count_bytes);
    if (count_bytes == 0) {
        open_chunk(lane, lane->number);
    } else {
        ml_lane_flush(lane);
    }
}

/* Records with a time are small; the longest, MAPPING, has seven varints. */
enum { TIMED_MAX_BYTES = 1 + 7 * ML_VARINT_MAX_BYTES };

static bool has_time(enum ml_event_kind kind) {
    return (kind >= ML_EVENT_SAMPLING && kind < ML_EVENT_EXTENDED_COUNT) || kind >= ML_EVENT_ALLOC;
}

void ml_lane_record(struct ml_lane *lane, const struct ml_event *event) {
    struct ml_event copy = *event;
    uint8_t *end = lane->start + ML_CHUNK_MAX_BYTES;
    for (int attempt = 0; attempt < 2; attempt++) {
        struct ml_writer w = ml_writer_into(lane->pos, (size_t)(end - lane->pos));
        const bool timed = has_time(copy.kind) && copy.kind != ML_EVENT_NODE;
        if (!timed || (size_t)(end - lane->pos) >= TIMED_MAX_BYTES) {
            if (timed) {
                ml_lane_busy(lane);
                copy.time = ml_lane_stamp(lane);
            }
            const enum ml_status status = ml_event_encode(&w, &lane->state, &copy);
            if (status == ML_OK) {
                ml_lane_publish(lane, w.pos);
                return;
            }
            if (status != ML_BUG_SPACE) {
                break;
            }
        }
        ml_lane_flush(lane);
        end = lane->start + ML_CHUNK_MAX_BYTES;
    }
    /* A record that breaks its own contract is left out; the lane stays whole. */
    ml_lane_publish(lane, lane->pos);
}
