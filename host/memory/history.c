#include "host/memory/history.h"

#include <stdlib.h>
#include <string.h>

enum { CAPACITY_FIRST = 8 };

static uint64_t most(uint64_t one, uint64_t other) {
    return one > other ? one : other;
}

/* The later one's time and last figures, and the most of both. */
static struct ml_memory_point
joined(const struct ml_memory_point *early, const struct ml_memory_point *late) {
    struct ml_memory_point point = *late;
    point.most.resident_bytes = most(early->most.resident_bytes, late->most.resident_bytes);
    point.most.private_bytes = most(early->most.private_bytes, late->most.private_bytes);
    return point;
}

static bool is_same(const struct ml_memory_figures *one, const struct ml_memory_figures *other) {
    return one->resident_bytes == other->resident_bytes &&
           one->private_bytes == other->private_bytes;
}

/* Room for one more point. False: there is none. */
static bool grow(struct ml_memory_history *history) {
    struct ml_memory_room *room = history->room;
    if (history->points != NULL && history->count < history->capacity) {
        return true;
    }
    const uint32_t wanted = history->capacity == 0 ? CAPACITY_FIRST : history->capacity * 2;
    const size_t more_bytes = (wanted - history->capacity) * sizeof(*history->points);
    if (more_bytes > room->most_bytes - room->used_bytes) {
        return false;
    }
    struct ml_memory_point *grown = realloc(history->points, wanted * sizeof(*grown));
    if (grown == NULL) {
        return false;
    }
    history->points = grown;
    history->capacity = wanted;
    room->used_bytes += more_bytes;
    return true;
}

/* Join the four oldest points of a level to the newest of the level above. False: there are no
 * four. */
static bool fold(struct ml_memory_history *history, unsigned level) {
    uint32_t first = history->count;
    for (unsigned i = 0; i <= level; i++) {
        first -= history->counts[i];
    }
    if (history->points == NULL || history->counts[level] < ML_MEMORY_HISTORY_FACTOR) {
        return false;
    }
    const uint32_t gone = ML_MEMORY_HISTORY_FACTOR - 1;
    struct ml_memory_point *points = history->points + first;
    for (uint32_t i = 1; i <= gone; i++) {
        points[0] = joined(&points[0], &points[i]);
    }
    memmove(points + 1, points + 1 + gone, (history->count - first - 1 - gone) * sizeof(*points));
    history->count -= gone;
    if (level + 1 == ML_MEMORY_HISTORY_LEVELS) {
        history->counts[level] -= gone; /* the oldest of all are joined again and again */
    } else {
        history->counts[level] -= ML_MEMORY_HISTORY_FACTOR;
        history->counts[level + 1]++;
    }
    return true;
}

/* Keep each level within its length. */
static void fold_full(struct ml_memory_history *history) {
    for (unsigned i = 0; i < ML_MEMORY_HISTORY_LEVELS; i++) {
        if (history->counts[i] > ML_MEMORY_HISTORY_POINTS) {
            (void)fold(history, i);
        }
    }
}

/* Without room the finest level that has four points gives way. */
static bool make_place(struct ml_memory_history *history) {
    bool has_place = grow(history);
    for (unsigned i = 0; i < ML_MEMORY_HISTORY_LEVELS && !has_place; i++) {
        has_place = fold(history, i);
    }
    return has_place;
}

/* Whether the point only makes the line between the last two longer. */
static bool is_flat(const struct ml_memory_history *history, const struct ml_memory_point *point) {
    if (history->points == NULL || history->counts[0] < 2) {
        return false;
    }
    const struct ml_memory_point *last = &history->points[history->count - 1];
    const struct ml_memory_point *before = last - 1;
    return is_same(&last->most, &last->last) && is_same(&before->last, &last->last) &&
           is_same(&last->last, &point->last);
}

bool ml_memory_history_note(
    struct ml_memory_history *history,
    struct ml_memory_room *room,
    uint64_t ms,
    const struct ml_memory_figures *figures
) {
    const struct ml_memory_point point = {.end_ms = ms, .most = *figures, .last = *figures};
    struct ml_memory_point *last = history->points != NULL && history->counts[0] > 0
                                       ? &history->points[history->count - 1]
                                       : NULL;
    history->room = room;
    if (last != NULL &&
        ms / ML_MEMORY_HISTORY_SLOT_MS == last->end_ms / ML_MEMORY_HISTORY_SLOT_MS) {
        *last = joined(last, &point);
        return true;
    }
    if (is_flat(history, &point)) {
        last->end_ms = ms;
        return true;
    }
    if (!make_place(history)) {
        return false;
    }
    history->points[history->count++] = point;
    history->counts[0]++;
    fold_full(history);
    return true;
}

void ml_memory_history_fini(struct ml_memory_history *history) {
    if (history->points != NULL) {
        history->room->used_bytes -= history->capacity * sizeof(*history->points);
        free(history->points);
    }
    *history = (struct ml_memory_history){.points = NULL};
}
