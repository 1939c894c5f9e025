#include "tools/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <check.h>

static char folder[64];

static const char *in_folder(const char *name) {
    static char path[128];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void setup(void) {
    snprintf(folder, sizeof folder, "/tmp/memlog-test.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void teardown(void) {
    unlink(in_folder("out"));
    unlink(in_folder("out.part"));
    rmdir(folder);
}

static bool has_landlock(void) {
    return syscall(SYS_landlock_create_ruleset, NULL, 0, 1 /* its version */) > 0;
}

START_TEST(files_can_be_read) {
    int fd = 0;

    ml_confine(NULL);
    fd = open("/proc/self/exe", O_RDONLY);
    ck_assert_int_ge(fd, 0);
    close(fd);
}
END_TEST

START_TEST(no_file_can_be_written) {
    if (!has_landlock()) {
        return;
    }
    ml_confine(NULL);
    ck_assert_int_eq(open(in_folder("out"), O_WRONLY | O_CREAT, 0600), -1);
    ck_assert_int_eq(errno, EACCES);
}
END_TEST

START_TEST(the_output_can_be_written_renamed_and_removed_and_nothing_else) {
    int fd = 0;
    char part[128];

    ml_confine(in_folder("out"));
    snprintf(part, sizeof part, "%s", in_folder("out.part"));
    fd = open(part, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_ge(fd, 0);
    close(fd);
    ck_assert_int_eq(rename(part, in_folder("out")), 0);
    ck_assert_int_eq(unlink(in_folder("out")), 0);
    if (has_landlock()) {
        ck_assert_int_eq(open("/tmp/memlog-test-elsewhere", O_WRONLY | O_CREAT, 0600), -1);
    }
}
END_TEST

#ifndef __SANITIZE_ADDRESS__
START_TEST(no_network_and_no_other_process) {
    char *const words[] = {(char[]){"true"}, NULL};

    ml_confine(NULL);
    ck_assert_int_eq(socket(AF_INET, SOCK_STREAM, 0), -1);
    ck_assert_int_eq(errno, EPERM);
    ck_assert_int_eq(socket(AF_UNIX, SOCK_STREAM, 0), -1);
    ck_assert_int_eq(execv("/bin/true", words), -1);
    ck_assert_int_eq(errno, EPERM);
    ck_assert_int_eq(fork(), -1);
    ck_assert_int_eq(errno, EPERM);
    ck_assert_int_eq(kill(getppid(), 0), -1);
    ck_assert_int_eq(errno, EPERM);
}
END_TEST
#endif

int main(void) {
    Suite *suite = suite_create("tools/confine");
    TCase *tests = tcase_create("all");
    SRunner *runner = srunner_create(suite);
    int failed = 0;

    suite_add_tcase(suite, tests);
    tcase_add_unchecked_fixture(tests, setup, teardown);
    tcase_add_test(tests, files_can_be_read);
    tcase_add_test(tests, no_file_can_be_written);
    tcase_add_test(tests, the_output_can_be_written_renamed_and_removed_and_nothing_else);
#ifndef __SANITIZE_ADDRESS__
    tcase_add_test(tests, no_network_and_no_other_process);
#endif
    srunner_set_fork_status(runner, CK_FORK); /* the walls stay up */
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
