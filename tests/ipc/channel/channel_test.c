#include "ipc/channel/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <check.h>
#include <ev.h>

#include "mojom_like_idl/contracts/heap_client_mojom.h"
#include "mojom_like_idl/contracts/heap_host_mojom.h"
#include "mojom_like_idl/contracts/heap_service_mojom.h"
#include "tests/suite.h"

/* A host channel and a service channel, joined, on one loop. */
struct fixture {
    struct ev_loop *loop;
    struct ml_channel *host;
    struct ml_channel *service;
    uint32_t figures_count;
    int requests;
    int replies;
    enum ml_status reply_status;
    uint64_t reply_bytes;
    uint32_t reply_count;
    int taken_fds[2];
    struct ml_call kept_call;
    struct ml_peer peer;
    int ends;
    struct ml_channel_end end;
    bool frees_at_end;
};

static struct fixture f;

static void on_configure(
    void *context,
    const struct ml_call *call,
    const struct memlog_service_configure_request *request
) {
    struct fixture *self = context;
    self->requests++;
    self->peer = call->peer;
    ck_assert_uint_eq(request->setup.max_memory_bytes, 77);
    const struct memlog_service_configure_reply reply = {
        .missing_sandbox = ml_string_of("landlock")};
    ck_assert_int_eq(memlog_service_configure_answer(call, &reply), ML_OK);
}

static void on_add_client(
    void *context,
    const struct ml_call *call,
    const struct memlog_service_add_client_request *request
) {
    struct fixture *self = context;
    (void)call;
    self->requests++;
    self->taken_fds[0] = request->event_pipe;
    self->taken_fds[1] = request->staging;
}

static void on_figures(
    void *context, const struct ml_call *call, const struct memlog_service_figures_request *request
) {
    struct fixture *self = context;
    (void)request;
    self->requests++;
    if (self->figures_count == 0) {
        self->kept_call = *call;
        return;
    }
    struct memlog_service_client_figures *rows = calloc(self->figures_count, sizeof(*rows));
    for (uint32_t i = 0; i < self->figures_count; i++) {
        rows[i].id = i;
        rows[i].totals.live_bytes = UINT64_MAX;
        rows[i].trouble = ml_string_of("0123456789012345678901234567890123456789");
    }
    const struct memlog_service_figures_reply reply = {
        .tree.live_bytes = 5, .clients = {.items = rows, .count = self->figures_count}};
    ck_assert_int_eq(memlog_service_figures_answer(call, &reply), ML_OK);
    free(rows);
}

static const struct memlog_service_service_handlers handlers = {
    .configure = on_configure, .add_client = on_add_client, .figures = on_figures};

static void on_end(void *context, struct ml_channel *channel, const struct ml_channel_end *end) {
    struct fixture *self = context;
    self->ends++;
    self->end = *end;
    if (self->frees_at_end) {
        ml_channel_free(channel);
        self->service = NULL;
    }
}

static void on_figures_reply(
    void *context, enum ml_status status, const struct memlog_service_figures_reply *reply
) {
    struct fixture *self = context;
    self->replies++;
    self->reply_status = status;
    if (status == ML_OK) {
        self->reply_bytes = reply->tree.live_bytes;
        self->reply_count = reply->clients.count;
        for (uint32_t i = 0; i < reply->clients.count; i++) {
            ck_assert_uint_eq(reply->clients.items[i].id, i);
            ck_assert_uint_eq(reply->clients.items[i].totals.live_bytes, UINT64_MAX);
            ck_assert_uint_eq(reply->clients.items[i].trouble.count_bytes, 40);
        }
    }
}

