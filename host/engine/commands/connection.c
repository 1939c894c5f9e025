#include "host/engine/commands/connection.h"

#include <stdlib.h>

/* Descriptors that members do not get: for messages with all that one may carry, for a dump, for
 * `memlog ps`. */
enum { ML_DESCRIPTORS_SPARE = 24 };

void ml_connection_heard(struct ml_engine_connection *connection) {
    connection->engine->connections->silent_count -= connection->is_silent ? 1 : 0;
    connection->is_silent = false;
}

void ml_connection_close(struct ml_engine_connection *connection) {
    ml_connection_heard(connection);
    if (connection->waiting != NULL) {
        *connection->waiting = NULL;
    }
    LIST_REMOVE(connection, links);
    struct ml_channel *channel = connection->channel;
    free(connection);
    ml_channel_free(channel);
}

/* A flood of silent connections must not take the descriptors of processes. */
static void end_oldest_silent(struct ml_engine *engine) {
    struct ml_engine_connection *oldest = NULL;
    struct ml_engine_connection *one = NULL;
    LIST_FOREACH(one, &engine->connections->all, links) {
        oldest = one->is_silent ? one : oldest;
    }
    if (oldest != NULL) {
        ml_connection_close(oldest);
    }
}

void ml_connection_add(struct ml_engine_connection *connection, bool is_silent) {
    struct ml_connections *connections = connection->engine->connections;
    LIST_INSERT_HEAD(&connections->all, connection, links);
    connection->is_silent = is_silent;
    connections->silent_count += is_silent ? 1 : 0;
    if (connections->silent_count > ML_SILENT_MAX) {
        end_oldest_silent(connection->engine);
    }
}

static void hear(struct ml_engine_connection *connection) {
    /* More messages than a socket holds: a process that goes on sending must delay nobody. */
    enum { TURNS_MAX = 32 };
    struct ml_channel *channel = connection->channel;
    for (int i = 0; i < TURNS_MAX && ml_channel_turn(channel); i++) {
    }
}

void ml_connection_hear(struct ml_engine *engine, uint32_t member_id) {
    struct ml_engine_connection *one = NULL;
    LIST_FOREACH(one, &engine->connections->all, links) {
        if (one->member_id == member_id && member_id != 0) {
            hear(one);
            return; /* it may be gone */
        }
    }
}

void ml_connections_hear(struct ml_engine *engine) {
    struct ml_engine_connection *next = LIST_FIRST(&engine->connections->all);
    while (next != NULL) {
        struct ml_engine_connection *one = next;
        next = LIST_NEXT(one, links);
        if (one->member_id != 0) { /* commands wait for the loop */
            hear(one);
        }
    }
}

bool ml_connections_have_room(struct ml_engine *engine, int last_fd, pid_t pid, pid_t parent_pid) {
    if ((uint64_t)last_fd + ML_DESCRIPTORS_SPARE < engine->connections->descriptors_max) {
        return true;
    }
    ml_engine_add_not_profiled(
        engine, pid, parent_pid, "memlog has too few descriptors for one more process", NULL
    );
    if (ml_engine_says_first(engine, ML_SAID_DESCRIPTORS)) {
        ml_engine_notice(
            engine,
            "%u processes at once are as many as %llu descriptors permit: those that come now are "
            "not recorded; raise the hard limit (ulimit -Hn) before memlog starts",
            engine->members.running_count,
            (unsigned long long)engine->connections->descriptors_max
        );
    }
    return false;
}
