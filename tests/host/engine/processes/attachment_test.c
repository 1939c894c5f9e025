#include "host/engine/processes/attachment.h"

#include <stdlib.h>

#include <check.h>

#include "tests/suite.h"

/* What a state stands for, as one would keep it by hand. */
struct facts {
    bool is_stranger; /* its program was started without memlog */
    bool is_hooked;   /* its functions may lead to memlog */
    bool is_busy;     /* a tracer is at work */
};

static const struct facts facts_of[ML_ATTACHMENT_COUNT] = {
    [ML_ATTACHMENT_ATTACHING] = {.is_stranger = true, .is_busy = true},
    [ML_ATTACHMENT_ATTACHED] = {.is_stranger = true, .is_hooked = true},
    [ML_ATTACHMENT_DETACHING] = {.is_stranger = true, .is_hooked = true, .is_busy = true},
    [ML_ATTACHMENT_DETACHED] = {.is_stranger = true},
};

static struct facts after(struct facts facts, enum ml_attachment_event event) {
    switch (event) {
    case ML_ATTACHMENT_BEGIN:
        facts.is_stranger = facts.is_busy = true;
        break;
    case ML_ATTACHMENT_INHERIT:
        facts.is_stranger = facts.is_hooked = true;
        break;
    case ML_ATTACHMENT_HOOKED:
        facts.is_hooked = true;
        facts.is_busy = false;
        break;
    case ML_ATTACHMENT_LEAVE:
        facts.is_busy = true;
        break;
    case ML_ATTACHMENT_CLEAN:
        facts.is_hooked = facts.is_busy = false;
        break;
    case ML_ATTACHMENT_EVENT_COUNT:
        break;
    }
    return facts;
}

static bool may_be(struct facts facts, enum ml_attachment_event event) {
    switch (event) {
    case ML_ATTACHMENT_BEGIN:
    case ML_ATTACHMENT_INHERIT:
        return !facts.is_stranger;
    case ML_ATTACHMENT_HOOKED:
    case ML_ATTACHMENT_CLEAN:
        return facts.is_busy;
    case ML_ATTACHMENT_LEAVE:
        return facts.is_hooked && !facts.is_busy;
    case ML_ATTACHMENT_EVENT_COUNT:
        break;
    }
    return false;
}

START_TEST(each_event_changes_the_facts_that_it_names_or_is_forbidden) {
    for (int state = ML_ATTACHMENT_NONE; state < ML_ATTACHMENT_COUNT; state++) {
        for (int event = 0; event < ML_ATTACHMENT_EVENT_COUNT; event++) {
            const struct facts before = facts_of[state];
            const enum ml_attachment_event by = (enum ml_attachment_event)event;
            const enum ml_attachment_state next =
                ml_attachment_next((enum ml_attachment_state)state, by);
            if (!may_be(before, by)) {
                ck_assert_int_eq(next, ML_ATTACHMENT_FORBIDDEN);
                continue;
            }
            const struct facts wanted = after(before, by);
            ck_assert_int_ne(next, ML_ATTACHMENT_FORBIDDEN);
            ck_assert(facts_of[next].is_stranger == wanted.is_stranger);
            ck_assert(facts_of[next].is_hooked == wanted.is_hooked);
            ck_assert(facts_of[next].is_busy == wanted.is_busy);
        }
    }
    ck_assert_int_eq(
        ml_attachment_next(ML_ATTACHMENT_COUNT, ML_ATTACHMENT_BEGIN), ML_ATTACHMENT_FORBIDDEN
    );
    ck_assert_int_eq(
        ml_attachment_next(ML_ATTACHMENT_NONE, ML_ATTACHMENT_EVENT_COUNT), ML_ATTACHMENT_FORBIDDEN
    );
}
END_TEST

START_TEST(nothing_is_recorded_of_a_process_that_is_not_wholly_hooked) {
    for (int i = ML_ATTACHMENT_NONE; i < ML_ATTACHMENT_COUNT; i++) {
        const enum ml_attachment_state state = (enum ml_attachment_state)i;
        const struct facts facts = facts_of[state];
        const bool may = !facts.is_busy && (!facts.is_stranger || facts.is_hooked);
        ck_assert(ml_attachment_may_record(state) == may);
        ck_assert((ml_attachment_why_not(state)[0] == '\0') == may);
    }
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("attachment");
    tcase_add_test(tcase, each_event_changes_the_facts_that_it_names_or_is_forbidden);
    tcase_add_test(tcase, nothing_is_recorded_of_a_process_that_is_not_wholly_hooked);
    return run_suite("host/attachment", tcase);
}
