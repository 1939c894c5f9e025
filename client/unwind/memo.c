#include "client/unwind/memo.h"

#include <string.h>

#include "client/unwind/internal.h"

enum {
    LAP_MAX = 255,
    UNIT_MASK = (1 << ML_MEMO_LAP_SHIFT) - 1,
    LARGE_BLOCKS = ML_MEMO_LARGE_BUCKETS * sizeof(struct ml_memo_bucket) / ML_MEMO_BLOCK_BYTES
};

static inline uint32_t tag_of(uint64_t hash) {
    return (uint32_t)(hash >> 32) | 1;
}

/* The bucket's stack of that hash; 0: none, or one that is overwritten. */
static uint32_t
look_up(const struct ml_unwind_memo *memo, const struct ml_memo_bucket *bucket, uint64_t hash) {
    for (uint32_t way = 0; way < ML_MEMO_WAYS; way++) {
        if (bucket->tags[way] == tag_of(hash)) {
            return ml_memo_is_there(memo, bucket->stacks[way]) ? bucket->stacks[way] : 0;
        }
    }
    return 0;
}

/* The first of these words in which the stack differs: the word and its place. */
static uint64_t
first_difference(const struct ml_memo_stack *stack, const struct ml_memo_words *words) {
    uint32_t i = 0;
    while (i < ML_MEMO_STRIDE - 1 && ml_memo_differs(stack, words, i) == 0) {
        i++;
    }
    return ml_memo_load(stack, words, i) ^ words->places[i];
}

/* Of all words that lie at the stack's places. */
static uint64_t hash_by_shape(const struct ml_memo_stack *shape, uint64_t seed) {
    uint64_t hash = ~seed;
    for (uint32_t i = 0; i < shape->count; i++) {
        const struct ml_memo_words *words = &shape->words[i];
        hash = ml_memo_mix(
            hash ^ (ml_memo_load(shape, words, 0) + 3 * ml_memo_load(shape, words, 1) +
                    5 * ml_memo_load(shape, words, 2) + 7 * ml_memo_load(shape, words, 3))
        );
    }
    return hash;
}

static bool same_shape(const struct ml_memo_stack *a, const struct ml_memo_stack *b) {
    bool same = a->count == b->count;
    for (uint32_t i = 0; same && i < a->count; i++) {
        same = memcmp(a->words[i].places, b->words[i].places, sizeof(a->words[i].places)) == 0;
    }
    return same;
}

/* Whether all words equal the stack's. */
static bool is_at(
    const struct ml_unwind_memo *memo,
    const struct ml_memo_stack *stack,
    const struct ml_unwind_entry *entry
) {
    return stack->pc == entry->pc && stack->sp == entry->sp && stack->epoch == memo->epoch &&
           (stack->fp_matters == 0 || stack->fp == entry->fp) && ml_memo_compare(stack) == NULL;
}

/* By all words at the places of stack `shape`, which has the same pc and stack pointer; NULL: not
 * there. */
static struct ml_memo_stack *find_by_shape(
    struct ml_unwind_memo *memo,
    const struct ml_memo_pool *pool,
    const struct ml_unwind_entry *entry,
    uint32_t shape,
    uint32_t *out_name
) {
    const uint64_t hash = hash_by_shape(ml_memo_stack_at(memo, pool, shape), ml_memo_hash(entry));
    memo->shape = shape;
    memo->shape_hash = hash;
    const uint32_t name = look_up(memo, ml_memo_bucket_of(memo, hash), hash);
    struct ml_memo_stack *stack = name != 0 ? ml_memo_stack_at(memo, pool, name) : NULL;
    if (stack == NULL || !is_at(memo, stack, entry)) {
        return NULL;
    }
    memo->shape = 0; /* it is there already */
    *out_name = name;
    return stack;
}

