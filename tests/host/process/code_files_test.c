#include "host/process/code_files.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/host/kernel/silent_tmp.h"
#include "tests/suite.h"

static struct ml_code_files files;
static char map_path[64];
static char folder[] = "/tmp/memlog-code-files-XXXXXX";
static char dump_path[128];

static void write_file(const char *path) {
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, "1000 10 f\n", 10), 10);
    (void)close(fd);
}

static void setup(void) {
    (void)snprintf(map_path, sizeof(map_path), "/tmp/perf-%d.map", (int)getpid());
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(dump_path, sizeof(dump_path), "%s/jit-%d.dump", folder, (int)getpid());
    ml_code_files_look(&files, getpid());
}

static void teardown(void) {
    ml_code_files_fini(&files);
    (void)unlink(map_path);
    (void)unlink(dump_path);
    ck_assert_int_eq(rmdir(folder), 0);
    (void)snprintf(folder + strlen(folder) - 6, 7, "XXXXXX");
}

static bool has_map(uint64_t since_ns) {
    const int fd = ml_code_files_perf_map(&files, since_ns);
    if (fd >= 0) {
        (void)close(fd);
    }
    return fd >= 0;
}

static bool has_dump(void) {
    const int fd = ml_code_files_jit_dump(&files, 0);
    if (fd >= 0) {
        (void)close(fd);
    }
    return fd >= 0;
}

static uint64_t written_ns(const char *path) {
    struct stat about;
    ck_assert_int_eq(stat(path, &about), 0);
    return (uint64_t)about.st_mtim.tv_sec * 1000000000 + (uint64_t)about.st_mtim.tv_nsec;
}

START_TEST(a_process_has_the_map_of_its_own_number) {
    ck_assert(!has_map(0));
    write_file(map_path);
    ck_assert(has_map(0));
}
END_TEST

START_TEST(a_map_of_before_the_process_is_not_its_own) {
    write_file(map_path);
    ck_assert(has_map(written_ns(map_path)));
    ck_assert(!has_map(written_ns(map_path) + 1000000000));
}
END_TEST

START_TEST(a_link_is_not_followed) {
    write_file(dump_path);
    ck_assert_int_eq(symlink(dump_path, map_path), 0);
    ck_assert(!has_map(0));
}
END_TEST

START_TEST(a_fifo_or_folder_is_no_map_and_keeps_nobody_waiting) {
    ck_assert_int_eq(mkfifo(map_path, 0600), 0);
    ck_assert(!has_map(0));
    ck_assert_int_eq(unlink(map_path), 0);
    ck_assert_int_eq(mkdir(map_path, 0700), 0);
    ck_assert(!has_map(0));
    ck_assert_int_eq(rmdir(map_path), 0);
}
END_TEST

START_TEST(another_users_map_is_refused) {
    write_file(map_path);
    files.user++;
    ck_assert(has_map(0)); /* it has changed its user since */
    files.user_at_start++;
    ck_assert(!has_map(0));
}
END_TEST

START_TEST(a_jitdump_is_found_where_it_is_mapped) {
    char other[160];
    write_file(dump_path);
    ck_assert(!has_dump());
    (void)snprintf(other, sizeof(other), "%s/jit-1.dump", folder);
    ml_code_files_mapped(&files, other);
    ml_code_files_mapped(&files, "[heap]");
    ck_assert(!has_dump());
    ml_code_files_mapped(&files, dump_path);
    ck_assert(has_dump());
}
END_TEST

START_TEST(a_file_system_that_never_answers_is_not_asked_and_ours_not_in_its_place) {
    struct ml_code_files foreign = {.inner_pid = 0};
    char path[64];
    const pid_t pid = with_silent_tmp();
    if (pid == 0) {
        return; /* root alone may, and not everywhere */
    }
    (void)snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)pid);
    write_file(path);
    ml_code_files_look(&foreign, pid);
    ck_assert_int_eq(foreign.inner_pid, pid);
    ck_assert_int_eq(ml_code_files_perf_map(&foreign, 0), -1);
    ck_assert_int_eq(ml_code_files_jit_dump(&foreign, 0), -1);
    ml_code_files_fini(&foreign);
    (void)unlink(path);
    (void)kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}
END_TEST

START_TEST(a_jitdump_may_lie_where_the_process_stands) {
    char path[64];
    (void)snprintf(path, sizeof(path), "jit-%d.dump", (int)getpid());
    write_file(path);
    ck_assert(has_dump());
    ck_assert_int_eq(unlink(path), 0);
}
END_TEST

START_TEST(the_status_tells_number_and_user) {
    pid_t pid = 0;
    uid_t user = 0;
    ck_assert(ml_code_files_parse(
        "Name:\tx\nUid:\t1\t1000\t3\t4\nNSpid:\t4711\t33\t7\nNStgid:\t1\n", &pid, &user
    ));
    ck_assert_int_eq(pid, 7);
    ck_assert_uint_eq(user, 1000);
    ck_assert(ml_code_files_parse("Name:\tx\nUid:\t0\t0\t0\t0\nNSpid:\t4711\n", &pid, &user));
    ck_assert_int_eq(pid, 4711);
    ck_assert(!ml_code_files_parse("", &pid, &user));
    ck_assert(!ml_code_files_parse("Name:\tx\nUid:\t1\t2\n", &pid, &user));
    ck_assert(!ml_code_files_parse("\nUid:\t1\t2\nNSpid:\t-4\n", &pid, &user));
    ck_assert(!ml_code_files_parse("\nUid:\t1\t2\nNSpid:\t99999999999999\n", &pid, &user));
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("code_files");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_process_has_the_map_of_its_own_number);
    tcase_add_test(tests, a_map_of_before_the_process_is_not_its_own);
    tcase_add_test(tests, a_link_is_not_followed);
    tcase_add_test(tests, a_fifo_or_folder_is_no_map_and_keeps_nobody_waiting);
    tcase_add_test(tests, another_users_map_is_refused);
    tcase_add_test(tests, a_jitdump_is_found_where_it_is_mapped);
    tcase_add_test(tests, a_file_system_that_never_answers_is_not_asked_and_ours_not_in_its_place);
    tcase_add_test(tests, a_jitdump_may_lie_where_the_process_stands);
    tcase_add_test(tests, the_status_tells_number_and_user);
    return run_suite("host/process/code_files", tests);
}
