#include "host/process/tree.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <check.h>

#include "tests/suite.h"

static struct ml_process_tree tree;

static void setup(void) {
    struct ml_error_message error = {.text = ""};
    ck_assert_int_eq(ml_process_tree_init(&tree, &error), ML_OK);
}

/* The next event, waited for. */
static struct ml_process_tree_event next_event(void) {
    struct ml_process_tree_event event = {.pid = 0};
    for (int i = 0; i < 20000 && !ml_process_tree_next(&tree, &event); i++) {
        (void)usleep(1000);
    }
    return event;
}

START_TEST(children_that_end_or_stop_are_told_once) {
    pid_t child = fork();
    if (child == 0) {
        (void)raise(SIGSTOP);
        _exit(5);
    }
    struct ml_process_tree_event event = next_event();
    ck_assert_int_eq(event.pid, child);
    ck_assert(event.stopped);
    ck_assert_int_eq(event.stop_signal, SIGSTOP);
    ck_assert_uint_eq(ml_process_tree_left(&tree, NULL, 0), 1);
    (void)kill(child, SIGCONT);
    event = next_event();
    ck_assert(!event.stopped);
    ck_assert_int_eq(ml_ending_exit_code(&event.ending), 5);
    ck_assert_uint_eq(ml_process_tree_left(&tree, NULL, 0), 0);
    ck_assert(!ml_process_tree_next(&tree, &event));
}
END_TEST

START_TEST(orphans_become_ours_and_helpers_do_not_count) {
    int pipe_fds[2];
    ck_assert_int_eq(pipe(pipe_fds), 0);
    pid_t child = fork();
    if (child == 0) {
        pid_t orphan = fork();
        if (orphan == 0) {
            (void)pause();
        }
        (void)!write(pipe_fds[1], &orphan, sizeof(orphan));
        _exit(0);
    }
    pid_t orphan = 0;
    ck_assert_int_eq(read(pipe_fds[0], &orphan, sizeof(orphan)), sizeof(orphan));
    ck_assert_int_eq(next_event().pid, child);
    pid_t left = 0;
    ck_assert_uint_eq(ml_process_tree_left(&tree, &left, 1), 1);
    ck_assert_int_eq(left, orphan);
    ml_process_tree_add_helper(&tree, orphan);
    ck_assert_uint_eq(ml_process_tree_left(&tree, &left, 1), 0);
    (void)kill(orphan, SIGKILL);
    struct ml_process_tree_event event = next_event();
    ck_assert_int_eq(event.pid, orphan);
    ck_assert(event.helper);
    ck_assert_int_eq(ml_ending_exit_code(&event.ending), 128 + SIGKILL);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("tree");
    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_add_test(tcase, children_that_end_or_stop_are_told_once);
    tcase_add_test(tcase, orphans_become_ours_and_helpers_do_not_count);
    return run_suite("host/tree", tcase);
}
