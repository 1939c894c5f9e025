/* The connection to the host: its messages in, what they ask for done. Room: service. Context: one
 * thread, on its libev loop, inside the sandbox.
 *
 * One rule: a message that the contract or the present state does not permit ends the connection.
 * Nothing that a client does ends it. */
#ifndef MEMLOG_SERVICE_CONTROL_CONNECTION_H
#define MEMLOG_SERVICE_CONTROL_CONNECTION_H

#include "ipc/channel/channel.h"
#include "ipc/wire/ml_status.h"

struct ev_loop;
struct ml_connection;
struct ml_last_words;
struct ml_workers;

struct ml_connection_options {
    struct ev_loop *loop;
    int take_host_fd;                 /* a connected SOCK_SEQPACKET socket */
    int pipes_fd;                     /* an empty epoll; borrowed */
    int descriptors_max;              /* as many as the process may have */
    struct ml_last_words *last_words; /* names the client at work; outlives the connection */
    const char
        *sandbox_missing; /* for the Configure reply and each dump; outlives the connection */
};

/* Serve the host. Nothing is read from it before the loop runs. The end of the connection breaks
 * the loop. `sandbox_missing` may still be written to until the loop runs.
 *
 * Errors: ML_ENV_MEMORY; ML_ENV_SYSTEM when the descriptor is no such socket. */
ML_NODISCARD enum ml_status
ml_connection_new(const struct ml_connection_options *options, struct ml_connection **out);

/* Set the workers, before the loop runs. They outlive the connection. */
void ml_connection_workers(struct ml_connection *connection, struct ml_workers *workers);

/* Why it ended. ML_PEER_CLOSED: the host has gone, and nothing was wrong. */
struct ml_channel_end ml_connection_end(const struct ml_connection *connection);

#endif
