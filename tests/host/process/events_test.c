#include "host/process/events.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>

#include <check.h>

#include "tests/suite.h"

enum { HEAD_BYTES = NLMSG_HDRLEN + sizeof(struct cn_msg) };

/* A packet as the kernel sends them. */
static struct ml_process_event parse(const struct proc_event *event, size_t cut_bytes) {
    char packet[HEAD_BYTES + sizeof(*event)];
    memset(packet, 0, sizeof(packet));
    memcpy(packet + HEAD_BYTES, event, sizeof(*event));
    return ml_process_event_parse(packet, sizeof(packet) - cut_bytes);
}

START_TEST(tells_births_execs_and_ends_of_whole_processes) {
    struct proc_event event = {.what = PROC_EVENT_FORK, .timestamp_ns = 77};
    event.event_data.fork.parent_pid = 11; /* a thread of 10 */
    event.event_data.fork.parent_tgid = 10;
    event.event_data.fork.child_pid = 20;
    event.event_data.fork.child_tgid = 20;
    struct ml_process_event parsed = parse(&event, 0);
    ck_assert_int_eq(parsed.kind, ML_PROCESS_EVENT_BORN);
    ck_assert(parsed.pid == 20 && parsed.parent == 10 && parsed.monotonic_ns == 77);
    ck_assert_int_eq(parsed.parent_thread, 11);

    event.what = PROC_EVENT_EXEC;
    event.event_data.exec.process_pid = 20;
    event.event_data.exec.process_tgid = 20;
    parsed = parse(&event, 0);
    ck_assert(parsed.kind == ML_PROCESS_EVENT_EXEC && parsed.pid == 20);

    event.what = PROC_EVENT_EXIT;
    event.event_data.exit.process_pid = 20;
    event.event_data.exit.process_tgid = 20;
    event.event_data.exit.exit_code = 3 << 8;
    event.event_data.exit.parent_pid = 11;
    event.event_data.exit.parent_tgid = 10;
    parsed = parse(&event, 0);
    ck_assert(parsed.kind == ML_PROCESS_EVENT_ENDED && parsed.pid == 20 && parsed.parent == 10);
    ck_assert_int_eq(WEXITSTATUS(parsed.wait_status), 3);
}
END_TEST

START_TEST(passes_over_threads_and_what_is_cut) {
    struct proc_event event = {.what = PROC_EVENT_FORK};
    event.event_data.fork.child_pid = 21;
    event.event_data.fork.child_tgid = 20;
    ck_assert_int_eq(parse(&event, 0).kind, ML_PROCESS_EVENT_OTHER);
    event.event_data.fork.child_tgid = 21;
    ck_assert_int_eq(parse(&event, 0).kind, ML_PROCESS_EVENT_BORN);
    for (size_t cut = 1; cut <= HEAD_BYTES + sizeof(event); cut++) {
        ck_assert_int_eq(parse(&event, cut).kind, ML_PROCESS_EVENT_OTHER);
    }
    event.what = PROC_EVENT_EXIT;
    event.event_data.exit.process_pid = 21;
    event.event_data.exit.process_tgid = 20;
    ck_assert_int_eq(parse(&event, 0).kind, ML_PROCESS_EVENT_OTHER);
    event.what = PROC_EVENT_COMM;
    ck_assert_int_eq(parse(&event, 0).kind, ML_PROCESS_EVENT_OTHER);
}
END_TEST

