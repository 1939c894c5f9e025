/* Cache of whole stacks: finds a stack's node without a walk. Room: client (part of the unwinder).
 * Context: one thread's own state, inside malloc; no lock, no system call.
 *
 * One rule: a stack is found only if every word that a walk by recipes would load is unchanged, in
 * all 64 bits: then the walk would give the same result by construction, and is skipped. The stack
 * pointer is the same and the words lie in the thread's own stack, which stays mapped. So they may
 * be loaded in any order, and no load waits for another.
 *
 * Stacks for which this does not hold are not kept, and are walked each time
 * (client/unwind/unwind.h): stacks other than the thread's own, cut or broken ones, those with cold
 * frames, those with code outside all modules (another module may be mapped there unnoticed), and
 * very deep ones.
 *
 *   ring    the stacks, of odd sizes, one behind the other in blocks that all threads draw from one
 *           pool; the oldest are overwritten. A program of few stacks touches few pages
 *   next    each stack names the one that came after it the last time: right four times out of five
 *           in real programs, so that most searches look at one stack only; and the one that came
 *           before that did, which most of the others turn out to be
 *   index   hash -> stack. Several stacks may share pc and stack pointer: where a stack differs
 * from the one found, the place and the differing word are hashed in, and the search goes on. The
 * words are compared in the walk's order, so the first that differs is the walk's too: what is
 * hashed is the stack's own. Where many share them, most have their words at the same places too:
 * after two looks all words at the first one's places are hashed at once
 *
 * A place in the ring is named by one word, lap << ML_MEMO_LAP_SHIFT | unit; 0: none. */
#ifndef MEMLOG_CLIENT_UNWIND_MEMO_H
#define MEMLOG_CLIENT_UNWIND_MEMO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/unwind/arch.h"

enum {
    ML_MEMO_WAYS = 8, /* a bucket is one cache line */
    ML_MEMO_SMALL_BUCKETS = 1 << 6,
    ML_MEMO_LARGE_BUCKETS = 1 << 11,
    ML_MEMO_LARGE_FROM_BLOCKS = 2, /* a ring that needs more blocks gets the large index */
    ML_MEMO_PROBES = 16,           /* stacks of the same pc and stack pointer that are looked at */
    ML_MEMO_SHAPE_PROBE = 1,       /* so many that differ, and one more: then by all words */
    ML_MEMO_UNIT_BYTES = 16,
    ML_MEMO_BLOCK_BYTES = 1 << 14,
    ML_MEMO_BLOCK_UNITS = ML_MEMO_BLOCK_BYTES / ML_MEMO_UNIT_BYTES,
    ML_MEMO_BLOCKS = 192,        /* of one thread's ring: 3 MiB, 6,000 stacks of 45 frames */
    ML_MEMO_SHARED_BLOCKS = 256, /* of all threads: beyond 4 MiB a thread gets its first only */
    ML_MEMO_POOL_BLOCKS = 1 << 12,
    ML_MEMO_WORDS_MAX = 192,           /* return addresses and stored frame pointers of one stack */
    ML_MEMO_PLACE_MAX = (1 << 16) - 1, /* in words above the stack pointer: 512 KiB */
    ML_MEMO_STRIDE =
        4, /* words compared before the answer is looked at; a stack is filled up to it */
    ML_MEMO_LINE_BYTES = 64,
    ML_MEMO_SPREAD_BLOCKS = 32, /* half a MiB: a good part of a processor's own cache */
    ML_MEMO_LAP_SHIFT = 24
};

/* The frame that called the hook, at the moment of the call. */
struct ml_unwind_entry {
    uintptr_t pc; /* the hook's return address */
    uintptr_t sp; /* the stack pointer just after the hook will have returned (the hook's CFA) */
    uintptr_t fp; /* rbp as the caller had it */
};

struct ml_unwind_process;
struct ml_unwind_thread;

/* One process's part. All zero: there are no blocks, so nothing is kept. */
struct ml_memo_pool {
    uint8_t *blocks;     /* where block 0 would lie; set before the first search */
    uint32_t blocks_max; /* so many are given out at most; set before the first search */
    _Atomic uint32_t used;
    /* So many blocks, one behind the other and all 0, the first of which has this number; false:
     * there is no memory for them. NULL: [0, blocks_max) are there, and are taken in order. */
    bool (*take)(uint32_t blocks, uint32_t *out_first);
};

/* Some words of a stack, all 64 bits of each, and where they lie: in words above sp. Places of
 * their own cost two bytes a word, and save two of the six instructions that a word takes to
 * compare. */
