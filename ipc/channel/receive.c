#include "ipc/channel/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* What one recvmsg brought. */
struct packet {
    struct ml_packet_header header;
    const uint8_t *share;
    size_t share_bytes;
    struct ml_handles handles; /* ours until handed over */
};

/* Which message is this packet's? */
static enum ml_status find_type(
    const struct ml_channel *channel,
    const struct ml_packet_header *header,
    const struct ml_message_type **out_type
) {
    if (header->kind == ML_MESSAGE_REPLY) {
        const struct ml_channel_call *call = ml_channel_find_call(channel, header->request_id);
        *out_type = call != NULL ? call->reply_type : NULL;
        return call != NULL && call->reply_type->method == header->method ? ML_OK : ML_PEER_STATE;
    }
    const struct ml_interface *interface = channel->options.server.interface;
    if (interface == NULL) {
        return ML_PEER_STATE;
    }
    const struct ml_method *method = ml_interface_method(interface, header->method);
    if (method == NULL) {
        return ML_PEER_UNKNOWN;
    }
    *out_type = method->request;
    return (method->reply != NULL) == (header->request_id != 0) ? ML_OK : ML_PEER_FORM;
}

static enum ml_status dispatch_reply(
    struct ml_channel *channel, const struct ml_packet_header *header, const void *value
) {
    struct ml_channel_call *call = ml_channel_take_call(channel, header->request_id);
    if (call == NULL) {
        return ML_PEER_STATE;
    }
    if (call->thunk != NULL) {
        call->thunk(call->on_reply, call->context, ML_OK, value);
    }
    free(call);
    return ML_OK;
}

static enum ml_status dispatch_request(
    struct ml_channel *channel, const struct ml_packet_header *header, const void *value
) {
    const struct ml_server *server = &channel->options.server;
    const struct ml_call call = {
        .port = &channel->port,
        .method = header->method,
        .request_id = header->request_id,
        .peer = channel->peer};
    return server->interface->dispatch(server->handlers, server->context, &call, value);
}

/* Room for a reply that the caller of call_wait will look at: kept until the next one. */
static void keep_or_free(struct ml_channel *channel, bool keep, void *value, void *body) {
    if (!keep) {
        free(value);
        free(body);
        return;
    }
    free(channel->wait_value);
    free(channel->wait_body);
    channel->wait_value = value;
    channel->wait_body = body;
}

/* A whole message has come. Owner: incoming->body and handles are taken in any case. */
static enum ml_status
handle_message(struct ml_channel *channel, struct ml_channel_incoming *take_incoming) {
    struct ml_channel_incoming in = *take_incoming;
    *take_incoming = (struct ml_channel_incoming){0};
    const struct ml_message_type *type = in.type;
    const struct ml_channel_call *call = in.header.kind == ML_MESSAGE_REPLY
                                             ? ml_channel_find_call(channel, in.header.request_id)
                                             : NULL;
    /* A waiter has no typed function: its thunk copies the value itself, see channel.c. */
    const bool keep = call != NULL && call->thunk != NULL && call->on_reply == NULL;
    /* The waiter has gone: the descriptors have no owner but us. */
    const bool drop_handles = call != NULL && call->thunk == NULL;
    struct ml_handles declared = {0};
    size_t arena_bytes = 0;
    uint8_t *value = NULL;
    enum ml_status status =
        type->codec->check(type, in.body, in.count_bytes, &arena_bytes, &declared);
    if (status == ML_OK) {
        status = ml_channel_handles_check(&in.handles, &declared);
    }
    /* calloc'ed memory is aligned for anything; the arena behind the value for 8 bytes. */
    const size_t value_bytes = ((size_t)type->size_bytes + 7) & ~(size_t)7;
    if (status == ML_OK) {
        value = calloc(1, value_bytes + arena_bytes);
        status = value == NULL ? ML_ENV_MEMORY : ML_OK;
    }
    if (status == ML_OK) {
        status = type->codec->decode(
            type, in.body, in.count_bytes, &in.handles, value + value_bytes, arena_bytes, value
        );
    }
    if (status == ML_OK) {
        status = in.header.kind == ML_MESSAGE_REPLY ? dispatch_reply(channel, &in.header, value)
                                                    : dispatch_request(channel, &in.header, value);
    }
    if (status != ML_OK || drop_handles) {
        ml_channel_handles_refuse(&in.handles, channel->options.close_foreign);
    }
    keep_or_free(channel, keep && status == ML_OK, value, in.body);
    return status;
}

/* More room for a message whose packets are still coming. Memory grows with the bytes that have
 * arrived, never with what was announced. */
static enum ml_status grow(struct ml_channel_incoming *in, size_t needed_bytes) {
    assert(needed_bytes > 0); /* ml_packet_header_read refuses an empty share */
    if (needed_bytes <= in->size_bytes) {
        return ML_OK;
    }
    size_t size_bytes = in->size_bytes * 2;
    if (size_bytes > in->header.body_bytes) {
        size_bytes = in->header.body_bytes;
    }
    if (size_bytes < needed_bytes) {
        size_bytes = needed_bytes;
    }
    uint8_t *body = realloc(in->body, size_bytes);
    if (body == NULL) {
        return ML_ENV_MEMORY;
    }
    in->body = body;
    in->size_bytes = size_bytes;
    return ML_OK;
}

static bool is_same_message(const struct ml_packet_header *a, const struct ml_packet_header *b) {
    return a->kind == b->kind && a->method == b->method && a->request_id == b->request_id &&
           a->body_bytes == b->body_bytes;
}

