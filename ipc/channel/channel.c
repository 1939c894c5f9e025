#include "ipc/channel/channel.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <ev.h>

#include "ipc/channel/internal.h"

/* Packets taken at one turn of the loop, so that one talkative peer does not starve the others. */
enum { PACKETS_PER_TURN = 64 };

static struct ml_channel *of_port(struct ml_port *port) {
    return (struct ml_channel *)port; /* its first member */
}

void ml_channel_enter(struct ml_channel *channel) {
    channel->busy_count++;
}

void ml_channel_leave(struct ml_channel *channel) {
    channel->busy_count--;
    if (channel->busy_count == 0 && channel->state == ML_CHANNEL_FREED) {
        free(channel->wait_value);
        free(channel->wait_body);
        free(channel);
    }
}

void ml_channel_watch(struct ml_channel *channel) {
    struct ev_loop *loop = channel->options.loop;
    if (loop == NULL || channel->state != ML_CHANNEL_OPEN) {
        return;
    }
    if (channel->queue != NULL) {
        ev_io_start(loop, &channel->write_watcher);
    } else {
        ev_io_stop(loop, &channel->write_watcher);
    }
}

struct ml_channel_call *
ml_channel_find_call(const struct ml_channel *channel, uint32_t request_id) {
    struct ml_channel_call *call = channel->calls;
    while (call != NULL && call->request_id != request_id) {
        call = call->next;
    }
    return call;
}

struct ml_channel_call *ml_channel_take_call(struct ml_channel *channel, uint32_t request_id) {
    struct ml_channel_call **at = &channel->calls;
    while (*at != NULL && (*at)->request_id != request_id) {
        at = &(*at)->next;
    }
    struct ml_channel_call *call = *at;
    if (call != NULL) {
        *at = call->next;
        channel->call_count--;
    }
    return call;
}

/* Leave ML_CHANNEL_OPEN: the socket is closed and no call waits any more. */
static void shut(struct ml_channel *channel, enum ml_channel_state state, enum ml_status status) {
    channel->state = state;
    if (channel->options.loop != NULL) {
        ev_io_stop(channel->options.loop, &channel->read_watcher);
        ev_io_stop(channel->options.loop, &channel->write_watcher);
    }
    if (channel->is_drained) {
        (void)close(channel->fd);
    } else {
        ml_channel_close_socket(channel->fd, channel->options.close_foreign);
    }
    channel->fd = -1;
    if (channel->peer_pidfd >= 0) {
        (void)close(channel->peer_pidfd);
        channel->peer_pidfd = -1;
    }
    ml_channel_drop_queue(channel);
    ml_channel_drop_incoming(channel);
    while (channel->calls != NULL) {
        struct ml_channel_call *call = ml_channel_take_call(channel, channel->calls->request_id);
        if (call->thunk != NULL) {
            call->thunk(call->on_reply, call->context, status, NULL);
        }
        free(call);
    }
}

void ml_channel_end_with(
    struct ml_channel *channel, enum ml_status status, const struct ml_message_type *type
) {
    if (channel->state != ML_CHANNEL_OPEN) {
        return;
    }
    assert(channel->busy_count > 0);
    channel->end.status = status;
    channel->end.message_name = type == NULL ? NULL : type->name;
    channel->end.method = status == ML_PEER_CLOSED ? 0 : channel->end.method;
    channel->end.peer = channel->peer;
    shut(channel, ML_CHANNEL_ENDED, status);
    if (channel->state == ML_CHANNEL_ENDED && channel->options.on_end != NULL) {
        channel->options.on_end(channel->options.context, channel, &channel->end);
    }
}

void ml_channel_free(struct ml_channel *channel) {
    if (channel == NULL || channel->state == ML_CHANNEL_FREED) {
        return;
    }
    ml_channel_enter(channel);
    if (channel->state == ML_CHANNEL_OPEN) {
        shut(channel, ML_CHANNEL_FREED, ML_PEER_CLOSED);
    }
    channel->state = ML_CHANNEL_FREED;
    ml_channel_leave(channel);
}

bool ml_channel_turn(struct ml_channel *channel) {
    ml_channel_enter(channel);
    enum ml_status status = ML_OK;
    for (int i = 0; i < PACKETS_PER_TURN && status == ML_OK; i++) {
        status =
            channel->state == ML_CHANNEL_OPEN ? ml_channel_receive_packet(channel) : ML_PEER_CLOSED;
    }
    const bool is_open = channel->state == ML_CHANNEL_OPEN;
    ml_channel_leave(channel);
    return is_open && status == ML_OK;
}

