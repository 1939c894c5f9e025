#include "host/engine/commands/listen.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host/engine/commands/connection.h"
#include "host/engine/lifecycle.h"
#include "host/engine/members/members.h"
#include "host/process/closer.h"
#include "host/process/loop.h"

/* The kernel's uid for users without a number in our user namespace (DEFAULT_OVERFLOWUID). */
enum { ML_OVERFLOW_UID = 65534 };

/* A connection usually ends with the image that made it. */
static void look_behind(struct ml_engine *engine, uint32_t member_id) {
    struct ml_member *member = ml_members_find(&engine->members, member_id);
    if (member != NULL && engine->phase != ML_PHASE_CLOSED) {
        (void)ml_member_check_image(engine, member);
    }
}

static void
on_connection_end(void *context, struct ml_channel *channel, const struct ml_channel_end *end) {
    (void)channel;
    struct ml_engine_connection *connection = context;
    struct ml_engine *engine = connection->engine;
    if (end->status != ML_PEER_CLOSED && engine->connections->broken_count++ < ML_BROKEN_TOLD_MAX) {
        ml_engine_notice(
            engine,
            "process %d broke the contract (%s in %s): its connection is closed%s",
            (int)end->peer.pid,
            ml_status_text(end->status),
            end->message_name != NULL ? end->message_name : "a message",
            engine->connections->broken_count == ML_BROKEN_TOLD_MAX
                ? "; further ones are not reported"
                : ""
        );
    }
    const uint32_t member_id = connection->member_id;
    ml_connection_close(connection);
    look_behind(engine, member_id);
}

/* ORIGIN_UNKNOWN: an ancestor is gone, or /proc shows it to its user alone. */
enum origin { ORIGIN_UNKNOWN, ORIGIN_RUN, ORIGIN_ELSEWHERE };

/* Whether a process descends from this host, or from one that is recorded, by the kernel's word. */
static enum origin origin_of(const struct ml_engine *engine, pid_t pid) {
    enum { ANCESTORS_MAX = 4096, FIRST_PROCESS = 1 };
    for (int i = 0; i < ANCESTORS_MAX && pid > 0; i++) {
        if (pid == getpid() || ml_members_running(&engine->members, pid) != NULL) {
            return ORIGIN_RUN;
        }
        if (pid == FIRST_PROCESS) {
            return ORIGIN_ELSEWHERE;
        }
        pid = ml_process_parent(pid);
    }
    return ORIGIN_UNKNOWN;
}

static bool descends_from_run(const struct ml_engine *engine, pid_t pid) {
    return origin_of(engine, pid) == ORIGIN_RUN;
}

/* Another user's process is a stranger, unless it descends from this run, even if it knows the
 * socket's name. Where users have no number in our user namespace, the overflow user is any of
 * them. */
static bool is_stranger(const struct ml_engine *engine, const struct ucred *peer) {
    const bool is_nobody_known =
        peer->uid == ML_OVERFLOW_UID && !engine->connections->has_all_users;
    return (peer->uid != geteuid() || is_nobody_known) && !descends_from_run(engine, peer->pid);
}

static void say_stranger(struct ml_engine *engine, const struct ucred *peer) {
    if (ml_engine_says_first(engine, ML_SAID_STRANGERS)) {
        ml_engine_notice(
            engine,
            "process %d of user %u is no part of this run and was refused; others like it are "
            "refused without a message",
            (int)peer->pid,
            (unsigned)peer->uid
        );
    }
}

static bool has_ended(int pidfd) {
    struct pollfd ending = {.fd = pidfd, .events = POLLIN};
    return pidfd >= 0 && poll(&ending, 1, 0) > 0;
}

/* Of a run whose processes all descend from this host, orphans come back to it, the subreaper.
 * Shells of `memlog env` and attached processes have none to come back to. */
bool ml_listen_is_foreign(struct ml_engine *engine, const struct ml_call *call, int pidfd) {
    const struct ucred sender = {.pid = call->peer.pid, .uid = call->peer.uid};
    int is_subreaper = 0;
    (void)prctl(PR_GET_CHILD_SUBREAPER, &is_subreaper);
    const bool comes_back = is_subreaper != 0 && !engine->connections->has_outsiders;
    const bool is_foreign = origin_of(engine, sender.pid) == ORIGIN_ELSEWHERE &&
                            (comes_back || is_stranger(engine, &sender)) && !has_ended(pidfd);
    if (is_foreign) {
        say_stranger(engine, &sender);
    }
    return is_foreign;
}

void ml_listen_joins(struct ml_engine *engine, pid_t pid) {
    engine->connections->has_outsiders =
        engine->connections->has_outsiders || !descends_from_run(engine, pid);
}

/* Whether to refuse a connection to the control socket. Nothing is kept of a stranger. A process
 * for which there is no room goes on at once, unrecorded. */
