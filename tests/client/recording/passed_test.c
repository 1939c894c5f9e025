/* A call that sampling passes over, while the next allocator has it: its own calls are not skipped,
 * and the way to the next point is what it was, or what a signal handler has made of it. */
#include <check.h>

#include "client/recording/sampler.h"
#include "tests/suite.h"

enum { INTERVAL = 1000, SIZE = 99, LEFT = 700, REST = 5000, FRAME = 4096, OTHER_WAY = 30 };

/* As a hook does: the block's bytes are taken, then the guard is set. */
static struct ml_thread *passing(void) {
    static struct ml_control_page page;
    struct ml_thread *thread = &ml_thread;
    ml_process.control = &page;
    *thread = (struct ml_thread){.filter = ML_FILTER_SAMPLED, .interval = INTERVAL};
    thread->left = LEFT;
    thread->rest = REST;
    ck_assert(ml_sampler_passes(thread, SIZE));
    ml_sampler_pass(thread, FRAME);
    return thread;
}

enum { LEFT_BEHIND = LEFT - SIZE - 1 };

START_TEST(the_way_is_what_it_was) {
    struct ml_thread *thread = passing();
    ck_assert_uint_eq(ml_sampler_way(thread), LEFT_BEHIND + REST);
    ml_sampler_passed(thread);
    ck_assert_uint_eq(thread->left, LEFT_BEHIND);
    ck_assert_uint_eq(ml_sampler_way(thread), LEFT_BEHIND + REST);
    ck_assert_uint_eq(thread->phase, ML_PHASE_NONE);
}
END_TEST

START_TEST(a_nested_call_takes_no_bytes) {
    struct ml_thread *thread = passing();
    ck_assert_uint_eq(thread->phase, ML_PHASE_NEXT);
    ck_assert_uint_eq(thread->hook_frame, FRAME);
    ck_assert(!ml_sampler_passes(thread, 0));
    ml_sampler_passed(thread);
    ck_assert(ml_sampler_passes(thread, 0));
}
END_TEST

/* A handler's block was sampled, so there is a new point. The call that was interrupted must not
 * bring the old distance back: the next one looks. */
START_TEST(what_a_handler_draws_stays) {
    struct ml_thread *thread = passing();
    ml_sampler_set_way(thread, OTHER_WAY);
    ml_sampler_passed(thread);
    ck_assert_uint_eq(ml_sampler_way(thread), OTHER_WAY);
    ck_assert(!ml_sampler_passes(thread, 0));
    ml_sampler_let(thread);
    ck_assert_uint_eq(thread->left, OTHER_WAY);
}
END_TEST

START_TEST(nothing_is_skipped_behind_a_handler_that_ends_sampling) {
    struct ml_thread *thread = passing();
    ml_sampler_follow(thread, false);
    ml_sampler_passed(thread);
    ck_assert_uint_eq(ml_sampler_way(thread), 0);
}
END_TEST

START_TEST(the_way_outlives_a_call_that_is_left) {
    struct ml_thread *thread = passing();
    ml_sampler_hold(thread); /* the next hook, which finds a stale guard */
    ck_assert_uint_eq(thread->left + thread->held, 0);
    ml_sampler_let(thread);
    ck_assert_uint_eq(thread->left, INTERVAL);
    ck_assert_uint_eq(ml_sampler_way(thread), LEFT_BEHIND + REST);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("passed");
    tcase_add_test(tcase, the_way_is_what_it_was);
    tcase_add_test(tcase, a_nested_call_takes_no_bytes);
    tcase_add_test(tcase, what_a_handler_draws_stays);
    tcase_add_test(tcase, nothing_is_skipped_behind_a_handler_that_ends_sampling);
    tcase_add_test(tcase, the_way_outlives_a_call_that_is_left);
    return run_suite("client/passed", tcase);
}
