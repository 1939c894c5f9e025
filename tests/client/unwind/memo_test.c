#include <string.h>

#include <check.h>

#include "tests/client/unwind/oracle.h"
#include "tests/client/unwind/tree.h"
#include "tests/suite.h"

enum { SETS_PURE = 0xf, SETS_ALL = 0x1f, DEPTH = 15, SETTLED = 12 };

static void probe(void *context) {
    ml_oracle_probe(context);
    __asm__ volatile("" ::: "memory");
}

/* The same tree of calls each time for the same seed. */
static void run_tree(struct ml_oracle *oracle, uint64_t seed) {
    struct ml_unwind_tree tree = {
        .random = seed * UINT64_C(0x9e3779b97f4a7c15) | 1,
        .depth_max = DEPTH,
        .calls_left = 300,
        .probe = probe,
        .context = oracle,
    };
    (void)ml_tree_descend(&tree, 0);
}

static void assert_right(const struct ml_oracle *oracle) {
    ck_assert_uint_eq(
        oracle->wrong + oracle->wrong_nodes + oracle->wrong_memo + oracle->wrong_library, 0
    );
    ck_assert(ml_oracle_memo_holds(&oracle->thread->memo, oracle->process));
}

/* Events of one more run of the tree, and how many of them the memo knew. One place to call it
 * from: another would be another stack. */
__attribute__((noinline)) static uint64_t
hits_of(struct ml_oracle *oracle, uint64_t seed, uint64_t *out_events) {
    const uint64_t events = oracle->events;
    const uint64_t hits = oracle->memo_hits;
    run_tree(oracle, seed);
    *out_events = oracle->events - events;
    return oracle->memo_hits - hits;
}

enum { GROUPS = 2, WORDS = GROUPS * ML_MEMO_STRIDE };

/* A stack of some words, as it is kept. */
struct kept {
    uint64_t words[WORDS];
    _Alignas(struct ml_memo_stack
    ) uint8_t memory[sizeof(struct ml_memo_stack) + GROUPS * sizeof(struct ml_memo_words)];
};

static struct ml_memo_stack *keep_words(struct kept *kept) {
    struct ml_memo_stack *stack = (struct ml_memo_stack *)(void *)kept->memory;
    for (uint32_t i = 0; i + 1 < WORDS; i++) {
        kept->words[i] = UINT64_C(0x7f0123456789) + i * UINT64_C(0x1000010001);
    }
    kept->words[WORDS - 1] = 0;
    *stack = (struct ml_memo_stack){.sp = (uintptr_t)kept->words, .count = GROUPS};
    for (uint32_t i = 0; i < WORDS; i++) {
        struct ml_memo_words *words = &stack->words[i / ML_MEMO_STRIDE];
        words->held[i % ML_MEMO_STRIDE] = kept->words[i];
        words->places[i % ML_MEMO_STRIDE] = (uint16_t)i;
    }
    return stack;
}

START_TEST(sees_each_bit_of_each_word) {
    struct kept kept;
    const struct ml_memo_stack *stack = keep_words(&kept);
    ck_assert_ptr_null(ml_memo_compare(stack));
    for (uint32_t i = 0; i < WORDS; i++) {
        for (uint32_t bit = 0; bit < 64; bit++) {
            kept.words[i] ^= UINT64_C(1) << bit;
            ck_assert_ptr_eq(ml_memo_compare(stack), &stack->words[i / ML_MEMO_STRIDE]);
            kept.words[i] ^= UINT64_C(1) << bit;
        }
    }
    ck_assert_ptr_null(ml_memo_compare(stack));
}
END_TEST

/* What sums, parities and lower halves would take for the same: words that are off by amounts which
 * cancel each other out, and words that have changed places. */
START_TEST(sees_differences_that_make_up_for_each_other) {
    struct kept kept;
    const struct ml_memo_stack *stack = keep_words(&kept);
    for (uint32_t a = 0; a < WORDS; a++) {
        for (uint32_t b = 0; b < WORDS; b++) {
            for (uint32_t bit = 0; bit < 64 && a != b; bit++) {
                const uint64_t was[2] = {kept.words[a], kept.words[b]};
                kept.words[a] += UINT64_C(1) << bit;
                kept.words[b] -= UINT64_C(1) << bit;
                ck_assert_ptr_nonnull(ml_memo_compare(stack));
                kept.words[a] = was[0] ^ UINT64_C(1) << bit;
                kept.words[b] = was[1] ^ UINT64_C(1) << bit;
                ck_assert_ptr_nonnull(ml_memo_compare(stack));
                kept.words[a] = was[1];
                kept.words[b] = was[0];
                ck_assert_ptr_nonnull(ml_memo_compare(stack));
                /* The upper halves alone. */
                kept.words[a] = (was[1] >> 32 << 32) | (uint32_t)was[0];
                kept.words[b] = (was[0] >> 32 << 32) | (uint32_t)was[1];
                ck_assert(kept.words[a] == was[0] || ml_memo_compare(stack) != NULL);
                kept.words[a] = was[0];
                kept.words[b] = was[1];
            }
        }
    }
    ck_assert_ptr_null(ml_memo_compare(stack));
}
END_TEST

START_TEST(knows_a_stack_when_it_comes_for_the_third_time) {
    struct ml_oracle *oracle = ml_oracle_new(NULL, 50);
    uint64_t events = 0;
    uint64_t hits = 0;
    ml_tree_use(SETS_PURE);
    /* Stacks of one pc and stack pointer take some rounds more to be told apart. */
    for (int i = 0; i < SETTLED; i++) {
        hits = hits_of(oracle, 7, &events);
    }
    ck_assert_uint_gt(events, 50);
    ck_assert_uint_eq(hits, events);
    assert_right(oracle);
}
END_TEST

