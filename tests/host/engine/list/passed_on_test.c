#include "host/engine/list/passed_on.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <check.h>

#include "tests/suite.h"

#define PATH "/tmp/memlog.1.x/secret"

/* A text with its last NUL, as the kernel shows an environment. */
#define PASSED(text) ml_passed_on_parse(text, sizeof(text), PATH)

START_TEST(finds_the_socket_of_this_host_with_and_without_a_connection) {
    ck_assert(PASSED("A=1\0MEMLOG_SOCKET=" PATH "\0B=2").has_socket);
    ck_assert(!PASSED("MEMLOG_SOCKET=" PATH).has_connection);
    const struct ml_passed_on left = PASSED("MEMLOG_SOCKET=900.8.123:" PATH);
    ck_assert(left.is_known && left.has_socket && left.has_connection && !left.has_another);
}
END_TEST

START_TEST(takes_no_other_socket_for_it) {
    static const char *const others[] = {
        "MEMLOG_SOCKET=", "MEMLOG_SOCKET=/x", "MEMLOG_SOCKET=/x" PATH, "MEMLOG_SOCKET=" PATH "2"};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        const struct ml_passed_on passed =
            ml_passed_on_parse(others[i], strlen(others[i]) + 1, PATH);
        ck_assert_msg(passed.has_another && !passed.has_socket, "%s", others[i]);
    }
    const struct ml_passed_on none = PASSED("MEMLOG_SOCKETS=" PATH "\0XMEMLOG_SOCKET=" PATH);
    ck_assert(!none.has_another && !none.has_socket);
    ck_assert(!ml_passed_on_parse("MEMLOG_SOCKET=", sizeof("MEMLOG_SOCKET="), "").has_socket);
}
END_TEST

START_TEST(finds_the_library_among_others_and_reads_over_what_was_taken_out) {
    ck_assert(PASSED("LD_PRELOAD=/m/$PLATFORM/libmemlog.so:/other.so").has_library);
    ck_assert(PASSED("\0\0\0\0\0LD_PRELOAD=/m/libmemlog.so").has_library);
    ck_assert(!PASSED("LD_PRELOAD=/other.so\0X=libmemlog.so").has_library);
    const struct ml_passed_on nothing = ml_passed_on_parse("", 0, PATH);
    ck_assert(nothing.is_known && !nothing.has_library && !nothing.has_socket);
}
END_TEST

START_TEST(of_nobody_nothing_is_known) {
    enum { NOBODY = 0x3fffffff };
    ck_assert(!ml_passed_on_look(NOBODY, PATH).is_known);
    ck_assert(ml_passed_on_look(getpid(), PATH).is_known);
    ck_assert_uint_eq(ml_passed_on_filters(NOBODY), 0);
    ck_assert_uint_eq(ml_passed_on_own_pid(NOBODY), 0);
    ck_assert_uint_eq(ml_passed_on_own_pid(getpid()), (unsigned)getpid());
    ck_assert(!ml_passed_on_misses(NOBODY, "/not/there"));
}
END_TEST

START_TEST(sees_a_library_under_the_name_of_its_platform) {
    ck_assert(ml_passed_on_misses(getpid(), "/not/$PLATFORM/there"));
    ck_assert(!ml_passed_on_misses(getpid(), "/proc"));
    ck_assert(!ml_passed_on_misses(getpid(), "")); /* nothing is loaded by it */
}
END_TEST

static void let_all_through(void) {
    struct sock_filter line = {.code = BPF_RET | BPF_K, .k = SECCOMP_RET_ALLOW};
    const struct sock_fprog program = {.len = 1, .filter = &line};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        _exit(1);
    }
}

START_TEST(counts_the_filters_that_a_process_has_beyond_its_hosts) {
    int ready[2];
    int done[2];
    char byte = 0;
    ck_assert(pipe(ready) == 0 && pipe(done) == 0);
    const pid_t child = fork();
    if (child == 0) {
        let_all_through();
        let_all_through();
        _exit(write(ready[1], "x", 1) == 1 && read(done[0], &byte, 1) == 1 ? 0 : 2);
    }
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    ck_assert_uint_ge(ml_passed_on_filters(child), 1); /* 1 stands for any before Linux 5.9 */
    ck_assert_uint_le(ml_passed_on_filters(child), 2);
    ck_assert_uint_eq(ml_passed_on_filters(getpid()), 0);
    int status = -1;
    ck_assert_int_eq(write(done[1], "x", 1), 1);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("passed_on");
    tcase_add_test(tcase, finds_the_socket_of_this_host_with_and_without_a_connection);
    tcase_add_test(tcase, takes_no_other_socket_for_it);
    tcase_add_test(tcase, finds_the_library_among_others_and_reads_over_what_was_taken_out);
    tcase_add_test(tcase, of_nobody_nothing_is_known);
    tcase_add_test(tcase, sees_a_library_under_the_name_of_its_platform);
    tcase_add_test(tcase, counts_the_filters_that_a_process_has_beyond_its_hosts);
    return run_suite("host/passed_on", tcase);
}
