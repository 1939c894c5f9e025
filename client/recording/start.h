/* The start of a client's stream: of a process at its start, of a forked child, and of a process
 * that memlog comes to while it runs. Room: client (private). Context: one thread; no other one is
 * inside a hook.
 *
 * One rule: everything is in place before the gate says so. */
#ifndef MEMLOG_CLIENT_RECORDING_START_H
#define MEMLOG_CLIENT_RECORDING_START_H

#include <stdbool.h>
#include <stdint.h>

#include "client/startup/handshake.h"
#include "client/state/process.h"

enum ml_start {
    ML_START_DONE = 0,
    ML_START_UNANSWERED, /* the host did not answer in time */
    ML_START_REFUSED,    /* by the host, or its answer cannot be used */
    ML_START_NO_ROOM     /* for our memory */
};

/* Say Hello on a connection to the host, and begin the stream: recording or dormant. If that is not
 * done, nothing is left. Owner: the socket is taken. */
enum ml_start ml_start_connected(int take_socket_fd);

/* Forget the run that the process belonged to, before it connects to another host. No entry leads
 * to a hook, and no thread is inside one. */
void ml_start_forget(void);

/* Map what the host, or `again` a forked child itself, has made. False: there is no room, or it is
 * not what it should be. The memfds are closed. */
bool ml_start_adopt(struct ml_handshake *handshake, bool again);

/* Everything is in place: the first lane, with the stream's first records. */
void ml_start_stream(struct ml_thread *thread, uint64_t fork_serial);

void ml_start_close_memfds(const struct ml_handshake *handshake);

#endif