struct ml_memo_words {
    uint64_t held[ML_MEMO_STRIDE];
    uint16_t places[ML_MEMO_STRIDE];
};

/* A stack in the ring, in few cache lines: each evicts one of the program's. pc 0: it is being
 * written. */
struct ml_memo_stack {
    uintptr_t pc;
    uintptr_t sp;
    uintptr_t fp;
    uint32_t epoch;
    uint32_t node;
    uint32_t next;       /* the stack that came behind this one the last time; 0: none yet */
    uint32_t next_unit;  /* where that lies in the pool */
    uint32_t other;      /* the one that did before `next` */
    uint32_t other_unit; /* likewise */
    uint32_t count;      /* of `words`, and not 0 */
    uint32_t fp_matters;
    struct ml_memo_words words[]; /* the innermost first */
};

struct ml_memo_bucket {
    _Alignas(64) uint32_t tags[ML_MEMO_WAYS]; /* never 0 for one in use */
    uint32_t stacks[ML_MEMO_WAYS];            /* 0 beside a tag: seen once, kept the next time */
};

/* One thread's. All zero is the empty state. */
struct ml_unwind_memo {
    uint64_t unloads;               /* of the process, when the stacks were kept */
    uint32_t epoch;                 /* stacks of another one are forgotten */
    uint32_t head;                  /* unit where the next stack goes */
    uint32_t lap;                   /* of the ring: 1 .. 255; 0: it has no block yet */
    struct ml_memo_stack *expected; /* the successor of `last` the last time; still there:
                                       overwriting any stack clears it */
    bool spread;   /* the ring is so large that the next stack may not be in the cache */
    uint64_t hash; /* where the last search ended: the new stack's place in the index */
    struct ml_memo_stack *last; /* the last event's; NULL: not known */
    uint32_t shape;             /* the stack by whose places the last search hashed; 0: none */
    uint64_t shape_hash;        /* that hash */
    const struct ml_memo_stack *alike; /* between a failed search and its walk: the last stack
                                          compared, of which the first ... */
    uint32_t alike_count;              /* ... so many of its `words` are the same */
    struct ml_memo_bucket *large;
    uint32_t blocks_count;
    uint16_t blocks[ML_MEMO_BLOCKS]; /* pool indices */
    struct ml_memo_bucket small[ML_MEMO_SMALL_BUCKETS];
};

/* Is that stack still in the ring? Stacks of the lap before remain from `head` on. */
static inline bool ml_memo_is_there(const struct ml_unwind_memo *memo, uint32_t stack) {
    const uint32_t lap = stack >> ML_MEMO_LAP_SHIFT;
    const uint32_t unit = stack & ((1 << ML_MEMO_LAP_SHIFT) - 1);
    return unit < memo->head ? lap == memo->lap : lap != 0 && lap + 1 == memo->lap;
}

/* Where that stack lies in the pool. */
static inline uint32_t ml_memo_unit_of(const struct ml_unwind_memo *memo, uint32_t stack) {
    const uint32_t unit = stack & ((1 << ML_MEMO_LAP_SHIFT) - 1);
    return memo->blocks[unit / ML_MEMO_BLOCK_UNITS] * (uint32_t)ML_MEMO_BLOCK_UNITS +
           unit % ML_MEMO_BLOCK_UNITS;
}

static inline struct ml_memo_stack *
ml_memo_stack_in(const struct ml_memo_pool *pool, uint32_t pool_unit) {
    return (struct ml_memo_stack *)(void *)(pool->blocks + (size_t)pool_unit * ML_MEMO_UNIT_BYTES);
}

static inline struct ml_memo_stack *ml_memo_stack_at(
    const struct ml_unwind_memo *memo, const struct ml_memo_pool *pool, uint32_t stack
) {
    return ml_memo_stack_in(pool, ml_memo_unit_of(memo, stack));
}

/* What lies now where word i of them lay. */
static inline uint64_t
ml_memo_load(const struct ml_memo_stack *stack, const struct ml_memo_words *words, uint32_t i) {
    return ml_unwind_load(stack->sp + (uintptr_t)words->places[i] * ML_ARCH_WORD_BYTES);
}

/* 0: it is the same, in every bit. */
static inline uint64_t
ml_memo_differs(const struct ml_memo_stack *stack, const struct ml_memo_words *words, uint32_t i) {
    return ml_memo_load(stack, words, i) ^ words->held[i];
}

