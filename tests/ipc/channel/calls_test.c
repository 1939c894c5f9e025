/* The channel's less travelled ways: bounds, waits without a loop, late replies, older peers. */
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <check.h>

#include "ipc/channel/channel.h"
#include "tests/mojom_like_idl/golden/example_mojom.h"
#include "tests/suite.h"

/* Two channels without a loop: `far` serves what `near` asks. */
static struct ml_channel *near;
static struct ml_channel *far;
static struct ml_call kept_call;
static int asked;
static int answered;
static enum ml_status answer_status;
static bool frees_itself;

static void on_keep(
    void *context, const struct ml_call *call, const struct memlog_example_keep_request *request
) {
    (void)context;
    asked++;
    kept_call = *call;
    (void)close(request->way_in);
    (void)close(request->list);
}

static void on_count(
    void *context, const struct ml_call *call, const struct memlog_example_count_request *request
) {
    (void)context;
    (void)request;
    asked++;
    kept_call = *call;
}

static const struct memlog_example_keeper_handlers handlers = {.keep = on_keep, .count = on_count};

static void
on_counted(void *context, enum ml_status status, const struct memlog_example_count_reply *reply) {
    (void)context;
    (void)reply;
    answered++;
    answer_status = status;
    if (frees_itself) {
        ml_channel_free(near);
        near = NULL;
    }
}

