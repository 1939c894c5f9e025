#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <check.h>

#include "tests/suite.h"

#include "host/memory/status.h"

enum { KIB = 1024, MIB = 1 << 20, KERNEL_STACK_KB = 16 };

static const char text[] =
    "Name:\ta VmRSS:\nTracerPid:\t7\nVmRSS:\t     300 kB\nRssAnon:\t     100 kB\n"
    "RssFile:\t     150 kB\nRssShmem:\t      50 kB\nVmPTE:\t      44 kB\n"
    "VmSwap:\t      12 kB\nThreads:\t3\n";

START_TEST(each_figure_is_read_from_its_line) {
    const struct ml_memory_status status = ml_memory_status_parse(text);
    ck_assert(status.is_known);
    ck_assert_uint_eq(status.anonymous_kb, 100);
    ck_assert_uint_eq(status.file_kb, 150);
    ck_assert_uint_eq(status.shared_kb, 50);
    ck_assert_uint_eq(status.swap_kb, 12);
    ck_assert_uint_eq(status.page_tables_kb, 44);
    ck_assert_uint_eq(status.kernel_stacks_kb, 3 * KERNEL_STACK_KB);
    ck_assert_int_eq(status.tracer_pid, 7);
}
END_TEST

START_TEST(a_zombie_has_no_memory_and_a_name_is_no_line) {
    ck_assert(!ml_memory_status_parse("Name:\tVmRSS:\nState:\tZ (zombie)\nThreads:\t1\n").is_known);
    ck_assert(!ml_memory_status_parse("").is_known);
    ck_assert(!ml_memory_status_read(0x3fffffff).is_known);
}
END_TEST

START_TEST(memory_that_a_process_touches_is_counted_by_its_kind) {
    const struct ml_memory_status before = ml_memory_status_read(getpid());
    char *private = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *shared = mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(private, MAP_FAILED);
    ck_assert_ptr_ne(shared, MAP_FAILED);
    memset(private, 1, 4 * MIB);
    memset(shared, 1, 2 * MIB);
    const struct ml_memory_status after = ml_memory_status_read(getpid());
    ck_assert(after.is_known);
    /* The kernel counts in batches of up to 64 pages a processor. */
    ck_assert_uint_ge(after.anonymous_kb, before.anonymous_kb + 3 * MIB / KIB);
    ck_assert_uint_ge(after.shared_kb, before.shared_kb + MIB / KIB);
    ck_assert_uint_gt(after.page_tables_kb, 0);
    ck_assert_uint_eq(after.kernel_stacks_kb, KERNEL_STACK_KB);
    (void)munmap(private, 4 * MIB);
    (void)munmap(shared, 2 * MIB);
}
END_TEST

/* Run by a user who is not root: root reads everybody's. */
static int look_as_nobody(pid_t pid) {
    const pid_t looker = fork();
    if (looker == 0) {
        const bool is_nobody = setresuid(65534, 65534, 65534) == 0;
        const struct ml_memory_status status = ml_memory_status_read(pid);
        _exit(is_nobody && status.is_known && ml_memory_file_error(pid, "smaps") == EACCES ? 0 : 1);
    }
    int ended = -1;
    ck_assert_int_eq(waitpid(looker, &ended, 0), looker);
    return ended;
}

START_TEST(of_a_process_whose_mappings_may_not_be_read_the_figures_are_known) {
    if (getuid() != 0) {
        return; /* nobody else can be impersonated */
    }
    ck_assert_int_eq(look_as_nobody(getpid()), 0);
    ck_assert_int_eq(ml_memory_file_error(getpid(), "smaps"), 0);
    ck_assert_int_eq(ml_memory_file_error(getpid(), "no such file"), ENOENT);
}
END_TEST

START_TEST(private_memory_is_what_no_file_backs_and_nobody_shares) {
    ck_assert_uint_eq(ml_memory_private_parse("900 30 10 1 0 5 0\n", 4096), 20 * 4096);
    ck_assert_uint_eq(ml_memory_private_parse("900 10 30 1 0 5 0\n", 4096), 0);
    ck_assert_uint_eq(ml_memory_private_parse("", 4096), 0);
    ck_assert_uint_gt(ml_memory_private_bytes(getpid()), 0);
    ck_assert_uint_eq(ml_memory_private_bytes(0x3fffffff), 0);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, each_figure_is_read_from_its_line);
    tcase_add_test(tests, a_zombie_has_no_memory_and_a_name_is_no_line);
    tcase_add_test(tests, memory_that_a_process_touches_is_counted_by_its_kind);
    tcase_add_test(tests, of_a_process_whose_mappings_may_not_be_read_the_figures_are_known);
    tcase_add_test(tests, private_memory_is_what_no_file_backs_and_nobody_shares);
    return run_suite("host/memory_status", tests);
}
