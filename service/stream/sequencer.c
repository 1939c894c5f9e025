#include "service/stream/sequencer.h"

#include <string.h>

void ml_sequencer_init(struct ml_sequencer *sequencer, struct ml_budget *budget) {
    *sequencer = (struct ml_sequencer){.budget = budget};
}

static void free_events(struct ml_sequencer *sequencer, struct ml_lane_queue *queue) {
    ml_budget_free(sequencer->budget, queue->events, queue->capacity * sizeof(*queue->events));
    queue->events = NULL;
    queue->head = 0;
    queue->count = 0;
    queue->capacity = 0;
}

void ml_sequencer_fini(struct ml_sequencer *sequencer) {
    for (uint32_t i = 0; i < sequencer->lanes_count; i++) {
        if (sequencer->lanes[i] != NULL) {
            free_events(sequencer, sequencer->lanes[i]);
            ml_budget_free(sequencer->budget, sequencer->lanes[i], sizeof(struct ml_lane_queue));
        }
    }
    ml_budget_free(
        sequencer->budget, sequencer->lanes, sequencer->lanes_count * sizeof(*sequencer->lanes)
    );
    ml_budget_free(
        sequencer->budget, sequencer->heap, sequencer->heap_capacity * sizeof(*sequencer->heap)
    );
    *sequencer = (struct ml_sequencer){.budget = sequencer->budget};
}

enum ml_status
ml_sequencer_lane(struct ml_sequencer *sequencer, uint32_t lane, struct ml_lane_queue **out_queue) {
    struct ml_lane_queue *queue = ml_sequencer_queue(sequencer, lane);
    *out_queue = queue != NULL ? queue
                               : ml_budget_entry(
                                     sequencer->budget,
                                     &sequencer->lanes,
                                     &sequencer->lanes_count,
                                     ml_sequencer_place(lane),
                                     ML_SEQUENCER_LANES_MAX,
                                     sizeof(*queue)
                                 );
    return *out_queue != NULL ? ML_OK : ML_ENV_MEMORY;
}

/* ---- the heap of lanes */

static inline bool before(const struct ml_lane_head *a, const struct ml_lane_head *b) {
    return a->time != b->time ? a->time < b->time : a->lane < b->lane;
}

static void sift_down(struct ml_sequencer *sequencer) {
    struct ml_lane_head *const heap = sequencer->heap;
    const uint32_t count = sequencer->heap_count;
    if (count < 2) {
        return;
    }
    const struct ml_lane_head moved = heap[0];
    uint32_t at = 0;
    for (;;) {
        uint32_t least = 2 * at + 1;
        if (least >= count) {
            break;
        }
        if (least + 1 < count && before(&heap[least + 1], &heap[least])) {
            least++;
        }
        if (!before(&heap[least], &moved)) {
            break;
        }
        heap[at] = heap[least];
        at = least;
    }
    heap[at] = moved;
}

static enum ml_status heap_reserve(struct ml_sequencer *sequencer) {
    if (sequencer->heap_count < sequencer->heap_capacity) {
        return ML_OK;
    }
    const uint32_t old = sequencer->heap_capacity;
    const uint32_t wanted = old == 0 ? 8 : old * 2;
    struct ml_lane_head *heap = ml_budget_resize(
        sequencer->budget, sequencer->heap, old * sizeof(*heap), wanted * sizeof(*heap)
    );
    if (heap == NULL) {
        return ML_ENV_MEMORY;
    }
    sequencer->heap = heap;
    sequencer->heap_capacity = wanted;
    return ML_OK;
}

static void heap_add(struct ml_sequencer *sequencer, uint32_t lane, uint64_t time) {
    struct ml_lane_head *const heap = sequencer->heap;
    const struct ml_lane_head added = {.time = time, .lane = lane};
    uint32_t at = sequencer->heap_count++;
    while (at > 0 && before(&added, &heap[(at - 1) / 2])) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = added;
}

/* ---- the queues */

