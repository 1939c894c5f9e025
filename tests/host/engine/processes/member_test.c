#include "host/engine/processes/member.h"

#include <stdlib.h>

#include <check.h>

#include "tests/suite.h"

START_TEST(only_a_running_member_can_end_and_only_once) {
    ck_assert_int_eq(ml_member_next(ML_MEMBER_RUNNING, ML_MEMBER_EVENT_EXIT), ML_MEMBER_EXITED);
    ck_assert_int_eq(ml_member_next(ML_MEMBER_RUNNING, ML_MEMBER_EVENT_KILL), ML_MEMBER_KILLED);
    ck_assert_int_eq(ml_member_next(ML_MEMBER_RUNNING, ML_MEMBER_EVENT_EXEC), ML_MEMBER_REPLACED);
    for (int state = 0; state <= ML_MEMBER_STATE_COUNT; state++) {
        for (int event = 0; event <= ML_MEMBER_EVENT_COUNT; event++) {
            const bool is_told = state == ML_MEMBER_KILLED && event == ML_MEMBER_EVENT_TELL;
            const bool is_end = state == ML_MEMBER_RUNNING && event < ML_MEMBER_EVENT_TELL;
            if (!is_told && !is_end) {
                ck_assert_int_eq(
                    ml_member_next((enum ml_member_state)state, (enum ml_member_event)event),
                    ML_MEMBER_DEAD
                );
            }
        }
    }
    struct ml_members members;
    ml_members_init(&members, NULL);
    struct ml_member *member = NULL;
    ck_assert_int_eq(ml_members_add(&members, 10, &member), ML_OK);
    ck_assert_int_eq(ml_member_set_state(member, ML_MEMBER_EVENT_KILL), ML_OK);
    ck_assert_int_eq(ml_member_set_state(member, ML_MEMBER_EVENT_EXIT), ML_PEER_STATE);
    ck_assert_str_eq(ml_member_state_name(member->state), "killed");
    ck_assert_uint_eq(members.running_count, 0);
    ck_assert_int_eq(ml_member_set_state(member, ML_MEMBER_EVENT_TELL), ML_OK);
    ck_assert_int_eq(ml_member_set_state(member, ML_MEMBER_EVENT_TELL), ML_PEER_STATE);
    ck_assert_str_eq(ml_member_state_name(member->state), "killed");
    ck_assert_uint_eq(members.running_count, 0);
    ml_members_fini(&members);
}
END_TEST

START_TEST(a_pid_may_come_back_and_ids_never_do) {
    struct ml_members members;
    ml_members_init(&members, NULL);
    struct ml_member *first = NULL;
    struct ml_member *second = NULL;
    ck_assert_int_eq(ml_members_add(&members, 10, &first), ML_OK);
    ck_assert_ptr_eq(ml_members_running(&members, 10), first);
    ck_assert_int_eq(ml_member_set_state(first, ML_MEMBER_EVENT_EXEC), ML_OK);
    ck_assert_ptr_null(ml_members_running(&members, 10));
    ck_assert_ptr_eq(ml_members_newest(&members, 10), first);
    ck_assert_int_eq(ml_members_add(&members, 10, &second), ML_OK);
    ck_assert_uint_eq(second->id, 2);
    ck_assert_ptr_eq(ml_members_running(&members, 10), second);
    ck_assert_ptr_eq(ml_members_find(&members, 1), first);
    ck_assert_ptr_eq(ml_members_find(&members, 2), second);
    ck_assert_ptr_null(ml_members_find(&members, 0));
    ck_assert_ptr_null(ml_members_find(&members, 3));
    ml_members_fini(&members);
}
END_TEST

START_TEST(counts_who_records_in_a_role_and_refuses_one_too_many) {
    struct ml_members members;
    ml_members_init(&members, NULL);
    struct ml_member *member = NULL;
    for (int i = 1; i <= ML_MEMBERS_MAX; i++) {
        ck_assert_int_eq(ml_members_add(&members, i, &member), ML_OK);
        member->role = i % 2 == 0 ? MEMLOG_SERVICE_ROLE_RENDERER : MEMLOG_SERVICE_ROLE_GPU;
        if (i <= 4) {
            ml_member_set_recording(member, ML_RECORDING_SERVE);
        }
    }
    ck_assert_uint_eq(ml_members_recording(&members, MEMLOG_SERVICE_ROLE_RENDERER), 2);
    ck_assert_int_eq(
        ml_member_set_state(ml_members_find(&members, 2), ML_MEMBER_EVENT_EXIT), ML_OK
    );
    ck_assert_uint_eq(ml_members_recording(&members, MEMLOG_SERVICE_ROLE_RENDERER), 1);
    ck_assert_uint_eq(ml_members_recording(&members, MEMLOG_SERVICE_ROLE_UTILITY), 0);
    ck_assert_int_eq(ml_members_add(&members, 99999, &member), ML_PEER_LIMIT);
    ml_members_fini(&members);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("member");
    tcase_add_test(tcase, only_a_running_member_can_end_and_only_once);
    tcase_add_test(tcase, a_pid_may_come_back_and_ids_never_do);
    tcase_add_test(tcase, counts_who_records_in_a_role_and_refuses_one_too_many);
    return run_suite("host/member", tcase);
}
