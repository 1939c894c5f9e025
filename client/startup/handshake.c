#include "client/startup/handshake.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "client/state/process.h"
#include "client/state/sys.h"
#include "client/symbols/allocators.h"

enum {
    HELLO_REQUEST_ID = 1,
    PIPE_DEFAULT_BYTES = 64 << 10, /* 16 pages, what pipe2 gives while there is quota */
    REPLY_FDS_MAX = 4,
    LIMIT_MARGIN = 16, /* under a lower RLIMIT_NOFILE ours lie in its last numbers */
    SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL
};

/* SO_PASSPIDFD of Linux 6.5, younger than some systems' headers. */
static const int names_of_senders[] = {SO_PASSCRED, 76};

/* A duplicate with a high number and CLOEXEC; -1 if there is none left. `fd` stays open. */
static int lifted(int fd) {
    int lowest = ML_FD_LOWEST;
    struct rlimit limit = {1024, 1024};
    (void)ml_sys4(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&limit);
    if (limit.rlim_cur < ML_FD_LOWEST + LIMIT_MARGIN) {
        lowest = limit.rlim_cur > LIMIT_MARGIN ? (int)limit.rlim_cur - LIMIT_MARGIN : 0;
    }
    const long number = ml_sys3(SYS_fcntl, fd, F_DUPFD_CLOEXEC, lowest);
    return number < 0 ? -1 : (int)number;
}

/* The longest wait of connect and sendmsg for a stopped host, also in all that inherit the
 * socket. */
static void limit_waits(int fd) {
    const struct timeval bound = {.tv_sec = ML_HANDSHAKE_WAIT_MS / 1000};
    (void
    )ml_sys6(SYS_setsockopt, fd, SOL_SOCKET, SO_SNDTIMEO, (long)&bound, (long)sizeof(bound), 0);
}

/* Was it the last descriptor? Then no answer can be received, and the host is told so on it. */
int ml_handshake_lift(int take_fd) {
    const int high_fd = lifted(take_fd);
    if (high_fd >= 0) {
        ml_sys_close(take_fd);
    }
    return high_fd >= 0 ? high_fd : take_fd;
}

bool ml_handshake_pair(int out_pair[2]) {
    return ml_sys4(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, (long)out_pair) == 0;
}

bool ml_handshake_connect(const char *path, int *out_socket_fd) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const size_t length = strlen(path);
    if (length >= sizeof(address.sun_path)) {
        return false;
    }
    memcpy(address.sun_path, path, length + 1);
    const long fd = ml_sys3(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return false;
    }
    const int socket_fd = ml_handshake_lift((int)fd);
    limit_waits(socket_fd);
    const long size_bytes = (long)(offsetof(struct sockaddr_un, sun_path) + length + 1);
    long result = 0;
    do {
        result = ml_sys3(SYS_connect, socket_fd, (long)&address, size_bytes);
    } while (result == -EINTR);
    if (result != 0) {
        ml_sys_close(socket_fd);
        return false;
    }
    *out_socket_fd = socket_fd;
    return true;
}

/* One packet with its descriptors; the kernel adds who we are (the host's end asks for
 * credentials). The socket's own bound (limit_waits) holds when it has no room. */
static bool send_packet(
    int fd, bool patient, const void *packet, size_t count_bytes, const struct ml_handles *handles
) {
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int) * ML_HANDLES_MAX)];
    } control = {0};
    struct iovec piece = {.iov_base = (void *)(uintptr_t)packet, .iov_len = count_bytes};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    if (handles->count > 0) {
        message.msg_control = control.space;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * handles->count);
        struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof(int) * handles->count);
        memcpy(CMSG_DATA(rights), handles->fds, sizeof(int) * handles->count);
    }
    long sent = 0;
    do {
        sent =
            ml_sys3(SYS_sendmsg, fd, (long)&message, MSG_NOSIGNAL | (patient ? 0 : MSG_DONTWAIT));
    } while (sent == -EINTR);
    return sent == (long)count_bytes;
}

static bool send_message(
    int fd,
    bool patient,
    const struct ml_message_type *type,
    uint32_t request_id,
    const void *message,
    uint8_t *packet,
    size_t packet_bytes
) {
    size_t count_bytes = 0;
    struct ml_handles handles;
    return ml_codec_encode_packet(
               type, request_id, message, packet, packet_bytes, &count_bytes, &handles
           ) == ML_OK &&
           send_packet(fd, patient, packet, count_bytes, &handles);
}

