#include "ipc/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <check.h>
#include <ev.h>

#include "mojom_like_idl/heap_client_mojom.h"
#include "mojom_like_idl/heap_host_mojom.h"
#include "mojom_like_idl/heap_service_mojom.h"

/* A host channel and a service channel, joined, on one loop. */
struct fixture {
    struct ev_loop *loop;
    struct ml_channel *host;
    struct ml_channel *service;
    int raw_fd; /* when the host's side is played by hand */
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

/* Both sides; with `raw` the host's socket is left in f.raw_fd. */
static void join_sides(bool raw, size_t queue_bytes_max) {
    int fds[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    f = (struct fixture){.loop = ev_loop_new(0), .raw_fd = -1};
    const struct ml_channel_options serves = {
        .loop = f.loop,
        .server = memlog_service_service_server(&handlers, &f),
        .on_end = on_end,
        .context = &f};
    ck_assert_int_eq(ml_channel_new(fds[1], &serves, &f.service), ML_OK);
    if (raw) {
        f.raw_fd = fds[0];
        return;
    }
    const struct ml_channel_options calls = {.loop = f.loop, .queue_bytes_max = queue_bytes_max};
    ck_assert_int_eq(ml_channel_new(fds[0], &calls, &f.host), ML_OK);
}

static void join(void) {
    join_sides(false, 0);
}

static void join_raw(void) {
    join_sides(true, 0);
}

static void part(void) {
    ml_channel_free(f.host);
    ml_channel_free(f.service);
    if (f.raw_fd >= 0) {
        (void)close(f.raw_fd);
    }
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

/* Descriptors that are open now, to see that none is left over. */
static int open_count(void) {
    int count = 0;
    for (int fd = 0; fd < 256; fd++) {
        count += fcntl(fd, F_GETFD) >= 0;
    }
    return count;
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
    join_sides(false, 1000);
    int taken = 0;
    enum ml_status status = ML_OK;
    while (status == ML_OK) {
        status = memlog_service_update_process(ml_channel_port(f.host), &request);
        taken += status == ML_OK;
    }
    ck_assert_int_eq(status, ML_ENV_AGAIN);
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

/* ---- a peer that does not keep to the contract */

static void send_raw(const void *bytes, size_t count_bytes, const int *fds, size_t fd_count) {
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(40 * sizeof(int))];
    } control = {.bytes = {0}};
    uint8_t copy[ML_PACKET_MAX_BYTES + 1];
    memcpy(copy, bytes, count_bytes);
    struct iovec part = {.iov_base = copy, .iov_len = count_bytes};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd_count > 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
        control.align.cmsg_level = SOL_SOCKET;
        control.align.cmsg_type = SCM_RIGHTS;
        control.align.cmsg_len = CMSG_LEN(fd_count * sizeof(int));
        memcpy(CMSG_DATA(&control.align), fds, fd_count * sizeof(int));
    }
    ck_assert_int_eq(sendmsg(f.raw_fd, &message, MSG_NOSIGNAL), (ssize_t)count_bytes);
}

static void expect_end(enum ml_status status) {
    turn();
    ck_assert_int_eq(f.ends, 1);
    ck_assert_msg(
        f.end.status == status,
        "ended with %s, not %s",
        ml_status_name(f.end.status),
        ml_status_name(status)
    );
}

/* A Configure request as it should be. */
static size_t good_packet(uint8_t *packet, size_t size_bytes) {
    const struct memlog_service_configure_request request = configure_request();
    struct ml_handles handles = {0};
    size_t count_bytes = 0;
    ck_assert_int_eq(
        memlog_service_configure_request_encode(
            &request, 1, packet, size_bytes, &count_bytes, &handles
        ),
        ML_OK
    );
    return count_bytes;
}

/* An AddClient request with `fds` in the place of its two descriptors. */
static void send_add_client(const int *fds, size_t fd_count) {
    static uint8_t packet[ML_PACKET_MAX_BYTES];
    const struct memlog_service_add_client_request request = {.client = {.id = 1}};
    struct ml_handles handles = {0};
    size_t count_bytes = 0;
    ck_assert_int_eq(
        memlog_service_add_client_request_encode(
            &request, 0, packet, sizeof(packet), &count_bytes, &handles
        ),
        ML_OK
    );
    send_raw(packet, count_bytes, fds, fd_count);
}

START_TEST(surplus_descriptors_are_refused_and_closed) {
    uint8_t packet[256];
    const size_t count_bytes = good_packet(packet, sizeof(packet));
    const int before = open_count();
    send_raw(packet, count_bytes, &(int){0}, 1);
    expect_end(ML_PEER_HANDLE);
    ck_assert_int_eq(f.requests, 0);
    ck_assert_int_eq(open_count(), before - 1); /* the service's socket */
}
END_TEST

START_TEST(more_descriptors_than_any_message_has_are_refused_and_closed) {
    uint8_t packet[256];
    const size_t count_bytes = good_packet(packet, sizeof(packet));
    int fds[40] = {0};
    const int before = open_count();
    send_raw(packet, count_bytes, fds, 40);
    expect_end(ML_PEER_HANDLE);
    ck_assert_int_eq(open_count(), before - 1);
}
END_TEST

START_TEST(descriptors_on_an_empty_packet_are_closed) {
    const int before = open_count();
    send_raw("", 0, &(int){0}, 1);
    turn();
    ck_assert_int_eq(f.end.status, ML_PEER_CLOSED);
    ck_assert_int_eq(open_count(), before - 1);
}
END_TEST

START_TEST(missing_descriptors_are_refused) {
    send_add_client(NULL, 0);
    expect_end(ML_PEER_HANDLE);
}
END_TEST

/* What goes for staging must be a memfd sealed against both. */
START_TEST(descriptors_of_another_kind_are_refused_and_closed) {
    int pipes[2];
    ck_assert_int_eq(pipe(pipes), 0);
    const int sealed = sealed_memfd(F_SEAL_SHRINK | F_SEAL_GROW);
    const int path = open("/proc/self/exe", O_PATH | O_CLOEXEC);
    const int cases[][2] = {
        {pipes[0], pipes[1]},
        {sealed, sealed},
        {pipes[0], sealed_memfd(F_SEAL_SHRINK)},
        {pipes[0], sealed_memfd(F_SEAL_GROW)},
        {pipes[0], sealed_memfd(0)},
        {pipes[0], path},
        {f.raw_fd, sealed},
    };
    const int before = open_count();
    send_add_client(cases[_i], 2);
    expect_end(ML_PEER_HANDLE);
    ck_assert_int_eq(f.requests, 0);
    ck_assert_int_eq(open_count(), before - 1);
}
END_TEST

START_TEST(an_unknown_method_is_refused) {
    uint8_t packet[256];
    const size_t count_bytes = good_packet(packet, sizeof(packet));
    packet[4] = 99;
    send_raw(packet, count_bytes, NULL, 0);
    expect_end(ML_PEER_UNKNOWN);
    ck_assert_uint_eq(f.end.method, 99);
}
END_TEST

START_TEST(a_reply_that_nobody_waits_for_is_refused) {
    uint8_t packet[256];
    const size_t count_bytes = good_packet(packet, sizeof(packet));
    packet[1] = ML_MESSAGE_REPLY;
    send_raw(packet, count_bytes, NULL, 0);
    expect_end(ML_PEER_STATE);
}
END_TEST

START_TEST(a_request_that_does_not_say_how_to_answer_is_refused) {
    uint8_t packet[256];
    const size_t count_bytes = good_packet(packet, sizeof(packet));
    packet[8] = 0;
    send_raw(packet, count_bytes, NULL, 0);
    expect_end(ML_PEER_FORM);
}
END_TEST

START_TEST(a_body_against_its_contract_is_refused_by_name) {
    uint8_t packet[256];
    const size_t count_bytes = good_packet(packet, sizeof(packet));
    packet[16] = 0xc0;
    send_raw(packet, count_bytes, NULL, 0);
    expect_end(ML_PEER_TYPE);
    ck_assert_str_eq(f.end.message_name, "Service.Configure");
    ck_assert_int_eq(f.end.peer.pid, getpid());
}
END_TEST

START_TEST(a_packet_longer_than_permitted_is_refused) {
    static uint8_t packet[ML_PACKET_MAX_BYTES + 1];
    send_raw(packet, sizeof(packet), NULL, 0);
    expect_end(ML_PEER_LIMIT);
}
END_TEST

/* By its contract, by the channel. */
START_TEST(a_message_longer_than_permitted_is_refused_at_its_first_packet) {
    static uint8_t packet[ML_PACKET_MAX_BYTES];
    const struct ml_packet_header header = {
        .kind = ML_MESSAGE_REQUEST,
        .flags = ML_PACKET_MORE,
        .method =
            _i == 0 ? MEMLOG_SERVICE_SERVICE_METHOD_END_CLIENT : MEMLOG_SERVICE_SERVICE_METHOD_DUMP,
        .request_id = _i == 0 ? 0 : 1,
        .body_bytes = _i == 0 ? 100000 : ML_CHANNEL_MESSAGE_BYTES + 1};
    ml_packet_header_write(&header, packet);
    send_raw(packet, sizeof(packet), NULL, 0);
    expect_end(ML_PEER_LIMIT);
}
END_TEST

/* The second packet of a message: another message's, with a descriptor, too short, or not there. */
START_TEST(packets_that_do_not_continue_their_message_are_refused) {
    static uint8_t packet[ML_PACKET_MAX_BYTES];
    struct ml_packet_header header = {
        .kind = ML_MESSAGE_REQUEST,
        .flags = ML_PACKET_MORE,
        .method = MEMLOG_SERVICE_SERVICE_METHOD_UPDATE_PROCESS,
        .body_bytes = 100000};
    ml_packet_header_write(&header, packet);
    const int before = open_count();
    send_raw(packet, sizeof(packet), NULL, 0);
    const size_t rest_bytes = 100000 - (ML_PACKET_MAX_BYTES - ML_PACKET_HEADER_BYTES);
    header.flags = 0;
    header.method -= _i == 0 ? 1 : 0;
    ml_packet_header_write(&header, packet);
    const size_t count_bytes = ML_PACKET_HEADER_BYTES + rest_bytes - (_i == 2);
    send_raw(packet, count_bytes, &(int){0}, _i == 1);
    static const enum ml_status expected[] = {ML_PEER_STATE, ML_PEER_HANDLE, ML_PEER_FORM};
    expect_end(expected[_i]);
    ck_assert_int_eq(open_count(), before - 1);
}
END_TEST

/* A forked child shares its parent's socket. */
START_TEST(packets_of_another_process_do_not_continue_a_message) {
    static uint8_t packet[ML_PACKET_MAX_BYTES];
    struct ml_packet_header header = {
        .kind = ML_MESSAGE_REQUEST,
        .flags = ML_PACKET_MORE,
        .method = MEMLOG_SERVICE_SERVICE_METHOD_UPDATE_PROCESS,
        .body_bytes = 2 * (ML_PACKET_MAX_BYTES - ML_PACKET_HEADER_BYTES)};
    ml_packet_header_write(&header, packet);
    send_raw(packet, sizeof(packet), NULL, 0);
    turn();
    ck_assert_int_eq(f.ends, 0);
    const int child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        header.flags = 0;
        ml_packet_header_write(&header, packet);
        send_raw(packet, sizeof(packet), NULL, 0);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    expect_end(ML_PEER_STATE);
    ck_assert_int_eq(f.end.peer.pid, child);
}
END_TEST

START_TEST(every_short_packet_is_refused) {
    uint8_t packet[256];
    const size_t count_bytes = good_packet(packet, sizeof(packet));
    ck_assert_int_lt(_i, (int)count_bytes);
    send_raw(packet, (size_t)_i, NULL, 0);
    turn();
    ck_assert_int_eq(f.ends, 1);
    ck_assert_int_eq(f.requests, 0);
    ck_assert_int_eq(ml_status_family(f.end.status), ML_FAMILY_PEER);
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

static Suite *suite(void) {
    Suite *s = suite_create("channel");
    TCase *good = tcase_create("two sides that keep to the contract");
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
    suite_add_tcase(s, good);
    TCase *bad = tcase_create("a peer that does not");
    tcase_add_checked_fixture(bad, join_raw, part);
    tcase_add_test(bad, surplus_descriptors_are_refused_and_closed);
    tcase_add_test(bad, more_descriptors_than_any_message_has_are_refused_and_closed);
    tcase_add_test(bad, descriptors_on_an_empty_packet_are_closed);
    tcase_add_test(bad, missing_descriptors_are_refused);
    tcase_add_loop_test(bad, descriptors_of_another_kind_are_refused_and_closed, 0, 7);
    tcase_add_test(bad, an_unknown_method_is_refused);
    tcase_add_test(bad, a_reply_that_nobody_waits_for_is_refused);
    tcase_add_test(bad, a_request_that_does_not_say_how_to_answer_is_refused);
    tcase_add_test(bad, a_body_against_its_contract_is_refused_by_name);
    tcase_add_test(bad, a_packet_longer_than_permitted_is_refused);
    tcase_add_loop_test(bad, a_message_longer_than_permitted_is_refused_at_its_first_packet, 0, 2);
    tcase_add_loop_test(bad, packets_that_do_not_continue_their_message_are_refused, 0, 3);
    tcase_add_test(bad, packets_of_another_process_do_not_continue_a_message);
    tcase_add_loop_test(bad, every_short_packet_is_refused, 0, 26);
    suite_add_tcase(s, bad);
    return s;
}

int main(void) {
    SRunner *runner = srunner_create(suite());
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
