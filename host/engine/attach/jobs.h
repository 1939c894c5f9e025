/* Tracers at work for the engine: a few at once, the others wait. Room: host.
 *
 * One rule: whatever a tracer does or fails to do, its job ends once, in a bounded time, and the
 * member that it was about is where the process is: hooked, or as it was. */
#ifndef MEMLOG_HOST_ENGINE_ATTACH_JOBS_H
#define MEMLOG_HOST_ENGINE_ATTACH_JOBS_H

#include <limits.h>
#include <sys/queue.h>

#include <ev.h>

#include "host/attach/tracer.h"
#include "host/engine/state.h"

/* Each holds a process up for milliseconds, on a processor that others may want. */
enum { ML_ATTACH_AT_ONCE = 4 };

/* What becomes of a process by its job. */
enum ml_attach_result {
    ML_ATTACH_DONE = 0,
    ML_ATTACH_REFUSED,  /* it is as it was; the text says why */
    ML_ATTACH_GONE,     /* it has ended */
    ML_ATTACH_REPAIRED, /* a tracer died over it, and the next one has restored it; the text says
                           how */
    ML_ATTACH_UNKNOWN,  /* the same, and it could not be restored */
};

struct ml_attach_job {
    struct ml_engine *engine;
    enum ml_tracer_task task; /* ML_TRACER_REPAIR: the tracer that did its task has died */
    bool was_attach;          /* what it was before that */
    pid_t pid;
    uint64_t start_ticks;
    uint64_t sampling_bytes; /* of what is recorded then; 0: as the run */
    uint32_t stack_mode;
    unsigned looks; /* at its code before, which had changed when the jumps were to be written */
    struct ml_tracer *tracer; /* NULL: it waits for its turn */
    struct ml_tracer_end end; /* `reason` is empty */
    char refused[MEMLOG_TRACER_TRACED_REFUSED_LIMIT + 1];
    char died[128];  /* of the tracer that died; "": none did */
    const char *why; /* for `on_done`, where all went well: why it is detached; NULL: as asked */
    /* Called once; `text` is the job's. The job is forgotten behind it. */
    void (*on_end)(struct ml_attach_job *job, enum ml_attach_result result, const char *text);
    ml_control_done *on_done; /* for `on_end` */
    void *context;
    TAILQ_ENTRY(ml_attach_job) links;
};

/* A process, whatever program it runs. */
struct ml_attached {
    pid_t pid;
    uint64_t start_ticks;
};

/* Whoever waits until no job is left. */
typedef void ml_attach_on_idle(void *context);

struct ml_attaches {
    char tracer_path[PATH_MAX]; /* "": not looked for yet */
    TAILQ_HEAD(, ml_attach_job) jobs;
    unsigned at_work;
    bool is_leaving; /* all are detached, and nobody is attached any more */
    ev_timer leave_timer;
    ml_attach_on_idle *on_idle; /* NULL: nobody waits */
    void *idle_context;
    void (*on_left)(void *context); /* struct ml_engine_setup */
    struct ml_attached *attached;   /* that were attached to and have not been seen to end */
    size_t attached_count;
    ev_timer left_timer;
    struct ml_command_line line; /* of the first process of `memlog attach` */
};

void ml_attach_jobs_init(struct ml_engine *engine);

/* Kill those at work. Whoever waits is told that memlog is ending. */
void ml_attach_jobs_fini(struct ml_engine *engine);

/* A new job, like `wanted`. It may have ended before this returns. */
void ml_attach_jobs_add(struct ml_engine *engine, const struct ml_attach_job *wanted);

/* End those that no tracer works at and that are to attach. */
void ml_attach_jobs_drop_waiting(struct ml_engine *engine);

/* The job about that process; NULL: there is none. */
struct ml_attach_job *ml_attach_jobs_of(struct ml_engine *engine, pid_t pid);

#endif
