#include "host/process/probe.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/suite.h"

static enum ml_image_kind probe(const char *program, const char *argument) {
    char *argv[] = {(char *)(uintptr_t)program, (char *)(uintptr_t)argument, NULL};
    return ml_probe_program(argv, NULL);
}

START_TEST(a_program_is_told_by_name_and_by_path) {
    ck_assert_int_eq(probe("true", NULL), ML_IMAGE_PRELOADABLE);
    ck_assert_int_eq(probe("/bin/true", NULL), ML_IMAGE_PRELOADABLE);
}
END_TEST

START_TEST(a_script_is_what_its_interpreter_is) {
    char folder[] = "/tmp/memlog-probe.XXXXXX";
    char path[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/script", folder);
    FILE *script = fopen(path, "w");
    ck_assert_ptr_nonnull(script);
    fputs("#!/bin/sh\nexit 3\n", script);
    fclose(script);
    ck_assert_int_eq(chmod(path, S_IRWXU), 0);
    ck_assert_int_eq(probe(path, NULL), ML_IMAGE_PRELOADABLE);
    unlink(path);
    rmdir(folder);
}
END_TEST

START_TEST(what_is_not_there_is_not_told) {
    ck_assert_int_eq(probe("/no/such/program", NULL), ML_IMAGE_GONE);
    ck_assert_int_eq(probe("/etc/passwd", NULL), ML_IMAGE_GONE);
}
END_TEST

START_TEST(nothing_of_the_program_runs_and_nobody_is_left) {
    char folder[] = "/tmp/memlog-probe.XXXXXX";
    char path[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/mark", folder);
    ck_assert_int_eq(probe("touch", path), ML_IMAGE_PRELOADABLE);
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
    ck_assert_int_eq(errno, ECHILD);
    rmdir(folder);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("probe");
    tcase_add_test(tcase, a_program_is_told_by_name_and_by_path);
    tcase_add_test(tcase, a_script_is_what_its_interpreter_is);
    tcase_add_test(tcase, what_is_not_there_is_not_told);
    tcase_add_test(tcase, nothing_of_the_program_runs_and_nobody_is_left);
    return run_suite("host/probe", tcase);
}
