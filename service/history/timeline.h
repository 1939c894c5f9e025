/* Series of every process, of its largest stacks and of the tree: what held how much when. Room:
 * service. Context: the session's thread, between rounds.
 *
 * One rule: an event costs nothing here. All figures are read, at the caller's times, from counters
 * that are kept anyway. A process without new events is not read again.
 *
 * The stacks of a process are looked for in its cells once it is a second old, less often the more
 * cells it has. The first ML_TIMELINE_ENTERING by live bytes get a series. There is room for
 * ML_TIMELINE_STACKS; then a stack that holds an eighth more replaces the one that holds least.
 * What a stack held before its series begins is not known, unless the stack is newer than the look
 * before: then its series begins there, at zero.
 *
 * All series together stay within ML_TIMELINE_MAX_BYTES. At that bound the series of ended
 * processes go, the earliest first. */
#ifndef MEMLOG_SERVICE_HISTORY_TIMELINE_H
#define MEMLOG_SERVICE_HISTORY_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "service/heap/tracker.h"
#include "service/history/series.h"
#include "service/snapshot/snapshot.h"

enum {
    ML_TIMELINE_STACKS = 20,
    ML_TIMELINE_ENTERING = 12,
    /* 50 processes for a day: 27 MB. */
    ML_TIMELINE_MAX_BYTES = 60 << 20,
    /* A look takes so many cells a second: some 10 us of it. */
    ML_TIMELINE_CELLS_A_SECOND = 10000
};

/* 250 ms; 512 of each length: a day ago they are 256 s long. */
extern const struct ml_series_shape ml_timeline_sums_shape;
/* 1 s; 128 of each. */
extern const struct ml_series_shape ml_timeline_stack_shape;

struct ml_timeline_stack {
    uint32_t node;
    struct ml_series series;
    uint32_t *cells; /* its numbers */
    uint32_t cells_count, cells_capacity;
};

/* Of one process. What happens between two notes is not seen, but for a new peak: its series and
 * those of the stacks that held it have it to the byte. */
struct ml_timeline_log {
    struct ml_series sums;
    struct ml_timeline_stack *stacks; /* ML_TIMELINE_STACKS of them; NULL: not looked for yet */
    uint32_t stacks_count;
    uint32_t cells_seen;   /* cells before are in the lists of the stacks */
    uint32_t cells_looked; /* their number at the last look */
    uint64_t stacks_ns, looked_ns, next_look_ns;
    uint64_t noted_bytes, noted_blocks, noted_live_bytes; /* its totals at the last note */
    uint64_t noted_peak_bytes, stacks_peak_bytes;         /* the process's peak at the last notes */
    bool is_stale; /* its stacks were not noted since the last change */
};

struct ml_timeline_log *ml_timeline_new(struct ml_budget *budget);
void ml_timeline_free(struct ml_timeline_log *take_timeline, struct ml_budget *budget);

/* Drop the series of its stacks. Nothing more is noted of the process. */
void ml_timeline_drop_stacks(struct ml_timeline_log *timeline, struct ml_budget *budget);

/* Note the process at `ns`. is_exact: a snapshot follows, so note it even without a change, and its
 * stacks as well. */
void ml_timeline_note(
    struct ml_timeline_log *timeline,
    struct ml_budget *budget,
    const struct ml_tracker *tracker,
    uint64_t ns,
    bool is_exact
);

/* Copy its series for a snapshot. False: no memory; what was copied is in *out_process. */
bool ml_timeline_copy(
    const struct ml_timeline_log *timeline, struct ml_snapshot_process *out_process
);

/* One series; false: no memory. */
bool ml_timeline_copy_series(const struct ml_series *series, struct ml_snapshot_series *out_series);

/* Of a session. */
struct ml_timelines {
    struct ml_budget budget;
    struct ml_series tree;
    uint64_t total_bytes, total_blocks; /* of all that were noted */
    uint64_t noted_ns;                  /* 0: no time was noted yet */
    uint64_t noted_peak_bytes;          /* the tree's, at the last note */
};

#endif