START_TEST(says_what_a_walk_says_for_stacks_that_are_alike) {
    struct ml_oracle *oracle = ml_oracle_new(NULL, 97);
    ml_tree_use(SETS_ALL);
    for (uint64_t round = 0; round < 30; round++) {
        for (uint64_t seed = 1; seed < 8; seed++) {
            run_tree(oracle, seed);
        }
    }
    assert_right(oracle);
    ck_assert_uint_gt(oracle->memo_hits, oracle->events / 4);
    ck_assert_uint_lt(oracle->memo_hits, oracle->events);
}
END_TEST

/* With room for a few hundred stacks and thousands of them, often enough for the count of laps to
 * begin anew. */
START_TEST(stays_right_while_the_ring_goes_round) {
    struct ml_oracle *oracle = ml_oracle_new(NULL, 0);
    uint32_t laps = 0;
    bool began_anew = false;
    oracle->process->memos.blocks_max = 2;
    ml_tree_use(SETS_PURE);
    for (uint64_t round = 0; round < 400 && !began_anew; round++) {
        for (uint64_t seed = 1; seed < 30; seed++) {
            run_tree(oracle, seed);
            run_tree(oracle, seed);
            run_tree(oracle, seed);
            began_anew |= oracle->thread->memo.lap < laps;
            laps = oracle->thread->memo.lap;
        }
    }
    ck_assert(began_anew);
    ck_assert_uint_eq(oracle->process->memos.used, 2);
    ck_assert_uint_gt(oracle->memo_hits, 1000);
    assert_right(oracle);
}
END_TEST

START_TEST(without_blocks_nothing_is_kept_and_nothing_is_wrong) {
    struct ml_oracle *oracle = ml_oracle_new(NULL, 0);
    oracle->process->memos.blocks_max = 0;
    ml_tree_use(SETS_PURE);
    for (int i = 0; i < 5; i++) {
        run_tree(oracle, 3);
    }
    ck_assert_uint_eq(oracle->memo_hits, 0);
    assert_right(oracle);
}
END_TEST

/* All hits, then none of the stacks is known, then all again; a tree repeats some of its stacks. */
START_TEST(forgets_when_told_and_when_a_library_is_closed) {
    enum { CLEARED = SETTLED, CLOSING = 2 * SETTLED, CLOSED, ROUNDS = 3 * SETTLED };
    struct ml_oracle *oracle = ml_oracle_new(NULL, 0);
    uint64_t hits[ROUNDS];
    uint64_t events = 0;
    ml_tree_use(SETS_PURE);
    for (int round = 0; round < ROUNDS; round++) {
        if (round == CLEARED) {
            ml_unwind_thread_clear(oracle->thread);
        } else if (round == CLOSING) {
            ml_unwind_unload_begin(oracle->process);
        } else if (round == CLOSED) {
            ml_unwind_unload_end(oracle->process, NULL, NULL);
        }
        hits[round] = hits_of(oracle, 5, &events);
    }
    ck_assert_uint_eq(hits[CLEARED - 1], events);
    ck_assert_uint_lt(hits[CLEARED], events / 2);
    ck_assert_uint_eq(hits[CLOSING - 1], events);
    ck_assert_uint_eq(hits[CLOSING], 0);
    ck_assert_uint_lt(hits[CLOSED], events / 2);
    ck_assert_uint_eq(hits[ROUNDS - 1], events);
    assert_right(oracle);
}
END_TEST

/* Without the index a stack is found by the one before it alone: both of the two that came behind
 * that one last, in turns. */
START_TEST(knows_two_stacks_that_come_behind_one_in_turns) {
    struct ml_oracle *oracle = ml_oracle_new(NULL, 0);
    struct ml_unwind_memo *memo = &oracle->thread->memo;
    const uint64_t seeds[] = {5, 6, 5, 7};
    uint64_t hits = 0;
    uint64_t all = 0;
    ml_tree_use(SETS_PURE);
    for (int round = 0; round <= SETTLED; round++) {
        if (round == SETTLED) {
            memo->spread = false; /* a large one has only one guess */
            memset(memo->small, 0, sizeof(memo->small));
            ck_assert_ptr_nonnull(memo->large);
            memset(memo->large, 0, ML_MEMO_LARGE_BUCKETS * sizeof(*memo->large));
        }
        hits = 0;
        all = 0;
        for (uint32_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++) {
            uint64_t events = 0;
            hits += hits_of(oracle, seeds[i], &events);
            all += events;
        }
    }
    ck_assert_uint_gt(hits, all / 2); /* by one alone it would be a fifth */
    assert_right(oracle);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("memo");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, sees_each_bit_of_each_word);
    tcase_add_test(tcase, sees_differences_that_make_up_for_each_other);
    tcase_add_test(tcase, knows_a_stack_when_it_comes_for_the_third_time);
    tcase_add_test(tcase, says_what_a_walk_says_for_stacks_that_are_alike);
    tcase_add_test(tcase, stays_right_while_the_ring_goes_round);
    tcase_add_test(tcase, without_blocks_nothing_is_kept_and_nothing_is_wrong);
    tcase_add_test(tcase, forgets_when_told_and_when_a_library_is_closed);
    tcase_add_test(tcase, knows_two_stacks_that_come_behind_one_in_turns);
    return run_suite("client/unwind_memo", tcase);
}