/* Send a request of the contract, made in the array `packet`. False: the host does not get it. */
#define SEND(fd, patient, name, request_id, request, packet)                                       \
    send_message(                                                                                  \
        fd,                                                                                        \
        patient,                                                                                   \
        &memlog_client_##name##_request_type,                                                      \
        request_id,                                                                                \
        &(request),                                                                                \
        packet,                                                                                    \
        sizeof(packet)                                                                             \
    )

bool ml_handshake_connect_by(int left_fd, int *out_socket_fd) {
    int pair[2] = {-1, -1};
    const int on = 1;
    if (!ml_handshake_pair(pair)) {
        return false;
    }
    /* Before it is the host's: it must know the sender of each message, the first ones too. */
    for (size_t i = 0; i < sizeof(names_of_senders) / sizeof(names_of_senders[0]); i++) {
        (void)ml_sys6(
            SYS_setsockopt, pair[1], SOL_SOCKET, names_of_senders[i], (long)&on, (long)sizeof(on), 0
        );
    }
    const int socket_fd = ml_handshake_lift(pair[0]);
    limit_waits(socket_fd);
    const struct memlog_client_connected_request request = {
        .version = MEMLOG_CLIENT_CLIENT_VERSION, .connection = pair[1]};
    uint8_t packet[MEMLOG_CLIENT_CONNECTED_REQUEST_MAX_BYTES];
    const bool sent = SEND(left_fd, true, connected, 0, request, packet);
    ml_sys_close(pair[1]);
    if (!sent) {
        ml_sys_close(socket_fd);
        return false;
    }
    *out_socket_fd = socket_fd;
    return true;
}

/* Without a wait in the kernel. True, too: the host has hung up. */
static bool is_answered(int fd) {
    char byte = 0;
    struct iovec piece = {.iov_base = &byte, .iov_len = sizeof(byte)};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    const long got = ml_sys3(SYS_recvmsg, fd, (long)&message, MSG_PEEK | MSG_DONTWAIT);
    return got != -EAGAIN && got != -EINTR;
}

/* False: there is none in time. True, too: the host has hung up. */
static bool wait_for_answer(int fd) {
    const uint64_t deadline_ns = ml_sys_monotonic_ns() + (uint64_t)ML_HANDSHAKE_WAIT_MS * 1000000u;
    for (;;) {
        const uint64_t now_ns = ml_sys_monotonic_ns();
        if (now_ns >= deadline_ns) {
            return false;
        }
        if ((ml_process.filters & ML_FILTERS_NO_RESTART) != 0) {
            if (is_answered(fd)) {
                return true;
            }
            ml_sys_linger();
            continue;
        }
        struct pollfd wanted = {.fd = fd, .events = POLLIN, .revents = 0};
        const long left_ms = (long)((deadline_ns - now_ns) / 1000000u + 1);
        const long ready = ml_sys3(SYS_poll, (long)&wanted, 1, left_ms);
        if (ready > 0) {
            return true;
        }
        if (ready < 0 && ready != -EINTR) {
            return false;
        }
    }
}

struct answer {
    uint8_t packet[MEMLOG_CLIENT_HELLO_REPLY_MAX_BYTES];
    size_t count_bytes;
    int fds[REPLY_FDS_MAX];
    size_t fds_count;
    bool no_descriptors; /* to take them */
};

static void close_all(struct answer *answer) {
    for (size_t i = 0; i < answer->fds_count; i++) {
        ml_sys_close(answer->fds[i]);
    }
    answer->fds_count = 0;
}

static bool receive(int fd, struct answer *out_answer) {
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int) * REPLY_FDS_MAX)];
    } control = {0};
    struct iovec piece = {.iov_base = out_answer->packet, .iov_len = sizeof(out_answer->packet)};
    struct msghdr message = {
        .msg_iov = &piece,
        .msg_iovlen = 1,
        .msg_control = control.space,
        .msg_controllen = sizeof(control.space)};
    long got = 0;
    do {
        got = ml_sys3(SYS_recvmsg, fd, (long)&message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    } while (got == -EINTR);
    out_answer->fds_count = 0;
    if (got < 0) {
        return false;
    }
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c != NULL; c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
            const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            memcpy(out_answer->fds, CMSG_DATA(c), count * sizeof(int));
            out_answer->fds_count = count;
        }
    }
    out_answer->count_bytes = (size_t)got;
    out_answer->no_descriptors = (message.msg_flags & MSG_CTRUNC) != 0;
    return (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
}