static bool refuse_client(struct ml_engine *engine, int fd) {
    struct ucred peer = {.pid = 0};
    socklen_t count = sizeof(peer);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &count) != 0 || is_stranger(engine, &peer)) {
        say_stranger(engine, &peer);
        return true;
    }
    return !ml_connections_have_room(engine, fd, peer.pid, ml_process_parent(peer.pid));
}

/* Speak over a connection. NULL: there is no memory, and it is closed. */
static struct ml_engine_connection *
serve(struct ml_engine *engine, int take_fd, bool for_commands) {
    const int fd = take_fd;
    /* The kernel then names each sender by a pidfd, even an ended one (Linux 6.16 keeps its exit
     * code). Older kernels refuse, and pids must do. */
    int on = 1;
    (void)setsockopt(fd, SOL_SOCKET, ML_SO_PASSPIDFD, &on, sizeof(on));
    struct ml_engine_connection *connection = calloc(1, sizeof(*connection));
    if (connection == NULL) {
        (void)close(fd);
        return NULL;
    }
    connection->engine = engine;
    struct ml_channel_options options = {
        .loop = engine->loop,
        .on_end = on_connection_end,
        .context = connection,
        .close_foreign = ml_closer_close};
    options.server =
        for_commands ? memlog_host_host_server(&ml_engine_command_handlers, connection)
                     : memlog_client_host_for_client_server(&ml_engine_client_handlers, connection);
    if (ml_channel_new(fd, &options, &connection->channel) != ML_OK) {
        free(connection);
        return NULL;
    }
    ml_connection_add(connection, !for_commands);
    return connection;
}

/* Accept a connection. */
static void accept_from(struct ml_engine *engine, int listening_fd, bool for_commands) {
    int fd = accept4(listening_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        return;
    }
    if (!for_commands && refuse_client(engine, fd)) {
        ml_channel_close_socket(fd, ml_closer_close);
        return;
    }
    (void)serve(engine, fd, for_commands);
}

static void serve_only(struct ml_engine *engine, int take_fd, pid_t pid, bool is_attached) {
    if (!ml_connections_have_room(engine, take_fd, pid, ml_process_parent(pid))) {
        ml_channel_close_socket(take_fd, ml_closer_close);
        return;
    }
    struct ml_engine_connection *connection = serve(engine, take_fd, false);
    if (connection != NULL) {
        connection->only_pid = pid;
        connection->is_attached = is_attached;
    }
}

/* Whose it is, the tracer's order says, and the kernel has confirmed: no stranger is judged here.
 */
void ml_listen_serve_attached(struct ml_engine *engine, int take_fd, pid_t pid) {
    serve_only(engine, take_fd, pid, true);
}

/* Who has a copy of a connection of the run may be anybody, of the same user, too. The pair's maker
 * is its sender, so that nobody speaks for another one. */
void ml_listen_serve_left(struct ml_engine *engine, int take_fd, pid_t pid) {
    struct ucred maker = {.pid = 0};
    socklen_t count = sizeof(maker);
    const bool is_known =
        getsockopt(take_fd, SOL_SOCKET, SO_PEERCRED, &maker, &count) == 0 && maker.pid == pid;
    if (pid > 0 && is_known && descends_from_run(engine, pid)) {
        serve_only(engine, take_fd, pid, false);
        return;
    }
    if (pid > 0 && is_known) {
        say_stranger(engine, &maker);
    }
    ml_channel_close_socket(take_fd, ml_closer_close);
}

static void on_client_connects(struct ev_loop *loop, ev_io *watcher, int events) {
    (void)loop;
    (void)events;
    struct ml_engine *engine = watcher->data;
    accept_from(engine, engine->directory.client_fd, false);
}

static void on_command_connects(struct ev_loop *loop, ev_io *watcher, int events) {
    (void)loop;
    (void)events;
    struct ml_engine *engine = watcher->data;
    accept_from(engine, engine->directory.command_fd, true);
}

void ml_listen_init(struct ml_engine *engine) {
    struct ml_connections *all = engine->connections;
    struct rlimit descriptors = {.rlim_cur = RLIM_INFINITY};
    (void)getrlimit(RLIMIT_NOFILE, &descriptors);
    all->descriptors_max = descriptors.rlim_cur;
    all->has_all_users = ml_process_has_all_users();
    ml_watch_readable(
        engine->loop, &all->client_watcher, on_client_connects, engine->directory.client_fd, engine
    );
    ml_watch_readable(
        engine->loop,
        &all->command_watcher,
        on_command_connects,
        engine->directory.command_fd,
        engine
    );
}

void ml_listen_fini(struct ml_engine *engine) {
    ev_io_stop(engine->loop, &engine->connections->client_watcher);
    ev_io_stop(engine->loop, &engine->connections->command_watcher);
    ml_socket_directory_close(&engine->directory);
    struct ml_engine_connection *next = LIST_FIRST(&engine->connections->all);
    while (next != NULL) {
        struct ml_engine_connection *one = next;
        next = LIST_NEXT(one, links);
        ml_connection_close(one);
    }
}
