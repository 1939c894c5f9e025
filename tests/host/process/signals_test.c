#include "host/process/signals.h"

#include <stdlib.h>

#include <check.h>

START_TEST(a_terminals_signal_is_the_programs_already) {
    ck_assert_int_eq(ml_signal_decide(SIGINT, SI_KERNEL, 0, true), ML_SIGNAL_IGNORE);
    ck_assert_int_eq(ml_signal_decide(SIGQUIT, SI_KERNEL, 0, true), ML_SIGNAL_IGNORE);
    ck_assert_int_eq(ml_signal_decide(SIGTSTP, SI_KERNEL, 0, true), ML_SIGNAL_IGNORE);
    ck_assert_int_eq(ml_signal_decide(SIGWINCH, SI_KERNEL, 0, true), ML_SIGNAL_IGNORE);
}
END_TEST

START_TEST(somebodys_signal_goes_on_to_the_program) {
    static const int forwarded[] = {
        SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGTSTP, SIGWINCH, SIGVTALRM};
    for (size_t i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++) {
        ck_assert_int_eq(ml_signal_decide(forwarded[i], SI_USER, 0, true), ML_SIGNAL_FORWARD);
    }
    ck_assert_int_eq(ml_signal_decide(SIGRTMIN + 3, SI_QUEUE, 0, true), ML_SIGNAL_FORWARD);
}
END_TEST

START_TEST(without_the_program_only_requests_to_end_count) {
    ck_assert_int_eq(ml_signal_decide(SIGINT, SI_KERNEL, 0, false), ML_SIGNAL_END);
    ck_assert_int_eq(ml_signal_decide(SIGTERM, SI_USER, 0, false), ML_SIGNAL_END);
    ck_assert_int_eq(ml_signal_decide(SIGHUP, SI_USER, 0, false), ML_SIGNAL_END);
    ck_assert_int_eq(ml_signal_decide(SIGUSR1, SI_USER, 0, false), ML_SIGNAL_IGNORE);
    ck_assert_int_eq(ml_signal_decide(SIGTSTP, SI_KERNEL, 0, false), ML_SIGNAL_IGNORE);
}
END_TEST

START_TEST(children_and_the_dump_signal_are_the_hosts_own) {
    ck_assert_int_eq(ml_signal_decide(SIGCHLD, CLD_EXITED, 0, true), ML_SIGNAL_CHILDREN);
    ck_assert_int_eq(ml_signal_decide(SIGUSR2, SI_USER, SIGUSR2, true), ML_SIGNAL_DUMP);
    ck_assert_int_eq(ml_signal_decide(SIGUSR2, SI_USER, SIGUSR1, true), ML_SIGNAL_FORWARD);
    ck_assert_int_eq(ml_signal_decide(SIGPIPE, SI_USER, 0, true), ML_SIGNAL_IGNORE);
    ck_assert_int_eq(ml_signal_decide(SIGCONT, SI_USER, 0, true), ML_SIGNAL_IGNORE);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("signals");
    tcase_add_test(tcase, a_terminals_signal_is_the_programs_already);
    tcase_add_test(tcase, somebodys_signal_goes_on_to_the_program);
    tcase_add_test(tcase, without_the_program_only_requests_to_end_count);
    tcase_add_test(tcase, children_and_the_dump_signal_are_the_hosts_own);
    Suite *suite = suite_create("host/signals");
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
