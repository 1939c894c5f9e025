#include "host/attach/tracer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ev.h>

#include "base/descriptor.h"
#include "host/process/closer.h"
#include "host/process/loop.h"
#include "host/process/orphan.h"
#include "ipc/channel/channel.h"
#include "ipc/wire/staging.h"

/* From its last word, or from its killing, to its end. */
static const double leaving_s = 2.0;

enum { NUMBER_BYTES = 24, OPTION_BYTES = 32, ARGUMENTS_MAX = 8 };

struct ml_tracer {
    struct ml_tracer_setup setup;
    struct ml_channel *channel; /* NULL: it has hung up */
    pid_t pid;
    int pidfd; /* -1: the kernel has none; then its socket tells of its end */
    ev_io pidfd_watcher;
    ev_timer deadline;
    bool is_ended;     /* its process is gone */
    bool is_connected; /* it has handed over the connection */
    bool is_finished;  /* it has said how it went */
    bool is_late;
    struct memlog_tracer_traced traced;
    enum memlog_tracer_outcome outcome;
    char reason[MEMLOG_TRACER_FINISHED_REQUEST_REASON_LIMIT + 1];
    char refused[MEMLOG_TRACER_TRACED_REFUSED_LIMIT + 1];
};

static void tell_end(struct ml_tracer *tracer) {
    ev_timer_stop(tracer->setup.loop, &tracer->deadline);
    if (!tracer->is_finished) {
        (void)snprintf(
            tracer->reason,
            sizeof(tracer->reason),
            tracer->is_late ? "memlog-tracer took longer than it may and was ended"
                            : "memlog-tracer died at work"
        );
    }
    const struct ml_tracer_end end = {
        .is_finished = tracer->is_finished,
        .outcome = tracer->outcome,
        .reason = tracer->reason,
        .refused = tracer->refused,
        .traced = tracer->traced,
    };
    tracer->setup.on_end(tracer->setup.context, &end);
}

/* It has hung up, and its process is gone: it traces nobody any more. */
static void check_end(struct ml_tracer *tracer) {
    if (tracer->channel == NULL && (tracer->is_ended || tracer->pidfd < 0)) {
        tell_end(tracer);
    }
}

static void kill_it(const struct ml_tracer *tracer) {
    if (tracer->pidfd >= 0 && !tracer->is_ended) {
        (void)syscall(SYS_pidfd_send_signal, tracer->pidfd, SIGKILL, NULL, 0);
    } else if (tracer->pidfd < 0 && tracer->channel != NULL) {
        (void)kill(tracer->pid, SIGKILL); /* it has not hung up, and so has its pid */
    }
}

static void
on_channel_end(void *context, struct ml_channel *channel, const struct ml_channel_end *end) {
    struct ml_tracer *tracer = context;
    (void)end;
    tracer->channel = NULL;
    ml_channel_free(channel);
    if (!tracer->is_finished) {
        kill_it(tracer); /* what it says cannot be understood, or it has closed its socket */
    }
    check_end(tracer);
}

static void on_pidfd(struct ev_loop *loop, ev_io *watcher, int events) {
    (void)events;
    struct ml_tracer *tracer = watcher->data;
    tracer->is_ended = true;
    ev_io_stop(loop, watcher);
    check_end(tracer); /* or when its last messages have been read */
}

/* Not even a killed one is waited for without end: the kernel may hold it. */
static void on_deadline(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)events;
    struct ml_tracer *tracer = watcher->data;
    if (!tracer->is_late) {
        tracer->is_late = true;
        kill_it(tracer);
        ml_timer_start(loop, &tracer->deadline, leaving_s);
        return;
    }
    ml_channel_free(tracer->channel);
    tracer->channel = NULL;
    tell_end(tracer);
}

static void on_connected(
    void *context, const struct ml_call *call, const struct memlog_tracer_connected_request *request
) {
    struct ml_tracer *tracer = context;
    (void)call;
    const bool is_right = request->version == MEMLOG_TRACER_TRACER_VERSION &&
                          request->pid == (uint32_t)tracer->setup.pid && !tracer->is_connected &&
                          tracer->setup.task == ML_TRACER_ATTACH && !tracer->is_finished;
    if (!is_right) {
        ml_channel_close_socket(request->connection, ml_closer_close);
        kill_it(tracer);
        return;
    }
    tracer->is_connected = true;
    tracer->setup.on_connected(tracer->setup.context, request->connection);
}

static void on_finished(
    void *context, const struct ml_call *call, const struct memlog_tracer_finished_request *request
) {
    struct ml_tracer *tracer = context;
    (void)call;
    if (request->version != MEMLOG_TRACER_TRACER_VERSION ||
        request->pid != (uint32_t)tracer->setup.pid || tracer->is_finished) {
        kill_it(tracer);
        return;
    }
    tracer->is_finished = true;
    tracer->outcome = request->outcome;
    tracer->traced = request->traced;
    tracer->traced.refused = (struct ml_string){.data = NULL};
    ml_string_copy(tracer->reason, sizeof(tracer->reason), request->reason);
    ml_string_copy(tracer->refused, sizeof(tracer->refused), request->traced.refused);
    ml_timer_start(tracer->setup.loop, &tracer->deadline, leaving_s);
}

static const struct memlog_tracer_host_for_tracer_handlers handlers = {
    .connected = on_connected, .finished = on_finished};

