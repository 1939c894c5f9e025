#include "client/hooks/next.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "client/state/boot_store.h"
#include "tests/suite.h"

/* Check runs each case in a process of its own, so each begins before anything was resolved. */

START_TEST(blocks_of_the_store_are_aligned_and_lie_apart) {
    uint8_t *last_end = NULL;
    for (size_t alignment = 1; alignment <= 4096; alignment *= 2) {
        for (size_t size = 0; size <= 100; size += 25) {
            uint8_t *block = ml_boot_store_take(alignment, size);
            ck_assert_ptr_nonnull(block);
            ck_assert_uint_eq((uintptr_t)block % (alignment < 16 ? 16 : alignment), 0);
            ck_assert(block >= last_end);
            last_end = block + size;
        }
    }
}
END_TEST

START_TEST(only_what_the_store_gave_is_its_own) {
    static uint8_t elsewhere[8];
    ck_assert(!ml_boot_store_owns(ml_boot_store)); /* it gave nothing yet */
    const uint8_t *block = ml_boot_store_take(1, 8);
    ck_assert(ml_boot_store_owns(block));
    ck_assert(ml_boot_store_owns(ml_boot_store + ML_BOOT_STORE_BYTES - 1));
    ck_assert(!ml_boot_store_owns(ml_boot_store + ML_BOOT_STORE_BYTES));
    ck_assert(!ml_boot_store_owns(elsewhere));
    ck_assert(!ml_boot_store_owns(NULL));
}
END_TEST

START_TEST(what_does_not_fit_is_refused_and_leaves_room_for_what_does) {
    ck_assert_ptr_null(ml_boot_store_take(1, ML_BOOT_STORE_BYTES + 1));
    ck_assert_ptr_null(ml_boot_store_take(1, SIZE_MAX));
    ck_assert_ptr_null(ml_boot_store_take((size_t)ML_BOOT_STORE_BYTES * 2, 1));
    ck_assert_ptr_nonnull(ml_boot_store_take(1, ML_BOOT_STORE_BYTES - 64));
    ck_assert_ptr_null(ml_boot_store_take(1, 256));
    ck_assert_ptr_nonnull(ml_boot_store_take(1, 16));
}
END_TEST

START_TEST(before_the_real_functions_are_known_the_store_stands_in) {
    char *block = ml_next.malloc(20);
    ck_assert(ml_boot_store_owns(block));
    (void)strcpy(block, "kept in the store");
    char *moved = ml_next.realloc(block, 5000);
    ck_assert(ml_boot_store_owns(moved));
    ck_assert_ptr_ne(moved, block);
    ck_assert_str_eq(moved, "kept in the store");
    ck_assert(ml_boot_store_owns(ml_next.realloc(NULL, 8)));
    const char *zeros = ml_next.calloc(10, 10);
    ck_assert(ml_boot_store_owns(zeros));
    for (size_t i = 0; i < 100; i++) {
        ck_assert_int_eq(zeros[i], 0);
    }
    ck_assert_uint_eq((uintptr_t)ml_next.memalign(1024, 1) % 1024, 0);
    ck_assert_uint_eq((uintptr_t)ml_next.aligned_alloc(2048, 1) % 2048, 0);
    ck_assert_ptr_null(ml_next.calloc(SIZE_MAX, 2));
}
END_TEST

/* A block whose size nobody has kept: its copy ends where the store does. */
START_TEST(a_copy_never_reads_behind_the_store) {
    char *block = ml_boot_store_take(1, ML_BOOT_STORE_BYTES - 16);
    const size_t room = ml_boot_store_room(block);
    ck_assert_uint_le(room, ML_BOOT_STORE_BYTES);
    ck_assert_ptr_eq(block + room, ml_boot_store + ML_BOOT_STORE_BYTES);
    block[0] = 'x';
    char *moved = ml_next.realloc(block, (size_t)ML_BOOT_STORE_BYTES * 4);
    ck_assert_ptr_nonnull(moved);
    ck_assert(!ml_boot_store_owns(moved)); /* the store is used up: the real one is found */
    ck_assert_int_eq(moved[0], 'x');
    ml_next.free(moved);
}
END_TEST

START_TEST(whoever_asks_for_more_than_the_store_has_gets_it_from_the_next_in_line) {
    char *large = ml_next.malloc(ML_BOOT_STORE_BYTES + 1);
    ck_assert_ptr_nonnull(large);
    ck_assert(!ml_boot_store_owns(large));
    memset(large, 'x', ML_BOOT_STORE_BYTES + 1);
    ml_next.free(large);
    ck_assert_ptr_eq(ml_next.malloc, malloc);
    ck_assert_ptr_eq(ml_next.free, free);
    ck_assert_ptr_eq(ml_next.calloc, calloc);
    ck_assert_ptr_eq(ml_next.realloc, realloc);
}
END_TEST

START_TEST(so_do_zeros_and_aligned_blocks) {
    char *zeros = ml_next.calloc(2, ML_BOOT_STORE_BYTES);
    ck_assert_ptr_nonnull(zeros);
    ck_assert_int_eq(zeros[2 * ML_BOOT_STORE_BYTES - 1], 0);
    ml_next.free(zeros);
    void *aligned = ml_next.memalign(4096, ML_BOOT_STORE_BYTES + 1);
    ck_assert_ptr_nonnull(aligned);
    ck_assert_uint_eq((uintptr_t)aligned % 4096, 0);
    ml_next.free(aligned);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("next");
    tcase_add_test(tcase, blocks_of_the_store_are_aligned_and_lie_apart);
    tcase_add_test(tcase, only_what_the_store_gave_is_its_own);
    tcase_add_test(tcase, what_does_not_fit_is_refused_and_leaves_room_for_what_does);
    tcase_add_test(tcase, before_the_real_functions_are_known_the_store_stands_in);
    tcase_add_test(tcase, a_copy_never_reads_behind_the_store);
    tcase_add_test(tcase, whoever_asks_for_more_than_the_store_has_gets_it_from_the_next_in_line);
    tcase_add_test(tcase, so_do_zeros_and_aligned_blocks);
    return run_suite("client/hooks/next", tcase);
}
