#include "host/upload/spool.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/suite.h"

static char folder[] = "/tmp/memlog-spool-test.XXXXXX";
static struct ml_spool spool;

static void set_up(void) {
    struct ml_error_message error = {.text = ""};
    char below[64];
    (void)strcpy(folder + strlen(folder) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(below, sizeof(below), "%s/a/b", folder);
    ck_assert_int_eq(ml_spool_open(&spool, below, &error), ML_OK);
}

static void tear_down(void) {
    char command[128];
    ml_spool_close(&spool);
    (void)snprintf(command, sizeof(command), "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static struct ml_spool_item put(const char *target, uint64_t next_ms, size_t bytes) {
    struct ml_spool_item item = {.tries = 3, .harder = ML_SPOOL_HARDER_DONE, .next_ms = next_ms};
    char path[PATH_MAX];
    ck_assert(ml_spool_new_id(item.id));
    (void)snprintf(item.target, sizeof(item.target), "%s", target);
    (void)snprintf(item.dump, sizeof(item.dump), "/some where/0001.threshold.pftrace");
    ml_spool_body(&spool, item.id, path);
    const int fd = open(path, O_WRONLY | O_CREAT, 0600);
    ck_assert_int_eq(ftruncate(fd, (off_t)bytes), 0);
    close(fd);
    ck_assert_int_eq(ml_spool_keep(&spool, &item), ML_OK);
    return item;
}

START_TEST(what_was_promised_is_found_again_the_first_due_first) {
    struct ml_spool_item found;
    unsigned count = 0;
    ck_assert(!ml_spool_next(&spool, "http://a/", &found, &count));
    (void)put("http://a/", 500, 1);
    const struct ml_spool_item first = put("http://a/", 400, 1);
    (void)put("http://b/", 100, 1);
    ck_assert(ml_spool_next(&spool, "http://a/", &found, &count));
    ck_assert_uint_eq(count, 2);
    ck_assert_str_eq(found.id, first.id);
    ck_assert_str_eq(found.dump, first.dump);
    ck_assert_uint_eq(found.tries, 3);
    ck_assert_int_eq(found.harder, ML_SPOOL_HARDER_DONE);
    ck_assert_uint_eq(found.next_ms, 400);
    ml_spool_remove(&spool, first.id);
    ck_assert(ml_spool_next(&spool, "http://a/", &found, &count));
    ck_assert_uint_eq(count, 1);
}
END_TEST

START_TEST(what_is_torn_or_strange_is_no_report) {
    struct ml_spool_item found;
    unsigned count = 0;
    char path[PATH_MAX];
    const struct ml_spool_item item = put("t/", 1, 1);
    ml_spool_body(&spool, item.id, path);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert(!ml_spool_next(&spool, "t/", &found, &count));
    (void)snprintf(
        path, sizeof(path), "%.4000s/%s", spool.folder, "00000000000000000000000000000000.job"
    );
    FILE *file = fopen(path, "w");
    fputs("target t/\n", file);
    fclose(file);
    ck_assert(!ml_spool_next(&spool, "t/", &found, &count));
}
END_TEST

START_TEST(a_folder_that_others_may_write_in_is_refused) {
    struct ml_spool other;
    struct ml_error_message error = {.text = ""};
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%.4000s/open", spool.folder);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    ck_assert_int_eq(chmod(path, 0777), 0);
    ck_assert_int_eq(ml_spool_open(&other, path, &error), ML_ENV_REFUSED);
    ck_assert_ptr_nonnull(strstr(error.text, path));
    ck_assert_ptr_nonnull(strstr(error.text, "--upload-spool="));
    ck_assert_int_eq(chmod(path, 0700), 0);
    if (chown(path, 12345, 12345) == 0) {
        ck_assert_int_eq(ml_spool_open(&other, path, &error), ML_ENV_REFUSED);
    }
}
END_TEST

START_TEST(it_is_bounded_by_bytes_and_by_number) {
    ck_assert(ml_spool_has_room(&spool, ML_SPOOL_MAX_BYTES));
    ck_assert(!ml_spool_has_room(&spool, ML_SPOOL_MAX_BYTES + 1));
    (void)put("t/", 1, 1000);
    ck_assert(!ml_spool_has_room(&spool, ML_SPOOL_MAX_BYTES));
    ck_assert(ml_spool_has_room(&spool, ML_SPOOL_MAX_BYTES - 1000));
    for (unsigned i = 1; i < ML_SPOOL_ITEMS_MAX; i++) {
        ck_assert(ml_spool_has_room(&spool, 1));
        (void)put("t/", 1, 1);
    }
    ck_assert(!ml_spool_has_room(&spool, 1));
}
END_TEST

START_TEST(what_has_arrived_in_parts_is_remembered) {
    struct ml_spool_item item = put("s3://b", 5, 1);
    struct ml_spool_item found;
    unsigned count = 0;
    (void)strcpy(item.upload_id, "up/load+=.1");
    (void)strcpy(item.program, "a program");
    item.made_ms = 1234567890123;
    (void)strcpy(item.etags[0], "\"0a\"");
    (void)strcpy(item.etags[1], "\"0b\"");
    item.parts = 2;
    item.harder = ML_SPOOL_HARDER_WANTED;
    ck_assert_int_eq(ml_spool_keep(&spool, &item), ML_OK);
    ck_assert(ml_spool_next(&spool, "s3://b", &found, &count));
    ck_assert_str_eq(found.upload_id, item.upload_id);
    ck_assert_str_eq(found.program, "a program");
    ck_assert_uint_eq(found.made_ms, 1234567890123);
    ck_assert_uint_eq(found.parts, 2);
    ck_assert_str_eq(found.etags[0], "\"0a\"");
    ck_assert_str_eq(found.etags[1], "\"0b\"");
    ck_assert_int_eq(found.harder, ML_SPOOL_HARDER_WANTED);
}
END_TEST

START_TEST(a_report_whose_body_is_gone_cannot_be_promised) {
    struct ml_spool_item item = {.next_ms = 1};
    struct ml_spool_item found;
    unsigned count = 0;
    ck_assert(ml_spool_new_id(item.id));
    (void)strcpy(item.target, "t/");
    ck_assert_int_eq(ml_spool_keep(&spool, &item), ML_ENV_SYSTEM);
    ck_assert(!ml_spool_next(&spool, "t/", &found, &count));
}
END_TEST

START_TEST(what_the_disk_could_not_be_told_is_held) {
    const struct ml_spool_item first = put("t/", 100, 1);
    const struct ml_spool_item second = put("t/", 200, 1);
    struct ml_spool_item found;
    unsigned count = 0;
    ml_spool_hold(&spool, first.id, 300);
    ck_assert(ml_spool_next(&spool, "t/", &found, &count));
    ck_assert_str_eq(found.id, second.id);
    ck_assert_uint_eq(count, 2);
    ml_spool_hold(&spool, second.id, UINT64_MAX); /* it was sent, and cannot be removed */
    ck_assert(ml_spool_next(&spool, "t/", &found, &count));
    ck_assert_str_eq(found.id, first.id);
    ck_assert_uint_eq(found.next_ms, 300);
    ck_assert_uint_eq(count, 1);
}
END_TEST

START_TEST(what_dead_hosts_left_is_swept_and_nothing_else) {
    static const uint64_t now_s = UINT64_C(1) << 40; /* every file is older */
    const struct ml_spool_item item = put("t/", 1, 1);
    struct ml_spool_item found;
    unsigned count = 0;
    char orphan[PATH_MAX];
    char strange[PATH_MAX];
    ml_spool_body(&spool, "0123456789abcdef0123456789abcdef", orphan);
    (void)snprintf(strange, sizeof(strange), "%.4000s/notes.body", spool.folder);
    fclose(fopen(orphan, "w"));
    fclose(fopen(strange, "w"));
    ml_spool_sweep(&spool, (uint64_t)time(NULL));
    ck_assert_int_eq(access(orphan, F_OK), 0); /* somebody may still be writing it */
    ml_spool_sweep(&spool, now_s);
    ck_assert_int_ne(access(orphan, F_OK), 0);
    ck_assert_int_eq(access(strange, F_OK), 0);
    ck_assert(ml_spool_next(&spool, "t/", &found, &count));
    ck_assert_str_eq(found.id, item.id);
}
END_TEST

START_TEST(one_host_at_a_time_sends) {
    struct ml_error_message error = {.text = ""};
    struct ml_spool other;
    ck_assert_int_eq(ml_spool_open(&other, spool.folder, &error), ML_OK);
    ck_assert(ml_spool_lock(&spool));
    ck_assert(!ml_spool_lock(&other));
    ml_spool_unlock(&spool);
    ck_assert(ml_spool_lock(&other));
    ml_spool_close(&other);
    ck_assert(ml_spool_lock(&spool));
}
END_TEST

START_TEST(a_folder_that_cannot_be_made_is_named) {
    struct ml_error_message error = {.text = ""};
    struct ml_spool other;
    ck_assert_int_eq(ml_spool_open(&other, "/proc/nowhere/x", &error), ML_ENV_SYSTEM);
    ck_assert_ptr_nonnull(strstr(error.text, "/proc/nowhere/x"));
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("spool");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, what_was_promised_is_found_again_the_first_due_first);
    tcase_add_test(cases, what_is_torn_or_strange_is_no_report);
    tcase_add_test(cases, a_folder_that_others_may_write_in_is_refused);
    tcase_add_test(cases, it_is_bounded_by_bytes_and_by_number);
    tcase_add_test(cases, what_has_arrived_in_parts_is_remembered);
    tcase_add_test(cases, a_report_whose_body_is_gone_cannot_be_promised);
    tcase_add_test(cases, what_the_disk_could_not_be_told_is_held);
    tcase_add_test(cases, what_dead_hosts_left_is_swept_and_nothing_else);
    tcase_add_test(cases, one_host_at_a_time_sends);
    tcase_add_test(cases, a_folder_that_cannot_be_made_is_named);
    return run_suite("host/spool", cases);
}
