#include "service/session_internal.h"

#include <string.h>

/* Slots of the live map that are brought into the cache ahead of their events. */
enum { PREFETCH_EVENTS = 16 };

/* The lane's half-done realloc is over, one way or another. */
static void forget_resize(struct ml_client *client, struct ml_lane_queue *queue) {
    if (queue->resize_key != 0) {
        client->resizing_bytes -= queue->resized.weight_bytes;
        queue->resize_key = 0;
    }
}

static enum ml_status
apply_alloc(struct ml_client *client, struct ml_lane_queue *queue, const struct ml_timed *timed) {
    struct ml_tracker_alloc alloc = {
        .key = timed->key,
        .size_bytes = timed->value,
        .weight_bytes = timed->value,
        .weight_blocks = 1,
        .node = timed->node,
        .type = timed->type,
    };
    if (timed->weighted) {
        alloc.weight_bytes = timed[1].key;
        alloc.weight_blocks = timed[1].value;
    }
    client->queued_bytes -= alloc.weight_bytes;
    forget_resize(client, queue);
    queue->last_alloc = timed->key;
    const uint64_t missed_before = client->tracker.missed_frees;
    const enum ml_status status = ml_tracker_alloc(&client->tracker, timed->time, &alloc);
    client->missed = client->missed || client->tracker.missed_frees != missed_before;
    return status;
}

static void
apply_free(struct ml_client *client, struct ml_lane_queue *queue, const struct ml_timed *timed) {
    struct ml_live_block block;
    if (ml_tracker_free(&client->tracker, timed->time, timed->key, &block) &&
        queue->last_alloc == timed->key) {
        struct ml_cell *cell = &client->tracker.cells.cells[block.cell];
        if (__builtin_add_overflow(
                cell->temporary_blocks, block.weight_blocks, &cell->temporary_blocks
            )) {
            cell->temporary_blocks = UINT64_MAX;
        }
    }
    queue->last_alloc = 0;
}

static void
apply_resize(struct ml_client *client, struct ml_lane_queue *queue, const struct ml_timed *timed) {
    forget_resize(client, queue);
    queue->last_alloc = 0;
    if (ml_tracker_free(&client->tracker, timed->time, timed->key, &queue->resized)) {
        queue->resize_key = timed->key;
        client->resizing_bytes += queue->resized.weight_bytes;
    }
}

static enum ml_status
apply_cancel(struct ml_client *client, struct ml_lane_queue *queue, const struct ml_timed *timed) {
    const uint64_t key = queue->resize_key;
    queue->last_alloc = 0;
    forget_resize(client, queue);
    return key == 0 ? ML_OK
                    : ml_tracker_restore(&client->tracker, timed->time, key, &queue->resized);
}

static enum ml_status apply_fork(struct ml_client *client, uint64_t serial) {
    const struct ml_fork fork = {
        .serial = serial,
        .live_bytes = client->tracker.totals.live_bytes,
        .live_blocks = client->tracker.totals.live_blocks,
    };
    return ml_fork_log_add(&client->forks, &fork);
}

void ml_client_left(struct ml_client *client) {
    ml_tracker_leave(&client->tracker);
    client->leaving = ML_LEAVING_EXIT;
    if (client->parent == NULL) {
        return;
    }
    struct ml_client **link = &client->parent->first_child;
    while (*link != NULL && *link != client) {
        link = &(*link)->next_sibling;
    }
    if (*link == client) {
        *link = client->next_sibling;
        client->next_sibling = NULL;
    }
}

/* The process has waited for a child by its own name for it: the child is dead since before now.
 * Children name themselves in their START record. */
static void apply_reaped(const struct ml_client *client, uint64_t pid) {
    struct ml_client *child = client->first_child;
    while (child != NULL) {
        struct ml_client *next = child->next_sibling;
        if (child->started && child->start_pid == pid) {
            ml_client_left(child);
        }
        child = next;
    }
}

static void apply_end(struct ml_client *client, uint64_t kind) {
    ml_tracker_leave(&client->tracker);
    if (client->leaving != ML_LEAVING_EXIT) {
        client->leaving = kind == ML_END_EXEC ? ML_LEAVING_EXEC : ML_LEAVING_EXIT;
    }
}

/* An event of a process that has left. */
static void come_back(struct ml_client *client, uint64_t ticks) {
    ml_tracker_enter(&client->tracker, ticks);
    if (client->leaving == ML_LEAVING_EXEC) {
        client->leaving = ML_LEAVING_NOT;
    }
}

/* Behind the moment at which its recording was stopped: some of its threads went on a little. */
static void drop_block(struct ml_client *client, const struct ml_timed *timed) {
    if (timed->kind == ML_EVENT_ALLOC) {
        client->queued_bytes -= timed->weighted ? timed[1].key : timed->value;
    }
}

