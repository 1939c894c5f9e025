/* Whole stacks seen before: the short way to a stack's node. Room: client (part of the unwinder).
 * Context: one thread's own state, inside malloc; no lock, no system call.
 *
 * One rule: a stack is found only if every word that a walk by recipes would load holds what it
 * held when the stack was walked: then the walk would say the same again, by construction, and is
 * not made. The words lie where they lay (same stack pointer), in the thread's own stack, which
 * stays mapped: so they may be loaded in any order, and no load waits for another.
 *
 * What cannot be said so plainly is not kept, and is walked each time (client/unwind.h): stacks
 * other than the thread's own, cut or broken ones, those with cold frames, those with code outside
 * all modules (another module may come to lie there unseen), and very deep ones.
 *
 *   ring    the stacks, of odd sizes, one behind the other in blocks that all threads draw from one
 *           pool; the oldest are overwritten. A program of few stacks touches few pages
 *   next    each stack names the one that came after it the last time: right four times out of five
 *           in real programs, so that most searches look at one stack only
 *   index   hash -> stack. Several stacks may share pc and stack pointer: where a stack differs
 * from the one found, the place and the differing word are hashed in, and the search goes on. The
 * words are compared in the walk's order, so the first that differs is the walk's too: what is
 * hashed is the stack's own
 *
 * A place in the ring is named by one word, lap << ML_MEMO_LAP_SHIFT | unit; 0: none. */
#ifndef MEMLOG_CLIENT_UNWIND_MEMO_H
#define MEMLOG_CLIENT_UNWIND_MEMO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    ML_MEMO_WAYS = 8, /* a bucket is one cache line */
    ML_MEMO_SMALL_BUCKETS = 1 << 6,
    ML_MEMO_LARGE_BUCKETS = 1 << 11,
    ML_MEMO_LARGE_FROM_BLOCKS = 2, /* a ring that needs more blocks gets the large index */
    ML_MEMO_PROBES = 16,           /* stacks of the same pc and stack pointer that are looked at */
    ML_MEMO_UNIT_BYTES = 16,
    ML_MEMO_BLOCK_BYTES = 1 << 14,
    ML_MEMO_BLOCK_UNITS = ML_MEMO_BLOCK_BYTES / ML_MEMO_UNIT_BYTES,
    ML_MEMO_BLOCKS = 192,        /* of one thread's ring: 3 MiB, 6,000 stacks of 45 frames */
    ML_MEMO_SHARED_BLOCKS = 256, /* of all threads: beyond 4 MiB a thread gets its first only */
    ML_MEMO_POOL_BLOCKS = 1 << 12,
    ML_MEMO_WORDS_MAX = 192,           /* return addresses and stored frame pointers of one stack */
    ML_MEMO_PLACE_MAX = (1 << 16) - 1, /* in words above the stack pointer: 512 KiB */
    ML_MEMO_LAP_SHIFT = 24
};

struct ml_unwind_entry;
struct ml_unwind_process;
struct ml_unwind_thread;

/* One process's. All zero: there are no blocks, so nothing is kept. */
struct ml_memo_pool {
    uint8_t *blocks;     /* [blocks_max][ML_MEMO_BLOCK_BYTES]; set before the first search */
    uint32_t blocks_max; /* set before the first search */
    _Atomic uint32_t used;
};

struct ml_memo_bucket {
    _Alignas(64) uint32_t tags[ML_MEMO_WAYS]; /* never 0 for one in use */
    uint32_t stacks[ML_MEMO_WAYS];            /* 0 beside a tag: seen once, kept the next time */
};

/* One thread's. All zero is the empty state. */
struct ml_unwind_memo {
    uint64_t unloads;  /* of the process, when the stacks were kept */
    uint32_t epoch;    /* stacks of another one are forgotten */
    uint32_t head;     /* unit where the next stack goes */
    uint32_t lap;      /* of the ring: 1 .. 255; 0: it has no block yet */
    uint32_t last;     /* the last event's stack; 0: not known */
    uint32_t expected; /* the one that came behind that the last time */
    uint64_t hash;     /* where the last search ended: the new stack's place in the index */
    struct ml_memo_bucket *large;
    uint32_t blocks_count;
    uint16_t blocks[ML_MEMO_BLOCKS]; /* pool indices */
    struct ml_memo_bucket small[ML_MEMO_SMALL_BUCKETS];
};

/* The node of the stack at `entry`; 0: not known, walk it.
 *
 * Shape:  as for ml_unwind. Whether the program is closing a library is looked at here. */
uint32_t ml_unwind_memo_find(
    struct ml_unwind_memo *memo,
    const struct ml_unwind_process *process,
    const struct ml_unwind_entry *entry
);

/* Keep the stack that ml_unwind has just left in `thread`, whose innermost frame's node is `node`;
 * behind a search for it that found nothing. May silently not happen: a stack is kept when it is
 * seen for the second time. */
void ml_unwind_memo_keep(
    struct ml_unwind_thread *thread,
    struct ml_unwind_process *process,
    const struct ml_unwind_entry *entry,
    uint32_t node
);

/* Forget all. */
static inline void ml_unwind_memo_clear(struct ml_unwind_memo *memo) {
    memo->epoch++;
    memo->last = 0;
    memo->expected = 0;
}

/* Invariants, for tests: true when all hold. */
bool ml_unwind_memo_check(
    const struct ml_unwind_memo *memo, const struct ml_unwind_process *process
);

#endif
