/* Series of every process, of its largest stacks and of the tree: what held how much when. Room:
 * service. Context: the session's thread, between rounds.
 *
 * One rule: an event costs nothing here. Everything is read, by the caller's clock, from counters
 * that are kept anyway; a process that did nothing since is not looked at again.
 *
 * A process's stacks, when it is a second old: those that hold most are looked for in its cells now
 * and then, the more seldom the more cells it has. Who is among the first ML_TIMELINE_ENTERING gets
 * a series; there is room for ML_TIMELINE_STACKS, and who holds least by then leaves for one that
 * holds an eighth more. What a stack held before its series begins is not known, unless the stack
 * itself is newer than the look before: then it begins there, with nothing.
 *
 * All of them together stay within ML_TIMELINE_MAX_BYTES. When that is reached the series of ended
 * processes go, those that ended first before others. */
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
    /* A look at so many cells a second: some 10 us of it. */
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

/* Of one process. What it does between two notes nobody sees, but for its peak: a new one is in its
 * series and in those of the stacks that held it, to the byte. */
struct ml_timeline_log {
    struct ml_series sums;
    struct ml_timeline_stack *stacks; /* ML_TIMELINE_STACKS; NULL: not looked for yet */
    uint32_t stacks_count;
    uint32_t cells_seen;   /* those before are in the stacks' lists */
    uint32_t cells_looked; /* there were so many at the last look */
    uint64_t stacks_ns, looked_ns, next_look_ns;
    uint64_t noted_bytes, noted_blocks, noted_live_bytes; /* its totals at the last note */
    uint64_t noted_peak_bytes, stacks_peak_bytes;         /* the process's peak at the last notes */
    bool is_stale;                                        /* its stacks have not been noted since */
};

struct ml_timeline_log *ml_timeline_new(struct ml_budget *budget);
void ml_timeline_free(struct ml_timeline_log *take_timeline, struct ml_budget *budget);

/* Its stacks' series go; nothing is noted of it any more. */
void ml_timeline_drop_stacks(struct ml_timeline_log *timeline, struct ml_budget *budget);

/* The process stood so at `ns`. is_exact: note it though nothing has changed, and its stacks, too:
 * somebody will look. */
void ml_timeline_note(
    struct ml_timeline_log *timeline,
    struct ml_budget *budget,
    const struct ml_tracker *tracker,
    uint64_t ns,
    bool is_exact
);

/* Its series as a snapshot has them. False: no memory; what was made is in *out_process. */
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
    uint64_t noted_ns;                  /* 0: nobody keeps time here */
    uint64_t noted_peak_bytes;          /* the tree's, at the last note */
};

#endif