/* On false, what is open of the answer is still the answer's. */
static bool accept_answer(struct answer *answer, struct ml_handshake *out_handshake) {
    struct memlog_client_hello_reply reply;
    if (memlog_client_hello_reply_decode(
            HELLO_REQUEST_ID,
            answer->packet,
            answer->count_bytes,
            answer->fds,
            answer->fds_count,
            NULL,
            0,
            &reply
        ) != ML_OK) {
        return false;
    }
    const bool complete =
        reply.has_event_pipe && reply.has_staging && reply.has_control && reply.has_lease;
    *out_handshake = (struct ml_handshake
    ){.params = reply.params, .pipe_fd = -1, .staging_fd = -1, .control_fd = -1, .lease_fd = -1};
    if (!complete) {
        close_all(answer);
        return reply.params.verdict == MEMLOG_CLIENT_VERDICT_REFUSED;
    }
    out_handshake->pipe_fd = lifted(reply.event_pipe);
    if (out_handshake->pipe_fd < 0) {
        answer->no_descriptors = true;
        return false;
    }
    ml_sys_close(reply.event_pipe);
    out_handshake->staging_fd = reply.staging;
    out_handshake->control_fd = reply.control;
    out_handshake->lease_fd = reply.lease;
    return true;
}

/* The number in field `wanted` of /proc/self/stat, counted from the state (field 3), 0 if it is not
 * there. */
static uint64_t stat_field(const char *fields, const char *end, int wanted) {
    int field = 3;
    uint64_t value = 0;
    for (const char *pos = fields; pos < end; pos++) {
        if (*pos == ' ') {
            field++;
        } else if (field == wanted && *pos >= '0' && *pos <= '9') {
            value = value * 10 + (uint64_t)(*pos - '0');
        }
    }
    return value;
}

struct ml_bytes ml_handshake_title(void) {
    enum { ARG_START = 48, ARG_END = 49 };
    const struct ml_bytes none = {NULL, 0};
    char text[1024];
    const long fd = ml_sys3(SYS_openat, AT_FDCWD, (long)"/proc/self/stat", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return none;
    }
    const long count = ml_sys3(SYS_read, fd, (long)text, sizeof(text));
    ml_sys_close((int)fd);
    /* The name stands in brackets and may hold any byte: the last bracket ends it. */
    long fields = count - 1;
    while (fields > 0 && text[fields] != ')') {
        fields--;
    }
    if (fields <= 0 || fields + 2 >= count) {
        return none;
    }
    const char *const first = text + fields + 2;
    const uint64_t start = stat_field(first, text + count, ARG_START);
    const uint64_t end = stat_field(first, text + count, ARG_END);
    if (start == 0 || end <= start) {
        return none;
    }
    const uint64_t bytes = end - start;
    return (struct ml_bytes
    ){.data = (const uint8_t *)(uintptr_t)start,
      .count_bytes =
          bytes < MEMLOG_CLIENT_MAX_TITLE_BYTES ? (uint32_t)bytes : MEMLOG_CLIENT_MAX_TITLE_BYTES};
}

/* If the message is lost, the host knows no allocator. */
static void tell_allocators(int socket_fd) {
    const struct ml_allocators found = ml_allocators_find();
    const struct memlog_client_allocators_request request = {
        .owner = ml_string_cut(found.owner, MEMLOG_CLIENT_ALLOCATORS_REQUEST_OWNER_LIMIT),
        .in_front = found.in_front,
        .in_program = found.in_program,
        .entry_point =
            ml_string_cut(found.entry_point, MEMLOG_CLIENT_ALLOCATORS_REQUEST_ENTRY_POINT_LIMIT),
        .entry_point_of = ml_string_cut(
            found.entry_point_of, MEMLOG_CLIENT_ALLOCATORS_REQUEST_ENTRY_POINT_OF_LIMIT
        ),
    };
    uint8_t packet[MEMLOG_CLIENT_ALLOCATORS_REQUEST_MAX_BYTES];
    (void)SEND(socket_fd, true, allocators, 0, request, packet);
}

