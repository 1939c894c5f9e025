/* Accepting connections: who may speak to this host. Room: host. */
#ifndef MEMLOG_HOST_ENGINE_COMMANDS_LISTEN_H
#define MEMLOG_HOST_ENGINE_COMMANDS_LISTEN_H

#include "host/engine/state.h"

void ml_listen_init(struct ml_engine *engine);

/* Serve a connection that a process has made which memlog was attached to: it alone may say Hello
 * on it. Owner: take_fd is taken. */
void ml_listen_serve_attached(struct ml_engine *engine, int take_fd, pid_t pid);

/* Whether the sender of that message is none of the run, though he has a copy of a connection of
 * it: a process may hand on whatever descriptors it has. Who has ended is not judged. The first is
 * told. */
bool ml_listen_is_foreign(struct ml_engine *engine, const struct ml_call *call, int pidfd);

/* A process says Hello. */
void ml_listen_joins(struct ml_engine *engine, pid_t pid);

/* Serve a connection that a process of the run has made, as it does not see the socket: it alone
 * may say Hello on it. `pid` is who sent it, by the kernel's word; who is none of the run is
 * refused. Owner: take_fd is taken. */
void ml_listen_serve_left(struct ml_engine *engine, int take_fd, pid_t pid);

/* Close all. */
void ml_listen_fini(struct ml_engine *engine);

#endif
