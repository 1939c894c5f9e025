#include "host/engine/attach/jobs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "host/process/closer.h"
#include "host/process/loop.h"
#include "host/process/paths.h"
#include "ipc/channel/channel.h"

static const char ending_text[] = "memlog is ending";

static void begin_waiting(struct ml_engine *engine);

static void check_idle(struct ml_engine *engine) {
    struct ml_attaches *all = engine->attaches;
    if (TAILQ_EMPTY(&all->jobs) && all->on_idle != NULL) {
        ml_attach_on_idle *on_idle = all->on_idle;
        all->on_idle = NULL;
        on_idle(all->idle_context);
    }
}

/* The job is forgotten. */
static void end_job(struct ml_attach_job *job, enum ml_attach_result result, const char *text) {
    struct ml_engine *engine = job->engine;
    TAILQ_REMOVE(&engine->attaches->jobs, job, links);
    if (job->tracer != NULL) {
        engine->attaches->at_work--;
        ml_tracer_free(job->tracer);
        job->tracer = NULL;
    }
    job->on_end(job, result, text);
    free(job);
    begin_waiting(engine);
    check_idle(engine);
}

/* The kernel's word on whose connection it is, against what the user asked for. */
static void on_connected(void *context, int take_fd) {
    struct ml_attach_job *job = context;
    struct ucred peer = {.pid = 0};
    socklen_t count = sizeof(peer);
    if (getsockopt(take_fd, SOL_SOCKET, SO_PEERCRED, &peer, &count) != 0 || peer.pid != job->pid ||
        ml_process_facts(job->pid).start_ticks != job->start_ticks) {
        ml_engine_notice(
            job->engine,
            "memlog-tracer has handed over a connection of process %d instead of %d: it is closed",
            (int)peer.pid,
            (int)job->pid
        );
        ml_channel_close_socket(take_fd, ml_closer_close);
        return;
    }
    job->engine->serve_attached(job->engine, take_fd, job->pid);
}

static void on_tracer_end(void *context, const struct ml_tracer_end *end);

/* False: `job` has ended. */
static bool begin(struct ml_attach_job *job) {
    struct ml_engine *engine = job->engine;
    struct ml_attaches *all = engine->attaches;
    struct ml_error_message error = {.text = ""};
    pid_t pid = 0;
    if (all->tracer_path[0] == '\0' &&
        ml_paths_find(ML_TRACER_FILE, all->tracer_path, &error) != ML_OK) {
        all->tracer_path[0] = '\0';
        end_job(job, ML_ATTACH_REFUSED, error.text);
        return false;
    }
    const struct ml_tracer_setup setup = {
        .loop = engine->loop,
        .path = all->tracer_path,
        .inherited = engine->inherited,
        .task = job->task,
        .pid = job->pid,
        .start_ticks = job->start_ticks,
        .allocators = engine->options->allocators,
        .library = engine->preload_path,
        .socket_path = engine->directory.client_path,
        .on_connected = on_connected,
        .on_end = on_tracer_end,
        .context = job,
    };
    if (ml_tracer_start(&setup, &job->tracer, &pid, &error) != ML_OK) {
        end_job(job, ML_ATTACH_REFUSED, error.text);
        return false;
    }
    all->at_work++;
    ml_engine_add_helper(engine, pid);
    if (engine->on_service != NULL) {
        engine->on_service(engine->context, pid);
    }
    return true;
}

/* Begin the jobs for which there is room. An end may begin others, and so each look is from the
 * front. */
static void begin_waiting(struct ml_engine *engine) {
    struct ml_attaches *all = engine->attaches;
    struct ml_attach_job *job = TAILQ_FIRST(&all->jobs);
    while (job != NULL && all->at_work < ML_ATTACH_AT_ONCE && engine->phase != ML_PHASE_CLOSED) {
        if (job->tracer != NULL) {
            job = TAILQ_NEXT(job, links);
        } else {
            job = begin(job) ? TAILQ_FIRST(&all->jobs) : NULL; /* an end has begun the others */
        }
    }
}