static void join_with(size_t message_bytes_max) {
    int fds[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    const struct ml_channel_options asks = {.message_bytes_max = message_bytes_max};
    const struct ml_channel_options serves = {
        .server = memlog_example_keeper_server(&handlers, NULL)};
    ck_assert_int_eq(ml_channel_new(fds[0], &asks, &near), ML_OK);
    ck_assert_int_eq(ml_channel_new(fds[1], &serves, &far), ML_OK);
}

static void join(void) {
    join_with(0);
}

static void part(void) {
    ml_channel_free(near);
    ml_channel_free(far);
}

static int open_count(void) {
    int count = 0;
    for (int fd = 0; fd < 256; fd++) {
        count += fcntl(fd, F_GETFD) >= 0;
    }
    return count;
}

/* A request with an open pipe and file; the caller closes them. */
static struct memlog_example_keep_request keep_request(void) {
    int pipes[2];
    ck_assert_int_eq(pipe2(pipes, O_CLOEXEC), 0);
    (void)close(pipes[1]);
    const struct memlog_example_keep_request request = {
        .box.numbers.colour = MEMLOG_EXAMPLE_COLOUR_RED,
        .way_in = pipes[0],
        .list = memfd_create("list", MFD_CLOEXEC)};
    ck_assert_int_ge(request.list, 0);
    return request;
}

static void close_request(const struct memlog_example_keep_request *request) {
    (void)close(request->way_in);
    (void)close(request->list);
}

START_TEST(nothing_to_receive_is_said_after_the_time_given) {
    ck_assert_int_eq(ml_channel_receive(far, 0), ML_ENV_AGAIN);
    ck_assert_int_eq(ml_channel_receive(far, 20), ML_ENV_AGAIN);
    const struct memlog_example_count_request request = {0};
    ck_assert_int_eq(
        memlog_example_count(ml_channel_port(near), &request, on_counted, NULL), ML_OK
    );
    ck_assert_int_eq(ml_channel_receive(far, 0), ML_OK);
    ck_assert_int_eq(asked, 1);
}
END_TEST

START_TEST(the_end_is_said_again_and_again) {
    ml_channel_free(near);
    near = NULL;
    ck_assert_int_eq(ml_channel_receive(far, 1000), ML_PEER_CLOSED);
    ck_assert_int_eq(ml_channel_receive(far, 1000), ML_PEER_CLOSED);
}
END_TEST

START_TEST(a_value_against_the_contract_is_not_sent) {
    struct memlog_example_keep_request request = keep_request();
    request.box.numbers.colour = 0;
    struct memlog_example_keep_reply reply;
    ck_assert_int_eq(
        memlog_example_keep_wait(ml_channel_port(near), &request, 0, &reply), ML_BUG_CONTRACT
    );
    ck_assert_int_eq(ml_channel_receive(far, 0), ML_ENV_AGAIN);
    close_request(&request);
}
END_TEST

START_TEST(a_message_longer_than_the_channel_permits_is_not_sent) {
    part();
    join_with(4);
    const struct memlog_example_keep_request request = keep_request();
    struct memlog_example_keep_reply reply;
    ck_assert_int_eq(
        memlog_example_keep_wait(ml_channel_port(near), &request, 0, &reply), ML_ENV_REFUSED
    );
    close_request(&request);
}
END_TEST

START_TEST(calls_that_wait_are_bounded) {
    const struct memlog_example_count_request request = {0};
    for (int i = 0; i < ML_CHANNEL_CALLS_MAX; i++) {
        ck_assert_int_eq(
            memlog_example_count(ml_channel_port(near), &request, on_counted, NULL), ML_OK
        );
    }
    ck_assert_int_eq(
        memlog_example_count(ml_channel_port(near), &request, on_counted, NULL), ML_ENV_AGAIN
    );
    ml_channel_free(far);
    far = NULL;
    ck_assert_int_eq(ml_channel_receive(near, 0), ML_PEER_CLOSED);
    ck_assert_int_eq(answered, ML_CHANNEL_CALLS_MAX);
    ck_assert_int_eq(answer_status, ML_PEER_CLOSED);
}
END_TEST

START_TEST(a_freed_channel_answers_its_calls) {
    const struct memlog_example_count_request request = {0};
    ck_assert_int_eq(
        memlog_example_count(ml_channel_port(near), &request, on_counted, NULL), ML_OK
    );
    ml_channel_free(near);
    near = NULL;
    ck_assert_int_eq(answered, 1);
    ck_assert_int_eq(answer_status, ML_PEER_CLOSED);
}
END_TEST

START_TEST(a_reply_may_free_the_channel_that_brought_it) {
    const struct memlog_example_count_request request = {0};
    frees_itself = true;
    ck_assert_int_eq(
        memlog_example_count(ml_channel_port(near), &request, on_counted, NULL), ML_OK
    );
    ck_assert_int_eq(ml_channel_receive(far, 0), ML_OK);
    const struct memlog_example_count_reply reply = {0};
    ck_assert_int_eq(memlog_example_count_answer(&kept_call, &reply), ML_OK);
    ck_assert_int_eq(ml_channel_receive(near, 0), ML_PEER_CLOSED);
    ck_assert_int_eq(answered, 1);
    ck_assert_int_eq(answer_status, ML_OK);
    ck_assert_ptr_null(near);
}
END_TEST

START_TEST(descriptors_of_a_late_reply_are_closed) {
    const struct memlog_example_keep_request request = keep_request();
    struct memlog_example_keep_reply reply = {0};
    const int before = open_count();
    ck_assert_int_eq(
        memlog_example_keep_wait(ml_channel_port(near), &request, 0, &reply), ML_ENV_AGAIN
    );
    ck_assert_int_eq(ml_channel_receive(far, 0), ML_OK);
    ck_assert_int_eq(open_count(), before);
    reply = (struct memlog_example_keep_reply
    ){.ticket = 1, .has_way_out = true, .way_out = request.way_in};
    ck_assert_int_eq(memlog_example_keep_answer(&kept_call, &reply), ML_OK);
    ck_assert_int_eq(ml_channel_receive(near, 0), ML_OK);
    ck_assert_int_eq(open_count(), before);
    close_request(&request);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("channel_calls");
    tcase_add_checked_fixture(tcase, join, part);
    tcase_add_test(tcase, nothing_to_receive_is_said_after_the_time_given);
    tcase_add_test(tcase, the_end_is_said_again_and_again);
    tcase_add_test(tcase, a_value_against_the_contract_is_not_sent);
    tcase_add_test(tcase, a_message_longer_than_the_channel_permits_is_not_sent);
    tcase_add_test(tcase, calls_that_wait_are_bounded);
    tcase_add_test(tcase, a_freed_channel_answers_its_calls);
    tcase_add_test(tcase, a_reply_may_free_the_channel_that_brought_it);
    tcase_add_test(tcase, descriptors_of_a_late_reply_are_closed);
    return run_suite("channel_calls", tcase);
}
