/* A hook's frame is left by a throw: the next call finds neither a guard nor sampling held. */
#include <check.h>

#include "client/recording/sampler.h"
#include "client/recording/thrown.h"
#include "tests/suite.h"

enum { SEARCH_PHASE = 1, INTERVAL = 1000, LEFT = 700, REST = 5000, FRAME = 4096 };

static struct ml_thread *in_next(uint8_t filter) {
    struct ml_thread *thread = &ml_thread;
    *thread = (struct ml_thread){.filter = filter, .interval = INTERVAL};
    thread->left = LEFT;
    thread->rest = REST;
    ml_sampler_pass(thread, FRAME);
    ck_assert_uint_eq(thread->left, 0);
    return thread;
}

static int throw(int actions) {
    return ml_hook_thrown(1, actions, 0, NULL, NULL);
}

START_TEST(a_throw_leaves_what_leaving_would) {
    const struct ml_thread *thread = in_next(ML_FILTER_SAMPLED);
    ck_assert_int_eq(throw(ML_LEFT_CLEANUP_PHASE), ML_LEFT_GO_ON);
    ck_assert_uint_eq(thread->phase, ML_PHASE_NONE);
    ck_assert_uint_eq(thread->hook_frame, 0);
    ck_assert_uint_eq(thread->left, INTERVAL); /* the way to the next point is what it was */
    ck_assert_uint_eq(thread->left + thread->rest, LEFT + REST);
}
END_TEST

START_TEST(the_search_for_a_handler_changes_nothing) {
    const struct ml_thread *thread = in_next(ML_FILTER_SAMPLED);
    ck_assert_int_eq(throw(SEARCH_PHASE), ML_LEFT_GO_ON);
    ck_assert_uint_eq(thread->phase, ML_PHASE_NEXT);
    ck_assert_uint_eq(thread->hook_frame, FRAME);
    ck_assert_uint_eq(thread->left, 0);
}
END_TEST

START_TEST(in_other_phases_it_is_none_of_its_business) {
    static const uint32_t phases[] = {ML_PHASE_NONE, ML_PHASE_RECORD, ML_PHASE_SECOND};
    for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++) {
        struct ml_thread *thread = in_next(ML_FILTER_SAMPLED);
        thread->phase = phases[i];
        ck_assert_int_eq(throw(ML_LEFT_CLEANUP_PHASE), ML_LEFT_GO_ON);
        ck_assert_uint_eq(thread->phase, phases[i]);
        ck_assert_uint_eq(thread->hook_frame, FRAME);
        ck_assert_uint_eq(thread->left, 0);
    }
}
END_TEST

START_TEST(exact_recording_skips_nothing_behind_a_throw_either) {
    const struct ml_thread *thread = in_next(ML_FILTER_OFF);
    ck_assert_int_eq(throw(ML_LEFT_CLEANUP_PHASE), ML_LEFT_GO_ON);
    ck_assert_uint_eq(thread->phase, ML_PHASE_NONE);
    ck_assert_uint_eq(thread->left, 0);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("thrown");
    tcase_add_test(tcase, a_throw_leaves_what_leaving_would);
    tcase_add_test(tcase, the_search_for_a_handler_changes_nothing);
    tcase_add_test(tcase, in_other_phases_it_is_none_of_its_business);
    tcase_add_test(tcase, exact_recording_skips_nothing_behind_a_throw_either);
    return run_suite("client/thrown", tcase);
}
