/* The parts of a channel. Room: ipc (:channel), private. Context: as ipc/channel/channel.h.
 *
 *   channel.c    birth, end, the port's functions, the loop
 *   send.c       encode, cut into packets, queue
 *   receive.c    packets, messages, what to do with them
 *   handles.c    descriptors: collect, check, close
 *   copy.c       a message that outlives its packets */
#ifndef MEMLOG_IPC_CHANNEL_INTERNAL_H
#define MEMLOG_IPC_CHANNEL_INTERNAL_H

#include <stdbool.h>

#include <ev.h>

#include "ipc/channel/channel.h"

struct msghdr;

/* A request that waits for its reply. */
struct ml_channel_call {
    struct ml_channel_call *next;
    uint32_t request_id;
    const struct ml_message_type *reply_type;
    /* NULL: the waiter has gone, drop the reply */
    ml_reply_thunk thunk;
    ml_function on_reply;
    void *context;
};

/* A message on its way out. */
struct ml_channel_outgoing {
    struct ml_channel_outgoing *next;
    struct ml_packet_header header;
    struct ml_handles handles; /* borrowed, until queued: then our duplicates */
    bool owns_handles;
    size_t sent_bytes; /* of the body */
    uint8_t body[];
};

/* A message on its way in; its first packet has come. */
struct ml_channel_incoming {
    const struct ml_message_type *type; /* NULL: none */
    struct ml_packet_header header;
    struct ml_peer peer;       /* of the first packet */
    struct ml_handles handles; /* ours until handed over */
    uint8_t *body;             /* malloc */
    size_t size_bytes;
    size_t count_bytes;
};

/* FREED: only the memory is left, because a caller up the stack still uses it. */
enum ml_channel_state { ML_CHANNEL_OPEN, ML_CHANNEL_ENDED, ML_CHANNEL_FREED };

struct ml_channel {
    struct ml_port port; /* first: the port is the channel */
    struct ml_channel_options options;
    enum ml_channel_state state;
    unsigned busy_count; /* our functions on the stack that will look at the channel again */
    int fd;
    struct ev_io read_watcher;
    struct ev_io write_watcher;
    struct ml_channel_outgoing *queue;
    struct ml_channel_outgoing **queue_end;
    size_t queued_bytes;
    struct ml_channel_call *calls;
    uint32_t call_count;
    uint32_t last_request_id;
    struct ml_channel_incoming incoming;
    bool is_drained;     /* its end was read: nothing lies in the socket */
    struct ml_peer peer; /* of the last packet */
    int peer_pidfd;      /* of the last packet; -1: none; ours */
    struct ml_channel_end end;
    void *wait_value; /* the last waited-for reply: value and arena ... */
    void *wait_body;  /* ... and the bytes its strings point into */
    uint8_t packet[ML_PACKET_MAX_BYTES];
};

/* ---- channel.c */

/* The connection is over: tell everybody, once. Between enter and leave only: a callback may free
 * the channel. */
void ml_channel_end_with(
    struct ml_channel *channel, enum ml_status status, const struct ml_message_type *type
);

/* Look for packets to write only while some wait. */
void ml_channel_watch(struct ml_channel *channel);

/* Enclose everything that may run a callback. */
void ml_channel_enter(struct ml_channel *channel);
void ml_channel_leave(struct ml_channel *channel);

/* The call with this id; NULL: there is none. */
struct ml_channel_call *ml_channel_find_call(const struct ml_channel *channel, uint32_t request_id);

/* The same, taken out of the list. Owner: the caller's. */
struct ml_channel_call *ml_channel_take_call(struct ml_channel *channel, uint32_t request_id);

/* ---- send.c; errors as those of the port's `send` */

ML_NODISCARD enum ml_status ml_channel_send(
    struct ml_channel *channel,
    const struct ml_message_type *type,
    uint32_t request_id,
    const void *value
);

/* Send what waits until the socket is full. Errors: ML_ENV_AGAIN; ML_PEER_CLOSED. */
ML_NODISCARD enum ml_status ml_channel_send_queue(struct ml_channel *channel);

void ml_channel_drop_queue(struct ml_channel *channel);

/* ---- receive.c */

/* Take one packet and, when it completes a message, handle that.
 *
 * Errors: ML_ENV_AGAIN when none is there; else the connection has ended with this status. */
ML_NODISCARD enum ml_status ml_channel_receive_packet(struct ml_channel *channel);

void ml_channel_drop_incoming(struct ml_channel *channel);

/* ---- handles.c */

/* Take the descriptors of a received packet and its sender's identity. A pidfd that stands in
 * *peer_pidfd is closed, and the packet's, or -1, put there.
 *
 * Errors: ML_PEER_HANDLE when there are more than ML_HANDLES_MAX; they are refused then. */
ML_NODISCARD enum ml_status ml_channel_handles_take(
    struct msghdr *message,
    struct ml_handles *out_handles,
    struct ml_peer *out_peer,
    int *peer_pidfd,
    void (*close_foreign)(int take_fd)
);

/* Are they as many and of the kinds that were declared? Errors: ML_PEER_HANDLE. */
ML_NODISCARD enum ml_status
ml_channel_handles_check(const struct ml_handles *handles, const struct ml_handles *declared);

/* Replace each by a duplicate of ours. Errors: ML_ENV_SYSTEM; then all duplicates are closed. */
ML_NODISCARD enum ml_status ml_channel_handles_duplicate(struct ml_handles *handles);

void ml_channel_handles_close(struct ml_handles *handles);

/* Close a peer's descriptors. */
void ml_channel_handles_refuse(struct ml_handles *handles, void (*close_foreign)(int take_fd));

#endif
