#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>

#include <check.h>

#include "tests/client/unwind/oracle.h"
#include "tests/client/unwind/tree.h"
#include "tests/suite.h"

enum { SETS_PURE = 0xf, SETS_ALL = 0x1f, EVENTS = 150000 };

static void probe(void *context) {
    ml_oracle_probe(context);
    __asm__ volatile("" ::: "memory");
}

static struct ml_unwind_tree tree_make(struct ml_oracle *oracle, uint64_t seed, uint32_t depth) {
    return (struct ml_unwind_tree){
        .random = seed * UINT64_C(0x9e3779b97f4a7c15) | 1,
        .depth_max = depth,
        .calls_left = 2000,
        .probe = probe,
        .context = oracle,
    };
}

/* Random trees until the oracle has seen so many events. */
static void run_trees(struct ml_oracle *oracle, uint64_t seed, uint32_t depth, uint64_t events) {
    while (oracle->events < events) {
        struct ml_unwind_tree tree = tree_make(oracle, ++seed, depth);
        (void)ml_tree_descend(&tree, 0);
    }
}

static void assert_right(const struct ml_oracle *oracle) {
    ck_assert_uint_gt(oracle->events, 0);
    ck_assert_uint_eq(oracle->wrong, 0);
    ck_assert_uint_eq(oracle->wrong_nodes, 0);
    ck_assert_uint_eq(oracle->wrong_memo, 0);
    ck_assert_uint_eq(oracle->wrong_library, 0);
}

START_TEST(walks_random_trees_as_the_tables_and_libunwind_do) {
    struct ml_oracle *oracle = ml_oracle_new(NULL, 97);
    ml_tree_use(SETS_PURE);
    run_trees(oracle, 1, 40, EVENTS);
    assert_right(oracle);
    ck_assert_uint_gt(oracle->library_checked, 1000);
    ck_assert_uint_eq(oracle->full, 0);
    ck_assert_uint_eq(oracle->broken, 0);
    ck_assert_uint_gt(oracle->kept_frames, oracle->all_frames / 2);
    ml_oracle_free(oracle);
}
END_TEST

START_TEST(walks_realigned_frames_by_all_registers) {
    struct ml_oracle *oracle = ml_oracle_new(NULL, 97);
    ml_tree_use(SETS_ALL);
    run_trees(oracle, 1000000, 40, EVENTS / 3);
    assert_right(oracle);
#ifndef __clang__ /* which finds all its frames by rbp */
    ck_assert_uint_gt(oracle->full, 1000);
#endif
    ck_assert_uint_eq(oracle->broken, 0);
    ml_oracle_free(oracle);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("unwind");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, walks_random_trees_as_the_tables_and_libunwind_do);
    tcase_add_test(tcase, walks_realigned_frames_by_all_registers);
    return run_suite("client/unwind", tcase);
}
