/* Packets with descriptors, sent by a peer that keeps to nothing. The first byte says which side of
 * which contract listens; then, packet by packet: what descriptors come with it and whether its
 * header is made for it, two bytes length, body. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ipc/channel/channel.h"
#include "mojom_like_idl/contracts/heap_client_mojom.h"
#include "mojom_like_idl/contracts/heap_host_mojom.h"
#include "mojom_like_idl/contracts/heap_service_mojom.h"
#include "tests/fuzz/fuzz.h"

enum { HEAD_BYTES = 3, FDS_MAX = 4, MADE_HEADER = 0x80, METHOD_MASK = 0x0f, FD_LIMIT = 64 };

/* Of each kind that a message can declare, and of some that none can. */
enum { PIPE, SEALED, SEALED_TOO, UNSEALED, SOCKET, OPENED_BY_PATH, DEVICE, KINDS };
static int kinds[KINDS];

static void make_kinds(void) {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    kinds[PIPE] = ends[0];
    kinds[SEALED] = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    REQUIRE(ftruncate(kinds[SEALED], 4096) == 0);
    REQUIRE(fcntl(kinds[SEALED], F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0);
    kinds[SEALED_TOO] = fcntl(kinds[SEALED], F_DUPFD_CLOEXEC, 0);
    kinds[UNSEALED] = memfd_create("fuzz", MFD_CLOEXEC);
    kinds[SOCKET] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    kinds[OPENED_BY_PATH] = open("/proc/self/exe", O_PATH | O_CLOEXEC);
    kinds[DEVICE] = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int i = 0; i < KINDS; i++) {
        REQUIRE(kinds[i] >= 0 && kinds[i] < FD_LIMIT / 2);
    }
}

static int open_count(void) {
    int count = 0;
    for (int fd = 0; fd < FD_LIMIT; fd++) {
        count += fcntl(fd, F_GETFD) >= 0;
    }
    return count;
}

/* Descriptors are the handlers': of the methods that bring none, nobody needs to know more. */
static void on_forked(
    void *context, const struct ml_call *call, const struct memlog_client_forked_request *request
) {
    (void)context;
    (void)call;
    (void)close(request->event_pipe);
    (void)close(request->staging);
    (void)close(request->control);
}

static void on_add_client(
    void *context,
    const struct ml_call *call,
    const struct memlog_service_add_client_request *request
) {
    (void)context;
    (void)call;
    (void)close(request->event_pipe);
    (void)close(request->staging);
}

static void on_dump(
    void *context, const struct ml_call *call, const struct memlog_service_dump_request *request
) {
    (void)context;
    (void)call;
    (void)close(request->file);
}

static const struct memlog_client_host_for_client_handlers of_client = {.forked = on_forked};
static const struct memlog_host_host_handlers of_command;
static const struct memlog_service_service_handlers of_service = {
    .add_client = on_add_client, .dump = on_dump};
static const struct memlog_service_host_for_service_handlers of_host;

static const struct {
    const struct ml_interface *interface;
    const void *handlers;
} sides[] = {
    {&memlog_client_host_for_client_interface, &of_client},
    {&memlog_host_host_interface, &of_command},
    {&memlog_service_service_interface, &of_service},
    {&memlog_service_host_for_service_interface, &of_host},
};

static const struct ml_interface *listening;

static enum ml_status
dispatch(const void *handlers, void *context, const struct ml_call *call, const void *request) {
    REQUIRE(request != NULL);
    (void)!listening->dispatch(handlers, context, call, request);
    return ML_OK;
}

static void
on_reply(void *context, enum ml_status status, const struct memlog_client_hello_reply *reply) {
    (void)context;
    REQUIRE((status == ML_OK) == (reply != NULL));
    if (reply != NULL) {
        const int fds[] = {
            reply->has_event_pipe ? reply->event_pipe : -1,
            reply->has_staging ? reply->staging : -1,
            reply->has_control ? reply->control : -1,
            reply->has_lease ? reply->lease : -1};
        for (int i = 0; i < 4; i++) {
            if (fds[i] >= 0) {
                (void)close(fds[i]);
            }
        }
    }
}