static enum ml_status
apply_block(struct ml_client *client, struct ml_lane_queue *queue, const struct ml_timed *timed) {
    enum ml_status status = ML_OK;
    if (client->cut_ticks != 0 && timed->time > client->cut_ticks) {
        drop_block(client, timed);
        return ML_OK;
    }
    if (!client->tracker.in_tree) {
        come_back(client, timed->time);
    }
    switch (timed->kind) {
    case ML_EVENT_ALLOC:
        status = apply_alloc(client, queue, timed);
        break;
    case ML_EVENT_FREE:
        apply_free(client, queue, timed);
        break;
    case ML_EVENT_RESIZE:
        apply_resize(client, queue, timed);
        break;
    default:
        status = apply_cancel(client, queue, timed);
        break;
    }
    if (client->leaving == ML_LEAVING_EXIT) {
        ml_tracker_leave(&client->tracker);
    }
    return status;
}

static enum ml_status
apply_one(struct ml_client *client, struct ml_lane_queue *queue, const struct ml_timed *timed) {
    switch (timed->kind) {
    case ML_EVENT_ALLOC:
    case ML_EVENT_FREE:
    case ML_EVENT_RESIZE:
    case ML_EVENT_CANCEL:
        return apply_block(client, queue, timed);
    case ML_TIMED_HOLE:
        forget_resize(client, queue);
        queue->last_alloc = 0;
        return ML_OK;
    case ML_EVENT_FORK:
        return apply_fork(client, timed->key);
    case ML_EVENT_REAPED:
        apply_reaped(client, timed->key);
        return ML_OK;
    case ML_EVENT_END:
        apply_end(client, timed->key);
        return ML_OK;
    case ML_TIMED_LEAVE:
        ml_client_left(client);
        return ML_OK;
    default:
        return ML_OK; /* ML_TIMED_WEIGHTS: taken with its ALLOC */
    }
}

static enum ml_status apply_run(
    struct ml_client *client,
    struct ml_lane_queue *queue,
    const struct ml_timed *events,
    uint32_t count
) {
    const struct ml_live_map *live = &client->tracker.live;
    for (uint32_t i = 0; i < count; i++) {
        if (i + PREFETCH_EVENTS < count) {
            ml_live_map_prefetch(live, events[i + PREFETCH_EVENTS].key);
        }
        const enum ml_status status = apply_one(client, queue, &events[i]);
        if (status != ML_OK) {
            return status;
        }
    }
    return ML_OK;
}

void ml_client_apply(struct ml_client *client, uint64_t until) {
    const struct ml_timed *events = NULL;
    uint32_t count = 0;
    for (;;) {
        struct ml_lane_queue *queue = ml_sequencer_run(&client->sequencer, until, &events, &count);
        if (queue == NULL) {
            return;
        }
        const enum ml_status status = apply_run(client, queue, events, count);
        if (status != ML_OK) {
            /* Nothing behind an event that could not be applied would be true. */
            ml_client_lose(client, status);
            ml_sequencer_fini(&client->sequencer);
            client->queued_bytes = 0;
            client->resizing_bytes = 0;
            return;
        }
        ml_sequencer_took(&client->sequencer, count);
    }
}

void ml_client_queue_leave(struct ml_client *client, uint64_t ticks) {
    const struct ml_timed timed = {.time = ticks, .kind = ML_TIMED_LEAVE};
    bool raised = false;
    if (ml_sequencer_push(&client->sequencer, ML_SEQUENCER_HOST_LANE, &timed, &raised) != ML_OK) {
        ml_client_left(client);
    }
}

void ml_client_expect(struct ml_client *client, uint64_t serial, uint64_t time) {
    for (const struct ml_client *child = client->first_child; child != NULL;
         child = child->next_sibling) {
        if (child->setup.fork_serial == serial) {
            return; /* faster than its parent's record */
        }
    }
    if (client->expected_count == ML_SESSION_EXPECTED_MAX) {
        client->expected_count--;
        memmove(
            &client->expected[0],
            &client->expected[1],
            client->expected_count * sizeof(client->expected[0])
        );
    }
    client->expected[client->expected_count].serial = serial;
    client->expected[client->expected_count++].time = time;
}

void ml_client_expected(struct ml_client *client, uint64_t serial) {
    for (uint32_t i = 0; i < client->expected_count; i++) {
        if (serial == 0 || client->expected[i].serial == serial) {
            client->expected_count--;
            memmove(
                &client->expected[i],
                &client->expected[i + 1],
                (client->expected_count - i) * sizeof(client->expected[0])
            );
            return;
        }
    }
}

void ml_client_inherit(struct ml_client *client) {
    if (client->inherited_known || !client->setup.forked || client->parent == NULL) {
        return;
    }
    const struct ml_client *parent = client->parent;
    uint64_t serial = client->setup.fork_serial;
    if (serial == 0) {
        serial = client->start_serial;
    }
    if (serial == 0 && !client->started && client->phase == ML_CLIENT_RUNNING) {
        return; /* its first record may still name one */
    }
    if (serial != 0) {
        const struct ml_fork *fork = ml_fork_log_find(&parent->forks, serial);
        if (fork != NULL) {
            client->inherited_bytes = fork->live_bytes;
            client->inherited_blocks = fork->live_blocks;
            client->inherited_known = true;
        }
    } else if (parent->applied_ticks >= client->setup.start.ticks || parent->phase == ML_CLIENT_DONE) {
        client->inherited_bytes = parent->tracker.totals.live_bytes;
        client->inherited_blocks = parent->tracker.totals.live_blocks;
        client->inherited_known = true;
    }
}
