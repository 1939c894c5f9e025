#include "host/process/info.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <check.h>

#include "tests/suite.h"

START_TEST(tells_of_ourselves) {
    char name[ML_PROCESS_NAME_BYTES];
    ck_assert_int_eq(prctl(PR_SET_NAME, "odd ) name"), 0);
    ml_process_name(getpid(), name);
    ck_assert_str_eq(name, "odd ) name");
    ck_assert_int_eq(ml_process_parent(getpid()), getppid());
    struct ml_command_line line;
    ck_assert_int_eq(ml_process_command_line(getpid(), &line), ML_OK);
    ck_assert_uint_ge(line.count, 1);
    ml_command_line_fini(&line);
    char path[4096];
    ml_process_executable(getpid(), path, sizeof(path));
    ck_assert_ptr_nonnull(strstr(path, "process_info_test"));
    const struct ml_footprint footprint = ml_process_footprint(getpid());
    ck_assert_uint_gt(footprint.private_bytes, 0);
    ck_assert_uint_ge(footprint.resident_bytes, 4096);
    ck_assert_uint_lt(footprint.files_bytes, footprint.private_bytes);
}
END_TEST

START_TEST(what_says_nothing_of_the_program_is_not_its_name) {
    static const char *const names[] = {"MainThread", "node-MainThread"};
    char name[ML_PROCESS_NAME_BYTES];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        ck_assert_int_eq(prctl(PR_SET_NAME, names[i]), 0);
        ml_process_name(getpid(), name);
        ck_assert_str_eq(name, "process_info_te"); /* 15 bytes, as the kernel's */
    }
    ck_assert_int_eq(prctl(PR_SET_NAME, "MainThread2"), 0);
    ml_process_name(getpid(), name);
    ck_assert_str_eq(name, "MainThread2");
}
END_TEST

START_TEST(knows_nothing_of_a_process_that_is_not_there) {
    pid_t nobody = 0x3fffffff;
    char name[ML_PROCESS_NAME_BYTES];
    ml_process_name(nobody, name);
    ck_assert_str_eq(name, "?");
    ck_assert_int_eq(ml_process_parent(nobody), 0);
    struct ml_command_line line;
    ck_assert_int_eq(ml_process_command_line(nobody, &line), ML_ENV_MISSING);
    const struct ml_footprint footprint = ml_process_footprint(nobody);
    ck_assert_uint_eq(footprint.private_bytes, 0);
    ck_assert_uint_eq(footprint.resident_bytes, 0);
    ck_assert(!ml_process_ending(nobody, -1).known);
}
END_TEST

START_TEST(reads_a_stat_whose_name_holds_brackets_and_digits) {
    ck_assert_int_eq(ml_process_parent_parse("9 (a) Z 1 (b) ) R 4 5\n"), 4);
    ck_assert_int_eq(ml_process_parent_parse("9 (a) R 99999999999999999999 5\n"), 0);
    ck_assert_int_eq(ml_process_parent_parse("9 (a) R -4 5\n"), 0);
    ck_assert_int_eq(ml_process_parent_parse("9 (a"), 0);
    ck_assert_int_eq(ml_process_parent_parse("9 (a) "), 0);
    struct ml_ending ending = ml_process_ending_parse("9 (a) Z ) Z 1 2 3 2304\n");
    ck_assert(ending.known && ending.exit_code == 9 && ending.signal == 0);
    ending = ml_process_ending_parse("9 (a) X 1 11\n");
    ck_assert(ending.known && ending.signal == 11);
    ck_assert(!ml_process_ending_parse("9 (a) S 1 11\n").known);
    ck_assert(!ml_process_ending_parse("9 (a) Z 1 4294967296\n").known);
    ck_assert(!ml_process_ending_parse("9 (a) Z").known);
}
END_TEST

