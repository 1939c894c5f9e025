#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "service/snapshot/host_view.h"

START_TEST(what_was_seen_is_kept_until_nobody_needs_it) {
    const struct ml_host_view_memory figures = {.size_kb = 40, .private_dirty_kb = 7, .swap_kb = 1};
    struct ml_host_view *view = ml_host_view_new(2, 1);
    ck_assert_ptr_nonnull(view);
    ml_host_view_thread(view, 11, "a-worker and what is behind its end", 8);
    ml_host_view_memory(view, &figures, "[heap]x", 6);
    struct ml_host_view *other = ml_host_view_keep(view);
    ml_host_view_free(view);
    ck_assert_uint_eq(other->threads_count, 1);
    ck_assert_uint_eq(other->threads[0].tid, 11);
    ck_assert_str_eq(other->threads[0].name, "a-worker");
    ck_assert_uint_eq(other->memory_count, 1);
    ck_assert_str_eq(other->memory[0].name, "[heap]");
    ck_assert_uint_eq(other->memory[0].private_dirty_kb, 7);
    ml_host_view_free(other);
    ml_host_view_free(NULL);
    ck_assert_ptr_null(ml_host_view_keep(NULL));
}
END_TEST

START_TEST(beyond_its_room_nothing_is_added_and_long_names_are_cut) {
    const struct ml_host_view_memory figures = {.size_kb = 4};
    char name[2 * ML_HOST_VIEW_NAME_BYTES];
    struct ml_host_view *view = ml_host_view_new(1, 1);
    ck_assert_ptr_nonnull(view);
    memset(name, 'x', sizeof(name));
    for (uint32_t i = 0; i < 3; i++) {
        ml_host_view_thread(view, i, name, sizeof(name));
        ml_host_view_memory(view, &figures, name, sizeof(name));
    }
    ck_assert_uint_eq(view->threads_count, 1);
    ck_assert_uint_eq(strlen(view->threads[0].name), ML_HOST_VIEW_NAME_BYTES - 1);
    ck_assert_uint_eq(view->memory_count, 1);
    ck_assert_uint_eq(strlen(view->memory[0].name), sizeof(name));
    ml_host_view_free(view);
}
END_TEST

START_TEST(none_of_either_is_a_view_too) {
    struct ml_host_view *view = ml_host_view_new(0, 0);
    ck_assert_ptr_nonnull(view);
    ml_host_view_thread(view, 1, "", 0);
    ck_assert_uint_eq(view->threads_count + view->memory_count, 0);
    ml_host_view_free(view);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("service/host_view");
    TCase *tests = tcase_create("all");
    suite_add_tcase(suite, tests);
    tcase_add_test(tests, what_was_seen_is_kept_until_nobody_needs_it);
    tcase_add_test(tests, beyond_its_room_nothing_is_added_and_long_names_are_cut);
    tcase_add_test(tests, none_of_either_is_a_view_too);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
