/* A peer that does not keep to its contract, played by hand against a serving channel. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <check.h>

#include "ipc/channel/channel.h"
#include "mojom_like_idl/contracts/heap_service_mojom.h"
#include "tests/suite.h"

struct fixture {
    struct ml_channel *service;
    int raw_fd; /* the other end */
    int requests;
    int ends;
    struct ml_channel_end end;
};

static struct fixture f;

static void on_configure(
    void *context,
    const struct ml_call *call,
    const struct memlog_service_configure_request *request
) {
    (void)context;
    (void)call;
    (void)request;
    f.requests++;
}

static void on_add_client(
    void *context,
    const struct ml_call *call,
    const struct memlog_service_add_client_request *request
) {
    (void)context;
    (void)call;
    (void)request;
    f.requests++;
}

static const struct memlog_service_service_handlers handlers = {
    .configure = on_configure, .add_client = on_add_client};

static void on_end(void *context, struct ml_channel *channel, const struct ml_channel_end *end) {
    (void)context;
    (void)channel;
    f.ends++;
    f.end = *end;
}

static void join(void) {
    int fds[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    f = (struct fixture){.raw_fd = fds[0]};
    const struct ml_channel_options options = {
        .server = memlog_service_service_server(&handlers, NULL), .on_end = on_end};
    ck_assert_int_eq(ml_channel_new(fds[1], &options, &f.service), ML_OK);
}

static void part(void) {
    ml_channel_free(f.service);
    (void)close(f.raw_fd);
}

static void turn(void) {
    (void)!ml_channel_receive(f.service, 0);
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
    const struct memlog_service_configure_request request = {
        .setup = {.version = 1, .max_memory_bytes = 77}};
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

int main(void) {
    TCase *tcase = tcase_create("channel_hostile");
    tcase_add_checked_fixture(tcase, join, part);
    tcase_add_test(tcase, surplus_descriptors_are_refused_and_closed);
    tcase_add_test(tcase, more_descriptors_than_any_message_has_are_refused_and_closed);
    tcase_add_test(tcase, descriptors_on_an_empty_packet_are_closed);
    tcase_add_test(tcase, missing_descriptors_are_refused);
    tcase_add_loop_test(tcase, descriptors_of_another_kind_are_refused_and_closed, 0, 7);
    tcase_add_test(tcase, an_unknown_method_is_refused);
    tcase_add_test(tcase, a_reply_that_nobody_waits_for_is_refused);
    tcase_add_test(tcase, a_request_that_does_not_say_how_to_answer_is_refused);
    tcase_add_test(tcase, a_body_against_its_contract_is_refused_by_name);
    tcase_add_test(tcase, a_packet_longer_than_permitted_is_refused);
    tcase_add_loop_test(
        tcase, a_message_longer_than_permitted_is_refused_at_its_first_packet, 0, 2
    );
    tcase_add_loop_test(tcase, packets_that_do_not_continue_their_message_are_refused, 0, 3);
    tcase_add_test(tcase, packets_of_another_process_do_not_continue_a_message);
    tcase_add_loop_test(tcase, every_short_packet_is_refused, 0, 26);
    return run_suite("channel_hostile", tcase);
}
