/* What of another process's files is asked for. Whoever asks a file system that never answers does
 * not come back: then the test ends by its limit. */
#include "host/kernel/mounts.h"

#include <check.h>

#include "host/process/info.h"
#include "tests/host/kernel/silent_tmp.h"
#include "tests/suite.h"

START_TEST(a_file_system_in_user_space_is_known_without_asking_it) {
    const pid_t pid = with_silent_tmp();
    if (pid == 0) {
        return; /* root alone may, and not everywhere */
    }
    ck_assert(ml_mounts_are_foreign(pid));
    ck_assert(ml_mounts_are_in_user_space(pid, "/tmp"));
    ck_assert(ml_mounts_are_in_user_space(pid, "/tmp/memlog/library.so"));
    ck_assert(!ml_mounts_are_in_user_space(pid, "/tmpfile"));
    ck_assert(!ml_mounts_are_in_user_space(pid, "/usr"));
    ck_assert(!ml_process_misses(pid, "/tmp/memlog/library.so"));
    ck_assert(!ml_process_misses(pid, "/usr"));
    ck_assert(ml_process_misses(pid, "/usr/memlog-is-not-there"));
    (void)kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}
END_TEST

START_TEST(our_own_mounts_are_not_foreign) {
    ck_assert(!ml_mounts_are_foreign(getpid()));
    ck_assert(ml_mounts_are_foreign(0x7fffffff));
    ck_assert(ml_mounts_are_in_user_space(0x7fffffff, "/tmp"));
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("mounts");
    tcase_add_test(tcase, a_file_system_in_user_space_is_known_without_asking_it);
    tcase_add_test(tcase, our_own_mounts_are_not_foreign);
    return run_suite("host/kernel/mounts", tcase);
}
