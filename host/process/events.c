#include "host/process/events.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/filter.h>
#include <linux/netlink.h>

/* The kernel takes twice that, and 768 bytes an event: some forty thousand, as the host may be busy
 * with a dump. Only events take memory. */
enum { QUEUE_BYTES = 16 << 20 };

/* The kernel answers at once, or not at all: from another pid or user namespace it takes the
 * request silently and never tells anything. Who sees by their numbers that these are others need
 * not ask.
 */
enum { ANSWER_MS = 50, PACKET_BYTES = 1024 };

static const size_t head_bytes = NLMSG_HDRLEN + sizeof(struct cn_msg);

/* The numbers of the initial namespaces, since Linux 3.8 and forever (include/linux/proc_ns.h). */
static const ino_t initial_pids = 0xEFFFFFFC;
static const ino_t initial_users = 0xEFFFFFFD;

/* Where /proc does not tell, the kernel's answer does. */
static bool is_another_namespace(const char *path, ino_t initial) {
    struct stat about;
    return stat(path, &about) == 0 && about.st_ino != initial;
}

static bool ask(int fd) {
    union {
        struct nlmsghdr header;
        char bytes[NLMSG_SPACE(sizeof(struct cn_msg) + sizeof(enum proc_cn_mcast_op))];
    } packet;
    memset(&packet, 0, sizeof(packet));
    const enum proc_cn_mcast_op order = PROC_CN_MCAST_LISTEN;
    packet.header.nlmsg_len = NLMSG_LENGTH(sizeof(struct cn_msg) + sizeof(order));
    packet.header.nlmsg_type = NLMSG_DONE;
    const struct cn_msg message = {
        .id = {.idx = CN_IDX_PROC, .val = CN_VAL_PROC}, .len = sizeof(order)};
    memcpy(packet.bytes + NLMSG_HDRLEN, &message, sizeof(message));
    memcpy(packet.bytes + head_bytes, &order, sizeof(order));
    return send(fd, &packet, packet.header.nlmsg_len, 0) == (ssize_t)packet.header.nlmsg_len;
}

/* The kernel filters out events of threads, and of all but births, execs and ends, so that they
 * take no room in the queue. Where it cannot, ml_process_event_parse does. */
static void filter(int fd) {
    enum { EVENT = NLMSG_HDRLEN + sizeof(struct cn_msg), TAKE = -1, PASS_OVER = 0 };
    enum {
        WHAT = EVENT + offsetof(struct proc_event, what),
        CHILD = EVENT + offsetof(struct proc_event, event_data.fork.child_pid),
        CHILD_GROUP = EVENT + offsetof(struct proc_event, event_data.fork.child_tgid),
        ENDED = EVENT + offsetof(struct proc_event, event_data.exit.process_pid),
        ENDED_GROUP = EVENT + offsetof(struct proc_event, event_data.exit.process_tgid),
    };
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, WHAT), /* by the network's order of bytes */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(PROC_EVENT_FORK), 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(PROC_EVENT_EXIT), 7, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(PROC_EVENT_EXEC), 10, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(PROC_EVENT_NONE), 9, 0), /* it listens to us */
        BPF_STMT(BPF_RET | BPF_K, PASS_OVER),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, CHILD),
        BPF_STMT(BPF_MISC | BPF_TAX, 0),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, CHILD_GROUP),
        BPF_JUMP(BPF_JMP | BPF_JA, 3, 0, 0),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ENDED),
        BPF_STMT(BPF_MISC | BPF_TAX, 0),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ENDED_GROUP),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_X, 0, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, (uint32_t)TAKE),
        BPF_STMT(BPF_RET | BPF_K, PASS_OVER),
    };
    const struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
    (void)setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

static bool is_answered(int fd) {
    struct pollfd wanted = {.fd = fd, .events = POLLIN};
    return poll(&wanted, 1, ANSWER_MS) > 0 && (wanted.revents & POLLIN) != 0;
}

int ml_process_events_open(void) {
    if (is_another_namespace("/proc/self/ns/pid", initial_pids) ||
        is_another_namespace("/proc/self/ns/user", initial_users)) {
        return -1;
    }
    const int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_CONNECTOR);
    if (fd < 0) {
        return -1;
    }
    const int queue_bytes = QUEUE_BYTES;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &queue_bytes, sizeof(queue_bytes)) != 0) {
        /* Not root: as much of it as net.core.rmem_max permits. */
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &queue_bytes, sizeof(queue_bytes));
    }
    filter(fd);
    const struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC};
    if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0 || !ask(fd) ||
        !is_answered(fd)) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

struct ml_process_event ml_process_event_parse(const void *packet, size_t count_bytes) {
    struct proc_event event;
    struct ml_process_event parsed = {.kind = ML_PROCESS_EVENT_OTHER};
    if (count_bytes < head_bytes + sizeof(event)) {
        return parsed;
    }
    memcpy(&event, (const char *)packet + head_bytes, sizeof(event));
    parsed.monotonic_ns = event.timestamp_ns;
    if (event.what == PROC_EVENT_FORK &&
        event.event_data.fork.child_pid == event.event_data.fork.child_tgid) {
        parsed.kind = ML_PROCESS_EVENT_BORN;
        parsed.pid = event.event_data.fork.child_tgid;
        parsed.parent = event.event_data.fork.parent_tgid;
        parsed.parent_thread = event.event_data.fork.parent_pid;
    } else if (event.what == PROC_EVENT_EXEC) {
        parsed.kind = ML_PROCESS_EVENT_EXEC;
        parsed.pid = event.event_data.exec.process_tgid;
    } else if (
        event.what == PROC_EVENT_EXIT &&
        event.event_data.exit.process_pid == event.event_data.exit.process_tgid
    ) {
        parsed.kind = ML_PROCESS_EVENT_ENDED;
        parsed.pid = event.event_data.exit.process_tgid;
        parsed.parent = event.event_data.exit.parent_tgid;
        parsed.wait_status = (int)event.event_data.exit.exit_code;
    }
    return parsed;
}

bool ml_process_events_next(int fd, struct ml_process_event *out_event, bool *out_lost) {
    for (;;) {
        char packet[PACKET_BYTES];
        struct sockaddr_nl sender = {.nl_pid = 1};
        socklen_t sender_bytes = sizeof(sender);
        const ssize_t count =
            recvfrom(fd, packet, sizeof(packet), 0, (struct sockaddr *)&sender, &sender_bytes);
        if (count < 0 && errno == ENOBUFS) {
            *out_lost = true;
        } else if (count < 0 && errno != EINTR) {
            return false;
        } else if (count >= 0 && sender.nl_pid == 0) { /* the kernel, not another process */
            *out_event = ml_process_event_parse(packet, (size_t)count);
            if (out_event->kind != ML_PROCESS_EVENT_OTHER) {
                return true;
            }
        }
    }
}
