/* The receiver of a client's stream: definitions go to their tables, events to the queue of their
 * lane. */
#include <stddef.h>

#include "service/session/internal.h"

static void count_late(struct ml_client *client, uint32_t late) {
    client->late_events += late;
    client->has_late = client->has_late || late > 0;
}

/* `rest`: of a wide alloc; else NULL. */
static enum ml_status push(
    struct ml_client *client,
    uint32_t lane,
    const struct ml_timed *timed,
    const struct ml_timed_rest *rest
) {
    uint32_t late = 0;
    ml_stack_store_event(&client->stacks, lane, timed->time);
    const enum ml_status status =
        ml_sequencer_push(&client->sequencer, lane, timed, rest, client->applied_ticks, &late);
    count_late(client, late);
    return status;
}

_Static_assert(
    sizeof(struct ml_timed) == sizeof(struct ml_event_plain) &&
        offsetof(struct ml_timed, time) == offsetof(struct ml_event_plain, time) &&
        offsetof(struct ml_timed, key) == offsetof(struct ml_event_plain, address) &&
        offsetof(struct ml_timed, size_bytes) == offsetof(struct ml_event_plain, size_bytes),
    "a plain event is queued as it is: an address of heap 0 is its key"
);

static enum ml_status
on_room(void *context, uint32_t lane, uint32_t count, struct ml_event_plain **out_events) {
    struct ml_client *client = context;
    struct ml_timed *events = NULL;
    const enum ml_status status = ml_sequencer_room(&client->sequencer, lane, count, &events);
    *out_events = (struct ml_event_plain *)(void *)events;
    return status;
}

static enum ml_status on_run(void *context, uint32_t lane, uint32_t count, uint64_t size_bytes) {
    struct ml_client *client = context;
    count_late(client, ml_sequencer_pushed(&client->sequencer, lane, count, client->applied_ticks));
    client->events += count;
    client->queued_bytes += size_bytes;
    const struct ml_lane_queue *queue = ml_sequencer_queue(&client->sequencer, lane);
    ml_stack_store_event(&client->stacks, lane, queue->events[queue->count - count].time);
    return ML_OK;
}

/* Queue an event that is not plain. */
static enum ml_status
push_block(struct ml_client *client, uint32_t lane, const struct ml_event *event) {
    const struct ml_event_block *block = &event->block;
    const bool alloc = event->kind == ML_EVENT_ALLOC;
    const bool wide = alloc && (block->marks != 0 || block->type != 0 || block->heap != 0 ||
                                block->size_bytes > UINT32_MAX);
    /* What is of a heap of the program's own is no usual event: the fast path adds to malloc's. */
    const uint32_t marks = block->marks | (block->heap != 0 ? ML_TIMED_APART : 0U);
    const struct ml_timed timed = {
        .time = event->time,
        .key = ml_live_key(block->address, block->heap),
        .size_bytes = alloc ? (uint32_t)block->size_bytes : marks,
        .node = block->node & (ML_NODES_MAX - 1),
        .kind = (wide ? ML_TIMED_ALLOC_WIDE : event->kind) & 0xff,
    };
    client->events++;
    client->sampled = client->sampled || (alloc && block->marks != 0 && block->heap == 0);
    client->has_heaps = client->has_heaps || block->heap != 0;
    if (!wide) {
        client->queued_bytes += alloc ? timed.size_bytes : 0;
        return push(client, lane, &timed, NULL);
    }
    const struct ml_timed_rest rest = {
        .weight_bytes = block->weight_bytes,
        .weight_blocks = block->weight_blocks,
        .size_high = (uint32_t)(block->size_bytes >> 32),
        .type = block->type,
        .sampled = block->marks != 0,
    };
    client->queued_bytes += block->weight_bytes;
    return push(client, lane, &timed, &rest);
}

static enum ml_status take_start(struct ml_client *client, const struct ml_event_start *start) {
    if (client->sampling.begun) {
        /* It is repeated after a dropped chunk, whose start came by staging. */
        const bool again =
            client->start_pid == start->pid && client->start_serial == start->fork_serial;
        return again ? ML_OK : ML_PEER_STATE;
    }
    client->start_pid = start->pid;
    client->start_serial = start->fork_serial;
    if (client->setup.forked && client->setup.from_startup && start->ticks < client->tree_ticks) {
        atomic_fetch_add_explicit(&client->session->late_children, 1, memory_order_relaxed);
    }
    ml_sampling_log_begin(&client->sampling, start->ticks, start->sampling_bytes);
    return ML_OK;
}

static enum ml_status
define(struct ml_client *client, uint32_t lane, const struct ml_event *event) {
    const uint32_t unnamed = client->stacks.unnamed_count;
    const enum ml_status status = ml_stack_store_define(&client->stacks, event);
    if (client->stacks.unnamed_count > unnamed) {
        ml_stack_store_await(&client->stacks, lane, unnamed);
    }
    return status;
}

static enum ml_status on_event(void *context, uint32_t lane, const struct ml_event *event) {
    struct ml_client *client = context;
    struct ml_timed timed = {.time = event->time, .kind = event->kind & 0xff};
    switch (event->kind) {
    case ML_EVENT_ALLOC:
    case ML_EVENT_FREE:
    case ML_EVENT_RESIZE:
    case ML_EVENT_CANCEL:
        return push_block(client, lane, event);
    case ML_EVENT_NODE:
    case ML_EVENT_MODULE:
    case ML_EVENT_STRING:
    case ML_EVENT_HEAP:
    case ML_EVENT_TYPE:
        return define(client, lane, event);
    case ML_EVENT_START:
        return take_start(client, &event->start);
    case ML_EVENT_FORK:
        timed.key = event->fork_serial;
        ml_client_expect(client, event->fork_serial, event->time);
        return push(client, lane, &timed, NULL);
    case ML_EVENT_REAPED:
        timed.key = event->reaped_pid;
        client->reaps_queued++;
        ml_client_turn_queued(client, event->time);
        return push(client, lane, &timed, NULL);
    case ML_EVENT_END:
        timed.key = event->end_kind;
        ml_client_turn_queued(client, event->time);
        return push(client, lane, &timed, NULL);
    case ML_EVENT_MAPPING:
        return ml_client_queue_mapping(client, lane, event);
    case ML_EVENT_SAMPLING:
        ml_sampling_log_note(&client->sampling, event->time, event->sampling_bytes);
        return ML_OK;
    case ML_EVENT_LOSS:
        ml_add_saturating(&client->loss[event->loss.reason], event->loss.count);
        return ML_OK;
    default:
        return ML_OK; /* checked by the decoder, and used by nothing yet */
    }
}

static enum ml_status on_hole(void *context, uint32_t lane, uint64_t chunks) {
    struct ml_client *client = context;
    struct ml_lane_queue *queue = NULL;
    (void)chunks;
    const enum ml_status status = ml_sequencer_lane(&client->sequencer, lane, &queue);
    if (status != ML_OK) {
        return status;
    }
    const struct ml_timed timed = {.time = queue->last_time, .kind = ML_TIMED_HOLE};
    uint32_t late = 0;
    /* It is no event, so it may be late; it is applied with the next late one. */
    return ml_sequencer_push(&client->sequencer, lane, &timed, NULL, 0, &late);
}

struct ml_stream_sink ml_client_sink(struct ml_client *client) {
    return (struct ml_stream_sink
    ){.context = client,
      .on_room = on_room,
      .on_run = on_run,
      .on_event = on_event,
      .on_hole = on_hole};
}
