#include "client/startup/lending.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <check.h>

#include "client/state/process.h"
#include "tests/suite.h"

static int pair[2];

/* The process has a connection, as after its Hello. */
static void connected(void) {
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    ck_assert(ml_process_file(pair[0], &ml_process.socket));
    atomic_store(&ml_process.socket_fd, pair[0]);
    ml_process.filters = 0;
}

static void closed(void) {
    (void)close(pair[0]);
    (void)close(pair[1]);
    atomic_store(&ml_process.socket_fd, -1);
}

START_TEST(a_connection_is_left_where_the_socket_is_not_seen_alone) {
    ck_assert_int_eq(ml_lending_find("/proc/self/stat"), ML_LENDING_NOT_NEEDED);
    ck_assert_int_eq(ml_lending_find("/memlog-is-not-there/s"), pair[0]);
    ml_process.filters = ML_FILTERS_NO_LENDING;
    ck_assert_int_eq(ml_lending_find("/memlog-is-not-there/s"), ML_LENDING_IMPOSSIBLE);
}
END_TEST

START_TEST(what_has_taken_its_number_is_not_left) {
    ck_assert_int_ge(dup2(pair[1], pair[0]), 0);
    ck_assert_int_eq(ml_lending_find("/memlog-is-not-there/s"), ML_LENDING_IMPOSSIBLE);
    ck_assert_int_eq(fcntl(pair[0], F_SETFD, FD_CLOEXEC), 0);
    ml_lending_begin(pair[0]);
    ck_assert_int_eq(fcntl(pair[0], F_GETFD), FD_CLOEXEC);
}
END_TEST

START_TEST(it_is_closed_in_every_other_exec) {
    ml_lending_begin(pair[0]);
    ck_assert_int_eq(fcntl(pair[0], F_GETFD), 0);
    ml_lending_end(pair[0]);
    ck_assert_int_eq(fcntl(pair[0], F_GETFD), FD_CLOEXEC);
    ml_lending_to_shells(pair[0], true);
    ck_assert_int_eq(fcntl(pair[0], F_GETFD), 0);
    ml_lending_begin(ML_LENDING_IMPOSSIBLE
    ); /* a program without memlog, while a shell is started */
    ck_assert_int_eq(fcntl(pair[0], F_GETFD), FD_CLOEXEC);
    ml_lending_to_shells(pair[0], false);
    ck_assert_int_eq(fcntl(pair[0], F_GETFD), FD_CLOEXEC);
}
END_TEST

START_TEST(the_word_names_the_file_that_the_number_was) {
    char word[ML_LENDING_WORD_BYTES + 8];
    int fd = -1;
    const size_t count = ml_lending_word(pair[0], word);
    ck_assert_uint_eq(count, strlen(word));
    (void)snprintf(word + count, sizeof(word) - count, "/s");
    ck_assert_str_eq(ml_lending_read(word, &fd), "/s");
    ck_assert_int_eq(fd, pair[0]);
    ck_assert_int_ge(dup2(pair[1], pair[0]), 0);
    ck_assert_str_eq(ml_lending_read(word, &fd), "/s");
    ck_assert_int_eq(fd, -1);
    ck_assert_uint_eq(ml_lending_word(ML_LENDING_NOT_NEEDED, word), 0);
    ck_assert_str_eq(word, "");
}
END_TEST

START_TEST(the_longest_word_has_room) {
    char word[ML_LENDING_WORD_BYTES];
    ml_process.socket = (struct ml_file){.device = UINT64_MAX, .inode = UINT64_MAX};
    ck_assert_uint_eq(ml_lending_word(INT32_MAX, word), strlen(word));
    ck_assert_str_eq(word, "2147483647.18446744073709551615.18446744073709551615:");
}
END_TEST

START_TEST(anything_else_is_a_path) {
    static const char *const paths[] = {
        "",
        "/tmp/memlog.1.2/3",
        "9",
        "9.",
        "9.1.2",
        "9.1.2/s",
        "9..2:/s",
        ".1.2:/s",
        "-9.1.2:/s",
        " 9.1.2:/s",
        "9.18446744073709551616.2:/s",
    };
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        int fd = 0;
        ck_assert_ptr_eq(ml_lending_read(paths[i], &fd), paths[i]);
        ck_assert_int_eq(fd, -1);
    }
    int fd = 0;
    ck_assert_str_eq(ml_lending_read("4294967296.1.2:/s", &fd), "/s"); /* no number of an int */
    ck_assert_int_eq(fd, -1);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("lending");
    tcase_add_checked_fixture(tcase, connected, closed);
    tcase_add_test(tcase, a_connection_is_left_where_the_socket_is_not_seen_alone);
    tcase_add_test(tcase, what_has_taken_its_number_is_not_left);
    tcase_add_test(tcase, it_is_closed_in_every_other_exec);
    tcase_add_test(tcase, the_word_names_the_file_that_the_number_was);
    tcase_add_test(tcase, the_longest_word_has_room);
    tcase_add_test(tcase, anything_else_is_a_path);
    return run_suite("client/lending", tcase);
}