/* What the child needs. */
struct birth {
    const char *path;
    int socket_fd;
    char *const *argv;
};

/* The child's side. */
static void run_tracer(void *context) {
    const struct birth *birth = context;
    static char *const no_environment[] = {NULL};
    const int null_fd = open("/dev/null", O_RDWR);
    if (birth->socket_fd == ML_TRACER_FD) {
        (void)fcntl(ML_TRACER_FD, F_SETFD, 0);
    } else {
        (void)dup2(birth->socket_fd, ML_TRACER_FD);
    }
    if (null_fd >= 0) {
        (void)dup2(null_fd, STDIN_FILENO);
        (void)dup2(null_fd, STDOUT_FILENO);
        if (null_fd > ML_TRACER_FD) {
            (void)close(null_fd);
        }
    }
    (void)execve(birth->path, birth->argv, no_environment);
    _exit(127);
}

/* Its process, and our end of the socket pair. */
static enum ml_status
start_process(struct ml_tracer *tracer, int *out_fd, struct ml_error_message *error) {
    static char *const words[ML_TRACER_TASKS] = {"attach", "detach", "repair"};
    int ends[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        ml_error_set(error, "cannot make a socket: %s", strerror(errno));
        return ML_ENV_SYSTEM;
    }
    char name[] = "memlog-tracer";
    char pid[NUMBER_BYTES];
    char ticks[NUMBER_BYTES];
    char allocators[ML_CONTROL_ALLOCATORS_BYTES + OPTION_BYTES];
    char library[PATH_MAX + OPTION_BYTES];
    char socket_path[PATH_MAX + OPTION_BYTES];
    const struct ml_tracer_setup *setup = &tracer->setup;
    (void)snprintf(pid, sizeof(pid), "%d", (int)setup->pid);
    (void)snprintf(ticks, sizeof(ticks), "%" PRIu64, setup->start_ticks);
    char *argv[ARGUMENTS_MAX] = {name, words[setup->task], pid, ticks};
    size_t count = 4;
    if (setup->task == ML_TRACER_ATTACH && setup->allocators[0] != '\0') {
        (void)snprintf(allocators, sizeof(allocators), "--allocators=%s", setup->allocators);
        argv[count++] = allocators;
    }
    if (setup->task == ML_TRACER_ATTACH && setup->library[0] != '\0') {
        (void)snprintf(library, sizeof(library), "--library=%s", setup->library);
        (void)snprintf(socket_path, sizeof(socket_path), "--socket=%s", setup->socket_path);
        argv[count++] = library;
        argv[count++] = socket_path;
    }
    struct birth birth = {.path = tracer->setup.path, .socket_fd = ends[1], .argv = argv};
    tracer->pid = ml_orphan_start(tracer->setup.inherited, run_tracer, &birth, &tracer->pidfd);
    (void)close(ends[1]);
    if (tracer->pid < 0) {
        ml_error_set(error, "cannot start a process: %s", strerror(errno));
        (void)close(ends[0]);
        return ML_ENV_SYSTEM;
    }
    *out_fd = ends[0];
    return ML_OK;
}

enum ml_status ml_tracer_start(
    const struct ml_tracer_setup *setup,
    struct ml_tracer **out_tracer,
    pid_t *out_pid,
    struct ml_error_message *error
) {
    struct ml_tracer *tracer = calloc(1, sizeof(*tracer));
    int fd = -1;
    if (tracer == NULL) {
        ml_error_set(error, "no memory");
        return ML_ENV_MEMORY;
    }
    tracer->setup = *setup;
    tracer->pidfd = -1;
    ml_timer_init(&tracer->deadline, on_deadline, tracer);
    enum ml_status status = start_process(tracer, &fd, error);
    if (status != ML_OK) {
        free(tracer);
        return status;
    }
    const struct ml_channel_options options = {
        .loop = setup->loop,
        .server = memlog_tracer_host_for_tracer_server(&handlers, tracer),
        .on_end = on_channel_end,
        .context = tracer,
        .close_foreign = ml_closer_close,
    };
    if (tracer->pidfd >= 0) {
        ml_watch_readable(setup->loop, &tracer->pidfd_watcher, on_pidfd, tracer->pidfd, tracer);
    }
    status = ml_channel_new(fd, &options, &tracer->channel);
    if (status != ML_OK) {
        ml_error_set(error, "cannot speak to memlog-tracer: %s", ml_status_text(status));
        ml_tracer_free(tracer);
        return status;
    }
    ml_timer_start(
        setup->loop, &tracer->deadline, setup->seconds != 0 ? setup->seconds : ML_TRACER_SECONDS
    );
    *out_tracer = tracer;
    *out_pid = tracer->pid;
    return ML_OK;
}

void ml_tracer_free(struct ml_tracer *take_tracer) {
    struct ml_tracer *tracer = take_tracer;
    if (tracer == NULL) {
        return;
    }
    kill_it(tracer);
    ev_timer_stop(tracer->setup.loop, &tracer->deadline);
    if (tracer->pidfd >= 0) {
        ev_io_stop(tracer->setup.loop, &tracer->pidfd_watcher);
    }
    ml_descriptor_close(&tracer->pidfd);
    ml_channel_free(tracer->channel);
    free(tracer);
}
