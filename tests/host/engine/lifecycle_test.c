#include "host/engine/lifecycle.h"

#include <stdlib.h>

#include <check.h>

#include "tests/suite.h"

START_TEST(a_run_that_is_closed_stays_closed) {
    for (int phase = ML_PHASE_RUNNING; phase < ML_PHASE_COUNT; phase++) {
        ck_assert_int_eq(
            ml_engine_phase_next((enum ml_engine_phase)phase, ML_PHASE_CLOSE), ML_PHASE_CLOSED
        );
    }
    ck_assert_int_eq(ml_engine_phase_next(ML_PHASE_CLOSED, ML_PHASE_WAIT), ML_PHASE_CLOSED);
}
END_TEST

START_TEST(the_end_of_a_run_waits_for_a_service_and_goes_on) {
    enum ml_engine_phase phase = ml_engine_phase_next(ML_PHASE_RUNNING, ML_PHASE_END);
    ck_assert_int_eq(phase, ML_PHASE_ENDING);
    for (int deaths = 0; deaths < 2; deaths++) {
        phase = ml_engine_phase_next(phase, ML_PHASE_WAIT);
        ck_assert_int_eq(phase, ML_PHASE_WAITING);
        phase = ml_engine_phase_next(phase, ML_PHASE_RESUME);
        ck_assert_int_eq(phase, ML_PHASE_ENDING);
    }
}
END_TEST

START_TEST(a_run_that_does_not_end_waits_for_nothing) {
    ck_assert_int_eq(ml_engine_phase_next(ML_PHASE_RUNNING, ML_PHASE_WAIT), ML_PHASE_FORBIDDEN);
    ck_assert_int_eq(ml_engine_phase_next(ML_PHASE_RUNNING, ML_PHASE_RESUME), ML_PHASE_FORBIDDEN);
    ck_assert_int_eq(ml_engine_phase_next(ML_PHASE_ENDING, ML_PHASE_RESUME), ML_PHASE_FORBIDDEN);
}
END_TEST

/* What a state stands for, kept by hand through every way of three events. */
START_TEST(a_service_that_never_served_is_starting_and_one_that_died_is_dead) {
    for (int way = 0; way < 27; way++) {
        enum ml_engine_service state = ML_ENGINE_STARTING;
        bool has_served = false;
        bool is_dead = false;
        for (int i = 0, rest = way; i < 3 && state != ML_ENGINE_ALONE; i++, rest /= 3) {
            const enum ml_engine_service_event event = (enum ml_engine_service_event)(rest % 3);
            const enum ml_engine_service next = ml_engine_service_next(state, event);
            const bool is_allowed = event == ML_ENGINE_DIED || state != ML_ENGINE_SERVING;
            ck_assert_int_eq(next != ML_ENGINE_FORBIDDEN, is_allowed);
            if (!is_allowed) {
                break;
            }
            has_served = has_served || event == ML_ENGINE_READY;
            is_dead = event == ML_ENGINE_DIED || (is_dead && event != ML_ENGINE_READY);
            state = next;
            if (event == ML_ENGINE_GIVE_UP) {
                ck_assert_int_eq(state, ML_ENGINE_ALONE);
                break;
            }
            ck_assert_int_eq(ml_engine_service_is_starting(state), !has_served);
            ck_assert_int_eq(ml_engine_service_is_dead(state), is_dead);
        }
    }
    for (int event = 0; event < ML_ENGINE_EVENT_COUNT; event++) {
        ck_assert_int_eq(
            ml_engine_service_next(ML_ENGINE_ALONE, (enum ml_engine_service_event)event),
            ML_ENGINE_FORBIDDEN
        );
    }
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("lifecycle");
    tcase_add_test(tcase, a_run_that_is_closed_stays_closed);
    tcase_add_test(tcase, the_end_of_a_run_waits_for_a_service_and_goes_on);
    tcase_add_test(tcase, a_run_that_does_not_end_waits_for_nothing);
    tcase_add_test(tcase, a_service_that_never_served_is_starting_and_one_that_died_is_dead);
    return run_suite("host/engine/lifecycle", tcase);
}
