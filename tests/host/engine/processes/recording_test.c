#include "host/engine/processes/recording.h"

#include <stdint.h>
#include <stdlib.h>

#include <check.h>

#include "tests/suite.h"

/* The six facts that a state stands for, as one would keep them by hand. */
struct facts {
    bool is_on, in_service, is_lost, is_torn, was_on;
};

static const struct facts facts_of[ML_RECORDING_COUNT] = {
    [ML_RECORDING_NEVER] = {.is_on = false},
    [ML_RECORDING_WAITS] = {.is_on = true, .was_on = true},
    [ML_RECORDING_WAITS_TORN] = {.is_on = true, .is_torn = true, .was_on = true},
    [ML_RECORDING_SERVED] = {.is_on = true, .in_service = true, .was_on = true},
    [ML_RECORDING_KEPT] = {.in_service = true, .was_on = true},
    [ML_RECORDING_GONE] = {.was_on = true},
    [ML_RECORDING_GONE_TORN] = {.is_torn = true, .was_on = true},
    [ML_RECORDING_LOST_NEVER] = {.is_lost = true},
    [ML_RECORDING_LOST_IN_TIME] = {.is_lost = true, .in_service = true, .was_on = true},
    [ML_RECORDING_LOST] = {.is_lost = true, .was_on = true},
};

/* What an event does to each fact. A torn pipe is one that a service has read which is gone now;
 * while a service reads it, or nobody ever will again, it makes no difference. */
static struct facts after(struct facts facts, enum ml_recording_event event) {
    switch (event) {
    case ML_RECORDING_SERVE:
        facts.is_on = facts.in_service = facts.was_on = true;
        facts.is_torn = false;
        break;
    case ML_RECORDING_WAIT:
        facts.is_on = facts.was_on = true;
        break;
    case ML_RECORDING_EMPTY:
        facts.is_torn = false;
        break;
    case ML_RECORDING_STOP:
        facts.is_on = false;
        break;
    case ML_RECORDING_DETACH:
        facts.in_service = false;
        facts.is_torn = !facts.is_lost;
        break;
    case ML_RECORDING_LOSE:
        facts.is_lost = true;
        facts.is_on = facts.is_torn = false;
        break;
    case ML_RECORDING_EVENT_COUNT:
        break;
    }
    return facts;
}

START_TEST(a_state_says_what_its_facts_are) {
    for (int state = 1; state < ML_RECORDING_COUNT; state++) {
        const struct facts *facts = &facts_of[state];
        ck_assert_int_eq(ml_recording_is_on((enum ml_recording)state), facts->is_on);
        ck_assert_int_eq(ml_recording_in_service((enum ml_recording)state), facts->in_service);
        ck_assert_int_eq(ml_recording_is_lost((enum ml_recording)state), facts->is_lost);
        ck_assert_int_eq(ml_recording_was_ever_on((enum ml_recording)state), facts->was_on);
    }
}
END_TEST

START_TEST(each_permitted_event_changes_the_facts_that_it_names) {
    for (int state = 1; state < ML_RECORDING_COUNT; state++) {
        for (int event = 0; event < ML_RECORDING_EVENT_COUNT; event++) {
            const enum ml_recording next =
                ml_recording_next((enum ml_recording)state, (enum ml_recording_event)event);
            if (next == ML_RECORDING_FORBIDDEN) {
                continue;
            }
            const struct facts got = facts_of[next];
            const struct facts want = after(facts_of[state], (enum ml_recording_event)event);
            ck_assert_msg(
                got.is_on == want.is_on && got.in_service == want.in_service &&
                    got.is_lost == want.is_lost && got.is_torn == want.is_torn &&
                    got.was_on == want.was_on,
                "state %d by event %d",
                state,
                event
            );
        }
    }
}
END_TEST

START_TEST(what_must_not_be_is_forbidden) {
    for (int state = 1; state < ML_RECORDING_COUNT; state++) {
        const struct facts *facts = &facts_of[state];
        const enum ml_recording from = (enum ml_recording)state;
        /* It can always end, and its stream can always be lost. */
        ck_assert_int_ne(ml_recording_next(from, ML_RECORDING_STOP), ML_RECORDING_FORBIDDEN);
        ck_assert_int_ne(ml_recording_next(from, ML_RECORDING_LOSE), ML_RECORDING_FORBIDDEN);
        /* Only a service that has it can leave it. */
        const bool is_left = ml_recording_next(from, ML_RECORDING_DETACH) != ML_RECORDING_FORBIDDEN;
        ck_assert_int_eq(is_left, facts->in_service);
        /* No service gets what is lost, or a torn pipe of a process that goes on writing. */
        const bool is_served =
            ml_recording_next(from, ML_RECORDING_SERVE) != ML_RECORDING_FORBIDDEN;
        const bool is_taken = facts->is_on && (facts->is_torn || facts->in_service);
        ck_assert_int_eq(is_served, !facts->is_lost && !is_taken);
    }
    for (int event = 0; event <= ML_RECORDING_EVENT_COUNT; event++) {
        const enum ml_recording_event by = (enum ml_recording_event)event;
        ck_assert_int_eq(ml_recording_next(ML_RECORDING_FORBIDDEN, by), ML_RECORDING_FORBIDDEN);
        ck_assert_int_eq(ml_recording_next(ML_RECORDING_COUNT, by), ML_RECORDING_FORBIDDEN);
    }
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("recording");
    tcase_add_test(tcase, a_state_says_what_its_facts_are);
    tcase_add_test(tcase, each_permitted_event_changes_the_facts_that_it_names);
    tcase_add_test(tcase, what_must_not_be_is_forbidden);
    return run_suite("host/recording", tcase);
}