static void join_sides(size_t queue_bytes_max) {
    int fds[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    f = (struct fixture){.loop = ev_loop_new(0)};
    const struct ml_channel_options serves = {
        .loop = f.loop,
        .server = memlog_service_service_server(&handlers, &f),
        .on_end = on_end,
        .context = &f};
    ck_assert_int_eq(ml_channel_new(fds[1], &serves, &f.service), ML_OK);
    const struct ml_channel_options calls = {.loop = f.loop, .queue_bytes_max = queue_bytes_max};
    ck_assert_int_eq(ml_channel_new(fds[0], &calls, &f.host), ML_OK);
}

static void join(void) {
    join_sides(0);
}

static void part(void) {
    ml_channel_free(f.host);
    ml_channel_free(f.service);
    ev_loop_destroy(f.loop);
}

static void turn(void) {
    for (int i = 0; i < 200; i++) {
        (void)ev_run(f.loop, EVRUN_NOWAIT);
    }
}

static int sealed_memfd(unsigned seals) {
    const int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

static struct memlog_service_configure_request configure_request(void) {
    return (struct memlog_service_configure_request
    ){.setup = {.version = 1, .max_memory_bytes = 77}};
}

static void on_configured(
    void *context, enum ml_status status, const struct memlog_service_configure_reply *reply
) {
    struct fixture *self = context;
    self->replies++;
    self->reply_status = status;
    if (status == ML_OK) {
        ck_assert_uint_eq(reply->missing_sandbox.count_bytes, 8);
        ck_assert_int_eq(memcmp(reply->missing_sandbox.data, "landlock", 8), 0);
    }
}

START_TEST(a_call_is_answered_and_the_kernel_tells_who_called) {
    const struct memlog_service_configure_request request = configure_request();
    ck_assert_int_eq(
        memlog_service_configure(ml_channel_port(f.host), &request, on_configured, &f), ML_OK
    );
    turn();
    ck_assert_int_eq(f.requests, 1);
    ck_assert_int_eq(f.replies, 1);
    ck_assert_int_eq(f.reply_status, ML_OK);
    ck_assert_int_eq(f.peer.pid, getpid());
    ck_assert_uint_eq(f.peer.uid, getuid());
}
END_TEST

START_TEST(a_reply_may_come_later) {
    const struct memlog_service_figures_request request = {0};
    ck_assert_int_eq(
        memlog_service_figures(ml_channel_port(f.host), &request, on_figures_reply, &f), ML_OK
    );
    turn();
    ck_assert_int_eq(f.replies, 0);
    const struct memlog_service_figures_reply reply = {.tree.live_bytes = 9};
    ck_assert_int_eq(memlog_service_figures_answer(&f.kept_call, &reply), ML_OK);
    turn();
    ck_assert_int_eq(f.replies, 1);
    ck_assert_uint_eq(f.reply_bytes, 9);
}
END_TEST

START_TEST(a_message_larger_than_a_packet_and_than_the_socket_arrives_whole) {
    f.figures_count = 65536;
    const struct memlog_service_figures_request request = {0};
    ck_assert_int_eq(
        memlog_service_figures(ml_channel_port(f.host), &request, on_figures_reply, &f), ML_OK
    );
    turn();
    ck_assert_int_eq(f.replies, 1);
    ck_assert_int_eq(f.reply_status, ML_OK);
    ck_assert_uint_eq(f.reply_count, 65536);
    ck_assert_uint_eq(ml_channel_queued_bytes(f.service), 0);
}
END_TEST

START_TEST(descriptors_arrive_close_on_exec_and_belong_to_the_handler) {
    int fds[2];
    ck_assert_int_eq(pipe(fds), 0);
    const struct memlog_service_add_client_request request = {
        .client = {.id = 1, .name = ml_string_of("x")},
        .event_pipe = fds[0],
        .staging = sealed_memfd(F_SEAL_SHRINK | F_SEAL_GROW)};
    ck_assert_int_eq(memlog_service_add_client(ml_channel_port(f.host), &request), ML_OK);
    turn();
    ck_assert_int_eq(f.requests, 1);
    ck_assert_int_ne(f.taken_fds[0], fds[0]);
    ck_assert_int_eq(fcntl(f.taken_fds[0], F_GETFD), FD_CLOEXEC);
    ck_assert_int_eq(write(fds[1], "y", 1), 1);
    char byte = 0;
    ck_assert_int_eq(read(f.taken_fds[0], &byte, 1), 1);
    ck_assert_int_eq(byte, 'y');
}
END_TEST

START_TEST(queued_descriptors_outlive_the_callers) {
    int fds[2];
    ck_assert_int_eq(pipe(fds), 0);
    const struct memlog_service_add_client_request request = {
        .client = {.id = 1, .name = ml_string_of("x")},
        .event_pipe = fds[0],
        .staging = sealed_memfd(F_SEAL_SHRINK | F_SEAL_GROW)};
    int sent = 0;
    while (ml_channel_queued_bytes(f.host) == 0) {
        ck_assert_int_eq(memlog_service_add_client(ml_channel_port(f.host), &request), ML_OK);
        sent++;
    }
    (void)close(fds[0]);
    (void)close(request.staging);
    turn();
    ck_assert_int_eq(f.requests, sent);
    ck_assert_int_ge(fcntl(f.taken_fds[0], F_GETFD), 0);
}
END_TEST

START_TEST(a_full_queue_says_so_and_loses_nothing_that_it_took) {
    const struct memlog_service_update_process_request request = {
        .facts = {.id = 1, .name = ml_string_of("x")}};
    part();
    join_sides(1000);
    int taken = 0;
    enum ml_status status = ML_OK;
    while (status == ML_OK) {
        status = memlog_service_update_process(ml_channel_port(f.host), &request);
        taken += status == ML_OK;
    }
    ck_assert_int_eq(status, ML_ENV_AGAIN);
    ck_assert_int_gt(taken, 0);
    ck_assert_uint_le(ml_channel_queued_bytes(f.host), 1000);
    turn();
    /* update_process has no handler: the service ended the connection at the first. */
    ck_assert_int_eq(f.ends, 1);
    ck_assert_int_eq(f.end.status, ML_PEER_STATE);
    ck_assert_str_eq(f.end.message_name, "Service.UpdateProcess");
}
END_TEST

START_TEST(a_wait_serves_without_a_loop) {
    const int child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        enum ml_status status = ML_OK;
        while (status == ML_OK || status == ML_ENV_AGAIN) {
            status = ml_channel_receive(f.service, 1000);
        }
        _exit(status == ML_PEER_CLOSED ? 0 : 1);
    }
    struct memlog_service_configure_reply reply = {0};
    const struct memlog_service_configure_request request = configure_request();
    ck_assert_int_eq(
        memlog_service_configure_wait(ml_channel_port(f.host), &request, 5000, &reply), ML_OK
    );
    ck_assert_int_eq(memcmp(reply.missing_sandbox.data, "landlock", 8), 0);
}
END_TEST

START_TEST(a_wait_gives_up_and_drops_the_late_reply) {
    struct memlog_service_figures_reply reply = {0};
    const struct memlog_service_figures_request request = {0};
    ck_assert_int_eq(
        memlog_service_figures_wait(ml_channel_port(f.host), &request, 10, &reply), ML_ENV_AGAIN
    );
    turn();
    ck_assert_int_eq(memlog_service_figures_answer(&f.kept_call, &reply), ML_OK);
    turn();
    ck_assert_int_eq(f.ends, 0);
    f.figures_count = 1;
    ck_assert_int_eq(
        memlog_service_figures(ml_channel_port(f.host), &request, on_figures_reply, &f), ML_OK
    );
    turn();
    ck_assert_int_eq(f.replies, 1);
}
END_TEST

START_TEST(a_hang_up_answers_all_calls) {
    const struct memlog_service_figures_request request = {0};
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(
            memlog_service_figures(ml_channel_port(f.host), &request, on_figures_reply, &f), ML_OK
        );
    }
    turn();
    ml_channel_free(f.service);
    f.service = NULL;
    turn();
    ck_assert_int_eq(f.replies, 3);
    ck_assert_int_eq(f.reply_status, ML_PEER_CLOSED);
    ck_assert_int_eq(
        memlog_service_figures(ml_channel_port(f.host), &request, on_figures_reply, &f),
        ML_PEER_CLOSED
    );
}
END_TEST