START_TEST(where_the_kernel_tells_a_child_is_born_becomes_a_program_and_ends) {
    enum { WAIT_MS = 20000 };
    const int fd = ml_process_events_open();
    if (fd < 0) {
        return; /* not root, or another namespace */
    }
    const pid_t child = fork();
    if (child == 0) {
        (void)execl("/bin/sh", "sh", "-c", "exit 5", (char *)NULL);
        _exit(1);
    }
    (void)waitpid(child, NULL, 0);
    unsigned seen = 0;
    bool lost = false;
    struct ml_process_event event;
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    while (seen != 7 && !lost && poll(&readable, 1, WAIT_MS) > 0) {
        while (ml_process_events_next(fd, &event, &lost)) {
            if (event.pid == child && event.kind == ML_PROCESS_EVENT_BORN) {
                ck_assert_int_eq(event.parent, getpid());
                seen |= 1;
            } else if (event.pid == child && event.kind == ML_PROCESS_EVENT_EXEC) {
                seen |= 2;
            } else if (event.pid == child && event.kind == ML_PROCESS_EVENT_ENDED) {
                ck_assert_int_eq(WEXITSTATUS(event.wait_status), 5);
                seen |= 4;
            }
        }
    }
    ck_assert(seen == 7 || lost);
    (void)close(fd);
}
END_TEST

/* Stands before libc's: whether anybody has waited. */
static int polls_count;
/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): libc's are reserved ones */
int poll(struct pollfd *wanted, nfds_t count, int timeout_ms) {
    const struct timespec timeout = {
        .tv_sec = timeout_ms / 1000, .tv_nsec = (long)(timeout_ms % 1000) * 1000000};
    polls_count++;
    return ppoll(wanted, count, timeout_ms >= 0 ? &timeout : NULL, NULL);
}

/* In a child that has entered another namespace of that kind. */
static void expect_no_wait(int kind) {
    const pid_t middle = fork();
    if (middle == 0) {
        if (unshare(kind) != 0) {
            _exit(0); /* it may not */
        }
        const pid_t child = fork(); /* the first one in a namespace of pids */
        if (child == 0) {
            polls_count = 0;
            _exit(ml_process_events_open() != -1 || polls_count != 0);
        }
        int status = 0;
        _exit(waitpid(child, &status, 0) != child || status != 0);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(middle, &status, 0), middle);
    ck_assert_int_eq(status, 0);
}

START_TEST(from_another_namespace_nobody_waits_for_an_answer_that_never_comes) {
    expect_no_wait(CLONE_NEWPID);
    expect_no_wait(CLONE_NEWUSER);
}
END_TEST

static void *rename_thread(void *context) {
    (void)prctl(PR_SET_NAME, "another");
    return context;
}

START_TEST(what_concerns_no_whole_process_takes_no_room_in_the_queue) {
    enum { THREADS = 50, PACKET = 1024, TOLD = NLMSG_HDRLEN + sizeof(struct cn_msg) };
    char packet[PACKET];
    const int fd = ml_process_events_open();
    if (fd < 0) {
        return; /* not root, or another namespace */
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        ck_assert_int_eq(pthread_create(&thread, NULL, rename_thread, NULL), 0);
        ck_assert_int_eq(pthread_join(thread, NULL), 0);
    }
    for (ssize_t count = read(fd, packet, sizeof(packet)); count > 0;
         count = read(fd, packet, sizeof(packet))) {
        uint32_t what = 0;
        memcpy(&what, packet + TOLD, sizeof(what));
        if (what != PROC_EVENT_NONE) { /* others of the machine are born and end meanwhile */
            const struct ml_process_event event = ml_process_event_parse(packet, (size_t)count);
            ck_assert_int_ne(event.kind, ML_PROCESS_EVENT_OTHER);
        }
    }
    (void)close(fd);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("process_events");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, tells_births_execs_and_ends_of_whole_processes);
    tcase_add_test(tcase, passes_over_threads_and_what_is_cut);
    tcase_add_test(tcase, where_the_kernel_tells_a_child_is_born_becomes_a_program_and_ends);
    tcase_add_test(tcase, what_concerns_no_whole_process_takes_no_room_in_the_queue);
    tcase_add_test(tcase, from_another_namespace_nobody_waits_for_an_answer_that_never_comes);
    return run_suite("host/process_events", tcase);
}
