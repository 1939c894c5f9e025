#include "client/sampling/sampled_set.h"

/* One bucket. */
struct bucket {
    _Atomic uint64_t *tags;
    _Atomic uint64_t *places;
};

static uint64_t buckets_of(uint32_t level) {
    return (uint64_t)1 << (ML_SAMPLED_FIRST_SHIFT + ML_SAMPLED_FAN_SHIFT * level);
}

void ml_sampled_set_begin(struct ml_sampled_set *out_set, void *memory, ml_sampled_more_fn *more) {
    out_set->glances = memory;
    out_set->more = more;
    atomic_store_explicit(
        &out_set->levels[0], (uintptr_t)memory + ML_SAMPLED_GLANCES, memory_order_relaxed
    );
    for (uint32_t level = 1; level < ML_SAMPLED_LEVELS_MAX; level++) {
        atomic_store_explicit(&out_set->levels[level], 0, memory_order_relaxed);
    }
}

/* Where the level begins; 0 or ML_SAMPLED_NO_MEMORY: nowhere. */
static uintptr_t level_at(const struct ml_sampled_set *set, uint32_t level) {
    return atomic_load_explicit(&set->levels[level], memory_order_acquire);
}

/* The same, made if there is none yet. If two threads race, one level is used and the other's
 * memory is wasted. */
static uintptr_t level_for(struct ml_sampled_set *set, uint32_t level) {
    uintptr_t at = level_at(set, level);
    if (at != 0) {
        return at;
    }
    const uint64_t bytes =
        buckets_of(level) * (sizeof(uint64_t) + sizeof(struct ml_sampled_places));
    void *memory = set->more != NULL ? set->more(bytes) : NULL;
    const uintptr_t made = memory != NULL ? (uintptr_t)memory : ML_SAMPLED_NO_MEMORY;
    return atomic_compare_exchange_strong(&set->levels[level], &at, made) ? made : at;
}

static struct bucket bucket_at(uintptr_t level_start, uint32_t level, uint64_t index) {
    _Atomic uint64_t *tags = (_Atomic uint64_t *)level_start;
    struct ml_sampled_places *places =
        (struct ml_sampled_places *)(level_start + buckets_of(level) * sizeof(*tags));
    return (struct bucket){&tags[index], places[index].addresses};
}

static struct bucket bucket_of(uintptr_t level_start, uint64_t hash, uint32_t level) {
    const uint32_t shift = 64 - ML_SAMPLED_FIRST_SHIFT - ML_SAMPLED_FAN_SHIFT * level;
    return bucket_at(level_start, level, hash >> shift);
}

/* The place of the address in the bucket; ML_SAMPLED_PLACES: none. */
static uint32_t place_of(struct bucket bucket, uint64_t tags, uint64_t tag, uint64_t address) {
    uint64_t matches = ml_sampled_matches(tags, tag);
    while (matches != 0) {
        const uint32_t place = (uint32_t)__builtin_ctzll(matches) / 8;
        if (atomic_load_explicit(&bucket.places[place], memory_order_relaxed) == address) {
            return place;
        }
        matches &= matches - 1;
    }
    return ML_SAMPLED_PLACES;
}

bool ml_sampled_set_has(const struct ml_sampled_set *set, uint64_t address) {
    const uint64_t hash = ml_sampled_hash(address);
    const uint64_t tag = ml_sampled_tag(hash);
    for (uint32_t level = 0; level < ML_SAMPLED_LEVELS_MAX; level++) {
        const uintptr_t at = level_at(set, level);
        if (at <= ML_SAMPLED_NO_MEMORY) {
            return at != 0; /* a level that is not made yet holds no address */
        }
        const struct bucket bucket = bucket_of(at, hash, level);
        const uint64_t tags = atomic_load_explicit(bucket.tags, memory_order_relaxed);
        if (place_of(bucket, tags, tag, address) != ML_SAMPLED_PLACES) {
            return true;
        }
        if (tags >> ML_SAMPLED_BELOW_SHIFT == 0) {
            return false;
        }
    }
    return true;
}

/* Claims a free place and sets its tag; ML_SAMPLED_PLACES: none is free, and one more address is
 * counted below. */