START_TEST(a_channel_may_be_freed_by_its_own_callback) {
    f.frees_at_end = true;
    ml_channel_free(f.host);
    f.host = NULL;
    turn();
    ck_assert_int_eq(f.ends, 1);
    ck_assert_int_eq(f.end.status, ML_PEER_CLOSED);
    ck_assert_ptr_null(f.service);
}
END_TEST

START_TEST(only_a_seqpacket_socket_will_do) {
    int fds[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    struct ml_channel *channel = NULL;
    const struct ml_channel_options options = {0};
    ck_assert_int_eq(ml_channel_new(fds[0], &options, &channel), ML_ENV_SYSTEM);
    ck_assert_int_eq(errno, EPROTOTYPE);
    ck_assert_int_eq(fcntl(fds[0], F_GETFD), -1);
    (void)close(fds[1]);
}
END_TEST

int main(void) {
    TCase *good = tcase_create("channel");
    tcase_add_checked_fixture(good, join, part);
    tcase_add_test(good, a_call_is_answered_and_the_kernel_tells_who_called);
    tcase_add_test(good, a_reply_may_come_later);
    tcase_add_test(good, a_message_larger_than_a_packet_and_than_the_socket_arrives_whole);
    tcase_add_test(good, descriptors_arrive_close_on_exec_and_belong_to_the_handler);
    tcase_add_test(good, queued_descriptors_outlive_the_callers);
    tcase_add_test(good, a_full_queue_says_so_and_loses_nothing_that_it_took);
    tcase_add_test(good, a_wait_serves_without_a_loop);
    tcase_add_test(good, a_wait_gives_up_and_drops_the_late_reply);
    tcase_add_test(good, a_hang_up_answers_all_calls);
    tcase_add_test(good, a_channel_may_be_freed_by_its_own_callback);
    tcase_add_test(good, only_a_seqpacket_socket_will_do);
    return run_suite("channel", good);
}
