#include "ipc/channel/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { SHARE_MAX_BYTES = ML_PACKET_MAX_BYTES - ML_PACKET_HEADER_BYTES };

static enum ml_status status_of_errno(void) {
    switch (errno) {
    case EAGAIN:
        return ML_ENV_AGAIN;
    case EPIPE:
    case ECONNRESET:
    case ENOTCONN:
        return ML_PEER_CLOSED;
    default:
        return ML_ENV_SYSTEM;
    }
}

/* The next packet of a message. */
static enum ml_status send_packet(int fd, struct ml_channel_outgoing *out) {
    const size_t left_bytes = out->header.body_bytes - out->sent_bytes;
    const size_t share_bytes = left_bytes < SHARE_MAX_BYTES ? left_bytes : SHARE_MAX_BYTES;
    uint8_t head[ML_PACKET_HEADER_BYTES];
    out->header.flags = share_bytes < left_bytes ? ML_PACKET_MORE : 0;
    ml_packet_header_write(&out->header, head);
    struct iovec parts[] = {
        {.iov_base = head, .iov_len = sizeof(head)},
        {.iov_base = out->body + out->sent_bytes, .iov_len = share_bytes}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(ML_HANDLES_MAX * sizeof(int))];
    } control = {.bytes = {0}};
    if (out->sent_bytes == 0 && out->handles.count > 0) {
        const size_t fds_bytes = out->handles.count * sizeof(int);
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(fds_bytes);
        control.align.cmsg_level = SOL_SOCKET;
        control.align.cmsg_type = SCM_RIGHTS;
        control.align.cmsg_len = CMSG_LEN(fds_bytes);
        memcpy(CMSG_DATA(&control.align), out->handles.fds, fds_bytes);
    }
    ssize_t sent = -1;
    do {
        sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0) {
        return status_of_errno();
    }
    out->sent_bytes += share_bytes;
    return ML_OK;
}

static enum ml_status send_message(int fd, struct ml_channel_outgoing *out) {
    enum ml_status status = ML_OK;
    while (status == ML_OK && out->sent_bytes < out->header.body_bytes) {
        status = send_packet(fd, out);
    }
    return status;
}

static void free_outgoing(struct ml_channel_outgoing *out) {
    if (out->owns_handles) {
        ml_channel_handles_close(&out->handles);
    }
    free(out);
}

/* The message as bytes. */
static enum ml_status make_outgoing(
    const struct ml_channel *channel,
    const struct ml_message_type *type,
    uint32_t request_id,
    const void *value,
    struct ml_channel_outgoing **out_message
) {
    struct ml_handles handles = {0};
    size_t count_bytes = 0;
    enum ml_status status = type->codec->encode(type, value, NULL, 0, &count_bytes, &handles);
    if (status != ML_OK) {
        return status;
    }
    if (count_bytes > channel->options.message_bytes_max) {
        return ML_ENV_REFUSED;
    }
    struct ml_channel_outgoing *out = malloc(sizeof(*out) + count_bytes);
    if (out == NULL) {
        return ML_ENV_MEMORY;
    }
    *out = (struct ml_channel_outgoing
    ){.header = {
          .kind = type->kind,
          .method = type->method,
          .request_id = request_id,
          .body_bytes = (uint32_t)count_bytes}};
    status = type->codec->encode(type, value, out->body, count_bytes, &count_bytes, &out->handles);
    if (status != ML_OK) {
        free(out);
        return status;
    }
    *out_message = out;
    return ML_OK;
}

static enum ml_status append(struct ml_channel *channel, struct ml_channel_outgoing *out) {
    /* Its descriptors were sent with the first packet; if not, duplicate them, since they must
     * outlive the caller's. */
    if (out->sent_bytes > 0) {
        out->handles.count = 0;
    } else {
        const enum ml_status status = ml_channel_handles_duplicate(&out->handles);
        if (status != ML_OK) {
            return status;
        }
        out->owns_handles = true;
    }
    *channel->queue_end = out;
    channel->queue_end = &out->next;
    channel->queued_bytes += out->header.body_bytes;
    ml_channel_watch(channel);
    return ML_OK;
}

enum ml_status ml_channel_send(
    struct ml_channel *channel,
    const struct ml_message_type *type,
    uint32_t request_id,
    const void *value
) {
    if (channel->state != ML_CHANNEL_OPEN) {
        return ML_PEER_CLOSED;
    }
    struct ml_channel_outgoing *out = NULL;
    enum ml_status status = make_outgoing(channel, type, request_id, value, &out);
    if (status != ML_OK) {
        return status;
    }
    if (channel->queue == NULL) {
        status = send_message(channel->fd, out);
    } else {
        const size_t room_bytes = channel->options.queue_bytes_max - channel->queued_bytes;
        if (channel->queued_bytes > channel->options.queue_bytes_max ||
            out->header.body_bytes > room_bytes) {
            free(out);
            return ML_ENV_AGAIN;
        }
        status = ML_ENV_AGAIN;
    }
    if (status == ML_ENV_AGAIN) {
        status = append(channel, out);
        if (status == ML_OK) {
            return ML_OK;
        }
    }
    if (status != ML_OK && out->sent_bytes > 0) {
        /* Half a message is out, and nothing sensible could follow it: the loop will see the end.
         */
        (void)shutdown(channel->fd, SHUT_RDWR);
    }
    free(out);
    return status;
}

enum ml_status ml_channel_send_queue(struct ml_channel *channel) {
    while (channel->queue != NULL) {
        struct ml_channel_outgoing *out = channel->queue;
        const enum ml_status status = send_message(channel->fd, out);
        if (status != ML_OK) {
            return status;
        }
        channel->queue = out->next;
        channel->queued_bytes -= out->header.body_bytes;
        if (channel->queue == NULL) {
            channel->queue_end = &channel->queue;
        }
        free_outgoing(out);
    }
    return ML_OK;
}

void ml_channel_drop_queue(struct ml_channel *channel) {
    while (channel->queue != NULL) {
        struct ml_channel_outgoing *next = channel->queue->next;
        free_outgoing(channel->queue);
        channel->queue = next;
    }
    channel->queue_end = &channel->queue;
    channel->queued_bytes = 0;
}