START_TEST(adds_up_private_memory_and_swap) {
    const struct ml_footprint footprint = ml_process_footprint_parse(
        "55d0-7ffe ---p 00000000 00:00 0 [rollup]\n"
        "Rss:                3000 kB\nPss:  900 kB\nPrivate_Clean:  100 kB\n"
        "Private_Dirty:       20 kB\nSwap:                  3 kB\nSwapPss: 5 kB\n"
    );
    ck_assert_uint_eq(footprint.private_bytes, 123 * 1024);
    ck_assert_uint_eq(footprint.resident_bytes, 3000 * 1024);
    ck_assert_uint_eq(footprint.files_bytes, 0); /* kinds are not told */
}
END_TEST

START_TEST(tells_how_much_private_memory_is_pages_of_files) {
    ck_assert_uint_eq(
        ml_process_footprint_parse("Rss: 3000 kB\nPss: 900 kB\nPss_Anon: 25 kB\nPss_Shmem: 7 kB\n"
                                   "Private_Clean:  100 kB\nPrivate_Dirty: 20 kB\n"
                                   "Anonymous: 30 kB\nSwap: 500 kB\n")
            .files_bytes,
        83 * 1024
    );
    /* Of a fork's parent most of it is common. */
    ck_assert_uint_eq(
        ml_process_footprint_parse("Rss: 9000 kB\nPss_Shmem: 0 kB\nPrivate_Clean:  100 kB\n"
                                   "Private_Dirty: 20 kB\nAnonymous: 8000 kB\n")
            .files_bytes,
        0
    );
}
END_TEST

START_TEST(the_ending_of_somebody_elses_child_is_known_from_its_zombie) {
    int pipe_fds[2];
    ck_assert_int_eq(pipe(pipe_fds), 0);
    pid_t middle = fork();
    if (middle == 0) {
        pid_t grandchild = fork();
        if (grandchild == 0) {
            (void)raise(SIGKILL);
        }
        (void)!write(pipe_fds[1], &grandchild, sizeof(grandchild));
        (void)pause();
    }
    pid_t grandchild = 0;
    ck_assert_int_eq(read(pipe_fds[0], &grandchild, sizeof(grandchild)), sizeof(grandchild));
    struct ml_ending ending = {.known = false};
    for (int i = 0; i < 20000 && !ending.known; i++) {
        (void)usleep(1000);
        ending = ml_process_ending(grandchild, -1);
    }
    ck_assert(ending.known);
    ck_assert_int_eq(ending.signal, SIGKILL);
    (void)kill(middle, SIGKILL);
    (void)waitpid(middle, NULL, 0);
}
END_TEST

START_TEST(tells_a_process_and_its_image_apart_from_others) {
    const char *text =
        "9 (a) ) S 4 5 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 777 0 0 0 4096 8192 140000 0\n";
    struct ml_process_facts facts = ml_process_facts_parse(text);
    ck_assert(facts.state == 'S' && !facts.has_ended && facts.parent == 4);
    ck_assert_uint_eq(facts.start_ticks, 777);
    ck_assert_uint_eq(facts.image.start_code, 4096);
    ck_assert_uint_eq(facts.image.start_stack, 140000);
    struct ml_image_mark other = {.start_code = 4096, .start_stack = 140016};
    ck_assert(ml_image_mark_differs(&facts.image, &other));
    ck_assert(!ml_image_mark_differs(&facts.image, &facts.image));
    /* To whom may not look the kernel says 1 and 0. */
    text = "9 (a) S 4 5 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 777 0 0 0 1 1 0 0\n";
    facts = ml_process_facts_parse(text);
    ck_assert(!ml_image_mark_is_known(&facts.image));
    ck_assert(!ml_image_mark_differs(&facts.image, &other));
    /* A zombie with threads that run on, and one without. */
    ck_assert(!ml_process_facts_parse("9 (a) Z 4 5 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 2 0 7").has_ended);
    ck_assert(ml_process_facts_parse("9 (a) Z 4 5 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 7").has_ended);
    ck_assert(!ml_process_facts_parse("9 (a) S 4 5 5 0 -1 4194304 0 0 0 0").is_ending);
    ck_assert(ml_process_facts_parse("9 (a) S 4 5 5 0 -1 4194308 0 0 0 0").is_ending);
    ck_assert(ml_process_facts_parse("").has_ended);
    ck_assert(ml_process_facts_parse("9 (a) ").has_ended);
}
END_TEST