static bool send_packet(int fd, const uint8_t *bytes, size_t count_bytes, uint8_t descriptors) {
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
    } control = {.bytes = {0}};
    uint8_t copy[ML_PACKET_MAX_BYTES];
    memcpy(copy, bytes, count_bytes);
    struct iovec part = {.iov_base = copy, .iov_len = count_bytes};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    int fds[FDS_MAX];
    size_t fds_count = descriptors % (FDS_MAX + 1);
    for (size_t i = 0; i < fds_count; i++) {
        fds[i] = kinds[(descriptors / (FDS_MAX + 1) + i) % KINDS];
    }
    if (fds_count > 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(fds_count * sizeof(int));
        control.align.cmsg_level = SOL_SOCKET;
        control.align.cmsg_type = SCM_RIGHTS;
        control.align.cmsg_len = CMSG_LEN(fds_count * sizeof(int));
        memcpy(CMSG_DATA(&control.align), fds, fds_count * sizeof(int));
    }
    return sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)count_bytes;
}

/* One packet of the input; how many bytes it took. */
static size_t send_next(int fd, const uint8_t *data, size_t count_bytes, bool *out_sent) {
    uint8_t packet[ML_PACKET_MAX_BYTES];
    const uint8_t flags = data[0];
    size_t length = data[1] | (size_t)data[2] << 8;
    size_t used = 0;
    length = length < count_bytes - HEAD_BYTES ? length : count_bytes - HEAD_BYTES;
    if ((flags & MADE_HEADER) != 0 && length > 0) {
        /* Method and request id by the body's first byte, so that bodies are reached at all. */
        const struct ml_packet_header header = {
            .kind = (data[HEAD_BYTES] & 0x40) != 0 ? ML_MESSAGE_REPLY : ML_MESSAGE_REQUEST,
            .method = data[HEAD_BYTES] & METHOD_MASK,
            .request_id = (data[HEAD_BYTES] & 0x20) != 0,
            .body_bytes = (uint32_t)length - 1};
        ml_packet_header_write(&header, packet);
        used = ML_PACKET_HEADER_BYTES;
    }
    const size_t skip = used > 0 ? 1 : 0;
    size_t body = length - skip;
    body = body < sizeof(packet) - used ? body : sizeof(packet) - used;
    memcpy(packet + used, data + HEAD_BYTES + skip, body);
    *out_sent = send_packet(fd, packet, used + body, flags & 0x7f);
    return HEAD_BYTES + length;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    static bool made;
    if (!made) {
        make_kinds();
        made = true;
    }
    if (count_bytes == 0) {
        return 0;
    }
    const int before = open_count();
    int fds[2];
    struct ml_channel *channel = NULL;
    const size_t side = data[0] % (sizeof(sides) / sizeof(sides[0]));
    listening = sides[side].interface;
    struct ml_interface interface = *listening;
    interface.dispatch = dispatch;
    const struct ml_channel_options options = {
        .server = {.interface = &interface, .handlers = sides[side].handlers},
        .message_bytes_max = 1 << 20};
    REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0);
    REQUIRE(ml_channel_new(fds[1], &options, &channel) == ML_OK);
    /* One call waits, so that replies are read too. */
    const struct memlog_client_hello_request hello = {.version = 1};
    REQUIRE(memlog_client_hello(ml_channel_port(channel), &hello, on_reply, NULL) == ML_OK);
    enum ml_status status = ML_OK;
    for (size_t at = 1; count_bytes - at >= HEAD_BYTES && status == ML_OK;) {
        bool sent = false;
        at += send_next(fds[0], data + at, count_bytes - at, &sent);
        if (sent) {
            status = ml_channel_receive(channel, 0);
            REQUIRE(status == ML_OK || ml_status_family(status) == ML_FAMILY_PEER);
        }
    }
    ml_channel_free(channel);
    (void)close(fds[0]);
    REQUIRE(open_count() == before);
    return 0;
}
