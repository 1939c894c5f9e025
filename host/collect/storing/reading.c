#include "host/collect/storing/reading.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ev.h>

#include "host/collect/analyzer/become.h"
#include "host/process/loop.h"
#include "ipc/channel/channel.h"

struct ml_reading {
    struct ml_reading_setup setup;
    struct ml_channel *channel; /* NULL: it has ended */
    ev_child child;
    ev_timer timer;
    bool is_running;
    bool is_told;
    bool was_ended; /* by this process */
    unsigned tries;
    char death[64]; /* what it died of */
    struct ml_collect_report report;
};

/* ---- messages */

static void refuse(struct ml_reading *reading, const char *reason) {
    if (reading->report.state != ML_COLLECT_REPORT_REFUSED) {
        ml_collect_report_fini(&reading->report);
        reading->report.state = ML_COLLECT_REPORT_REFUSED;
        (void)snprintf(reading->report.reason, sizeof(reading->report.reason), "%s", reason);
    }
}

static void end_process(struct ml_reading *reading) {
    if (reading->is_running) {
        reading->was_ended = true;
        (void)kill(reading->child.pid, SIGKILL);
    }
}

static const char *reason_of(enum ml_status status) {
    switch (status) {
    case ML_PEER_LIMIT:
        return "it has more stacks or names than a report may have";
    case ML_ENV_MEMORY:
        return "memory ran out while it was read";
    default:
        return "what was read of it does not fit together";
    }
}

static void took(struct ml_reading *reading, enum ml_status status) {
    if (ml_collect_report_bytes(&reading->report) > ML_COLLECT_REPORT_BYTES_MAX) {
        status = ML_PEER_LIMIT;
    }
    if (status != ML_OK) {
        refuse(reading, reason_of(status));
        end_process(reading);
    }
}

#define HANDLER(name)                                                                              \
    static void on_##name(                                                                         \
        void *context,                                                                             \
        const struct ml_call *call,                                                                \
        const struct memlog_fleet_##name##_request *message                                        \
    ) {                                                                                            \
        struct ml_reading *reading = context;                                                      \
        (void)call;                                                                                \
        if (reading->report.state != ML_COLLECT_REPORT_REFUSED) {                                  \
            took(reading, ml_collect_report_##name(&reading->report, message));                    \
        }                                                                                          \
    }
HANDLER(begin)
HANDLER(frames)
HANDLER(stacks)
HANDLER(rows)
HANDLER(end)
HANDLER(refused)

static const struct memlog_fleet_collector_handlers handlers = {
    .begin = on_begin,
    .frames = on_frames,
    .stacks = on_stacks,
    .rows = on_rows,
    .end = on_end,
    .refused = on_refused,
};

/* ---- its end */

/* Both the process and its last message have come. */
static void tell(struct ml_reading *reading) {
    if (reading->channel != NULL || reading->is_running || reading->is_told) {
        return;
    }
    ev_timer_stop(reading->setup.loop, &reading->timer);
    if (reading->report.state != ML_COLLECT_REPORT_WHOLE) {
        refuse(reading, reading->death);
    }
    reading->is_told = true;
    reading->setup.on_read(reading->setup.context, reading, &reading->report);
}

static void
on_channel_end(void *context, struct ml_channel *channel, const struct ml_channel_end *end) {
    struct ml_reading *reading = context;
    if (end->status != ML_PEER_CLOSED) {
        refuse(reading, "what was read of it is against the contract");
        end_process(reading);
    }
    reading->channel = NULL;
    ml_channel_free(channel);
    tell(reading);
}

static void note_death(struct ml_reading *reading, int status) {
    const bool was_signal = WIFSIGNALED(status);
    const int number = was_signal ? WTERMSIG(status) : WEXITSTATUS(status);
    const char *what = "the process that read it has died of it, by";
    if (!was_signal && number == ML_ANALYZER_NOT_STARTED) {
        what = "memlog-analyzer cannot be started:";
        reading->tries = ML_READING_TRIES_NOT_STARTED;
    } else if (was_signal && number == SIGKILL && !reading->was_ended) {
        what = "the process that read it was killed, by";
        reading->tries = ML_READING_TRIES_KILLED;
    }
    (void)snprintf(
        reading->death,
        sizeof(reading->death),
        "%s %s %d",
        what,
        was_signal ? "signal" : "exit code",
        number
    );
}

static void on_child(struct ev_loop *loop, ev_child *watcher, int events) {
    (void)events;
    struct ml_reading *reading = watcher->data;
    ev_child_stop(loop, watcher);
    reading->is_running = false;
    note_death(reading, watcher->rstatus);
    tell(reading);
}

static void on_timer(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)loop;
    (void)events;
    struct ml_reading *reading = watcher->data;
    refuse(reading, "it takes too long to be read");
    end_process(reading);
}

/* ---- its beginning */

static bool begin(struct ml_reading *reading, int body_fd) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return false;
    }
    const pid_t pid = fork();
    if (pid == 0) {
        ml_analyzer_become(reading->setup.analyzer_path, "report-rows", body_fd, ends[1]);
    }
    (void)close(ends[1]);
    if (pid < 0) {
        (void)close(ends[0]);
        return false;
    }
    ev_child_init(&reading->child, on_child, pid, 0);
    reading->child.data = reading;
    ev_child_start(reading->setup.loop, &reading->child);
    reading->is_running = true;
    ml_timer_init(&reading->timer, on_timer, reading);
    ml_timer_start(reading->setup.loop, &reading->timer, ML_READING_WALL_S);
    const struct ml_channel_options options = {
        .loop = reading->setup.loop,
        .server = memlog_fleet_collector_server(&handlers, reading),
        .on_end = on_channel_end,
        .context = reading,
    };
    return ml_channel_new(ends[0], &options, &reading->channel) == ML_OK;
}

struct ml_reading *ml_reading_start(
    const struct ml_reading_setup *setup, int body_fd, struct ml_error_message *error
) {
    struct ml_reading *reading = calloc(1, sizeof(*reading));
    if (reading == NULL) {
        ml_error_set(error, "memory ran out");
        return NULL;
    }
    reading->setup = *setup;
    if (lseek(body_fd, 0, SEEK_SET) != 0 || !begin(reading, body_fd)) {
        ml_error_set(error, "no process to read it: %s", strerror(errno));
        ml_reading_free(reading);
        return NULL;
    }
    return reading;
}

unsigned ml_reading_tries(const struct ml_reading *reading) {
    return reading->tries;
}

void ml_reading_free(struct ml_reading *take_reading) {
    struct ml_reading *reading = take_reading;
    if (reading == NULL) {
        return;
    }
    if (reading->is_running) {
        ev_child_stop(reading->setup.loop, &reading->child);
        (void)kill(reading->child.pid, SIGKILL);
        (void)waitpid(reading->child.pid, NULL, 0);
    }
    if (ev_is_active(&reading->timer)) {
        ev_timer_stop(reading->setup.loop, &reading->timer);
    }
    ml_channel_free(reading->channel);
    ml_collect_report_fini(&reading->report);
    free(reading);
}
