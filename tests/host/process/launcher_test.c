#include "host/process/launcher.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <check.h>

#include "host/process/info.h"
#include "tests/suite.h"

START_TEST(ours_comes_first_in_a_preload_that_is_there) {
    char *before[] = {
        (char[]){"A=1"},
        (char[]){"LD_PRELOAD=/x.so /y.so"},
        (char[]){"MEMLOG_SOCKET=old"},
        (char[]){"B=2"},
        NULL};
    char **after = ml_launcher_environment(before, "/m.so", "/s");
    ck_assert_str_eq(after[0], "A=1");
    ck_assert_str_eq(after[1], "B=2");
    ck_assert_str_eq(after[2], "LD_PRELOAD=/m.so:/x.so /y.so");
    ck_assert_str_eq(after[3], "MEMLOG_SOCKET=/s");
    ck_assert_ptr_null(after[4]);
    free(after);
}
END_TEST

START_TEST(an_empty_preload_counts_as_none) {
    char *before[] = {(char[]){"LD_PRELOAD="}, NULL};
    char **after = ml_launcher_environment(before, "/m.so", "/s");
    ck_assert_str_eq(after[0], "LD_PRELOAD=/m.so");
    ck_assert_str_eq(after[1], "MEMLOG_SOCKET=/s");
    ck_assert_ptr_null(after[2]);
    free(after);
}
END_TEST

static struct ml_launched fork_program(char *const *argv, struct ml_inherited *inherited) {
    struct ml_launched launched;
    struct ml_error_message error = {.text = ""};
    ml_inherited_take(inherited);
    struct ml_launch launch = {.argv = argv, .environment = environ, .inherited = inherited};
    ck_assert_int_eq(ml_launcher_fork(&launch, &launched, &error), ML_OK);
    return launched;
}

START_TEST(a_released_program_runs_and_its_end_is_known) {
    char *argv[] = {(char[]){"sh"}, (char[]){"-c"}, (char[]){"exit 7"}, NULL};
    struct ml_inherited inherited;
    struct ml_launched launched = fork_program(argv, &inherited);
    int error_number = -1;
    ml_launcher_release(&launched, &error_number);
    ck_assert_int_eq(error_number, 0);
    siginfo_t info;
    ck_assert_int_eq(waitid(P_PID, (id_t)launched.pid, &info, WEXITED | WNOWAIT), 0);
    struct ml_ending ending = ml_process_ending(launched.pid, -1);
    ck_assert(ending.known);
    ck_assert_int_eq(ml_ending_exit_code(&ending), 7);
    ck_assert_int_eq(waitpid(launched.pid, NULL, 0), launched.pid);
}
END_TEST

START_TEST(a_program_that_cannot_run_says_why) {
    static const struct {
        const char *program;
        int error_number;
        int exit_code;
    } cases[] = {{"/nonexistent/x", ENOENT, 127}, {"/etc/passwd", EACCES, 126}, {"/", EACCES, 126}};
    for (size_t i = 0; i < 3; i++) {
        char *argv[] = {strdup(cases[i].program), NULL};
        struct ml_inherited inherited;
        struct ml_launched launched = fork_program(argv, &inherited);
        int error_number = 0;
        ml_launcher_release(&launched, &error_number);
        ck_assert_int_eq(error_number, cases[i].error_number);
        ck_assert_int_eq(ml_launcher_exit_code(error_number), cases[i].exit_code);
        ck_assert_int_eq(waitpid(launched.pid, NULL, 0), launched.pid);
        free(argv[0]);
    }
}
END_TEST

START_TEST(a_cancelled_program_has_never_run) {
    char *argv[] = {(char[]){"touch"}, (char[]){"memlog-launcher-test-file"}, NULL};
    struct ml_inherited inherited;
    struct ml_launched launched = fork_program(argv, &inherited);
    ml_launcher_cancel(&launched);
    ck_assert_int_ne(access("memlog-launcher-test-file", F_OK), 0);
    ck_assert_int_eq(kill(launched.pid, 0), -1);
}
END_TEST

START_TEST(what_a_loader_reads_is_kept_from_memlogs_own_programs) {
    char preload[] = "LD_PRELOAD=/lib/libasan.so.8";
    char home[] = "HOME=/root";
    char audit[] = "LD_AUDIT=x";
    char *environment[] = {preload, home, audit, NULL};
    char **copy = ml_launcher_own_environment(environment);
    ml_launcher_forget_loader(environment);
    ck_assert_ptr_eq(environment[0], home);
    ck_assert_ptr_null(environment[1]);
    home[0] = 'h'; /* the copy is its own */
    ck_assert_str_eq(copy[0], "HOME=/root");
    ck_assert_ptr_null(copy[1]);
    free(copy);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("launcher");
    tcase_add_test(tcase, ours_comes_first_in_a_preload_that_is_there);
    tcase_add_test(tcase, an_empty_preload_counts_as_none);
    tcase_add_test(tcase, a_released_program_runs_and_its_end_is_known);
    tcase_add_test(tcase, a_program_that_cannot_run_says_why);
    tcase_add_test(tcase, a_cancelled_program_has_never_run);
    tcase_add_test(tcase, what_a_loader_reads_is_kept_from_memlogs_own_programs);
    return run_suite("host/launcher", tcase);
}
