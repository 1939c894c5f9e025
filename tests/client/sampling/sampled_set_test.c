#include "client/sampling/sampled_set.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "tests/suite.h"

static struct ml_sampled_set set;
static void *memories[64]; /* what it was given */
static _Atomic uint32_t memories_count;
static uint32_t levels_left;

static void *zeros(uint64_t count_bytes) {
    void *memory = aligned_alloc(64, count_bytes);
    ck_assert_ptr_nonnull(memory);
    memset(memory, 0, count_bytes);
    const uint32_t at = atomic_fetch_add(&memories_count, 1);
    ck_assert_uint_lt(at, sizeof(memories) / sizeof(memories[0]));
    memories[at] = memory;
    return memory;
}

static void *one_level_more(uint64_t count_bytes) {
    if (levels_left == 0) {
        return NULL;
    }
    levels_left--;
    return zeros(count_bytes);
}

/* A set of so many levels at most. */
static void begin(uint32_t levels) {
    levels_left = levels - 1;
    ml_sampled_set_begin(&set, zeros(ML_SAMPLED_FIRST_BYTES), one_level_more);
}

static void end(void) {
    for (uint32_t i = 0; i < memories_count; i++) {
        free(memories[i]);
    }
    memories_count = 0;
}

static uint64_t random_state = 1;

