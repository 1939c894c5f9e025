/* Resident and private memory through time, as they are read, in bounded space. Recent time is
 * fine, older time coarser by powers of four. Room: host. Context: the host's one thread; no clock
 * of its own.
 *
 * One rule: a coarse point sums up exactly the four that it is made of: the most of each figure,
 * and the last. A point lies at its last reading; it speaks of the time since the point before. */
#ifndef MEMLOG_HOST_MEMORY_HISTORY_H
#define MEMLOG_HOST_MEMORY_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ML_MEMORY_HISTORY_FACTOR = 4,
    /* With a reading every 5 s the first has 10 minutes, the last 30 days; what is older than that
     * becomes ever coarser. */
    ML_MEMORY_HISTORY_LEVELS = 7,
    /* Of each level. */
    ML_MEMORY_HISTORY_POINTS = 128,
    /* Readings of one second are one point. */
    ML_MEMORY_HISTORY_SLOT_MS = 1000,
};

/* What several histories may take together. Units: bytes. */
struct ml_memory_room {
    size_t used_bytes, most_bytes;
};

struct ml_memory_figures {
    uint64_t resident_bytes, private_bytes;
};

struct ml_memory_point {
    uint64_t end_ms; /* CLOCK_MONOTONIC */
    struct ml_memory_figures most, last;
};

/* All 0: nothing was read yet. */
struct ml_memory_history {
    struct ml_memory_room *room;    /* borrowed from the first note on */
    struct ml_memory_point *points; /* the oldest first, so the coarsest */
    uint32_t count, capacity;
    uint32_t counts[ML_MEMORY_HISTORY_LEVELS]; /* points of each level; 0 is the finest */
};

/* Note a reading. Where the room ends, older points become coarser earlier. False: there was no
 * room for it at all. */
bool ml_memory_history_note(
    struct ml_memory_history *history,
    struct ml_memory_room *room,
    uint64_t ms,
    const struct ml_memory_figures *figures
);

/* Give the memory back; the history is empty then. */
void ml_memory_history_fini(struct ml_memory_history *history);

#endif
