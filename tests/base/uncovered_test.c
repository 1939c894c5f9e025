#include "base/uncovered.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

enum { KIB = 1024, MIB = 1024 * KIB };

static struct ml_uncovered none(void) {
    return (struct ml_uncovered){.missed = 0};
}

static void add(struct ml_uncovered *uncovered, const char *name, uint64_t bytes, uint64_t count) {
    ml_uncovered_add_unrecorded(uncovered, name, "static", false, bytes, count);
}

static void words_are(const struct ml_uncovered *uncovered, const char *words) {
    char text[ML_UNCOVERED_BYTES];

    ck_assert_str_eq(ml_uncovered_words(uncovered, text), words);
}

START_TEST(nothing_is_said_of_nobody) {
    struct ml_uncovered uncovered = none();

    ml_uncovered_add_unrecorded(&uncovered, "fork", "idle", true, 8 * MIB, 1);
    ck_assert(!ml_uncovered_is_any(&uncovered));
    words_are(&uncovered, "");
}
END_TEST

START_TEST(one_that_was_not_recorded_has_its_reason) {
    struct ml_uncovered uncovered = none();

    add(&uncovered, "st", 700 * KIB, 1);
    words_are(&uncovered, "1 process was not recorded (700.0 KiB private memory): st: static");
    uncovered = none();
    add(&uncovered, "st", 0, 1);
    words_are(&uncovered, "1 process was not recorded: st: static");
}
END_TEST

START_TEST(of_several_the_one_with_most_memory_has_it) {
    struct ml_uncovered uncovered = none();

    add(&uncovered, "a", 0, 2);
    add(&uncovered, "b", 2 * KIB, 1);
    add(&uncovered, "c", 1 * KIB, 1);
    uncovered.missed = 1;
    words_are(
        &uncovered,
        "4 processes were not recorded (2.0 KiB private memory at most, each), such as b: static; "
        "1 process ended before memlog saw it"
    );
}
END_TEST

START_TEST(whose_memory_is_not_all_seen_goes_before_it) {
    struct ml_uncovered uncovered = none();

    add(&uncovered, "st", 0, 1);
    ml_uncovered_add_unseen(&uncovered, "big", "own malloc", strlen("own malloc"), 0, 1);
    words_are(&uncovered, "big: own malloc; 1 process was not recorded");
}
END_TEST

START_TEST(a_reason_that_nobody_knows_is_left_out) {
    struct ml_uncovered uncovered = none();

    ml_uncovered_add_unrecorded(&uncovered, "st", "", false, 0, 1);
    words_are(&uncovered, "1 process was not recorded");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("uncovered");
    TCase *tcase = tcase_create("words");

    tcase_add_test(tcase, nothing_is_said_of_nobody);
    tcase_add_test(tcase, one_that_was_not_recorded_has_its_reason);
    tcase_add_test(tcase, of_several_the_one_with_most_memory_has_it);
    tcase_add_test(tcase, whose_memory_is_not_all_seen_goes_before_it);
    tcase_add_test(tcase, a_reason_that_nobody_knows_is_left_out);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
