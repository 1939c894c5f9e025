#include "service/sequencer.h"

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
    if (lane >= sequencer->lanes_count) {
        const uint32_t old = sequencer->lanes_count;
        uint32_t wanted = old * 2 < lane + 1 ? lane + 1 : old * 2;
        wanted = wanted > ML_SEQUENCER_LANES_MAX ? ML_SEQUENCER_LANES_MAX : wanted;
        struct ml_lane_queue **lanes = ml_budget_resize(
            sequencer->budget, sequencer->lanes, old * sizeof(*lanes), wanted * sizeof(*lanes)
        );
        if (lanes == NULL) {
            return ML_ENV_MEMORY;
        }
        memset(lanes + old, 0, (wanted - old) * sizeof(*lanes));
        sequencer->lanes = lanes;
        sequencer->lanes_count = wanted;
    }
    if (sequencer->lanes[lane] == NULL) {
        sequencer->lanes[lane] = ml_budget_new(sequencer->budget, sizeof(struct ml_lane_queue));
        if (sequencer->lanes[lane] == NULL) {
            return ML_ENV_MEMORY;
        }
    }
    *out_queue = sequencer->lanes[lane];
    return ML_OK;
}

/* ---- the heap of lanes */

static inline uint64_t first_time(const struct ml_sequencer *sequencer, uint16_t lane) {
    const struct ml_lane_queue *queue = sequencer->lanes[lane];
    return queue->events[queue->head].time;
}

static bool before(const struct ml_sequencer *sequencer, uint16_t a, uint16_t b) {
    const uint64_t time_a = first_time(sequencer, a);
    const uint64_t time_b = first_time(sequencer, b);
    return time_a != time_b ? time_a < time_b : a < b;
}

static void sift_down(struct ml_sequencer *sequencer) {
    uint16_t *const heap = sequencer->heap;
    const uint32_t count = sequencer->heap_count;
    uint32_t at = 0;
    for (;;) {
        uint32_t least = 2 * at + 1;
        if (least >= count) {
            return;
        }
        if (least + 1 < count && before(sequencer, heap[least + 1], heap[least])) {
            least++;
        }
        if (!before(sequencer, heap[least], heap[at])) {
            return;
        }
        const uint16_t lane = heap[at];
        heap[at] = heap[least];
        heap[least] = lane;
        at = least;
    }
}

static enum ml_status heap_reserve(struct ml_sequencer *sequencer) {
    if (sequencer->heap_count < sequencer->heap_capacity) {
        return ML_OK;
    }
    const uint32_t old = sequencer->heap_capacity;
    const uint32_t wanted = old == 0 ? 8 : old * 2;
    uint16_t *heap = ml_budget_resize(
        sequencer->budget, sequencer->heap, old * sizeof(*heap), wanted * sizeof(*heap)
    );
    if (heap == NULL) {
        return ML_ENV_MEMORY;
    }
    sequencer->heap = heap;
    sequencer->heap_capacity = wanted;
    return ML_OK;
}

static void heap_add(struct ml_sequencer *sequencer, uint16_t lane) {
    uint16_t *const heap = sequencer->heap;
    uint32_t at = sequencer->heap_count++;
    heap[at] = lane;
    while (at > 0 && before(sequencer, heap[at], heap[(at - 1) / 2])) {
        heap[at] = heap[(at - 1) / 2];
        heap[(at - 1) / 2] = lane;
        at = (at - 1) / 2;
    }
}

/* ---- the queues */

static enum ml_status queue_reserve(struct ml_sequencer *sequencer, struct ml_lane_queue *queue) {
    if (queue->count < queue->capacity) {
        return ML_OK;
    }
    /* What is applied makes room first, if it is enough to be worth the move. */
    if (queue->head > queue->capacity / 2) {
        memmove(
            queue->events,
            queue->events + queue->head,
            (queue->count - queue->head) * sizeof(*queue->events)
        );
        queue->count -= queue->head;
        queue->head = 0;
        return ML_OK;
    }
    const uint32_t wanted = queue->capacity == 0 ? 64 : queue->capacity * 2;
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

enum ml_status ml_sequencer_push(
    struct ml_sequencer *sequencer, uint32_t lane, const struct ml_timed *event, bool *out_raised
) {
    struct ml_lane_queue *queue = NULL;
    enum ml_status status = ml_sequencer_lane(sequencer, lane, &queue);
    if (status == ML_OK) {
        status = heap_reserve(sequencer);
    }
    if (status == ML_OK) {
        status = queue_reserve(sequencer, queue);
    }
    if (status != ML_OK) {
        return status;
    }
    struct ml_timed *place = &queue->events[queue->count];
    *place = *event;
    *out_raised = event->time < queue->last_time;
    if (*out_raised) {
        place->time = queue->last_time;
    }
    queue->last_time = place->time;
    queue->count++;
    sequencer->queued++;
    if (queue->count - queue->head == 1) {
        heap_add(sequencer, (uint16_t)lane);
    }
    return ML_OK;
}

bool ml_sequencer_first(const struct ml_sequencer *sequencer, uint64_t *out_time) {
    if (sequencer->heap_count == 0) {
        return false;
    }
    *out_time = first_time(sequencer, sequencer->heap[0]);
    return true;
}

/* The last time up to which heap[0]'s events come before every other lane's. */
static uint64_t alone_until(const struct ml_sequencer *sequencer, uint64_t until) {
    const uint16_t *const heap = sequencer->heap;
    for (uint32_t i = 1; i < 3 && i < sequencer->heap_count; i++) {
        const uint64_t other = first_time(sequencer, heap[i]);
        if (heap[0] < heap[i]) {
            until = other < until ? other : until;
        } else if (other <= until) {
            /* other > 0: heap[0] comes first, so its first time is smaller still */
            until = other - 1;
        }
    }
    return until;
}

struct ml_lane_queue *ml_sequencer_run(
    struct ml_sequencer *sequencer,
    uint64_t until,
    const struct ml_timed **out_events,
    uint32_t *out_count
) {
    if (sequencer->heap_count == 0 || first_time(sequencer, sequencer->heap[0]) > until) {
        return NULL;
    }
    struct ml_lane_queue *queue = sequencer->lanes[sequencer->heap[0]];
    const uint64_t last = alone_until(sequencer, until);
    uint32_t end = queue->head + 1;
    if (queue->events[queue->count - 1].time <= last) {
        end = queue->count;
    } else {
        while (queue->events[end].time <= last) {
            end++;
        }
    }
    *out_events = queue->events + queue->head;
    *out_count = end - queue->head;
    return queue;
}

void ml_sequencer_took(struct ml_sequencer *sequencer, uint32_t count) {
    struct ml_lane_queue *queue = sequencer->lanes[sequencer->heap[0]];
    queue->head += count;
    sequencer->queued -= count;
    if (queue->head == queue->count) {
        queue->head = 0;
        queue->count = 0;
        sequencer->heap[0] = sequencer->heap[--sequencer->heap_count];
        if (queue->capacity > ML_QUEUE_KEPT_EVENTS) {
            free_events(sequencer, queue);
        }
    }
    sift_down(sequencer);
}
