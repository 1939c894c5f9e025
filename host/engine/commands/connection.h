/* Connections to the two sockets. Room: host. */
#ifndef MEMLOG_HOST_ENGINE_COMMANDS_CONNECTION_H
#define MEMLOG_HOST_ENGINE_COMMANDS_CONNECTION_H

#include <sys/queue.h>

#include <ev.h>

#include "host/engine/state.h"

/* Connections without a Hello yet: beyond that number the oldest is closed. A process says Hello at
 * once, so a silent one only takes descriptors from others. Then: how many broken connections
 * people are told of. */
enum { ML_SILENT_MAX = 1024, ML_BROKEN_TOLD_MAX = 16 };

struct ml_engine_connection {
    struct ml_engine *engine;
    struct ml_channel *channel;
    uint32_t member_id; /* the member that said Hello on it; 0: none yet */
    pid_t only_pid;     /* the one process that may say Hello on it; 0: it has found the socket */
    bool is_attached;   /* that process ran already: a tracer has handed the connection over */
    bool is_silent;     /* to the control socket, without a Hello yet */
    /* Where the command in progress keeps this connection; NULL: there is none. */
    struct ml_engine_connection **waiting;
    struct ml_member_allocator allocator; /* of the process that is about to say Hello */
    LIST_ENTRY(ml_engine_connection) links;
};

struct ml_connections {
    ev_io client_watcher, command_watcher;
    LIST_HEAD(, ml_engine_connection) all; /* the newest first */
    uint32_t silent_count;                 /* of them */
    uint32_t broken_count;                 /* connections that broke the contract, in all */
    uint64_t descriptors_max;              /* RLIMIT_NOFILE */
    uint64_t asked_to_ns; /* programs have asked for all dumps that they get up to this moment */
    bool has_all_users;   /* every user has a number in our user namespace */
    bool has_outsiders;   /* somebody has joined who does not descend from this host */
};

void ml_connection_add(struct ml_engine_connection *connection, bool is_silent);
void ml_connection_close(struct ml_engine_connection *connection);

/* A process has said Hello on it. */
void ml_connection_heard(struct ml_engine_connection *connection);

/* Read messages of ended processes that the loop has not read yet. */
void ml_connections_hear(struct ml_engine *engine);

/* The same of the connection on which that member said Hello, and all that were forked since write.
 */
void ml_connection_hear(struct ml_engine *engine, uint32_t member_id);

/* What is heard on the two sockets; the context is a struct ml_engine_connection. */
extern const struct memlog_client_host_for_client_handlers ml_engine_client_handlers;
extern const struct memlog_host_host_handlers ml_engine_command_handlers;

/* `memlog start`, `stop` and `rate`: one answer for all their processes. */
void ml_command_on_control(
    void *context, const struct ml_call *call, const struct memlog_host_control_request *request
);

/* A process asks for a dump. */
void ml_engine_on_dump_asked(
    void *context,
    const struct ml_call *call,
    const struct memlog_client_dump_asked_request *request
);

/* Whether there are descriptors for one more process; `last_fd` is the highest of its own. If not
 * it is listed as not profiled, and people are told once. */
bool ml_connections_have_room(struct ml_engine *engine, int last_fd, pid_t pid, pid_t parent_pid);

#endif