static enum ml_status
queue_reserve(struct ml_sequencer *sequencer, struct ml_lane_queue *queue, uint32_t count) {
    /* Waiting events move to the front when they are few: the same memory is filled again while it
     * is in the cache. */
    const uint32_t waiting = queue->count - queue->head;
    if (queue->head > 0 && waiting <= queue->head / 4) {
        memmove(queue->events, queue->events + queue->head, waiting * sizeof(*queue->events));
        queue->count = waiting;
        queue->head = 0;
    }
    if (queue->capacity - queue->count >= count) {
        return ML_OK;
    }
    uint32_t wanted = queue->capacity == 0 ? 64 : queue->capacity * 2;
    wanted = wanted - queue->count < count ? queue->count + count : wanted;
    struct ml_timed *events = ml_budget_resize(
        sequencer->budget,
        queue->events,
        queue->capacity * sizeof(*events),
        wanted * sizeof(*events)
    );
    if (events == NULL) {
        return ML_ENV_MEMORY;
    }
    queue->events = events;
    queue->capacity = wanted;
    return ML_OK;
}

/* The lane's queue with room for so many more, and room in the heap for the lane. */
static enum ml_status reserve(
    struct ml_sequencer *sequencer, uint32_t lane, uint32_t count, struct ml_lane_queue **out_queue
) {
    enum ml_status status = ml_sequencer_lane(sequencer, lane, out_queue);
    if (status == ML_OK) {
        status = heap_reserve(sequencer);
    }
    return status == ML_OK ? queue_reserve(sequencer, *out_queue, count) : status;
}

/* Makes the times of new events not fall; counts the late ones.
 *
 * A repeated stamp means only that no other lane has stamped an event since (ipc/wire/lease.h). The
 * event was not there when the lane was read up to `applied`, so it is from then or later. */
static uint32_t raise_times(
    const struct ml_lane_queue *queue, struct ml_timed *first, uint32_t events, uint64_t applied
) {
    uint64_t last_time = queue->last_time;
    uint64_t stamp = queue->last_stamp;
    uint32_t late = 0;
    for (uint32_t i = 0; i < events; i++) {
        const uint64_t least = last_time > applied ? last_time : applied;
        const bool is_again = first[i].time == stamp;
        if (first[i].time >= least) {
            break;
        }
        stamp = first[i].time;
        if (is_again) {
            first[i].time = least;
        } else {
            first[i].time = stamp < last_time ? last_time : stamp;
            late++;
        }
        last_time = first[i].time;
    }
    return late;
}

/* The places [count, count + pushed) of the queue have been filled, `events` of them with events;
 * the rest belongs to the last one. */
static uint32_t commit(
    struct ml_sequencer *sequencer,
    uint32_t lane,
    struct ml_lane_queue *queue,
    uint32_t pushed,
    uint32_t events,
    uint64_t applied
) {
    struct ml_timed *const first = &queue->events[queue->count];
    const uint64_t last_stamp = first[events - 1].time;
    const uint32_t late = raise_times(queue, first, events, applied);
    queue->last_stamp = last_stamp;
    queue->last_time = first[events - 1].time;
    queue->used = true;
    if (queue->count == queue->head) {
        heap_add(sequencer, lane, first[0].time);
    }
    queue->count += pushed;
    sequencer->queued += pushed;
    return late;
}

enum ml_status ml_sequencer_room(
    struct ml_sequencer *sequencer, uint32_t lane, uint32_t count, struct ml_timed **out_events
) {
    struct ml_lane_queue *queue = NULL;
    const enum ml_status status = reserve(sequencer, lane, count, &queue);
    if (status == ML_OK) {
        *out_events = &queue->events[queue->count];
    }
    return status;
}

uint32_t ml_sequencer_pushed(
    struct ml_sequencer *sequencer, uint32_t lane, uint32_t count, uint64_t applied
) {
    return count == 0
               ? 0
               : commit(
                     sequencer, lane, ml_sequencer_queue(sequencer, lane), count, count, applied
                 );
}

_Static_assert(
    sizeof(struct ml_timed) == sizeof(struct ml_timed_rest), "a rest takes the place of an event"
);

enum ml_status ml_sequencer_push(
    struct ml_sequencer *sequencer,
    uint32_t lane,
    const struct ml_timed *event,
    const struct ml_timed_rest *rest,
    uint64_t applied,
    uint32_t *out_late
) {
    const uint32_t places = rest == NULL ? 1 : 2;
    struct ml_lane_queue *queue = NULL;
    *out_late = 0;
    const enum ml_status status = reserve(sequencer, lane, places, &queue);
    if (status != ML_OK) {
        return status;
    }
    queue->events[queue->count] = *event;
    if (rest != NULL) {
        memcpy(&queue->events[queue->count + 1], rest, sizeof(*rest));
        queue->has_wide = true;
    }
    *out_late = commit(sequencer, lane, queue, places, 1, applied);
    return ML_OK;
}

