#include <check.h>

#include "host/fleet/watch.h"
#include "tests/suite.h"

static bool grew(double before, double after, double q, bool was_told) {
    json_t *one = json_pack(
        "{s:f, s:f, s:f, s:b}",
        "share_before",
        before,
        "share_after",
        after,
        "q",
        q,
        "differs",
        q < 0.05
    );
    ck_assert_ptr_nonnull(one);
    const bool said = ml_fleet_watch_grew(one, was_told);
    json_decref(one);
    return said;
}

START_TEST(a_stack_grew_that_surely_holds_a_larger_share) {
    ck_assert(grew(0.1, 0.2, 0.01, false));
    ck_assert(!grew(0.1, 0.2, 0.06, false));
    ck_assert(!grew(0.2, 0.1, 0.01, false));
    ck_assert(!grew(0.1, 0.1009, 0.0001, false)); /* less than a thousandth of a dump */
}
END_TEST

/* Else one at the limit would be told, taken back and told again. */
START_TEST(one_that_was_told_is_held_to_less) {
    ck_assert(grew(0.1, 0.2, 0.06, true));
    ck_assert(grew(0.1, 0.1009, 0.0001, true));
    ck_assert(!grew(0.1, 0.2, 0.25, true));
    ck_assert(!grew(0.1, 0.1001, 0.01, true));
    ck_assert(!grew(0.2, 0.1, 0.01, true));
}
END_TEST

START_TEST(what_is_no_difference_did_not_grow) {
    json_t *empty = json_object();
    ck_assert(!ml_fleet_watch_grew(empty, false) && !ml_fleet_watch_grew(empty, true));
    ck_assert(!ml_fleet_watch_grew(NULL, true));
    json_decref(empty);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("watch_round");
    tcase_add_test(tests, a_stack_grew_that_surely_holds_a_larger_share);
    tcase_add_test(tests, one_that_was_told_is_held_to_less);
    tcase_add_test(tests, what_is_no_difference_did_not_grow);
    return run_suite("watch_round", tests);
}
