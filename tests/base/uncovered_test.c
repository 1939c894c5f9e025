#include "base/uncovered.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "tests/suite.h"

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

static void
add_unseen(struct ml_uncovered *uncovered, const char *name, const char *unseen, uint64_t bytes) {
    ml_uncovered_add_unseen(uncovered, name, unseen, strlen(unseen), bytes, 1);
}

START_TEST(the_largest_of_those_that_are_not_all_seen_is_named) {
    struct ml_uncovered uncovered = none();

    add_unseen(&uncovered, "nothing", "", 9 * MIB);
    ck_assert(!ml_uncovered_is_any(&uncovered));
    add_unseen(&uncovered, "small", "its arena", MIB);
    add_unseen(&uncovered, "large", "its own allocator", 3 * MIB);
    add_unseen(&uncovered, "middle", "its arena", 2 * MIB);
    words_are(
        &uncovered,
        "large: its own allocator (3.0 MiB private memory); "
        "2 more processes are not all seen (2.0 MiB private memory at most, each)"
    );
}
END_TEST

START_TEST(a_size_that_the_text_has_is_not_said_twice) {
    struct ml_uncovered uncovered = none();

    add_unseen(&uncovered, "app", "5.0 MiB of its private memory", 5 * MIB);
    words_are(&uncovered, "app: 5.0 MiB of its private memory");
}
END_TEST

/* They are among the processes that were not recorded, where those are known. */
START_TEST(programs_without_memlog_are_not_counted_twice) {
    struct ml_uncovered uncovered = {.not_profiled = 2, .missed = 1};

    words_are(&uncovered, "2 programs ran without memlog; 1 process ended before memlog saw it");
    ml_uncovered_add_unrecorded(&uncovered, "st", "", false, 0, 2);
    words_are(&uncovered, "2 processes were not recorded; 1 process ended before memlog saw it");
}
END_TEST

START_TEST(the_longest_sentence_is_cut_inside_its_place) {
    static char name[400], unseen[1000];
    static struct {
        char text[ML_UNCOVERED_BYTES];
        char behind;
    } place = {.behind = 'x'};
    struct ml_uncovered uncovered = {.not_profiled = UINT64_MAX, .missed = UINT64_MAX};

    memset(name, 'n', sizeof(name) - 1);
    memset(unseen, 'u', sizeof(unseen) - 1);
    add_unseen(&uncovered, name, unseen, UINT64_MAX);
    ml_uncovered_add_unseen(&uncovered, name, unseen, 1, UINT64_MAX, UINT64_MAX);
    add(&uncovered, name, UINT64_MAX, UINT64_MAX);
    ml_uncovered_words(&uncovered, place.text);
    ck_assert_uint_eq(strlen(place.text), ML_UNCOVERED_BYTES - 1);
    ck_assert_int_eq(place.behind, 'x');
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("words");

    tcase_add_test(tcase, nothing_is_said_of_nobody);
    tcase_add_test(tcase, one_that_was_not_recorded_has_its_reason);
    tcase_add_test(tcase, of_several_the_one_with_most_memory_has_it);
    tcase_add_test(tcase, whose_memory_is_not_all_seen_goes_before_it);
    tcase_add_test(tcase, a_reason_that_nobody_knows_is_left_out);
    tcase_add_test(tcase, the_largest_of_those_that_are_not_all_seen_is_named);
    tcase_add_test(tcase, a_size_that_the_text_has_is_not_said_twice);
    tcase_add_test(tcase, programs_without_memlog_are_not_counted_twice);
    tcase_add_test(tcase, the_longest_sentence_is_cut_inside_its_place);
    return run_suite("uncovered", tcase);
}
