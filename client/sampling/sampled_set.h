/* The addresses of the sampled blocks: frees of all others are not recorded. Room: client
 * (private). Context: the malloc path of every thread, signal handlers.
 *
 * One rule: no thread waits for another. An address enters after the real alloc has returned it and
 * leaves before the real free, so no two threads work on the same one.
 *
 * A tree of hashed buckets. Their tags lie together, eight buckets on a cache line, since a look-up
 * nearly always needs only these; the addresses lie elsewhere. A full bucket sends further
 * addresses to one of the ML_SAMPLED_FAN buckets below it on the next level, and counts them. A
 * look-up that finds neither its tag nor a count is done after one load. The set has no false
 * negatives: where even the last level is full it says yes to every address that may have belonged
 * there.
 *
 * In front of the tree is a counting filter, the glances: a byte for each 16 bytes of address
 * modulo 1 MiB counts the addresses in the set there. Nearly every free reads nothing else.
 * Neighbouring blocks share its cache lines, so it takes a sixteenth of the cache that the blocks
 * take.
 *
 * All zero is empty: the set lies in the arena, so a forked child's is. */
#ifndef MEMLOG_CLIENT_SAMPLING_SAMPLED_SET_H
#define MEMLOG_CLIENT_SAMPLING_SAMPLED_SET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ML_SAMPLED_PLACES = 7,
    ML_SAMPLED_FIRST_SHIFT = 11, /* log2 of level 0's buckets: half full at 7,000 blocks; 16 KiB of
                                    tags, which stay in a core's first cache */
    ML_SAMPLED_FAN_SHIFT = 3,
    ML_SAMPLED_FAN = 1 << ML_SAMPLED_FAN_SHIFT,
    ML_SAMPLED_LEVELS_MAX = 4, /* 8 million blocks, 75 MiB; levels come when they are needed */
    ML_SAMPLED_NO_MEMORY = 1,  /* in place of a level: no memory, never retried */
    ML_SAMPLED_GLANCE_SHIFT = 16,
    ML_SAMPLED_GLANCES = 1 << ML_SAMPLED_GLANCE_SHIFT, /* 64 KiB */
    ML_SAMPLED_GRAIN_SHIFT = 4,                        /* blocks are 16 bytes apart */
    ML_SAMPLED_GLANCE_STUCK = 255,                     /* as ML_SAMPLED_BELOW_STUCK */
    ML_SAMPLED_BELOW_SHIFT = 56,
    ML_SAMPLED_BELOW_STUCK = 255 /* a saturated count, never changed again */
};

struct ml_sampled_places {
    _Atomic uint64_t addresses[ML_SAMPLED_PLACES]; /* 0 while its tag is being set or taken away */
};

/* Memory for a level, all 0 and aligned to 64; NULL: there is none. */
typedef void *ml_sampled_more_fn(uint64_t count_bytes);

struct ml_sampled_set {
    _Atomic uint8_t *glances; /* [ML_SAMPLED_GLANCES] */
    /* Where each level's buckets begin: first the tags of all, then the places of all. 0: level not
     * made yet. Of a bucket's tags bytes 0..6 are a tag of the address at that place, 0: the place
     * is free; byte 7 is how many addresses of this bucket lie below it. */
    _Atomic uintptr_t levels[ML_SAMPLED_LEVELS_MAX];
    ml_sampled_more_fn *more; /* NULL: there is none */
};

/* The hash of an address: its top bits select buckets; the tag is made of bits that no level uses.
 */
static inline uint64_t ml_sampled_hash(uint64_t address) {
    return address * UINT64_C(0x9e3779b97f4a7c15);
}

static inline uint64_t ml_sampled_tag(uint64_t hash) {
    return (hash >> 34 & 0xff) | 1;
}

/* Not 0 where one of the seven tags may be `tag` (a place above a true one may be named too). */
static inline uint64_t ml_sampled_matches(uint64_t tags, uint64_t tag) {
    const uint64_t ones = UINT64_C(0x0001010101010101);
    const uint64_t differ = tags ^ tag * ones;
    return (differ - ones) & ~differ & ones << 7;
}

enum {
    ML_SAMPLED_FIRST_BYTES =
        ML_SAMPLED_GLANCES +
        (1 << ML_SAMPLED_FIRST_SHIFT) * (sizeof(uint64_t) + sizeof(struct ml_sampled_places))
};

/* Make *out_set an empty one in ML_SAMPLED_FIRST_BYTES, all 0 and aligned to 64: the glances and
 * the first level. `more` gives what the others lie in. */
void ml_sampled_set_begin(struct ml_sampled_set *out_set, void *memory, ml_sampled_more_fn *more);

/* Whether the address is in it; true also when that is unknown. */
bool ml_sampled_set_has(const struct ml_sampled_set *set, uint64_t address);

static inline _Atomic uint8_t *
ml_sampled_glance(const struct ml_sampled_set *set, uint64_t address) {
    return &set->glances[address >> ML_SAMPLED_GRAIN_SHIFT & (ML_SAMPLED_GLANCES - 1)];
}

/* The first load of that. False: it is not in it; true: unknown. */
static inline bool ml_sampled_set_may_have(const struct ml_sampled_set *set, uint64_t address) {
    /* A relaxed load and a test, for which compilers take two instructions. */
    bool is_counted = false;
    __asm__("cmpb $0, %1" : "=@ccne"(is_counted) : "m"(*ml_sampled_glance(set, address)));
    return is_counted;
}

/* Add an address that is not in it. Without room ml_sampled_set_has says yes to it from now on
 * too. */
void ml_sampled_set_add(struct ml_sampled_set *set, uint64_t address);

enum ml_sampled {
    ML_SAMPLED_NOT = 0,
    ML_SAMPLED_YES = 1,  /* it was in it */
    ML_SAMPLED_MAYBE = 2 /* there was no room for it, if it came */
};

/* Take an address out. */
enum ml_sampled ml_sampled_set_remove(struct ml_sampled_set *set, uint64_t address);

#endif