START_TEST(an_exec_of_the_same_file_makes_another_image_of_the_same_process) {
    int gate[2];
    ck_assert_int_eq(pipe(gate), 0);
    const pid_t child = fork();
    if (child == 0) {
        char byte = 0;
        (void)!read(gate[0], &byte, 1);
        (void)execl("/bin/sleep", "sleep", "60", (char *)NULL);
        _exit(1);
    }
    const struct ml_process_facts own = ml_process_facts(getpid());
    const struct ml_process_facts before = ml_process_facts(child);
    ck_assert(ml_image_mark_is_known(&before.image));
    ck_assert(!ml_image_mark_differs(&own.image, &before.image));
    ck_assert_int_eq(before.parent, getpid());
    ck_assert_int_eq(write(gate[1], "g", 1), 1);
    struct ml_process_facts after = before;
    for (int i = 0; i < 20000 && !ml_image_mark_differs(&before.image, &after.image); i++) {
        (void)usleep(1000);
        after = ml_process_facts(child);
    }
    ck_assert(ml_image_mark_differs(&before.image, &after.image));
    ck_assert_uint_eq(after.start_ticks, before.start_ticks);
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
    ck_assert(ml_process_facts(child).has_ended);
}
END_TEST

START_TEST(what_a_process_misses_is_known_where_it_can_be_seen) {
    ck_assert(!ml_process_misses(getpid(), "/proc"));
    ck_assert(ml_process_misses(getpid(), "/memlog-is-not-there"));
    ck_assert(ml_process_misses(getpid(), "/proc/version/is-no-folder"));
    ck_assert(!ml_process_misses(0x7fffffff, "/memlog-is-not-there"));
}
END_TEST

START_TEST(what_is_mapped_is_known_by_its_whole_name) {
    ck_assert(ml_process_maps(getpid(), "libc.so.6"));
    ck_assert(!ml_process_maps(getpid(), "libc.so"));
    ck_assert(!ml_process_maps(getpid(), "bc.so.6"));
    ck_assert(!ml_process_maps(0x7fffffff, "libc.so.6"));
}
END_TEST

START_TEST(all_users_have_a_number_where_the_map_leaves_none_out) {
    ck_assert(ml_users_are_all("         0          0 4294967295\n"));
    ck_assert(ml_users_are_all("0 1000 1\n1 0 1000\n1001 1001 4294966294\n"));
    ck_assert(!ml_users_are_all("         0       1000          1\n"));
    ck_assert(!ml_users_are_all("0 1000 1\n1 100000 65536\n"));
    ck_assert(!ml_users_are_all(""));
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("process_info");
    tcase_add_test(tcase, all_users_have_a_number_where_the_map_leaves_none_out);
    tcase_add_test(tcase, what_is_mapped_is_known_by_its_whole_name);
    tcase_add_test(tcase, tells_a_process_and_its_image_apart_from_others);
    tcase_add_test(tcase, an_exec_of_the_same_file_makes_another_image_of_the_same_process);
    tcase_add_test(tcase, what_a_process_misses_is_known_where_it_can_be_seen);
    tcase_add_test(tcase, tells_of_ourselves);
    tcase_add_test(tcase, what_says_nothing_of_the_program_is_not_its_name);
    tcase_add_test(tcase, knows_nothing_of_a_process_that_is_not_there);
    tcase_add_test(tcase, reads_a_stat_whose_name_holds_brackets_and_digits);
    tcase_add_test(tcase, adds_up_private_memory_and_swap);
    tcase_add_test(tcase, tells_how_much_private_memory_is_pages_of_files);
    tcase_add_test(tcase, the_ending_of_somebody_elses_child_is_known_from_its_zombie);
    return run_suite("host/process_info", tcase);
}
