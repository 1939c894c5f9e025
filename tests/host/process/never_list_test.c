#include "host/process/never_list.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <check.h>

#include "tests/suite.h"

static char folder[64];
static char path[96];
static struct ml_never_list list;
static struct ml_error_message error;

static void set_up(void) {
    (void)snprintf(folder, sizeof(folder), "/tmp/memlog-never-test.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chmod(folder, 0755), 0);
    (void)snprintf(path, sizeof(path), "%s/never", folder);
    error.text[0] = '\0';
}

static void tear_down(void) {
    ml_never_list_fini(&list);
    (void)unlink(path);
    (void)rmdir(folder);
}

static void write_list(const char *bytes, size_t count, mode_t mode) {
    (void)unlink(path);
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, count, file), count);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(chmod(path, mode), 0);
}

static enum ml_status load(void) {
    ml_never_list_fini(&list);
    error.text[0] = '\0';
    return ml_never_list_load(&list, folder, "never", geteuid(), &error);
}

START_TEST(patterns_are_matched_against_what_is_run_and_what_it_says_of_itself) {
    static const char text[] = "# keys\n\n  ^/usr/bin/gpg(-agent)?$  \r\n#sshd\n--type=secret$";
    write_list(text, sizeof(text) - 1, 0644);
    ck_assert_int_eq(load(), ML_OK);
    ck_assert_uint_eq(ml_never_list_count(&list), 2);
    ck_assert_int_eq(ml_never_list_match(&list, "whatever it says", "/usr/bin/gpg-agent"), 3);
    ck_assert_int_eq(ml_never_list_match(&list, "prog --type=secret", "/usr/bin/prog"), 5);
    ck_assert_int_eq(ml_never_list_match(&list, "/usr/bin/gpg", ""), 3);
    ck_assert_int_eq(ml_never_list_match(&list, "sshd # keys", "/usr/sbin/sshd"), 0);
    ck_assert_int_eq(ml_never_list_match(&list, NULL, NULL), 0);
    ck_assert_str_eq(list.path, path);
}
END_TEST

START_TEST(no_list_forbids_nothing) {
    ck_assert_int_eq(load(), ML_OK);
    ck_assert_str_eq(list.path, "");
    ck_assert_int_eq(ml_never_list_match(&list, "a", "/a"), 0);
    ck_assert_int_eq(ml_never_list_load(&list, "/nowhere at all", "never", 0, &error), ML_OK);
    ck_assert_uint_eq(ml_never_list_count(&list), 0);
    write_list("", 0, 0600);
    ck_assert_int_eq(load(), ML_OK);
    ck_assert_uint_eq(ml_never_list_count(&list), 0);
    /* One that somebody has named must be there. */
    ml_never_list_fini(&list);
    ck_assert_int_eq(ml_never_list_load_file(&list, "/nowhere at all", 0, &error), ML_ENV_SYSTEM);
    ck_assert_ptr_nonnull(strstr(error.text, "/nowhere at all: No such file"));
}
END_TEST

START_TEST(a_wrong_line_is_named_and_the_whole_list_is_refused) {
    write_list("fine\n# (\n[a\n", 12, 0644);
    ck_assert_int_eq(load(), ML_PEER_FORM);
    ck_assert_ptr_nonnull(strstr(error.text, "never, line 3: '[a' is no regular expression"));
    ck_assert_uint_eq(ml_never_list_count(&list), 0);
}
END_TEST

START_TEST(a_list_that_others_may_write_is_refused) {
    for (unsigned i = 0; i < 2; i++) {
        write_list("a\n", 2, i == 0 ? 0664 : 0646);
        ck_assert_int_eq(load(), ML_ENV_REFUSED);
        ck_assert_ptr_nonnull(strstr(error.text, path));
        ck_assert_ptr_nonnull(strstr(error.text, "chmod go-w"));
    }
    write_list("a\n", 2, 0644);
    ck_assert_int_eq(load(), ML_OK);
    ck_assert_int_eq(chmod(folder, 0777), 0);
    ck_assert_int_eq(load(), ML_ENV_REFUSED);
    ck_assert_ptr_nonnull(strstr(error.text, "chmod go-w"));
    ck_assert_int_eq(chmod(folder, 0755), 0);
    /* Somebody else's. Only root can make one that is not his. */
    if (geteuid() == 0) {
        ck_assert_int_eq(chown(path, 4711, 4711), 0);
        ck_assert_int_eq(load(), ML_ENV_REFUSED);
        ck_assert_int_eq(ml_never_list_load(&list, folder, "never", 4711, &error), ML_OK);
    }
}
END_TEST

START_TEST(what_is_no_plain_file_is_refused_and_never_waited_for) {
    ck_assert_int_eq(mkfifo(path, 0644), 0);
    ck_assert_int_eq(load(), ML_ENV_REFUSED);
    (void)unlink(path);
    ck_assert_int_eq(symlink("/etc/passwd", path), 0);
    ck_assert_int_eq(load(), ML_ENV_SYSTEM);
    ck_assert_ptr_nonnull(strstr(error.text, "so nothing is"));
    (void)unlink(path);
    ck_assert_int_eq(mkdir(path, 0755), 0);
    ck_assert_int_eq(load(), ML_ENV_REFUSED);
    (void)rmdir(path);
}
END_TEST

START_TEST(bounds_and_bytes_that_are_no_text_are_refused) {
    static char bytes[ML_NEVER_LIST_MAX_BYTES + 1];
    write_list("a\0b\n", 4, 0644);
    ck_assert_int_eq(load(), ML_PEER_LIMIT);
    memset(bytes, 'x', sizeof(bytes));
    bytes[0] = '#';
    write_list(bytes, sizeof(bytes), 0644);
    ck_assert_int_eq(load(), ML_PEER_LIMIT);
    write_list(bytes, sizeof(bytes) - 1, 0644);
    ck_assert_int_eq(load(), ML_OK);
    memset(bytes, '\n', sizeof(bytes));
    write_list(bytes, ML_NEVER_LIST_MAX_LINES, 0644);
    ck_assert_int_eq(load(), ML_PEER_LIMIT);
    write_list(bytes, ML_NEVER_LIST_MAX_LINES - 1, 0644);
    ck_assert_int_eq(load(), ML_OK);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("never_list");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, patterns_are_matched_against_what_is_run_and_what_it_says_of_itself);
    tcase_add_test(tcase, no_list_forbids_nothing);
    tcase_add_test(tcase, a_wrong_line_is_named_and_the_whole_list_is_refused);
    tcase_add_test(tcase, a_list_that_others_may_write_is_refused);
    tcase_add_test(tcase, what_is_no_plain_file_is_refused_and_never_waited_for);
    tcase_add_test(tcase, bounds_and_bytes_that_are_no_text_are_refused);
    return run_suite("host/never_list", tcase);
}
