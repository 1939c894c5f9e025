#include "service/session/guard.h"
#include "service/session/internal.h"

#include "service/heap/tracker_fast_path.h"

/* Events that are applied together: the memory that they need is prefetched for all of them
 * first. */
enum { BATCH_EVENTS = 64 };

/* The lane's incomplete realloc has ended. */
static void forget_resize(struct ml_client *client, struct ml_lane_queue *queue) {
    if (queue->resize_key != 0) {
        client->resizing_bytes -= queue->resized.weight_bytes;
        queue->resize_key = 0;
    }
}

/* An event to apply, and its look-up. */
struct step {
    const struct ml_timed *timed;
    struct ml_lane_queue *queue;
    struct ml_tracker_lookup lookup;
};

static enum ml_status apply_alloc(struct ml_client *client, const struct step *step) {
    const struct ml_timed *timed = step->timed;
    forget_resize(client, step->queue);
    step->queue->last_alloc = timed->key;
    return ml_tracker_alloc_plain(
        &client->tracker, timed->time, timed->key, timed->size_bytes, &step->lookup
    );
}

static enum ml_status apply_alloc_wide(struct ml_client *client, const struct step *step) {
    const struct ml_timed *timed = step->timed;
    const struct ml_timed_rest rest = ml_timed_rest_of(timed);
    const uint64_t size_bytes = timed->size_bytes | (uint64_t)rest.size_high << 32;
    struct ml_tracker_alloc alloc = {
        .key = timed->key,
        .weight_bytes = rest.weight_bytes,
        .weight_blocks = rest.weight_blocks,
        .size_bytes = size_bytes,
        .sampled = rest.sampled != 0,
    };
    ml_tracker_look_up(
        &client->tracker, timed->key, timed->node, (uint16_t)rest.type, size_bytes, &alloc.lookup
    );
    client->queued_bytes -= rest.weight_bytes;
    forget_resize(client, step->queue);
    step->queue->last_alloc = timed->key;
    return ml_tracker_alloc(&client->tracker, timed->time, &alloc);
}

/* Take the freed block out. An unsure one may never have been recorded, so it is not counted as
 * unknown. */
static bool
take_block(struct ml_client *client, const struct step *step, struct ml_live_block *out_block) {
    const struct ml_timed *timed = step->timed;
    struct ml_tracker *tracker = &client->tracker;
    const unsigned heap = (unsigned)(timed->key >> ML_LIVE_HEAP_SHIFT);
    const uint64_t unknown_before = ml_tracker_unknown_frees(tracker, heap);
    const bool there = ml_tracker_free(tracker, timed->time, timed->key, &step->lookup, out_block);
    if ((timed->size_bytes & ML_BLOCK_UNSURE) != 0 &&
        ml_tracker_unknown_frees(tracker, heap) > unknown_before) {
        *(heap == 0 ? &client->unsure_frees : &tracker->heaps[heap].unsure_frees) += 1;
    }
    return there;
}

static void apply_free(struct ml_client *client, const struct step *step) {
    const struct ml_timed *timed = step->timed;
    struct ml_live_block block;
    if (take_block(client, step, &block) && step->queue->last_alloc == timed->key &&
        (timed->size_bytes & ML_BLOCK_SKIPPED) == 0) {
        struct ml_cell *cell = &client->tracker.cells.cells[block.cell];
        if (__builtin_add_overflow(
                cell->temporary_blocks, block.weight_blocks, &cell->temporary_blocks
            )) {
            cell->temporary_blocks = UINT64_MAX;
        }
    }
    step->queue->last_alloc = 0;
}

