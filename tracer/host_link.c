#include "tracer/host_link.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static void
send_packet(const uint8_t *packet, size_t count_bytes, const struct ml_handles *handles) {
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec piece = {.iov_base = (void *)(uintptr_t)packet, .iov_len = count_bytes};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    if (handles->count == 1) {
        message.msg_control = control.space;
        message.msg_controllen = sizeof(control.space);
        struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(rights), handles->fds, sizeof(int));
    }
    (void)sendmsg(ML_HOST_LINK_FD, &message, MSG_NOSIGNAL);
}

void ml_host_link_connected(pid_t pid, int connection_fd) {
    const struct memlog_tracer_connected_request request = {
        .version = MEMLOG_TRACER_TRACER_VERSION, .pid = (uint32_t)pid, .connection = connection_fd};
    uint8_t packet[MEMLOG_TRACER_CONNECTED_REQUEST_MAX_BYTES];
    struct ml_handles handles;
    size_t count = 0;
    if (memlog_tracer_connected_request_encode(
            &request, 0, packet, sizeof(packet), &count, &handles
        ) == ML_OK) {
        send_packet(packet, count, &handles);
    }
}

void ml_host_link_finished(
    pid_t pid,
    enum memlog_tracer_outcome outcome,
    const char *reason,
    const struct memlog_tracer_traced *traced
) {
    const struct memlog_tracer_finished_request request = {
        .version = MEMLOG_TRACER_TRACER_VERSION,
        .pid = (uint32_t)pid,
        .outcome = outcome,
        .reason = ml_string_cut(reason, MEMLOG_TRACER_FINISHED_REQUEST_REASON_LIMIT),
        .traced = *traced};
    uint8_t packet[MEMLOG_TRACER_FINISHED_REQUEST_MAX_BYTES];
    struct ml_handles handles;
    size_t count = 0;
    if (memlog_tracer_finished_request_encode(
            &request, 0, packet, sizeof(packet), &count, &handles
        ) == ML_OK) {
        send_packet(packet, count, &handles);
    }
}