/* By the index; NULL: not there. */
static struct ml_memo_stack *find_by_index(
    struct ml_unwind_memo *memo,
    const struct ml_memo_pool *pool,
    const struct ml_unwind_entry *entry,
    uint32_t *out_name
) {
    uint64_t hash = ml_memo_hash(entry);
    uint32_t first = 0; /* that had the same pc and stack pointer, but other words */
    memo->alike = NULL;
    memo->shape = 0;
    for (uint32_t probe = 0; probe < ML_MEMO_PROBES; probe++) {
        memo->hash = hash;
        *out_name = look_up(memo, ml_memo_bucket_of(memo, hash), hash);
        if (*out_name == 0) {
            return NULL;
        }
        struct ml_memo_stack *stack = ml_memo_stack_at(memo, pool, *out_name);
        if (stack->pc != entry->pc || stack->sp != entry->sp || stack->epoch != memo->epoch) {
            return NULL; /* a tag collision, or forgotten: its place is free */
        }
        if (stack->fp_matters != 0 && stack->fp != entry->fp) {
            hash = ml_memo_mix(hash ^ entry->fp);
            continue;
        }
        const struct ml_memo_words *other = ml_memo_compare(stack);
        if (other == NULL) {
            return stack;
        }
        memo->alike = stack;
        memo->alike_count = (uint32_t)(other - stack->words);
        hash = ml_memo_mix(hash ^ first_difference(stack, other));
        first = first != 0 ? first : *out_name;
        if (probe == ML_MEMO_SHAPE_PROBE) {
            struct ml_memo_stack *found = find_by_shape(memo, pool, entry, first, out_name);
            if (found != NULL) {
                return found;
            }
        }
    }
    return NULL;
}

/* The way for that hash in its bucket: its own, a free one, or another's. */
static uint32_t way_of(const struct ml_memo_bucket *bucket, uint64_t hash) {
    const uint32_t tag = tag_of(hash);
    uint32_t free_way = (tag >> 1) % ML_MEMO_WAYS;
    for (uint32_t way = 0; way < ML_MEMO_WAYS; way++) {
        if (bucket->tags[way] == tag) {
            return way;
        }
        if (bucket->tags[way] == 0) {
            free_way = way;
        }
    }
    return free_way;
}

/* A search by another stack's shape did not find this one: enter it so that the next such search
 * does.
 */
static void put_by_shape(
    struct ml_unwind_memo *memo,
    const struct ml_memo_pool *pool,
    const struct ml_memo_stack *stack,
    uint32_t name
) {
    if (!ml_memo_is_there(memo, memo->shape) ||
        !same_shape(stack, ml_memo_stack_at(memo, pool, memo->shape))) {
        return;
    }
    struct ml_memo_bucket *bucket = ml_memo_bucket_of(memo, memo->shape_hash);
    const uint32_t way = way_of(bucket, memo->shape_hash);
    bucket->stacks[way] = name;
    bucket->tags[way] = tag_of(memo->shape_hash);
}

/* Expect that stack after the last event's from now on. */
static void
put_next(struct ml_unwind_memo *memo, struct ml_memo_stack *last, uint32_t name, uint32_t unit) {
    if (ml_memo_is_there(memo, last->next)) {
        last->other = last->next;
        last->other_unit = last->next_unit;
    }
    last->next = name;
    last->next_unit = unit;
}

/* The second expected stack (the earlier successor of the last one), if it matches; else NULL. Not
 * tried with so many stacks that a vain look costs a cache miss. */
static struct ml_memo_stack *find_other(
    struct ml_unwind_memo *memo,
    const struct ml_memo_pool *pool,
    const struct ml_unwind_entry *entry
) {
    struct ml_memo_stack *last = memo->last;
    if (last == NULL || memo->spread || !ml_memo_is_there(memo, last->other)) {
        return NULL;
    }
    struct ml_memo_stack *stack = ml_memo_stack_in(pool, last->other_unit);
    if (!is_at(memo, stack, entry)) {
        return NULL;
    }
    put_next(memo, last, last->other, last->other_unit);
    return stack;
}

__attribute__((noinline)) uint32_t ml_unwind_memo_search(
    struct ml_unwind_memo *memo,
    const struct ml_memo_pool *pool,
    uint64_t unloads,
    const struct ml_unwind_entry *entry
) {
    if (unloads != memo->unloads) {
        ml_unwind_memo_clear(memo);
    }
    struct ml_memo_stack *stack = find_other(memo, pool, entry);
    if (stack != NULL) {
        return ml_memo_found(memo, pool, stack);
    }
    uint32_t name = 0;
    stack = find_by_index(memo, pool, entry, &name);
    if (stack == NULL) {
        return 0;
    }
    memo->alike = NULL;
    if (memo->shape != 0) {
        put_by_shape(memo, pool, stack, name);
    }
    if (memo->last != NULL) {
        put_next(memo, memo->last, name, ml_memo_unit_of(memo, name));
    }
    return ml_memo_found(memo, pool, stack);
}

/* ---- keeping ---- */

/* Where the next inner frame, of recipe `inner`, has stored the frame pointer of `frame`, if a
 * frame further out depends on it; 0: nowhere. */
static uintptr_t stored_fp(const struct ml_unwind_frame *frame, uint64_t inner) {
    const uintptr_t words = ml_recipe_fp_words(inner);
    return words != 0 && (frame->recipe & ML_UNWIND_FRAME_FP_LIVE) != 0
               ? frame->slot + ML_ARCH_WORD_BYTES - words * ML_ARCH_WORD_BYTES
               : 0;
}