static void on_readable(struct ev_loop *loop, struct ev_io *watcher, int events) {
    (void)loop;
    (void)events;
    (void)ml_channel_turn(watcher->data);
}

static void on_writable(struct ev_loop *loop, struct ev_io *watcher, int events) {
    (void)loop;
    (void)events;
    struct ml_channel *channel = watcher->data;
    ml_channel_enter(channel);
    const enum ml_status status = ml_channel_send_queue(channel);
    ml_channel_watch(channel);
    /* Half a message may be out: nothing sensible could follow it. */
    if (status != ML_OK && status != ML_ENV_AGAIN) {
        ml_channel_end_with(channel, status, NULL);
    }
    ml_channel_leave(channel);
}

static int64_t now_ms(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail: the clock exists */
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Wait for the socket, send what waits, and see whether packets may be taken.
 *
 * Errors: ML_ENV_AGAIN when the deadline has passed; what ended the connection. */
static enum ml_status
wait_turn(struct ml_channel *channel, int64_t deadline_ms, short *out_events) {
    const int64_t left_ms = deadline_ms - now_ms();
    struct pollfd about = {.fd = channel->fd, .events = POLLIN};
    if (channel->queue != NULL) {
        about.events |= POLLOUT;
    }
    const int count = poll(&about, 1, left_ms > 0 ? (int)left_ms : 0);
    if (count < 0 && errno != EINTR) {
        return ML_ENV_SYSTEM;
    }
    *out_events = count > 0 ? about.revents : 0;
    if ((*out_events & POLLOUT) != 0) {
        const enum ml_status status = ml_channel_send_queue(channel);
        ml_channel_watch(channel);
        if (status != ML_OK && status != ML_ENV_AGAIN) {
            ml_channel_end_with(channel, status, NULL);
            return status;
        }
    }
    return count == 0 && left_ms <= 0 ? ML_ENV_AGAIN : ML_OK;
}

enum ml_status ml_channel_receive(struct ml_channel *channel, int timeout_ms) {
    if (channel->state != ML_CHANNEL_OPEN) {
        return ML_PEER_CLOSED;
    }
    const int64_t deadline_ms = now_ms() + timeout_ms;
    enum ml_status status = ML_OK;
    bool any = false;
    ml_channel_enter(channel);
    while (status == ML_OK && channel->state == ML_CHANNEL_OPEN) {
        status = ml_channel_receive_packet(channel);
        any = any || status == ML_OK;
        if (status == ML_ENV_AGAIN && !any) {
            short events = 0;
            status = wait_turn(channel, deadline_ms, &events);
        }
    }
    if (any && status == ML_ENV_AGAIN) {
        status = ML_OK;
    }
    if (status == ML_OK && channel->state != ML_CHANNEL_OPEN) {
        status = ML_PEER_CLOSED; /* a callback has freed it */
    }
    ml_channel_leave(channel);
    return status;
}

static enum ml_status send_by_port(
    struct ml_port *port, const struct ml_message_type *type, uint32_t request_id, const void *value
) {
    struct ml_channel *channel = of_port(port);
    ml_channel_enter(channel);
    const enum ml_status status = ml_channel_send(channel, type, request_id, value);
    ml_channel_leave(channel);
    return status;
}

/* Ids count up and skip 0 and those in use. */
static uint32_t next_request_id(struct ml_channel *channel) {
    do {
        channel->last_request_id++;
    } while (channel->last_request_id == 0 ||
             ml_channel_find_call(channel, channel->last_request_id) != NULL);
    return channel->last_request_id;
}

static enum ml_status call_by_port(
    struct ml_port *port,
    const struct ml_message_type *type,
    const struct ml_message_type *reply_type,
    const void *value,
    ml_reply_thunk thunk,
    ml_function on_reply,
    void *context
) {
    struct ml_channel *channel = of_port(port);
    if (channel->state != ML_CHANNEL_OPEN) {
        return ML_PEER_CLOSED;
    }
    if (channel->call_count >= ML_CHANNEL_CALLS_MAX) {
        return ML_ENV_AGAIN;
    }
    struct ml_channel_call *call = malloc(sizeof(*call));
    if (call == NULL) {
        return ML_ENV_MEMORY;
    }
    *call = (struct ml_channel_call
    ){.next = channel->calls,
      .request_id = next_request_id(channel),
      .reply_type = reply_type,
      .thunk = thunk,
      .on_reply = on_reply,
      .context = context};
    const enum ml_status status = ml_channel_send(channel, type, call->request_id, value);
    if (status != ML_OK) {
        free(call);
        return status;
    }
    channel->calls = call;
    channel->call_count++;
    return ML_OK;
}

/* The waiter for a reply, on the stack of call_wait. */
struct waiter {
    void *out_reply;
    size_t size_bytes;
    bool is_done;
    enum ml_status status;
};

static void on_waited(ml_function unused, void *context, enum ml_status status, const void *reply) {
    (void)unused;
    struct waiter *waiter = context;
    waiter->is_done = true;
    waiter->status = status;
    if (status == ML_OK) {
        memcpy(waiter->out_reply, reply, waiter->size_bytes);
    }
}

static enum ml_status call_wait_by_port(
    struct ml_port *port,
    const struct ml_message_type *type,
    const struct ml_message_type *reply_type,
    const void *value,
    int timeout_ms,
    void *out_reply
) {
    struct ml_channel *channel = of_port(port);
    struct waiter waiter = {.out_reply = out_reply, .size_bytes = reply_type->size_bytes};
    const int64_t deadline_ms = now_ms() + timeout_ms;
    enum ml_status status = call_by_port(port, type, reply_type, value, on_waited, NULL, &waiter);
    if (status != ML_OK) {
        return status;
    }
    const uint32_t request_id = channel->last_request_id;
    ml_channel_enter(channel);
    while (status == ML_OK && !waiter.is_done) {
        short events = 0;
        status = wait_turn(channel, deadline_ms, &events);
        if (status == ML_OK && events != 0 && !waiter.is_done) {
            const enum ml_status received = ml_channel_receive_packet(channel);
            status = received == ML_ENV_AGAIN ? ML_OK : received;
        }
    }
    if (waiter.is_done) {
        status = waiter.status;
    } else {
        struct ml_channel_call *call = ml_channel_find_call(channel, request_id);
        if (call != NULL) {
            call->thunk = NULL; /* too late: the reply will be dropped */
        }
    }
    ml_channel_leave(channel);
    return status;
}

static enum ml_status prepare_socket(int fd) {
    int type = 0;
    socklen_t type_bytes = sizeof(type);
    const int on = 1;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_bytes) != 0) {
        return ML_ENV_SYSTEM;
    }
    if (type != SOCK_SEQPACKET) {
        errno = EPROTOTYPE;
        return ML_ENV_SYSTEM;
    }
    const int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
        fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0) {
        return ML_ENV_SYSTEM;
    }
    return ML_OK;
}

