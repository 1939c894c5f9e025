#include "host/engine/list/events.h"

#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <check.h>

#include "tests/host/engine/list/listing.h"
#include "tests/suite.h"

static struct listing listing;
static int kernel = -1;

/* The address of who sends lies where the kernel's has its number, which is 0. */
static void bind_as_kernel(int fd) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void
    )snprintf(address.sun_path + 10, sizeof(address.sun_path) - 10, "events.%d", (int)getpid());
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
}

static void set_up(void) {
    int pair[2];
    listing_init(&listing);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair), 0);
    listing.list.events_fd = pair[0];
    kernel = pair[1];
    bind_as_kernel(kernel);
}

static void tear_down(void) {
    (void)close(kernel);
    listing_fini(&listing);
}

static void tell_exec(pid_t pid, uint64_t at_ns) {
    struct proc_event event = {.what = PROC_EVENT_EXEC, .timestamp_ns = at_ns};
    event.event_data.exec.process_pid = pid;
    event.event_data.exec.process_tgid = pid;
    char packet[NLMSG_SPACE(sizeof(struct cn_msg) + sizeof(event))] = {0};
    memcpy(packet + NLMSG_HDRLEN + sizeof(struct cn_msg), &event, sizeof(event));
    ck_assert_int_eq(send(kernel, packet, sizeof(packet), 0), (int)sizeof(packet));
    ml_list_events_take(&listing.engine);
}

static pid_t start(void) {
    return listing_start((char *[]){"/bin/sleep", "60", NULL});
}

static void end(pid_t pid) {
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

/* What is in the list, and which of it runs as far as is known. */
static uint32_t entries(void) {
    return listing.engine.unrecorded.count;
}

START_TEST(the_event_behind_an_image_that_was_seen_is_no_second_program) {
    const pid_t pid = start();
    const struct ml_unrecorded *one = listing_add(&listing, pid);
    const uint64_t seen_ns = one->identified_ns;
    end(pid);
    tell_exec(pid, seen_ns + 1000);
    ck_assert_uint_eq(entries(), 1);
    ck_assert_str_eq(one->name, "sleep");
    tell_exec(pid, seen_ns + 2000); /* this one is */
    ck_assert_uint_eq(entries(), 2);
}
END_TEST

START_TEST(nor_is_it_while_the_program_runs) {
    const pid_t pid = start();
    const struct ml_unrecorded *one = listing_add(&listing, pid);
    tell_exec(pid, one->identified_ns + 1000);
    ck_assert_uint_eq(entries(), 1);
    end(pid);
}
END_TEST

START_TEST(an_event_long_behind_an_image_is_of_another) {
    const pid_t pid = start();
    const struct ml_unrecorded *one = listing_add(&listing, pid);
    const uint64_t seen_ns = one->identified_ns;
    end(pid);
    tell_exec(pid, seen_ns + UINT64_C(2000000000));
    ck_assert_uint_eq(entries(), 2);
}
END_TEST

START_TEST(an_image_that_an_event_told_of_waits_for_no_other_event) {
    const pid_t pid = start();
    const struct ml_unrecorded *one = listing_add(&listing, pid);
    const uint64_t seen_ns = one->identified_ns;
    tell_exec(pid, seen_ns - 1000); /* its own, read late */
    end(pid);
    tell_exec(pid, seen_ns + 1000);
    ck_assert_uint_eq(entries(), 2);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("events");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, the_event_behind_an_image_that_was_seen_is_no_second_program);
    tcase_add_test(tcase, nor_is_it_while_the_program_runs);
    tcase_add_test(tcase, an_event_long_behind_an_image_is_of_another);
    tcase_add_test(tcase, an_image_that_an_event_told_of_waits_for_no_other_event);
    return run_suite("host/engine/list/events", tcase);
}