enum ml_answer ml_handshake_ask(int socket_fd, struct ml_handshake *out_handshake) {
    tell_allocators(socket_fd);
    const struct memlog_client_hello_request request = {
        .version = MEMLOG_CLIENT_CLIENT_VERSION,
        .parent_pid = (uint32_t)ml_sys0(SYS_getppid),
    };
    uint8_t packet[MEMLOG_CLIENT_HELLO_REQUEST_MAX_BYTES];
    if (!SEND(socket_fd, true, hello, HELLO_REQUEST_ID, request, packet)) {
        return ML_ANSWER_NONE;
    }
    struct answer answer = {.fds_count = 0};
    const bool in_time = wait_for_answer(socket_fd);
    if (!in_time) {
        /* From here on the host cannot answer, and its send fails: else it would count this process
         * as recorded. An answer that has just arrived still counts. */
        (void)ml_sys3(SYS_shutdown, socket_fd, SHUT_RD, 0);
    }
    if (receive(socket_fd, &answer) && accept_answer(&answer, out_handshake)) {
        return ML_ANSWER_GOOD;
    }
    close_all(&answer);
    if (answer.no_descriptors) {
        (void)ml_handshake_cannot_use(socket_fd, MEMLOG_CLIENT_NOT_PROFILED_REASON_NO_DESCRIPTORS);
    }
    return in_time ? ML_ANSWER_UNUSABLE : ML_ANSWER_NONE;
}

/* A memfd of that size, sealed; -1 where the kernel or the process's own limits do not permit it.
 */
static int
sealed_memfd(const char *name, uint64_t size_bytes, const void *head, size_t head_bytes) {
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    (void)ml_sys4(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit);
    if (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < size_bytes) {
        return -1; /* growing a file beyond it raises SIGXFSZ in the program */
    }
    const long fd = ml_sys3(SYS_memfd_create, (long)name, MFD_CLOEXEC | MFD_ALLOW_SEALING, 0);
    if (fd < 0) {
        return -1;
    }
    if (ml_sys3(SYS_ftruncate, fd, (long)size_bytes, 0) != 0 ||
        ml_sys4(SYS_pwrite64, fd, (long)head, (long)head_bytes, 0) != (long)head_bytes ||
        ml_sys3(SYS_fcntl, fd, F_ADD_SEALS, SEALS) != 0) {
        ml_sys_close((int)fd);
        return -1;
    }
    return (int)fd;
}

static bool make_own(
    uint32_t slots,
    const struct ml_control_page *control,
    int pipe_fds[2],
    struct ml_handshake *handshake
) {
    const struct ml_staging_header header = {
        .magic = ML_STAGING_MAGIC, .version = ML_STAGING_VERSION, .slots = slots};
    struct ml_control_page page = *control;
    page.generation = 1;
    page.profile = 0; /* the child's stream begins with its first */
    page.enabled = control->fork_enabled;
    page.all_sampled = 1; /* it starts empty */
    handshake->staging_fd =
        sealed_memfd("memlog-staging", ml_staging_size_bytes(slots), &header, sizeof(header));
    handshake->control_fd = sealed_memfd("memlog-control", ML_CONTROL_BYTES, &page, sizeof(page));
    if (handshake->staging_fd < 0 || handshake->control_fd < 0 ||
        ml_sys3(SYS_pipe2, (long)pipe_fds, O_CLOEXEC | O_NONBLOCK, 0) != 0) {
        return false;
    }
    /* Small: thousands may be forked before the host sees the first. The host enlarges it if it
     * may.
     */
    if (page.fork_pipe_bytes != 0 && page.fork_pipe_bytes < PIPE_DEFAULT_BYTES) {
        (void)ml_sys3(SYS_fcntl, pipe_fds[1], F_SETPIPE_SZ, (long)page.fork_pipe_bytes);
    }
    return true;
}

static bool send_forked(
    int socket_fd,
    bool patient,
    uint64_t fork_serial,
    int read_fd,
    struct ml_bytes title,
    const struct ml_handshake *handshake
) {
    const struct memlog_client_forked_request request = {
        .version = MEMLOG_CLIENT_CLIENT_VERSION,
        .parent_pid = (uint32_t)ml_sys0(SYS_getppid),
        .fork_serial = fork_serial,
        .event_pipe = read_fd,
        .staging = handshake->staging_fd,
        .control = handshake->control_fd,
        .title = title,
    };
    /* Not on the stack, which hooks use sparingly. Static is safe: a child at its first event has
     * one thread. */
    static uint8_t packet[MEMLOG_CLIENT_FORKED_REQUEST_MAX_BYTES];
    return SEND(socket_fd, patient, forked, 0, request, packet);
}