/* Number of words that identify this stack; 0: it is not to be kept. */
static uint32_t words_of(const struct ml_unwind_thread *thread, uintptr_t sp) {
    const uint32_t count = thread->count;
    if (thread->ranges.current != 0 || thread->ranges.list[0].hi == 0 || count == 0 ||
        thread->pure != count || thread->skipped != 0 || count > ML_MEMO_WORDS_MAX) {
        return 0;
    }
    uint32_t words = thread->end_slot != 0 ? 1 : 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct ml_unwind_frame *frame = &thread->frames[i];
        if (ml_recipe_module(frame->recipe) == 0) {
            return 0;
        }
        if (i + 1 < count) {
            words += stored_fp(frame, thread->frames[i + 1].recipe) != 0 ? 2 : 1;
        }
    }
    const uintptr_t outermost = thread->end_slot != 0 ? thread->end_slot : thread->frames[0].slot;
    return words <= ML_MEMO_WORDS_MAX && (outermost - sp) / ML_ARCH_WORD_BYTES <= ML_MEMO_PLACE_MAX
               ? words
               : 0;
}

static uint32_t units_of(uint32_t count) {
    const size_t bytes = sizeof(struct ml_memo_stack) + count * sizeof(struct ml_memo_words);
    return (uint32_t)((bytes + ML_MEMO_UNIT_BYTES - 1) / ML_MEMO_UNIT_BYTES);
}