/* Compare all words. NULL: all are the same; else the first of `words` of which one is not. */
static inline const struct ml_memo_words *ml_memo_compare(const struct ml_memo_stack *stack) {
    const struct ml_memo_words *words = stack->words;
    /* An end, not a count: nothing is behind it if a fork wipes the stack meanwhile (decoy.h). */
    const struct ml_memo_words *end = words + stack->count;
    do {
        if (__builtin_expect(
                (ml_memo_differs(stack, words, 0) | ml_memo_differs(stack, words, 1) |
                 ml_memo_differs(stack, words, 2) | ml_memo_differs(stack, words, 3)) != 0,
                0
            )) {
            return words;
        }
        words++;
    } while (words < end);
    return NULL;
}

/* The stack is that of the event: expect its successor next. */
static inline uint32_t ml_memo_found(
    struct ml_unwind_memo *memo, const struct ml_memo_pool *pool, struct ml_memo_stack *stack
) {
    struct ml_memo_stack *expected =
        ml_memo_is_there(memo, stack->next) ? ml_memo_stack_in(pool, stack->next_unit) : NULL;
    memo->last = stack;
    memo->expected = expected;
    if (memo->spread && expected != NULL) {
        const uint8_t *lines = (const uint8_t *)expected;
        __builtin_prefetch(lines);
        __builtin_prefetch(lines + ML_MEMO_LINE_BYTES);
        __builtin_prefetch(lines + 2 * ML_MEMO_LINE_BYTES);
    }
    return stack->node;
}

static inline uint64_t ml_memo_mix(uint64_t x) {
    x *= UINT64_C(0x9e3779b97f4a7c15);
    return x ^ x >> 32;
}

/* Where a search by the index begins. */
static inline uint64_t ml_memo_hash(const struct ml_unwind_entry *entry) {
    return ml_memo_mix(entry->pc ^ ml_memo_mix(entry->sp));
}

static inline struct ml_memo_bucket *ml_memo_bucket_of(struct ml_unwind_memo *memo, uint64_t hash) {
    return memo->large != NULL ? &memo->large[hash & (ML_MEMO_LARGE_BUCKETS - 1)]
                               : &memo->small[hash & (ML_MEMO_SMALL_BUCKETS - 1)];
}

/* The slow half of ml_unwind_memo_find: not the expected stack. */
__attribute__((hot)) uint32_t ml_unwind_memo_search(
    struct ml_unwind_memo *memo,
    const struct ml_memo_pool *pool,
    uint64_t unloads,
    const struct ml_unwind_entry *entry
);

/* The stack at `entry`, if it is the one that came behind the last one the last time; NULL: it is
 * not. `unloads` is the process's, now. */
static inline __attribute__((always_inline)) struct ml_memo_stack *ml_unwind_memo_expected(
    const struct ml_unwind_memo *memo, uint64_t unloads, const struct ml_unwind_entry *entry
) {
    struct ml_memo_stack *stack = memo->expected;
    return __builtin_expect(
               stack != NULL && stack->pc == entry->pc && stack->sp == entry->sp &&
                   memo->unloads == unloads && (stack->fp_matters == 0 || stack->fp == entry->fp) &&
                   ml_memo_compare(stack) == NULL,
               1
           )
               ? stack
               : NULL;
}

/* The node of the stack at `entry`; 0: not known, walk it. */
static inline uint32_t ml_unwind_memo_find(
    struct ml_unwind_memo *memo,
    const struct ml_memo_pool *pool,
    uint64_t unloads,
    const struct ml_unwind_entry *entry
) {
    struct ml_memo_stack *stack = ml_unwind_memo_expected(memo, unloads, entry);
    return stack != NULL ? ml_memo_found(memo, pool, stack)
                         : ml_unwind_memo_search(memo, pool, unloads, entry);
}

/* Expect the successor of the last event's stack, if nothing is expected. */
static inline void
ml_unwind_memo_expect_again(struct ml_unwind_memo *memo, const struct ml_memo_pool *pool) {
    if (memo->last != NULL) {
        (void)ml_memo_found(memo, pool, memo->last);
    }
}

/* Keep the stack that ml_unwind has just left in `thread`, whose innermost frame's node is `node`,
 * after a search that did not find it. A stack is kept when it is seen for the second time. */
void ml_unwind_memo_keep(
    struct ml_unwind_thread *thread,
    struct ml_unwind_process *process,
    const struct ml_unwind_entry *entry,
    uint32_t node
);

/* Forget all. */
static inline void ml_unwind_memo_clear(struct ml_unwind_memo *memo) {
    memo->epoch++;
    memo->alike = NULL;
    memo->last = NULL;
    memo->expected = NULL;
}

#endif