static size_t or_default(size_t value, size_t when_zero) {
    return value == 0 ? when_zero : value;
}

enum ml_status ml_channel_new(
    int take_fd, const struct ml_channel_options *options, struct ml_channel **out_channel
) {
    enum ml_status status = prepare_socket(take_fd);
    struct ml_channel *channel = NULL;
    if (status == ML_OK) {
        channel = calloc(1, sizeof(*channel));
        status = channel == NULL ? ML_ENV_MEMORY : ML_OK;
    }
    if (status != ML_OK) {
        const int error = errno;
        (void)close(take_fd);
        errno = error;
        return status;
    }
    channel->port = (struct ml_port
    ){.send = send_by_port, .call = call_by_port, .call_wait = call_wait_by_port};
    channel->options = *options;
    channel->peer_pidfd = -1;
    channel->options.queue_bytes_max = or_default(options->queue_bytes_max, ML_CHANNEL_QUEUE_BYTES);
    channel->options.message_bytes_max =
        or_default(options->message_bytes_max, ML_CHANNEL_MESSAGE_BYTES);
    channel->fd = take_fd;
    channel->queue_end = &channel->queue;
    ev_io_init(&channel->read_watcher, on_readable, take_fd, EV_READ);
    ev_io_init(&channel->write_watcher, on_writable, take_fd, EV_WRITE);
    channel->read_watcher.data = channel;
    channel->write_watcher.data = channel;
    if (options->loop != NULL) {
        ev_io_start(options->loop, &channel->read_watcher);
    }
    *out_channel = channel;
    return ML_OK;
}

struct ml_port *ml_channel_port(struct ml_channel *channel) {
    return &channel->port;
}

size_t ml_channel_queued_bytes(const struct ml_channel *channel) {
    return channel->queued_bytes;
}

int ml_channel_peer_pidfd(const struct ml_channel *channel) {
    return channel->peer_pidfd;
}