struct ml_timed_rest ml_timed_rest_of(const struct ml_timed *event) {
    struct ml_timed_rest rest;
    memcpy(&rest, event + 1, sizeof(rest));
    return rest;
}

bool ml_sequencer_first(const struct ml_sequencer *sequencer, uint64_t *out_time) {
    if (sequencer->heap_count == 0) {
        return false;
    }
    *out_time = sequencer->heap[0].time;
    return true;
}

static uint32_t count_in_lane(const struct ml_lane_queue *queue, uint64_t until) {
    uint32_t low = queue->head;
    if (queue->has_wide) {
        while (low < queue->count && queue->events[low].time <= until) {
            low += queue->events[low].kind == ML_TIMED_ALLOC_WIDE ? 2 : 1;
        }
        return low - queue->head;
    }
    uint32_t high = queue->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (queue->events[middle].time <= until) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low - queue->head;
}

uint64_t ml_sequencer_count(const struct ml_sequencer *sequencer, uint64_t until) {
    uint64_t count = 0;
    for (uint32_t i = 0; i < sequencer->heap_count; i++) {
        count += count_in_lane(ml_sequencer_queue(sequencer, sequencer->heap[i].lane), until);
    }
    return count;
}

/* The last time up to which heap[0]'s events come before every other lane's. */
static inline uint64_t alone_until(const struct ml_sequencer *sequencer, uint64_t until) {
    const struct ml_lane_head *const heap = sequencer->heap;
    for (uint32_t i = 1; i < 3 && i < sequencer->heap_count; i++) {
        const uint64_t other = heap[i].time;
        if (heap[0].lane < heap[i].lane) {
            until = other < until ? other : until;
        } else if (other <= until) {
            /* other > 0: heap[0] comes first, so its first time is smaller still */
            until = other - 1;
        }
    }
    return until;
}

/* Where the events of a queue that are not after `last` end; the first one is not. */
static uint32_t run_end(const struct ml_lane_queue *queue, uint64_t last, uint32_t capacity) {
    uint32_t end = queue->count - queue->head < capacity ? queue->count : queue->head + capacity;
    if (!queue->has_wide && queue->events[end - 1].time <= last) {
        return end;
    }
    uint32_t at = queue->head;
    for (uint32_t taken = 0; taken < capacity && at < queue->count; taken++) {
        if (queue->events[at].time > last) {
            break;
        }
        at += queue->events[at].kind == ML_TIMED_ALLOC_WIDE ? 2 : 1;
    }
    return at;
}

bool ml_sequencer_take(
    struct ml_sequencer *sequencer, uint64_t until, uint32_t capacity, struct ml_run *out_run
) {
    if (sequencer->heap_count == 0 || sequencer->heap[0].time > until || capacity == 0) {
        return false;
    }
    struct ml_lane_queue *queue = ml_sequencer_queue(sequencer, sequencer->heap[0].lane);
    const uint32_t end = run_end(queue, alone_until(sequencer, until), capacity);
    *out_run = (struct ml_run
    ){.queue = queue, .events = queue->events + queue->head, .end = queue->events + end};
    sequencer->queued -= end - queue->head;
    if (end == queue->count) {
        queue->head = 0;
        queue->count = 0;
        queue->has_wide = false;
        sequencer->heap[0] = sequencer->heap[--sequencer->heap_count];
    } else {
        queue->head = end;
        sequencer->heap[0].time = queue->events[end].time;
    }
    sift_down(sequencer);
    return true;
}

void ml_sequencer_round(struct ml_sequencer *sequencer) {
    for (uint32_t i = 0; i < sequencer->lanes_count; i++) {
        struct ml_lane_queue *queue = sequencer->lanes[i];
        if (queue == NULL) {
            continue;
        }
        if (!queue->used && queue->count == 0 && queue->capacity > ML_QUEUE_KEPT_EVENTS) {
            free_events(sequencer, queue);
        }
        queue->used = false;
    }
}