/* So many blocks, one behind the other; false: there are none, or this thread has its share. */
static bool draw(struct ml_memo_pool *pool, uint32_t most, uint32_t blocks, uint32_t *out_first) {
    most = most < pool->blocks_max ? most : pool->blocks_max;
    uint32_t used = atomic_load_explicit(&pool->used, memory_order_relaxed);
    do {
        if (blocks > most || used > most - blocks) {
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(
        &pool->used, &used, used + blocks, memory_order_relaxed, memory_order_relaxed
    ));
    *out_first = used;
    if (pool->take != NULL && !pool->take(blocks, out_first)) {
        (void)atomic_fetch_sub_explicit(&pool->used, blocks, memory_order_relaxed);
        return false;
    }
    return true;
}

/* Another block for the ring. */
static bool add_block(struct ml_unwind_memo *memo, struct ml_memo_pool *pool) {
    const uint32_t most = memo->blocks_count == 0 ? pool->blocks_max : ML_MEMO_SHARED_BLOCKS;
    uint32_t first = 0;
    if (memo->blocks_count == ML_MEMO_BLOCKS || !draw(pool, most, 1, &first)) {
        return false;
    }
    memo->blocks[memo->blocks_count] = (uint16_t)first;
    atomic_signal_fence(memory_order_seq_cst);
    memo->blocks_count++;
    memo->spread = memo->blocks_count > ML_MEMO_SPREAD_BLOCKS;
    if (memo->large == NULL && memo->blocks_count > ML_MEMO_LARGE_FROM_BLOCKS &&
        draw(pool, ML_MEMO_SHARED_BLOCKS, LARGE_BLOCKS, &first)) {
        memo->large = (void *)(pool->blocks + (uint64_t)first * ML_MEMO_BLOCK_BYTES);
    }
    return true;
}

/* Forget everything; laps may be counted from 1 again. */
static void start_over(struct ml_unwind_memo *memo) {
    const uint32_t buckets = memo->large != NULL ? ML_MEMO_LARGE_BUCKETS : ML_MEMO_SMALL_BUCKETS;
    for (uint32_t i = 0; i < buckets; i++) {
        *ml_memo_bucket_of(memo, i) = (struct ml_memo_bucket){0};
    }
    ml_unwind_memo_clear(memo);
    atomic_signal_fence(memory_order_seq_cst);
    memo->head = 0;
    memo->lap = 1;
}

/* Room for so many units in one block; false: there is no block. Old stacks there are forgotten
 * before they are overwritten. After each store no stack can be found that may be half overwritten:
 * a signal handler may leave by longjmp anywhere. */
static bool make_room(
    struct ml_unwind_memo *memo, struct ml_memo_pool *pool, uint32_t units, uint32_t *out_unit
) {
    const uint32_t left = ML_MEMO_BLOCK_UNITS - memo->head % ML_MEMO_BLOCK_UNITS;
    uint32_t head = left < units ? memo->head + left : memo->head;
    if (head == memo->blocks_count * ML_MEMO_BLOCK_UNITS &&
        (memo->lap > 1 || !add_block(memo, pool))) {
        if (memo->blocks_count == 0) {
            return false;
        }
        head = 0;
        if (memo->lap == LAP_MAX) {
            start_over(memo);
        } else {
            memo->lap++;
            atomic_signal_fence(memory_order_seq_cst);
            memo->head = 0;
        }
    } else if (memo->lap == 0) {
        memo->lap = 1;
    }
    *out_unit = head;
    memo->head = head + units;
    atomic_signal_fence(memory_order_seq_cst);
    return true;
}

/* The stack's next word: what `slot` holds. */
static void put_word(struct ml_memo_stack *kept, uint32_t *at, uintptr_t slot, uint64_t value) {
    struct ml_memo_words *words = &kept->words[*at / ML_MEMO_STRIDE];
    words->held[*at % ML_MEMO_STRIDE] = value;
    words->places[*at % ML_MEMO_STRIDE] = (uint16_t)((slot - kept->sp) / ML_ARCH_WORD_BYTES);
    (*at)++;
}

/* Write the words, the innermost first; the last one again where there is room behind it. */
static void fill(struct ml_memo_stack *kept, const struct ml_unwind_thread *thread) {
    uint32_t at = 0;
    for (uint32_t i = thread->count - 1; i-- > 0;) {
        const struct ml_unwind_frame *frame = &thread->frames[i];
        put_word(kept, &at, frame->slot, frame->pc);
        const uintptr_t fp = stored_fp(frame, thread->frames[i + 1].recipe);
        if (fp != 0) {
            put_word(kept, &at, fp, frame->fp);
        }
    }
    if (thread->end_slot != 0) {
        put_word(kept, &at, thread->end_slot, 0);
    }
    struct ml_memo_words *words = &kept->words[at / ML_MEMO_STRIDE];
    for (; at % ML_MEMO_STRIDE != 0; at++) {
        words->held[at % ML_MEMO_STRIDE] = words->held[(at - 1) % ML_MEMO_STRIDE];
        words->places[at % ML_MEMO_STRIDE] = words->places[(at - 1) % ML_MEMO_STRIDE];
    }
}

/* The way where the last search ended, if its stack was seen before; a new one is noted as seen. */
static uint32_t *seen_way(struct ml_unwind_memo *memo) {
    struct ml_memo_bucket *bucket = ml_memo_bucket_of(memo, memo->hash);
    const uint32_t way = way_of(bucket, memo->hash);
    if (bucket->tags[way] == tag_of(memo->hash)) {
        return &bucket->stacks[way];
    }
    bucket->stacks[way] = 0;
    bucket->tags[way] = tag_of(memo->hash);
    return NULL;
}

void ml_unwind_memo_keep(
    struct ml_unwind_thread *thread,
    struct ml_unwind_process *process,
    const struct ml_unwind_entry *entry,
    uint32_t node
) {
    struct ml_unwind_memo *memo = &thread->memo;
    memo->last = NULL;
    memo->expected = NULL;
    uint32_t *way = seen_way(memo);
    const uint32_t words = way == NULL ? 0 : words_of(thread, entry->sp);
    const uint32_t count = (words + ML_MEMO_STRIDE - 1) / ML_MEMO_STRIDE;
    uint32_t unit = 0;
    if (words == 0 || !ml_unwind_unloads_rest(thread->unloads) ||
        atomic_load_explicit(&process->unloads, memory_order_relaxed) != thread->unloads ||
        !make_room(memo, &process->memos, units_of(count), &unit)) {
        return;
    }
    if (memo->unloads != thread->unloads) {
        ml_unwind_memo_clear(memo);
        memo->unloads = thread->unloads;
    }
    struct ml_memo_stack *kept = ml_memo_stack_at(memo, &process->memos, unit);
    /* A half-written stack must not be found. */
    kept->pc = 0;
    atomic_signal_fence(memory_order_seq_cst);
    kept->sp = entry->sp;
    kept->fp = entry->fp;
    kept->epoch = memo->epoch;
    kept->node = node;
    kept->next = 0;
    kept->other = 0;
    kept->count = count;
    kept->fp_matters =
        (thread->frames[thread->count - 1].recipe & ML_UNWIND_FRAME_FP_LIVE) != 0 ? 1 : 0;
    fill(kept, thread);
    atomic_signal_fence(memory_order_seq_cst);
    kept->pc = entry->pc;
    memo->last = kept;
    const uint32_t name = memo->lap << ML_MEMO_LAP_SHIFT | unit;
    *way = name;
    if (memo->shape != 0) {
        put_by_shape(memo, &process->memos, kept, name);
    }
}
