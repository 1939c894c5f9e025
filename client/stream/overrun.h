/* --memlog-overrun=sample: a pipe that fills up lengthens the sampling interval. Room: client
 * (private). Context: the malloc path, when a chunk has gone into the pipe or has found no room.
 *
 * One rule: a block's weight never depends on this. Each thread records in its lane the interval at
 * which it samples, and draws a new sample distance when that changes.
 *
 * The process has an interval of its own, 0 while the pipe has room. It doubles with each chunk
 * that finds the pipe half full and not emptier than the one before, and is halved again when the
 * pipe has been nearly empty for ML_OVERRUN_CALM_NS. Longer intervals fill chunks more slowly: when
 * the service stalls, a dozen chunks suffice, staging holds them, and no thread waits.
 *
 * Skipped blocks are remembered as far as there is room, so that their frees need no record. All
 * other frees do, since exactly recorded blocks may live. */
#ifndef MEMLOG_CLIENT_STREAM_OVERRUN_H
#define MEMLOG_CLIENT_STREAM_OVERRUN_H

#include <stdbool.h>
#include <stdint.h>

#include "client/state/process.h"
#include "client/stream/pipe.h"

enum {
    ML_OVERRUN_FIRST_BYTES = 512,    /* several small blocks; the usual size of a block is below */
    ML_OVERRUN_LAST_BYTES = 1 << 20, /* beyond it a chunk takes seconds, and so would recovery */
    ML_OVERRUN_CALM_NS = 50000000, /* the service polls each millisecond; back to exact in 0.6 s */
    ML_OVERRUN_LOOK_RECORDS = 64,  /* sampled blocks between two looks at the pipe */
    ML_OVERRUN_SKIPPED_SHIFT = 18  /* log2 of the blocks that are remembered; 2 MiB */
};

/* Called after each chunk, put or not, in that mode only. */
void ml_overrun_put(enum ml_pipe_answer answer);

/* A sampled block was recorded. A thread that records little checks the pipe here, before its chunk
 * is full. */
void ml_overrun_look(void);

static inline void ml_overrun_recorded(void) {
    struct ml_gate_page *page = ml_process.gate_page;
    if (atomic_load_explicit(&page->overrun_bytes, memory_order_relaxed) != 0 &&
        atomic_fetch_add_explicit(&page->overrun_records, 1, memory_order_relaxed) %
                ML_OVERRUN_LOOK_RECORDS ==
            ML_OVERRUN_LOOK_RECORDS - 1) {
        ml_overrun_look();
    }
}

/* At what interval the process records now: the one that the host wants, or the longer one that the
 * pipe has room for; 1: everything. */
uint64_t ml_overrun_interval(void);

static inline bool ml_overrun_samples(void) {
    return ml_process.control->overrun != 0;
}

/* ---- skipped blocks */

/* The table, made now if it is not there; NULL: there is no memory for it, and nothing is
 * remembered. */
_Atomic uint64_t *ml_overrun_table(void);

static inline _Atomic uint64_t *ml_overrun_place(_Atomic uint64_t *table, uintptr_t block) {
    return &table[ml_sampled_hash(block) >> (64 - ML_OVERRUN_SKIPPED_SHIFT)];
}

/* The block is new and was skipped. */
static inline void ml_overrun_skipped(uintptr_t block) {
    _Atomic uint64_t *table = ml_overrun_table();
    if (table != NULL) {
        atomic_store_explicit(ml_overrun_place(table, block), block, memory_order_relaxed);
    }
}

/* The block is new and is recorded, or it is about to be freed. True: it was certainly skipped. */
static inline bool ml_overrun_forget(uintptr_t block) {
    _Atomic uint64_t *table =
        atomic_load_explicit(&ml_process.gate_page->skipped, memory_order_acquire);
    if (table == NULL) {
        return false;
    }
    _Atomic uint64_t *place = ml_overrun_place(table, block);
    if (atomic_load_explicit(place, memory_order_relaxed) != block) {
        return false;
    }
    atomic_store_explicit(place, 0, memory_order_relaxed);
    return true;
}

#endif