static uint64_t next(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* As an allocator's are: near each other, 16 bytes apart. */
static uint64_t address_of(uint64_t index) {
    return UINT64_C(0x7f3000000000) + index * 16;
}

/* Addresses in a bucket and below it. `wrong` counts the buckets whose count is stuck, or is not
 * that of what lies below. */
static uint64_t count_from(uint32_t level, uint64_t index, uint64_t *wrong) {
    const uint64_t buckets = UINT64_C(1) << (ML_SAMPLED_FIRST_SHIFT + ML_SAMPLED_FAN_SHIFT * level);
    const uintptr_t at = atomic_load(&set.levels[level]);
    uint64_t below = 0;
    uint64_t used = 0;
    if (at <= ML_SAMPLED_NO_MEMORY) {
        return 0;
    }
    ck_assert_uint_lt(index, buckets);
    const uint64_t tags = atomic_load((_Atomic uint64_t *)at + index);
    for (uint64_t i = 0; level + 1 < ML_SAMPLED_LEVELS_MAX && i < ML_SAMPLED_FAN; i++) {
        below += count_from(level + 1, index * ML_SAMPLED_FAN + i, wrong);
    }
    for (uint32_t place = 0; place < ML_SAMPLED_PLACES; place++) {
        used += (tags >> 8 * place & 0xff) != 0;
    }
    *wrong += tags >> ML_SAMPLED_BELOW_SHIFT != below;
    return below + used;
}

/* The addresses in the set, by its tree and by its glances. */
static void count_all(uint64_t *out_addresses, uint64_t *out_wrong_counts) {
    uint64_t glances = 0;
    *out_addresses = 0;
    *out_wrong_counts = 0;
    for (uint64_t i = 0; i < (uint64_t)1 << ML_SAMPLED_FIRST_SHIFT; i++) {
        *out_addresses += count_from(0, i, out_wrong_counts);
    }
    for (uint64_t i = 0; i < ML_SAMPLED_GLANCES; i++) {
        glances += atomic_load(&set.glances[i]);
    }
    *out_wrong_counts += glances != *out_addresses;
}

static void holds(uint64_t addresses) {
    uint64_t found = 0;
    uint64_t wrong = 0;
    count_all(&found, &wrong);
    ck_assert_uint_eq(found, addresses);
    ck_assert_uint_eq(wrong, 0);
}

START_TEST(memory_of_zeros_is_an_empty_set) {
    begin(3);
    for (uint64_t i = 0; i < 100000; i++) {
        ck_assert(!ml_sampled_set_has(&set, address_of(i)));
        ck_assert_int_eq(ml_sampled_set_remove(&set, address_of(i)), ML_SAMPLED_NOT);
    }
    holds(0);
    end();
}
END_TEST

/* Against a plain table, through all levels. */
START_TEST(it_says_yes_to_what_is_in_it_and_to_nothing_else) {
    enum { ADDRESSES = 1 << 17 };
    bool *in = calloc(ADDRESSES, sizeof(*in));
    uint64_t count = 0;
    ck_assert_ptr_nonnull(in);
    begin(4);
    for (uint64_t step = 0; step < FEWER_IF_SANITIZED(1500000); step++) {
        const uint64_t index = next() % ADDRESSES;
        ck_assert_int_eq(ml_sampled_set_has(&set, address_of(index)), in[index]);
        ck_assert(!in[index] || ml_sampled_set_may_have(&set, address_of(index)));
        if (in[index]) {
            ck_assert_int_eq(ml_sampled_set_remove(&set, address_of(index)), ML_SAMPLED_YES);
            ck_assert(!ml_sampled_set_has(&set, address_of(index)));
        } else {
            ml_sampled_set_add(&set, address_of(index));
        }
        count += in[index] ? (uint64_t)-1 : 1;
        in[index] = !in[index];
    }
    ck_assert_uint_gt(count, 50000);
    for (uint64_t i = 0; i < ADDRESSES; i++) {
        ck_assert_int_eq(ml_sampled_set_has(&set, address_of(i)), in[i]);
        if (in[i]) {
            ck_assert_int_eq(ml_sampled_set_remove(&set, address_of(i)), ML_SAMPLED_YES);
        }
    }
    /* Counts that were driven up to their end stay there; nothing else is left. */
    uint64_t found = 0;
    uint64_t wrong = 0;
    count_all(&found, &wrong);
    ck_assert_uint_eq(found, 0);
    free(in);
    end();
}
END_TEST

START_TEST(what_found_no_room_is_answered_with_maybe_for_ever) {
    enum { ADDRESSES = 100000 }; /* one level has room for 14,336 */
    begin(1);
    for (uint64_t i = 0; i < ADDRESSES; i++) {
        ml_sampled_set_add(&set, address_of(i));
    }
    uint64_t maybe = 0;
    for (uint64_t i = 0; i < ADDRESSES; i++) {
        ck_assert(ml_sampled_set_has(&set, address_of(i)));
        const enum ml_sampled answer = ml_sampled_set_remove(&set, address_of(i));
        ck_assert_int_ne(answer, ML_SAMPLED_NOT);
        maybe += answer == ML_SAMPLED_MAYBE;
    }
    ck_assert_uint_eq(maybe, ADDRESSES - ML_SAMPLED_PLACES * (1 << ML_SAMPLED_FIRST_SHIFT));
    uint64_t found = 0;
    uint64_t wrong = 0;
    count_all(&found, &wrong);
    ck_assert_uint_eq(found, 0);
    end();
}
END_TEST

static const uint64_t *first_tags(void) {
    return (const uint64_t *)atomic_load(&set.levels[0]);
}

START_TEST(levels_come_when_they_are_needed) {
    begin(3);
    for (uint64_t i = 0; i < 1000; i++) {
        ml_sampled_set_add(&set, address_of(i));
    }
    ck_assert_uint_eq(memories_count, 1);
    for (uint64_t i = 1000; i < 30000; i++) {
        ml_sampled_set_add(&set, address_of(i));
    }
    ck_assert_uint_eq(memories_count, 2);
    holds(30000);
    end();
}
END_TEST

/* Memory that was refused once is not asked for again: what came meanwhile is not in it. */
START_TEST(a_level_that_was_refused_never_comes) {
    begin(1);
    for (uint64_t i = 0; i < 30000; i++) {
        ml_sampled_set_add(&set, address_of(i));
    }
    levels_left = 3;
    for (uint64_t i = 30000; i < 60000; i++) {
        ml_sampled_set_add(&set, address_of(i));
    }
    for (uint64_t i = 0; i < 60000; i++) {
        ck_assert(ml_sampled_set_has(&set, address_of(i)));
    }
    ck_assert_uint_eq(memories_count, 1);
    end();
}
END_TEST

START_TEST(a_few_thousand_blocks_are_looked_up_on_the_first_level_alone) {
    begin(2);
    for (uint64_t i = 0; i < 2000; i++) {
        ml_sampled_set_add(&set, address_of(next() >> 24));
    }
    uint64_t below = 0;
    for (uint64_t i = 0; i < (uint64_t)1 << ML_SAMPLED_FIRST_SHIFT; i++) {
        below += first_tags()[i] >> ML_SAMPLED_BELOW_SHIFT;
    }
    ck_assert_uint_lt(below, 20);
    end();
}
END_TEST

/* ---- threads: each allocates, and frees what another has allocated */

enum { THREADS = 4, ROUNDS = FEWER_IF_SANITIZED(40000), HELD = 3000 };

/* An address handed from the thread that added it to whoever comes next; 0: nothing. */
static _Atomic uint64_t handed[THREADS * 16];

struct worker {
    pthread_t thread;
    uint64_t number, state, missed, invented;
};

static uint64_t pick(struct worker *worker) {
    worker->state ^= worker->state << 13;
    worker->state ^= worker->state >> 7;
    worker->state ^= worker->state << 17;
    return worker->state;
}

static void take_out(struct worker *worker, uint64_t address) {
    worker->missed += !ml_sampled_set_has(&set, address);
    worker->missed += ml_sampled_set_remove(&set, address) != ML_SAMPLED_YES;
    worker->invented += ml_sampled_set_has(&set, address);
}

static void *work(void *argument) {
    struct worker *worker = argument;
    uint64_t *own = calloc(HELD, sizeof(*own));
    uint64_t fresh = worker->number << 32;
    for (uint64_t round = 0; own != NULL && round < ROUNDS; round++) {
        uint64_t *held = &own[pick(worker) % HELD];
        if (*held != 0 && pick(worker) % 2 == 0) {
            *held = atomic_exchange(&handed[pick(worker) % (THREADS * 16)], *held);
        }
        if (*held != 0) {
            take_out(worker, *held);
            *held = 0;
        } else {
            *held = address_of(fresh++);
            ml_sampled_set_add(&set, *held);
        }
        worker->invented +=
            ml_sampled_set_has(&set, address_of((worker->number << 32) - 1 - round));
    }
    for (size_t i = 0; own != NULL && i < HELD; i++) {
        if (own[i] != 0) {
            take_out(worker, own[i]);
        }
    }
    free(own);
    return NULL;
}

START_TEST(threads_that_hand_blocks_to_each_other_never_miss_one) {
    struct worker workers[THREADS];
    levels_left = UINT32_MAX; /* threads that meet take one more */
    ml_sampled_set_begin(&set, zeros(ML_SAMPLED_FIRST_BYTES), zeros);
    for (uint64_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.number = i + 1, .state = i + 99};
        ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (uint64_t i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_join(workers[i].thread, NULL), 0);
        ck_assert_uint_eq(workers[i].missed, 0);
        ck_assert_uint_eq(workers[i].invented, 0);
    }
    for (size_t i = 0; i < THREADS * 16; i++) {
        if (atomic_load(&handed[i]) != 0) {
            ck_assert_int_eq(ml_sampled_set_remove(&set, handed[i]), ML_SAMPLED_YES);
        }
    }
    holds(0);
    end();
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("sampled_set");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, memory_of_zeros_is_an_empty_set);
    tcase_add_test(tcase, it_says_yes_to_what_is_in_it_and_to_nothing_else);
    tcase_add_test(tcase, what_found_no_room_is_answered_with_maybe_for_ever);
    tcase_add_test(tcase, levels_come_when_they_are_needed);
    tcase_add_test(tcase, a_level_that_was_refused_never_comes);
    tcase_add_test(tcase, a_few_thousand_blocks_are_looked_up_on_the_first_level_alone);
    tcase_add_test(tcase, threads_that_hand_blocks_to_each_other_never_miss_one);
    return run_suite("client/sampled_set", tcase);
}