static uint32_t take_place(struct bucket bucket, uint64_t tag) {
    uint64_t tags = atomic_load_explicit(bucket.tags, memory_order_relaxed);
    for (;;) {
        const uint64_t free_places = ml_sampled_matches(tags, 0);
        uint32_t place = ML_SAMPLED_PLACES;
        uint64_t wanted = tags;
        if (free_places != 0) {
            place = (uint32_t)__builtin_ctzll(free_places) / 8;
            wanted = tags | tag << 8 * place;
        } else if (tags >> ML_SAMPLED_BELOW_SHIFT != ML_SAMPLED_BELOW_STUCK) {
            wanted = tags + ((uint64_t)1 << ML_SAMPLED_BELOW_SHIFT);
        }
        if (atomic_compare_exchange_weak_explicit(
                bucket.tags, &tags, wanted, memory_order_acq_rel, memory_order_relaxed
            )) {
            return place;
        }
    }
}

/* Adds 1 or -1 to the glance of the address. */
static void glance_count(const struct ml_sampled_set *set, uint64_t address, int change) {
    _Atomic uint8_t *glance = ml_sampled_glance(set, address);
    uint8_t seen = atomic_load_explicit(glance, memory_order_relaxed);
    while (seen != ML_SAMPLED_GLANCE_STUCK &&
           !atomic_compare_exchange_weak_explicit(
               glance, &seen, (uint8_t)(seen + change), memory_order_relaxed, memory_order_relaxed
           )) {
    }
}

void ml_sampled_set_add(struct ml_sampled_set *set, uint64_t address) {
    glance_count(set, address, 1); /* the freeing thread has the address from us, and so sees this
                                      too */
    const uint64_t hash = ml_sampled_hash(address);
    const uint64_t tag = ml_sampled_tag(hash);
    for (uint32_t level = 0; level < ML_SAMPLED_LEVELS_MAX; level++) {
        const uintptr_t at = level_for(set, level);
        if (at == ML_SAMPLED_NO_MEMORY) {
            break;
        }
        const struct bucket bucket = bucket_of(at, hash, level);
        const uint32_t place = take_place(bucket, tag);
        if (place != ML_SAMPLED_PLACES) {
            atomic_store_explicit(&bucket.places[place], address, memory_order_release);
            return;
        }
    }
    /* The counts on the way and the glance stay raised for good, since this address cannot be
     * removed. */
}

/* One less lies below each bucket above `level`. */
static void uncount(const struct ml_sampled_set *set, uint64_t hash, uint32_t level) {
    while (level-- > 0) {
        _Atomic uint64_t *word = bucket_of(level_at(set, level), hash, level).tags;
        uint64_t tags = atomic_load_explicit(word, memory_order_relaxed);
        while (tags >> ML_SAMPLED_BELOW_SHIFT != ML_SAMPLED_BELOW_STUCK &&
               !atomic_compare_exchange_weak_explicit(
                   word,
                   &tags,
                   tags - ((uint64_t)1 << ML_SAMPLED_BELOW_SHIFT),
                   memory_order_acq_rel,
                   memory_order_relaxed
               )) {
        }
    }
}

enum ml_sampled ml_sampled_set_remove(struct ml_sampled_set *set, uint64_t address) {
    const uint64_t hash = ml_sampled_hash(address);
    const uint64_t tag = ml_sampled_tag(hash);
    for (uint32_t level = 0; level < ML_SAMPLED_LEVELS_MAX; level++) {
        const uintptr_t at = level_at(set, level);
        if (at <= ML_SAMPLED_NO_MEMORY) {
            return at == 0 ? ML_SAMPLED_NOT : ML_SAMPLED_MAYBE;
        }
        const struct bucket bucket = bucket_of(at, hash, level);
        const uint64_t tags = atomic_load_explicit(bucket.tags, memory_order_relaxed);
        const uint32_t place = place_of(bucket, tags, tag, address);
        if (place != ML_SAMPLED_PLACES) {
            /* Clear the place first: its next owner must not show this address under its own tag.
             */
            atomic_store_explicit(&bucket.places[place], 0, memory_order_relaxed);
            atomic_fetch_and_explicit(
                bucket.tags, ~(UINT64_C(0xff) << 8 * place), memory_order_release
            );
            uncount(set, hash, level);
            glance_count(set, address, -1);
            return ML_SAMPLED_YES;
        }
        if (tags >> ML_SAMPLED_BELOW_SHIFT == 0) {
            return ML_SAMPLED_NOT;
        }
    }
    return ML_SAMPLED_MAYBE;
}
