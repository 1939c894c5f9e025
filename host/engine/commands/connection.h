/* Connections to the two sockets. Room: host. */
#ifndef MEMLOG_HOST_ENGINE_COMMANDS_CONNECTION_H
#define MEMLOG_HOST_ENGINE_COMMANDS_CONNECTION_H

#include <sys/queue.h>

#include <ev.h>

#include "host/engine/state.h"

/* Connections on which nobody has said Hello yet: beyond that the oldest gives way. A process says
 * Hello at once, so that who stays silent only takes descriptors from others. Connections that
 * broke the contract, of which people are told. */
enum { ML_SILENT_MAX = 1024, ML_BROKEN_TOLD_MAX = 16 };

struct ml_engine_connection {
    struct ml_engine *engine;
    struct ml_channel *channel;
    uint32_t member_id; /* who said Hello on it; 0: nobody yet */
    bool is_silent;     /* to the control socket, and nobody has said Hello yet */
    /* Where a command that is being carried out keeps this connection; NULL: none. */
    struct ml_engine_connection **waiting;
    struct ml_member_allocator allocator; /* of whoever is about to say Hello */
    LIST_ENTRY(ml_engine_connection) links;
};

struct ml_connections {
    ev_io client_watcher, command_watcher;
    LIST_HEAD(, ml_engine_connection) all; /* the newest first */
    uint32_t silent_count;                 /* of them */
    uint32_t broken_count;                 /* of those that broke the contract, in all */
    uint64_t descriptors_max;              /* RLIMIT_NOFILE */
    uint64_t asked_to_ns; /* programs have asked for all dumps that they get up to this moment */
    bool has_all_users;   /* none of the machine is without a number in our user namespace */
};

void ml_connection_add(struct ml_engine_connection *connection, bool is_silent);
void ml_connection_close(struct ml_engine_connection *connection);

/* Somebody has said Hello on it. */
void ml_connection_heard(struct ml_engine_connection *connection);

/* Hear what processes have said before they ended, and the loop has not come to yet. */
void ml_connections_hear(struct ml_engine *engine);

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

/* Whether a process may be taken in whose descriptors reach up to that number. If not it is listed
 * as not profiled, and people are told once. */
bool ml_connections_have_room(struct ml_engine *engine, int last_fd, pid_t pid, pid_t parent_pid);

#endif