/* Whether the kernel knows memfd_create and its flags: a name at no address is all that it minds.
 */
static bool has_memfds(void) {
    return ml_sys3(SYS_memfd_create, 0, MFD_CLOEXEC | MFD_ALLOW_SEALING, 0) == -EFAULT;
}

bool ml_handshake_forked(
    int socket_fd,
    bool patient,
    uint64_t fork_serial,
    uint32_t slots,
    const struct ml_control_page *control,
    struct ml_bytes title,
    struct ml_handshake *out_handshake
) {
    int pipe_fds[2] = {-1, -1};
    struct ml_handshake handshake = {
        .pipe_fd = -1, .staging_fd = -1, .control_fd = -1, .lease_fd = -1};
    handshake.params.staging_slots = slots;
    const bool made = make_own(slots, control, pipe_fds, &handshake);
    const bool sent =
        made && send_forked(socket_fd, patient, fork_serial, pipe_fds[0], title, &handshake);
    ml_sys_close(pipe_fds[0]);
    handshake.pipe_fd = lifted(pipe_fds[1]);
    ml_sys_close(pipe_fds[1]);
    const bool done = sent && handshake.pipe_fd >= 0;
    if (!done) {
        ml_sys_close(handshake.pipe_fd);
        ml_sys_close(handshake.staging_fd);
        ml_sys_close(handshake.control_fd);
    }
    if (!made) {
        handshake.told = ml_handshake_cannot_use(
            socket_fd,
            has_memfds() ? MEMLOG_CLIENT_NOT_PROFILED_REASON_NO_ROOM
                         : MEMLOG_CLIENT_NOT_PROFILED_REASON_NO_MEMFD
        );
    } else if (sent && !done) {
        handshake.told =
            ml_handshake_cannot_use(socket_fd, MEMLOG_CLIENT_NOT_PROFILED_REASON_NO_DESCRIPTORS);
    }
    *out_handshake = handshake;
    return done;
}

bool ml_handshake_not_profiled(
    int socket_fd, bool patient, enum memlog_client_not_profiled_reason reason, const char *path
) {
    const struct memlog_client_not_profiled_request request = {
        .reason = reason,
        .path = ml_string_cut(path, MEMLOG_CLIENT_NOT_PROFILED_REQUEST_PATH_LIMIT)};
    uint8_t packet[MEMLOG_CLIENT_NOT_PROFILED_REQUEST_MAX_BYTES];
    return SEND(socket_fd, patient, not_profiled, 0, request, packet);
}

void ml_handshake_finish(int socket_fd) {
    (void)ml_sys3(SYS_shutdown, socket_fd, SHUT_WR, 0);
    (void)wait_for_answer(socket_fd);
    ml_sys_close(socket_fd);
}

bool ml_handshake_cannot_use(int socket_fd, enum memlog_client_not_profiled_reason reason) {
    const struct memlog_client_not_profiled_request request = {.reason = reason, .path = {"", 0}};
    /* Of no path: a hook has little of the program's stack. */
    uint8_t packet
        [MEMLOG_CLIENT_NOT_PROFILED_REQUEST_MAX_BYTES -
         MEMLOG_CLIENT_NOT_PROFILED_REQUEST_PATH_LIMIT];
    return SEND(socket_fd, false, not_profiled, 0, request, packet);
}

bool ml_handshake_ask_dump(
    int socket_fd, struct ml_bytes role, struct ml_bytes reason, uint32_t passed_over
) {
    const struct memlog_client_dump_asked_request request = {
        .version = MEMLOG_CLIENT_CLIENT_VERSION,
        .role = role,
        .reason = reason,
        .passed_over = passed_over,
    };
    uint8_t packet[MEMLOG_CLIENT_DUMP_ASKED_REQUEST_MAX_BYTES];
    return SEND(socket_fd, false, dump_asked, 0, request, packet);
}

bool ml_handshake_no_room(int socket_fd) {
    /* Of nothing: whether the kernel knows the advice. */
    const bool has_wipe = ml_sys3(SYS_madvise, 0, 0, MADV_WIPEONFORK) == 0;
    return ml_handshake_cannot_use(
        socket_fd,
        has_wipe ? MEMLOG_CLIENT_NOT_PROFILED_REASON_NO_ROOM
                 : MEMLOG_CLIENT_NOT_PROFILED_REASON_NO_WIPE_ON_FORK
    );
}
