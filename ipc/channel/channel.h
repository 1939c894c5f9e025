/* Typed messages and descriptors over a connected SOCK_SEQPACKET socket. Room: ipc (:channel).
 * Context: one thread, on its libev loop or without one; allocates; never creates a socket.
 *
 * One rule: a peer's first wrong byte ends the connection. Wrong are: a packet or body that its
 * contract does not permit, a method without a handler, a reply without a request, and surplus,
 * missing or wrong descriptors. All descriptors of a refused message are closed.
 *
 * Descriptors are looked at before a handler sees them: a pipe is a FIFO, a socket a socket, a file
 * a regular file, a memfd is one sealed against shrinking and growing (unless [Unsealed]). They are
 * close-on-exec. */
#ifndef MEMLOG_IPC_CHANNEL_CHANNEL_H
#define MEMLOG_IPC_CHANNEL_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>

#include "ipc/wire/message.h"

struct ev_loop;
struct ml_channel;

/* Why a connection ended, for the one line that its owner logs. */
struct ml_channel_end {
    enum ml_status status;    /* ML_PEER_CLOSED: the other side hung up, nothing was wrong */
    const char *message_name; /* "Service.Dump"; NULL: not known, or not about one message */
    uint32_t method;          /* 0: not about one message */
    struct ml_peer peer;      /* of the last packet */
};

struct ml_channel_options {
    /* NULL: no loop. Then only sends, waits and ml_channel_receive do anything. */
    struct ev_loop *loop;
    /* Answers requests; {0}: none, every request is ML_PEER_STATE. */
    struct ml_server server;
    /* Called once, from the loop or from a wait, when the connection has ended; may free the
     * channel. May be NULL. Not called by ml_channel_free. */
    void (*on_end)(void *context, struct ml_channel *channel, const struct ml_channel_end *end);
    void *context;
    /* Closes an unclaimed descriptor from a peer, or a socket with unread messages. The sender can
     * make such a close() block (SO_LINGER, its own file system). Owner: taken. NULL: close(), for
     * peers trusted that far. */
    void (*close_foreign)(int take_fd);
    /* Most bytes that may wait for a slow peer; 0: ML_CHANNEL_QUEUE_BYTES. */
    size_t queue_bytes_max;
    /* Longest message, whatever the contract's limits add up to; 0: ML_CHANNEL_MESSAGE_BYTES. */
    size_t message_bytes_max;
};

enum {
    /* A Figures reply of 65,536 clients has at most 26 MB, a dump request for a tree with thousands
     * of unprofiled programs a few. */
    ML_CHANNEL_MESSAGE_BYTES = 64 << 20,
    ML_CHANNEL_QUEUE_BYTES = 128 << 20,
    /* Requests that may wait for their replies at once. */
    ML_CHANNEL_CALLS_MAX = 1024
};

/* Speak over `take_fd`, a connected SOCK_SEQPACKET socket. It becomes non-blocking, close-on-exec,
 * and has SO_PASSCRED set. (Set SO_PASSCRED on a listening socket too: else a packet sent before
 * the accept has no credentials.)
 *
 * Errors: ML_ENV_MEMORY; ML_ENV_SYSTEM when it is no such socket.
 * Owner:  take_fd is the channel's, also on failure. `options` is copied; loop and handlers outlive
 *         the channel. */
ML_NODISCARD enum ml_status ml_channel_new(
    int take_fd, const struct ml_channel_options *options, struct ml_channel **out_channel
);

/* Close the socket and forget everything; what is queued is not sent. Calls that wait are answered
 * with ML_PEER_CLOSED first. May be called from any callback of the channel. */
void ml_channel_free(struct ml_channel *channel);

/* What generated stubs send to; lives as long as the channel. Of its functions:
 *
 * send       sends now or queues; descriptors stay the caller's (queued ones are duplicated).
 *            Errors: ML_PEER_CLOSED; ML_ENV_AGAIN when the queue is full, nothing was sent then;
 *            ML_ENV_MEMORY, ML_ENV_SYSTEM; ML_BUG_CONTRACT for a value its contract does not
 *            permit.
 * call       the same; ML_ENV_AGAIN also beyond ML_CHANNEL_CALLS_MAX.
 * call_wait  the same, then serves the socket until the reply is there. Errors: also ML_ENV_AGAIN
 *            after timeout_ms (a late reply is dropped); what ended the connection. */
struct ml_port *ml_channel_port(struct ml_channel *channel);

/* Bytes that wait for the peer. */
size_t ml_channel_queued_bytes(const struct ml_channel *channel);

/* For those without a loop: wait at most `timeout_ms` for packets and handle those that are there.
 * Errors: ML_ENV_AGAIN when none came; what ended the connection. */
ML_NODISCARD enum ml_status ml_channel_receive(struct ml_channel *channel, int timeout_ms);

/* Handle packets that are there, without waiting: as many as the loop takes at one turn. Answers
 * whether there may be more. The channel may be freed by a callback. */
bool ml_channel_turn(struct ml_channel *channel);

/* A copy of a message that came in, for a handler that answers later: one block, for free(). It
 * names the same descriptors. NULL: no memory. */
void *ml_message_copy(const struct ml_message_type *type, const void *message);

/* A pidfd of the sender of the message being handled, if SO_PASSPIDFD (Linux 6.5) was set on the
 * socket before. It names that process even when it has ended and its pid was reused. -1: none.
 * Borrowed, until the handler returns. */
int ml_channel_peer_pidfd(const struct ml_channel *channel);

/* Close a connected SOCK_SEQPACKET socket as a channel does: by `close_foreign` if it holds unread
 * messages. Owner: taken. */
void ml_channel_close_socket(int take_fd, void (*close_foreign)(int take_fd));

/* How many bytes a pipe that came as a handle holds (F_GETPIPE_SZ); 0: it is none. */
uint64_t ml_channel_pipe_bytes(int pipe_fd);

#endif
