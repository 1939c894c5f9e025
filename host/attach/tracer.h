/* One memlog-tracer at work on one process: started, heard, ended. Room: host. Context: the host's
 * one thread, on its loop.
 *
 * One rule: a tracer gets a bounded time, then it is killed, and what is not heard from it by then
 * is told as its death. The host itself traces nobody. */
#ifndef MEMLOG_HOST_ATTACH_TRACER_H
#define MEMLOG_HOST_ATTACH_TRACER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error_message.h"
#include "host/process/launcher.h"
#include "ipc/wire/ml_status.h"
#include "mojom_like_idl/contracts/heap_tracer_mojom.h"

struct ev_loop;
struct ml_tracer;

/* Where a tracer finds its socket. */
enum { ML_TRACER_FD = 3 };

/* It stops a process for milliseconds, and tries again while threads stand where they must not. */
enum { ML_TRACER_SECONDS = 20 };

enum ml_tracer_task { ML_TRACER_ATTACH = 0, ML_TRACER_DETACH, ML_TRACER_REPAIR, ML_TRACER_TASKS };

/* How it ended. The texts are the tracer's until the callback returns. */
struct ml_tracer_end {
    bool
        is_finished; /* it has said how it went; else it died or was killed, and `reason` says so */
    enum memlog_tracer_outcome outcome;
    const char *reason;                 /* for people */
    const char *refused;                /* the first function that is not hooked; "": none */
    struct memlog_tracer_traced traced; /* without its text */
};

struct ml_tracer_setup {
    struct ev_loop *loop;
    const char *path; /* of memlog-tracer */
    const struct ml_inherited *inherited;
    enum ml_tracer_task task;
    pid_t pid;
    uint64_t start_ticks;   /* with the pid, one process: host/process/info.h */
    const char *allocators; /* NAME=PREFIX,...; "": none */
    /* What programs that it executes are to preload, and this host's socket; "": nothing. */
    const char *library, *socket_path;
    unsigned seconds; /* 0: ML_TRACER_SECONDS */
    /* The process's connection, of which the caller becomes the owner. Only of ML_TRACER_ATTACH,
     * once at most. */
    void (*on_connected)(void *context, int take_fd);
    /* Called once, when the tracer's process is gone; not by ml_tracer_free. May free it. */
    void (*on_end)(void *context, const struct ml_tracer_end *end);
    void *context;
};

/* Start one. *out_pid is a helper of the host's, which somebody reaps.
 *
 * Errors: ML_ENV_* with an error message. Owner:  ml_tracer_free. */
ML_NODISCARD enum ml_status ml_tracer_start(
    const struct ml_tracer_setup *setup,
    struct ml_tracer **out_tracer,
    pid_t *out_pid,
    struct ml_error_message *error
);

/* Kill it if it still runs, and forget it. NULL is allowed. */
void ml_tracer_free(struct ml_tracer *take_tracer);

#endif
