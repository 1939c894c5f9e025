#include "host/engine/dump/folder.h"
#include "tests/suite.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <check.h>

static char place[] = "/tmp/dumps-test.XXXXXX";
static struct ml_dumps dumps;
static struct ml_error_message error;

static void setup(void) {
    (void)snprintf(place, sizeof(place), "%s", "/tmp/dumps-test.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(place));
    ck_assert_int_eq(chdir(place), 0);
    error = (struct ml_error_message){.text = ""};
}

static void teardown(void) {
    char command[64];
    (void)snprintf(command, sizeof(command), "rm -rf %s", place);
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(system(command), 0);
}

static bool is_in(const char *folder, const char *name) {
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%.100s/%s", folder, name);
    return access(path, F_OK) == 0;
}

START_TEST(a_dump_gets_its_name_only_when_it_is_whole) {
    struct ml_dump_file file;
    ck_assert_int_eq(ml_dumps_open(&dumps, NULL, "/usr/bin/prog", 42, &error), ML_OK);
    ck_assert_str_eq(dumps.folder, "memlog.prog.42");
    ck_assert_int_eq(ml_dumps_begin(&dumps, MEMLOG_SERVICE_DUMP_REASON_EXIT, &file, &error), ML_OK);
    ck_assert_str_eq(file.path, "memlog.prog.42/0001.exit.pftrace");
    ck_assert_int_ne(access(file.path, F_OK), 0);
    ck_assert_int_eq(write(file.fd, "x", 1), 1);
    ck_assert_int_eq(ml_dumps_commit(&file, &error), ML_OK);
    ck_assert_int_eq(access(file.path, F_OK), 0);
    ck_assert(!is_in("memlog.prog.42", file.temporary));
    ck_assert_int_eq(
        ml_dumps_begin(&dumps, MEMLOG_SERVICE_DUMP_REASON_SIGNAL, &file, &error), ML_OK
    );
    ck_assert_str_eq(file.path, "memlog.prog.42/0002.signal.pftrace");
    ml_dumps_discard(&file);
    ck_assert(!is_in("memlog.prog.42", file.temporary));
    ml_dumps_close(&dumps);
    ck_assert_int_eq(access("memlog.prog.42/0001.exit.pftrace", F_OK), 0);
}
END_TEST

START_TEST(a_dump_that_was_cut_off_is_kept_under_a_name_that_says_so) {
    struct ml_dump_file file;
    ck_assert_int_eq(ml_dumps_open(&dumps, "d", "prog", 1, &error), ML_OK);
    ck_assert_int_eq(ml_dumps_begin(&dumps, MEMLOG_SERVICE_DUMP_REASON_EXIT, &file, &error), ML_OK);
    ck_assert_int_eq(write(file.fd, "x", 1), 1);
    ck_assert_int_eq(ml_dumps_keep_cut(&file, &error), ML_OK);
    ck_assert_str_eq(file.path, "d/0001.exit.pftrace.cut");
    ck_assert_int_eq(access(file.path, F_OK), 0);
    ck_assert_int_ne(access("d/0001.exit.pftrace", F_OK), 0);
    ck_assert(!is_in("d", file.temporary));
    ml_dumps_close(&dumps);
    ck_assert_int_eq(ml_dumps_open(&dumps, "d", "prog", 1, &error), ML_ENV_REFUSED);
}
END_TEST

START_TEST(a_folder_with_dumps_is_refused_and_left_as_it_is) {
    struct ml_dump_file file;
    ck_assert_int_eq(mkdir("d", 0777), 0);
    ck_assert_int_eq(ml_dumps_open(&dumps, "d", "prog", 1, &error), ML_OK);
    ck_assert_int_eq(ml_dumps_begin(&dumps, MEMLOG_SERVICE_DUMP_REASON_EXIT, &file, &error), ML_OK);
    ck_assert_int_eq(ml_dumps_commit(&file, &error), ML_OK);
    ml_dumps_close(&dumps);
    ck_assert_int_eq(ml_dumps_open(&dumps, "d", "prog", 1, &error), ML_ENV_REFUSED);
    ck_assert_ptr_nonnull(strstr(error.text, "d holds dumps already (0001.exit.pftrace)"));
    ml_dumps_close(&dumps);
    ck_assert_int_eq(access("d/0001.exit.pftrace", F_OK), 0);
}
END_TEST

START_TEST(a_file_that_appears_meanwhile_is_not_overwritten) {
    struct ml_dump_file file;
    ck_assert_int_eq(ml_dumps_open(&dumps, "d", "prog", 1, &error), ML_OK);
    ck_assert_int_eq(ml_dumps_begin(&dumps, MEMLOG_SERVICE_DUMP_REASON_EXIT, &file, &error), ML_OK);
    FILE *other = fopen("d/0001.exit.pftrace", "w");
    ck_assert_ptr_nonnull(other);
    (void)fputs("other", other);
    (void)fclose(other);
    ck_assert_int_eq(ml_dumps_commit(&file, &error), ML_ENV_SYSTEM);
    struct stat facts;
    ck_assert_int_eq(stat("d/0001.exit.pftrace", &facts), 0);
    ck_assert_int_eq(facts.st_size, 5);
    ml_dumps_discard(&file);
}
END_TEST

START_TEST(an_empty_folder_of_ours_goes_again_and_one_of_theirs_stays) {
    ck_assert_int_eq(ml_dumps_open(&dumps, "ours", "prog", 1, &error), ML_OK);
    ml_dumps_close(&dumps);
    ck_assert_int_ne(access("ours", F_OK), 0);
    ck_assert_int_eq(mkdir("theirs", 0777), 0);
    ck_assert_int_eq(ml_dumps_open(&dumps, "theirs", "prog", 1, &error), ML_OK);
    ml_dumps_close(&dumps);
    ck_assert_int_eq(access("theirs", F_OK), 0);
}
END_TEST

START_TEST(a_folder_that_cannot_be_made_is_named) {
    ck_assert_int_eq(ml_dumps_open(&dumps, "no/place", "prog", 1, &error), ML_ENV_SYSTEM);
    ck_assert_ptr_nonnull(strstr(error.text, "cannot make the folder no/place"));
    struct ml_error_message second = {.text = ""};
    ck_assert_int_eq(ml_dumps_open(&dumps, "/etc/passwd", "prog", 1, &second), ML_ENV_SYSTEM);
    ck_assert_ptr_nonnull(strstr(second.text, "/etc/passwd"));
}
END_TEST

START_TEST(a_folder_that_is_a_link_is_refused_and_named) {
    ck_assert_int_eq(mkdir("real", 0777), 0);
    ck_assert_int_eq(symlink("real", "link"), 0);
    ck_assert_int_eq(ml_dumps_open(&dumps, "link", "prog", 1, &error), ML_ENV_REFUSED);
    ck_assert_ptr_nonnull(strstr(error.text, "link is a link"));
    ck_assert_int_eq(ml_dumps_open(&dumps, "link//", "prog", 1, &error), ML_ENV_REFUSED);
    ck_assert_int_eq(symlink("nowhere", "memlog.prog.7"), 0);
    ck_assert_int_eq(ml_dumps_open(&dumps, NULL, "prog", 7, &error), ML_ENV_REFUSED);
    ck_assert_int_ne(access("nowhere", F_OK), 0);
    ck_assert_int_eq(ml_dumps_open(&dumps, "real/", "prog", 1, &error), ML_OK);
    ml_dumps_close(&dumps);
}
END_TEST

START_TEST(a_folder_of_another_user_is_refused_also_by_root) {
    ck_assert_int_eq(mkdir("theirs", 0777), 0);
    if (chown("theirs", 12345, 12345) == 0) {
        ck_assert_int_eq(ml_dumps_open(&dumps, "theirs", "prog", 1, &error), ML_ENV_REFUSED);
        ck_assert_ptr_nonnull(strstr(error.text, "theirs belongs to another user (12345)"));
        ck_assert_ptr_nonnull(strstr(error.text, "-o"));
        ck_assert_int_eq(rmdir("theirs"), 0); /* nothing was left in it */
    }
}
END_TEST

START_TEST(dumps_are_their_users_alone_and_follow_no_link) {
    struct ml_dump_file file;
    struct stat facts;
    (void)umask(0);
    ck_assert_int_eq(ml_dumps_open(&dumps, "d", "prog", 1, &error), ML_OK);
    ck_assert_int_eq(stat("d", &facts), 0);
    ck_assert_uint_eq(facts.st_mode & 0777, 0700);
    ck_assert_int_eq(symlink("/tmp/never", "d/.0001.exit.pftrace.part"), 0);
    ck_assert_int_eq(
        ml_dumps_begin(&dumps, MEMLOG_SERVICE_DUMP_REASON_EXIT, &file, &error), ML_ENV_SYSTEM
    );
    (void)umask(0377);
    ck_assert_int_eq(ml_dumps_begin(&dumps, MEMLOG_SERVICE_DUMP_REASON_EXIT, &file, &error), ML_OK);
    ck_assert_int_eq(fstat(file.fd, &facts), 0);
    ck_assert_uint_eq(facts.st_mode & 0777, 0600);
    /* The folder's name leads elsewhere meanwhile: the dump does not. */
    ck_assert_int_eq(rename("d", "moved"), 0);
    ck_assert_int_eq(symlink("/tmp", "d"), 0);
    ck_assert_int_eq(ml_dumps_commit(&file, &error), ML_OK);
    ck_assert_int_eq(access("moved/0002.exit.pftrace", F_OK), 0);
    ml_dumps_close(&dumps);
}
END_TEST

START_TEST(a_log_is_new_or_our_own_and_never_behind_a_link) {
    struct stat facts;
    ck_assert_int_eq(ml_dumps_open(&dumps, "d", "prog", 1, &error), ML_OK);
    (void)umask(0);
    int fd = ml_dumps_log(&dumps, "a.log");
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fstat(fd, &facts), 0);
    ck_assert_uint_eq(facts.st_mode & 0777, 0600);
    ck_assert_int_eq(write(fd, "1", 1), 1);
    (void)close(fd);
    fd = ml_dumps_log(&dumps, "a.log");
    ck_assert_int_eq(write(fd, "2", 1), 1);
    ck_assert_int_eq(fstat(fd, &facts), 0);
    ck_assert_int_eq(facts.st_size, 2);
    (void)close(fd);
    ck_assert_int_eq(link("d/a.log", "other name"), 0);
    ck_assert_int_eq(ml_dumps_log(&dumps, "a.log"), -1);
    ck_assert_int_eq(symlink("../other name", "d/b.log"), 0);
    ck_assert_int_eq(ml_dumps_log(&dumps, "b.log"), -1);
    ck_assert_int_eq(mkfifo("d/c.log", 0600), 0);
    ck_assert_int_eq(ml_dumps_log(&dumps, "c.log"), -1);
    ml_dumps_close(&dumps);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("dumps");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_dump_gets_its_name_only_when_it_is_whole);
    tcase_add_test(tcase, a_dump_that_was_cut_off_is_kept_under_a_name_that_says_so);
    tcase_add_test(tcase, a_folder_with_dumps_is_refused_and_left_as_it_is);
    tcase_add_test(tcase, a_file_that_appears_meanwhile_is_not_overwritten);
    tcase_add_test(tcase, an_empty_folder_of_ours_goes_again_and_one_of_theirs_stays);
    tcase_add_test(tcase, a_folder_that_cannot_be_made_is_named);
    tcase_add_test(tcase, a_folder_that_is_a_link_is_refused_and_named);
    tcase_add_test(tcase, a_folder_of_another_user_is_refused_also_by_root);
    tcase_add_test(tcase, dumps_are_their_users_alone_and_follow_no_link);
    tcase_add_test(tcase, a_log_is_new_or_our_own_and_never_behind_a_link);
    return run_suite("host/engine/dump/folder", tcase);
}
