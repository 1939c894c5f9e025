/* A stand-in for libmemlog.so: shakes hands like the real one, writes a word into its pipe, reports
 * forks at once, and hooks nothing. Preloaded by tests/host/tree_test.py. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ipc/wire/staging.h"
#include "mojom_like_idl/contracts/heap_client_mojom.h"

static int host_fd = -1;
static struct ml_control_page *control;
static unsigned long long forks;
static int pipe_fd = -1;

static void send_packet(const void *packet, size_t count_bytes, const int *fds, size_t fd_count) {
    char space[CMSG_SPACE(sizeof(int) * 4)] = {0};
    struct iovec data;
    memcpy(&data.iov_base, &packet, sizeof(packet));
    data.iov_len = count_bytes;
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};
    if (fd_count > 0) {
        message.msg_control = space;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
        memcpy(CMSG_DATA(header), fds, sizeof(int) * fd_count);
    }
    if (sendmsg(host_fd, &message, MSG_NOSIGNAL) < 0) {
        abort();
    }
}

static void forking(void) {
    forks++;
}

static void map_control(int fd) {
    control = mmap(NULL, ML_CONTROL_BYTES, PROT_READ, MAP_SHARED, fd, 0);
    if (control == MAP_FAILED || control->magic != ML_CONTROL_MAGIC) {
        abort();
    }
}

static int make_memfd(size_t size_bytes, const void *start, size_t count) {
    int fd = memfd_create("fake", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || ftruncate(fd, (off_t)size_bytes) != 0 ||
        pwrite(fd, start, count, 0) != (ssize_t)count ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
        abort();
    }
    return fd;
}

static void forked(void) {
    int ends[2];
    if (host_fd < 0 || pipe2(ends, O_CLOEXEC) != 0) {
        return;
    }
    const struct ml_staging_header header = {
        .magic = ML_STAGING_MAGIC, .version = ML_STAGING_VERSION, .slots = 1};
    struct ml_control_page page = *control;
    page.enabled = page.fork_enabled;
    static uint8_t title[MEMLOG_CLIENT_MAX_TITLE_BYTES];
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t title_bytes = read(fd, title, sizeof(title));
    (void)close(fd);
    struct memlog_client_forked_request request = {
        .version = MEMLOG_CLIENT_CLIENT_VERSION,
        .parent_pid = (uint32_t)getppid(),
        .fork_serial = forks,
        .event_pipe = ends[0],
        .staging = make_memfd(ml_staging_size_bytes(1), &header, sizeof(header)),
        .control = make_memfd(ML_CONTROL_BYTES, &page, sizeof(page)),
        .title = {title, (uint32_t)(title_bytes > 0 ? title_bytes : 0)},
    };
    map_control(request.control);
    uint8_t packet[MEMLOG_CLIENT_FORKED_REQUEST_MAX_BYTES];
    size_t count = 0;
    struct ml_handles handles;
    if (memlog_client_forked_request_encode(
            &request, 0, packet, sizeof(packet), &count, &handles
        ) != ML_OK) {
        abort();
    }
    send_packet(packet, count, handles.fds, handles.count);
    (void)!write(ends[1], "forked", 6);
    pipe_fd = ends[1];
}

__attribute__((constructor)) static void start(void) {
    const char *path = getenv("MEMLOG_SOCKET");
    if (path == NULL) {
        return;
    }
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    host_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (connect(host_fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        host_fd = -1;
        return;
    }
    const struct memlog_client_hello_request hello = {
        .version = MEMLOG_CLIENT_CLIENT_VERSION, .parent_pid = (uint32_t)getppid()};
    uint8_t packet[256];
    size_t count = 0;
    struct ml_handles handles;
    if (memlog_client_hello_request_encode(&hello, 1, packet, sizeof(packet), &count, &handles) !=
        ML_OK) {
        abort();
    }
    send_packet(packet, count, NULL, 0);
    char space[CMSG_SPACE(sizeof(int) * 4)] = {0};
    struct iovec data = {.iov_base = packet, .iov_len = sizeof(packet)};
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space)};
    ssize_t got = recvmsg(host_fd, &message, MSG_CMSG_CLOEXEC);
    int fds[4];
    size_t fd_count = 0;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header != NULL && header->cmsg_type == SCM_RIGHTS) {
        fd_count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(fds, CMSG_DATA(header), fd_count * sizeof(int));
    }
    struct memlog_client_hello_reply reply;
    if (got <= 0 ||
        memlog_client_hello_reply_decode(1, packet, (size_t)got, fds, fd_count, NULL, 0, &reply) !=
            ML_OK) {
        abort();
    }
    if (reply.params.verdict == MEMLOG_CLIENT_VERDICT_REFUSED) {
        return;
    }
    pipe_fd = reply.event_pipe;
    map_control(reply.control);
    /* The other way round is possible: the service may have died meanwhile. */
    if (control->enabled != 0 && reply.params.verdict != MEMLOG_CLIENT_VERDICT_RECORD) {
        abort();
    }
    (void)!write(pipe_fd, "hello", 5);
    (void)pthread_atfork(forking, NULL, forked);
}