/* It may have left a thread on borrowed code or half of the entries changed. */
static void repair(struct ml_attach_job *job, const char *reason) {
    ml_tracer_free(job->tracer);
    job->tracer = NULL;
    job->engine->attaches->at_work--;
    job->task = ML_TRACER_REPAIR;
    (void)snprintf(job->died, sizeof(job->died), "%s", reason);
    (void)begin(job);
}

static enum ml_attach_result
result_of(const struct ml_attach_job *job, const struct ml_tracer_end *end) {
    if (end->is_finished && end->outcome == MEMLOG_TRACER_OUTCOME_GONE) {
        return ML_ATTACH_GONE;
    }
    const bool is_done = end->is_finished && end->outcome == MEMLOG_TRACER_OUTCOME_DONE;
    if (job->task == ML_TRACER_REPAIR) {
        return is_done ? ML_ATTACH_REPAIRED : ML_ATTACH_UNKNOWN;
    }
    return is_done ? ML_ATTACH_DONE : ML_ATTACH_REFUSED;
}

static void on_tracer_end(void *context, const struct ml_tracer_end *end) {
    struct ml_attach_job *job = context;
    char text[ML_ENGINE_ATTACH_TEXT_BYTES];
    if (!end->is_finished && job->task != ML_TRACER_REPAIR) {
        repair(job, end->reason);
        return;
    }
    const enum ml_attach_result result = result_of(job, end);
    if (result == ML_ATTACH_REPAIRED) {
        (void)snprintf(text, sizeof(text), "%s; another one has restored the process", job->died);
    } else if (result == ML_ATTACH_UNKNOWN) {
        (void)snprintf(
            text,
            sizeof(text),
            "%s; 'memlog doctor --repair %d' restores the process (a first try failed: %s)",
            job->died,
            (int)job->pid,
            end->reason
        );
    } else {
        (void)snprintf(text, sizeof(text), "%s", end->reason);
    }
    job->end = *end;
    (void)snprintf(job->refused, sizeof(job->refused), "%s", end->refused);
    job->end.refused = job->refused;
    job->end.reason = "";
    end_job(job, result, text);
}

struct ml_attach_job *ml_attach_jobs_of(struct ml_engine *engine, pid_t pid) {
    struct ml_attach_job *job = NULL;
    TAILQ_FOREACH(job, &engine->attaches->jobs, links) {
        if (job->pid == pid) {
            return job;
        }
    }
    return NULL;
}

void ml_attach_jobs_drop_waiting(struct ml_engine *engine) {
    struct ml_attach_job *next = TAILQ_FIRST(&engine->attaches->jobs);
    while (next != NULL) {
        struct ml_attach_job *job = next;
        next = TAILQ_NEXT(job, links);
        if (job->tracer == NULL && job->task == ML_TRACER_ATTACH) {
            end_job(job, ML_ATTACH_REFUSED, ending_text);
        }
    }
}

void ml_attach_jobs_add(struct ml_engine *engine, const struct ml_attach_job *wanted) {
    struct ml_attach_job *job = malloc(sizeof(*job));
    if (job == NULL) {
        wanted->on_done(wanted->context, "no memory");
        return;
    }
    *job = *wanted;
    job->engine = engine;
    job->was_attach = job->task == ML_TRACER_ATTACH;
    TAILQ_INSERT_TAIL(&engine->attaches->jobs, job, links);
    begin_waiting(engine);
}

void ml_attach_jobs_init(struct ml_engine *engine) {
    TAILQ_INIT(&engine->attaches->jobs);
}

void ml_attach_jobs_fini(struct ml_engine *engine) {
    struct ml_attach_job *next = TAILQ_FIRST(&engine->attaches->jobs);
    while (next != NULL) {
        struct ml_attach_job *job = next;
        next = TAILQ_NEXT(job, links);
        end_job(job, ML_ATTACH_REFUSED, ending_text);
    }
}
