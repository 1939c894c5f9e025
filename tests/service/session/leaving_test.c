#include "service/session/leaving.h"

#include <stdbool.h>
#include <stdlib.h>

#include <check.h>

#include "tests/suite.h"

/* The facts that a state stands for. */
struct facts {
    bool has_said_end, is_for_good, is_gone, is_listed;
};

static const struct facts facts_of[ML_LEAVING_COUNT] = {
    [ML_LEAVING_NOT] = {.is_listed = true},
    [ML_LEAVING_EXEC] = {.has_said_end = true, .is_listed = true},
    [ML_LEAVING_EXIT] = {.has_said_end = true, .is_for_good = true, .is_listed = true},
    [ML_LEAVING_APART] = {.is_for_good = true, .is_gone = true, .is_listed = true},
    [ML_LEAVING_LEFT] = {.is_for_good = true, .is_gone = true},
};

/* How an event changes each fact. After it is gone, a process's events change nothing. */
static struct facts after(struct facts facts, enum ml_leaving_event event) {
    switch (event) {
    case ML_LEAVING_ON_EXIT:
        facts.has_said_end = !facts.is_gone;
        facts.is_for_good = true;
        break;
    case ML_LEAVING_ON_EXEC:
        facts.has_said_end = !facts.is_gone;
        break;
    case ML_LEAVING_ON_BLOCK:
        facts.has_said_end = facts.has_said_end && facts.is_for_good;
        break;
    case ML_LEAVING_ON_LEAVE:
        facts = (struct facts){.is_for_good = true, .is_gone = true};
        break;
    case ML_LEAVING_ON_APART:
        facts = (struct facts){.is_for_good = true, .is_gone = true, .is_listed = facts.is_listed};
        break;
    case ML_LEAVING_ON_PROFILE:
        facts = (struct facts){.is_listed = true}; /* the caller puts it back */
        break;
    case ML_LEAVING_EVENT_COUNT:
        break;
    }
    return facts;
}

START_TEST(each_event_changes_the_facts_that_it_names) {
    for (int state = 0; state < ML_LEAVING_COUNT; state++) {
        for (int event = 0; event < ML_LEAVING_EVENT_COUNT; event++) {
            const enum ml_leaving next =
                ml_leaving_next((enum ml_leaving)state, (enum ml_leaving_event)event);
            ck_assert_uint_lt(next, ML_LEAVING_COUNT);
            const struct facts got = facts_of[next];
            const struct facts want = after(facts_of[state], (enum ml_leaving_event)event);
            ck_assert_msg(
                got.has_said_end == want.has_said_end && got.is_for_good == want.is_for_good &&
                    got.is_gone == want.is_gone && got.is_listed == want.is_listed,
                "state %d by event %d",
                state,
                event
            );
        }
    }
}
END_TEST

START_TEST(for_good_is_until_a_new_profile_and_only_a_failed_exec_is_void) {
    for (int state = 0; state < ML_LEAVING_COUNT; state++) {
        for (int event = 0; event < ML_LEAVING_EVENT_COUNT; event++) {
            const enum ml_leaving next =
                ml_leaving_next((enum ml_leaving)state, (enum ml_leaving_event)event);
            if (facts_of[state].is_for_good && event != ML_LEAVING_ON_PROFILE) {
                ck_assert(facts_of[next].is_for_good);
            }
            if (state != ML_LEAVING_NOT && next == ML_LEAVING_NOT) {
                const bool is_void = state == ML_LEAVING_EXEC && event == ML_LEAVING_ON_BLOCK;
                ck_assert(is_void || event == ML_LEAVING_ON_PROFILE);
            }
        }
    }
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("leaving");
    tcase_add_test(tcase, each_event_changes_the_facts_that_it_names);
    tcase_add_test(tcase, for_good_is_until_a_new_profile_and_only_a_failed_exec_is_void);
    return run_suite("service/session/leaving", tcase);
}