static void apply_resize(struct ml_client *client, const struct step *step) {
    const struct ml_timed *timed = step->timed;
    struct ml_lane_queue *queue = step->queue;
    forget_resize(client, queue);
    queue->last_alloc = 0;
    if (take_block(client, step, &queue->resized)) {
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

static enum ml_status apply_fork(struct ml_client *client, const struct ml_timed *timed) {
    const struct ml_fork fork = {
        .serial = timed->key,
        .ticks = timed->time,
        .live_bytes = client->tracker.totals.live_bytes,
        .live_blocks = client->tracker.totals.live_blocks,
    };
    return ml_fork_log_add(&client->forks, &fork);
}

static void leave_by(struct ml_client *client, enum ml_leaving_event event) {
    client->leaving = ml_leaving_next(client->leaving, event);
}

void ml_client_left(struct ml_client *client) {
    ml_tracker_leave(&client->tracker);
    if (client->session->apart) { /* another worker may have the parent, to whom the list belongs */
        leave_by(client, ML_LEAVING_ON_APART);
        return;
    }
    if (client->leaving != ML_LEAVING_LEFT && client->parent != NULL) {
        struct ml_client **link = &client->parent->first_child;
        while (*link != client) {
            link = &(*link)->next_sibling;
        }
        *link = client->next_sibling;
        client->next_sibling = NULL;
    }
    leave_by(client, ML_LEAVING_ON_LEAVE);
}

/* The process has waited for a child by its own name for it, so the child is dead by now. A child's
 * START record has that name. */
static void apply_reaped(const struct ml_client *client, uint64_t pid) {
    struct ml_client *child = client->first_child;
    while (child != NULL) {
        struct ml_client *next = child->next_sibling;
        if (child->sampling.begun && child->start_pid == pid) {
            ml_client_left(child);
        }
        child = next;
    }
}

static void apply_end(struct ml_client *client, uint64_t kind) {
    ml_tracker_leave(&client->tracker);
    leave_by(client, kind == ML_END_EXEC ? ML_LEAVING_ON_EXEC : ML_LEAVING_ON_EXIT);
}

/* An event after its recording was stopped: some of its threads ran on. */
static void drop_block(struct ml_client *client, const struct ml_timed *timed) {
    if (timed->kind == ML_TIMED_ALLOC_WIDE) {
        client->queued_bytes -= ml_timed_rest_of(timed).weight_bytes;
    }
}

static enum ml_status apply_block(struct ml_client *client, const struct step *step) {
    enum ml_status status = ML_OK;
    if (client->cut_ticks != 0 && step->timed->time > client->cut_ticks) {
        drop_block(client, step->timed);
        return ML_OK;
    }
    if (!client->tracker.in_tree) {
        ml_tracker_enter(&client->tracker, step->timed->time);
        leave_by(client, ML_LEAVING_ON_BLOCK);
    }
    switch (step->timed->kind) {
    case ML_EVENT_ALLOC:
        status = apply_alloc(client, step);
        break;
    case ML_EVENT_FREE:
        apply_free(client, step);
        break;
    case ML_EVENT_RESIZE:
        apply_resize(client, step);
        break;
    case ML_EVENT_CANCEL:
        status = apply_cancel(client, step->queue, step->timed);
        break;
    default:
        status = apply_alloc_wide(client, step);
        break;
    }
    if (client->leaving != ML_LEAVING_NOT) {
        ml_tracker_leave(&client->tracker);
    }
    return status;
}

void ml_client_turn_queued(struct ml_client *client, uint64_t ticks) {
    client->turns_queued++;
    client->first_turn = ticks < client->first_turn ? ticks : client->first_turn;
}

static void turn_applied(struct ml_client *client) {
    client->turns_queued--;
    if (client->turns_queued == 0) {
        client->first_turn = UINT64_MAX;
    }
}

/* Note a reading whose moment has come. */
static void note_reading(struct ml_client *client, const struct ml_timed *timed) {
    const struct ml_totals *totals = &client->tracker.totals;
    struct ml_coverage_reading reading = {
        .was_read = true,
        .private_bytes = timed->key,
        .files_bytes = timed->size_bytes * UINT64_C(1024),
        .heap_bytes = totals->live_bytes,
        .most_bytes = totals->peak_bytes,
        .most_blocks = totals->peak_blocks};
    ml_add_saturating(&reading.most_bytes, client->inherited_bytes);
    ml_add_saturating(&reading.most_blocks, client->inherited_blocks);
    ml_coverage_note(&client->coverage, &reading);
}

static enum ml_status apply_one(struct ml_client *client, const struct step *step) {
    const struct ml_timed *timed = step->timed;
    switch (timed->kind) {
    case ML_TIMED_HOLE:
        forget_resize(client, step->queue);
        step->queue->last_alloc = 0;
        return ML_OK;
    case ML_EVENT_FORK:
        return apply_fork(client, timed);
    case ML_EVENT_MAPPING:
        ml_client_apply_mapping(client, timed, step->queue);
        return ML_OK;
    case ML_EVENT_REAPED:
        client->reaps_queued--;
        turn_applied(client);
        apply_reaped(client, timed->key);
        return ML_OK;
    case ML_EVENT_END:
        turn_applied(client);
        apply_end(client, timed->key);
        return ML_OK;
    case ML_TIMED_LEAVE:
        ml_client_left(client);
        return ML_OK;
    case ML_TIMED_READING:
        note_reading(client, timed);
        return ML_OK;
    default:
        return apply_block(client, step);
    }
}

/* First step: take the events of a batch, and prefetch where they are looked up. This is the same
 * for every kind: guessing which kind comes next costs more than a needless prefetch of a free's
 * cell. */
static uint32_t
take_batch(struct ml_client *client, uint64_t until, uint32_t most, struct step *out_steps) {
    struct ml_tracker *tracker = &client->tracker;
    struct ml_run run;
    uint32_t count = 0;
    uint64_t size_bytes = 0;
    while (ml_sequencer_take(&client->sequencer, until, most - count, &run)) {
        for (const struct ml_timed *timed = run.events; timed < run.end; timed++) {
            struct step *step = &out_steps[count++];
            step->timed = timed;
            step->queue = run.queue;
            ml_tracker_look_up(
                tracker, timed->key, timed->node, 0, timed->size_bytes, &step->lookup
            );
            size_bytes += timed->kind == ML_EVENT_ALLOC ? timed->size_bytes : 0;
            timed += timed->kind == ML_TIMED_ALLOC_WIDE;
        }
    }
    client->queued_bytes -= size_bytes;
    return count;
}

/* Second step, for a large map: prefetch what the first one leads to. */
static void look_further(const struct ml_tracker *tracker, struct step *steps, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        ml_tracker_look_further(tracker, &steps[i].lookup, steps[i].timed->kind == ML_EVENT_ALLOC);
    }
}

/* Apply the event if it is a usual one. Else false, and what has changed holds for every path. */
static inline bool apply_fast(struct ml_client *client, struct step *step) {
    const struct ml_timed *timed = step->timed;
    struct ml_lane_queue *queue = step->queue;
    const struct ml_tracker_event event = {
        .ticks = timed->time,
        .key = timed->key,
        .size_bytes = timed->size_bytes,
        .alloc = timed->kind == ML_EVENT_ALLOC};
    const bool other = timed->kind - (unsigned)ML_EVENT_ALLOC > ML_EVENT_FREE - ML_EVENT_ALLOC;
    /* a free has marks in the place of its size */
    const bool marked = !event.alloc & (timed->size_bytes != 0);
    if (other | marked) {
        return false;
    }
    if (event.alloc & (queue->resize_key != 0)) {
        forget_resize(client, queue);
    }
    return ml_tracker_apply_fast(&client->tracker, &event, &step->lookup, &queue->last_alloc);
}

static bool may_be_fast(struct ml_client *client) {
    return client->cut_ticks == 0 && client->leaving == ML_LEAVING_NOT &&
           ml_tracker_may_be_fast(&client->tracker, BATCH_EVENTS);
}

static enum ml_status apply_plain(struct ml_client *client, const struct step *step) {
    enum ml_status status = apply_one(client, step);
    if (status == ML_ENV_MEMORY && ml_client_return_views(client)) {
        status = apply_one(client, step);
    }
    if (status == ML_ENV_MEMORY && ml_client_pay(client)) {
        return apply_one(client, step); /* the first attempt changed nothing */
    }
    return status;
}

/* `reserved`: there is room for all of their blocks. */
static enum ml_status
apply_batch(struct ml_client *client, struct step *steps, uint32_t count, bool reserved) {
    enum ml_status status = ML_OK;
    bool fast = reserved && may_be_fast(client);
    for (struct step *step = steps; step < steps + count && status == ML_OK; step++) {
        if (!fast || !apply_fast(client, step)) {
            status = apply_plain(client, step);
            fast = reserved && may_be_fast(client);
        }
    }
    return status;
}

static void apply_queued(struct ml_client *client, uint64_t until) {
    struct step steps[BATCH_EVENTS];
    enum ml_status status = ML_OK;
    uint64_t first = 0;
    while (status == ML_OK && ml_sequencer_first(&client->sequencer, &first) && first <= until) {
        const bool reserved = ml_tracker_reserve(&client->tracker, BATCH_EVENTS);
        const uint32_t count = take_batch(client, until, reserved ? BATCH_EVENTS : 1, steps);
        if (ml_live_map_is_large(&client->tracker.live)) {
            look_further(&client->tracker, steps, count);
        }
        status = apply_batch(client, steps, count, reserved);
    }
    if (status != ML_OK) {
        /* No figure after an event that could not be applied would be true. */
        ml_client_lose(client, status);
        ml_client_drop_queue(client);
    }
}

void ml_client_apply(struct ml_client *client, uint64_t until) {
    const uint32_t before = ml_hand_work_on(client->hand, client->setup.id);
    apply_queued(client, until);
    (void)ml_hand_work_on(client->hand, before);
}

/* Queue an event of the host's. False: no memory. */
static bool queue_for_host(struct ml_client *client, const struct ml_timed *timed) {
    uint32_t late = 0; /* it is not counted: no thread is to blame */
    return ml_sequencer_push(&client->sequencer, ML_SEQUENCER_HOST_LANE, timed, NULL, 0, &late) ==
           ML_OK;
}

void ml_client_queue_leave(struct ml_client *client, uint64_t ticks) {
    const struct ml_timed timed = {.time = ticks, .kind = ML_TIMED_LEAVE};
    if (!queue_for_host(client, &timed)) {
        ml_client_left(client);
    }
}

void ml_client_read(
    struct ml_client *client, uint64_t ticks, uint64_t private_bytes, uint64_t files_bytes
) {
    if (ticks == client->read_ticks || client->phase != ML_CLIENT_RUNNING || client->fold != NULL) {
        return;
    }
    client->read_ticks = ticks;
    const uint64_t files_kb = files_bytes / 1024;
    const struct ml_timed timed = {
        .time = ticks,
        .kind = ML_TIMED_READING,
        .key = private_bytes,
        .size_bytes = files_kb < UINT32_MAX ? (uint32_t)files_kb : UINT32_MAX};
    if (client->lost != ML_OK || ticks <= client->applied_ticks ||
        !queue_for_host(client, &timed)) {
        note_reading(client, &timed);
    }
}

void ml_client_expect(struct ml_client *client, uint64_t serial, uint64_t time) {
    for (const struct ml_client *child = client->first_child; child != NULL;
         child = child->next_sibling) {
        if (child->setup.fork_serial == serial) {
            return; /* the child was faster than its parent's record */
        }
    }
    ml_fork_wait_add(&client->fork_wait, serial, time);
}

/* Whether events of it are missing. Its sums at a fork may then differ from what the child began
 * with. */
static bool has_losses(const struct ml_client *client) {
    const struct ml_staging_header *header = &client->staging.header;
    const struct ml_lane_sums sums = ml_staging_reader_sums(&client->staging);
    return client->trouble[0] != 0 || client->stream.lost_chunks > 0 || header->lost_no_lane > 0 ||
           header->lost_nested > 0 || header->lost_no_pipe > 0 || sums.lost_events > 0 ||
           sums.lost_chunks > 0;
}

void ml_client_inherit(struct ml_client *client) {
    if (client->inherited_known || !client->setup.forked || client->parent == NULL) {
        return;
    }
    const struct ml_client *parent = client->parent;
    if (has_losses(parent)) {
        ml_client_trouble(
            client, "what it inherited is not all known: its parent's profile is not whole"
        );
    }
    uint64_t serial = client->setup.fork_serial;
    if (serial == 0) {
        serial = client->start_serial;
    }
    if (serial == 0 && !client->sampling.begun && client->phase == ML_CLIENT_RUNNING) {
        return; /* its first record may name one */
    }
    if (serial != 0) {
        const struct ml_fork *fork = ml_fork_log_find(&parent->forks, serial);
        if (fork != NULL) {
            client->inherited_bytes = fork->live_bytes;
            client->inherited_blocks = fork->live_blocks;
            client->inherited_known = true;
            ml_mappings_inherit(&client->mappings, &parent->mappings, fork->ticks);
        }
    } else if (parent->applied_ticks >= client->setup.start.ticks || parent->phase >= ML_CLIENT_DONE) {
        client->inherited_bytes = parent->tracker.totals.live_bytes;
        client->inherited_blocks = parent->tracker.totals.live_blocks;
        client->inherited_known = true;
        ml_mappings_inherit(&client->mappings, &parent->mappings, client->setup.start.ticks);
    }
}