/* The first packet of a message. Memory is bound by what its contract permits. */
static enum ml_status begin_message(struct ml_channel *channel, struct packet *packet) {
    const struct ml_message_type *type = NULL;
    const enum ml_status status = find_type(channel, &packet->header, &type);
    if (status != ML_OK) {
        return status;
    }
    if (packet->header.body_bytes > type->body_bytes_max ||
        packet->header.body_bytes > channel->options.message_bytes_max) {
        return ML_PEER_LIMIT;
    }
    channel->incoming = (struct ml_channel_incoming){
        .type = type,
        .header = packet->header,
        .peer = channel->peer,
        .handles = packet->handles,
    };
    packet->handles.count = 0;
    return ML_OK;
}

/* Another packet: of the same message, and from the same process where several share a socket. */
static enum ml_status
check_next_packet(const struct ml_channel *channel, const struct packet *packet) {
    const struct ml_channel_incoming *in = &channel->incoming;
    if (!is_same_message(&in->header, &packet->header) || in->peer.pid != channel->peer.pid) {
        return ML_PEER_STATE;
    }
    return packet->handles.count == 0 ? ML_OK : ML_PEER_HANDLE;
}

/* Begin or go on with a message. Owner: the packet's handles are taken in any case. */
static enum ml_status add_packet(struct ml_channel *channel, struct packet *take_packet) {
    struct ml_channel_incoming *in = &channel->incoming;
    enum ml_status status = in->type == NULL ? begin_message(channel, take_packet)
                                             : check_next_packet(channel, take_packet);
    ml_channel_handles_refuse(&take_packet->handles, channel->options.close_foreign);
    if (status != ML_OK) {
        return status;
    }
    const size_t count_bytes = in->count_bytes + take_packet->share_bytes;
    const bool is_last = (take_packet->header.flags & ML_PACKET_MORE) == 0;
    if (is_last ? count_bytes != in->header.body_bytes : count_bytes >= in->header.body_bytes) {
        return ML_PEER_FORM;
    }
    status = grow(in, count_bytes);
    if (status != ML_OK) {
        return status;
    }
    memcpy(in->body + in->count_bytes, take_packet->share, take_packet->share_bytes);
    in->count_bytes = count_bytes;
    return is_last ? handle_message(channel, in) : ML_OK;
}

/* The most that one message can carry (SCM_MAX_FD): the kernel would close surplus ones during our
 * call.
 */
enum { SENT_MAX = 253 };

/* One recvmsg. On any status but ML_OK no descriptor is left over. */
static enum ml_status read_packet(struct ml_channel *channel, struct packet *out_packet) {
    union {
        struct cmsghdr align;
        char bytes
            [CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int)) +
             CMSG_SPACE(SENT_MAX * sizeof(int))];
    } control;
    struct iovec part = {.iov_base = channel->packet, .iov_len = sizeof(channel->packet)};
    struct msghdr message = {
        .msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof(control.bytes)};
    ssize_t count = -1;
    do {
        count = recvmsg(channel->fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    } while (count < 0 && errno == EINTR);
    if (count < 0) {
        if (errno == EAGAIN) {
            return ML_ENV_AGAIN;
        }
        return errno == ECONNRESET ? ML_PEER_CLOSED : ML_ENV_SYSTEM;
    }
    struct packet packet = {.share = channel->packet + ML_PACKET_HEADER_BYTES};
    channel->is_drained =
        count == 0 && message.msg_controllen == 0; /* else no bytes, but a sender */
    enum ml_status status = ml_channel_handles_take(
        &message,
        &packet.handles,
        &channel->peer,
        &channel->peer_pidfd,
        channel->options.close_foreign
    );
    if (status != ML_OK) {
        return status;
    }
    if (count == 0) {
        status = ML_PEER_CLOSED;
    } else if ((message.msg_flags & MSG_TRUNC) != 0) {
        status = ML_PEER_LIMIT;
    } else if ((message.msg_flags & MSG_CTRUNC) != 0) {
        status = ML_PEER_HANDLE;
    } else {
        status = ml_packet_header_read(channel->packet, (size_t)count, &packet.header);
    }
    if (status != ML_OK) {
        ml_channel_handles_refuse(&packet.handles, channel->options.close_foreign);
        return status;
    }
    packet.share_bytes = (size_t)count - ML_PACKET_HEADER_BYTES;
    *out_packet = packet;
    return ML_OK;
}

enum ml_status ml_channel_receive_packet(struct ml_channel *channel) {
    struct packet packet = {0};
    enum ml_status status = read_packet(channel, &packet);
    if (status == ML_ENV_AGAIN) {
        return status;
    }
    const struct ml_message_type *type = channel->incoming.type;
    channel->end.method = status == ML_OK ? packet.header.method : 0;
    if (status == ML_OK) {
        if (type == NULL && find_type(channel, &packet.header, &type) != ML_OK) {
            type = NULL;
        }
        status = add_packet(channel, &packet);
    }
    if (status != ML_OK) {
        ml_channel_end_with(channel, status, type);
    }
    return status;
}

void ml_channel_drop_incoming(struct ml_channel *channel) {
    struct ml_channel_incoming *incoming = &channel->incoming;
    ml_channel_handles_refuse(&incoming->handles, channel->options.close_foreign);
    free(incoming->body);
    *incoming = (struct ml_channel_incoming){0};
}
