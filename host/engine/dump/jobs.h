/* Dumps, one behind the other: asked of the service, written into the run's folder. Room: host.
 *
 * One rule: who asks is answered once, whatever becomes of the service. */
#ifndef MEMLOG_HOST_ENGINE_DUMP_JOBS_H
#define MEMLOG_HOST_ENGINE_DUMP_JOBS_H

#include <ev.h>

#include "host/engine/dump/folder.h"
#include "host/engine/state.h"

/* Why a dump is taken unasked, as the service has decided. */
struct ml_dump_trigger {
    struct memlog_service_decision decision; /* without `dump` there is none; its reason is this: */
    char reason[MEMLOG_SERVICE_DECISION_REASON_LIMIT + 1];
};

/* A dump that is wanted. */
struct ml_dump_job {
    enum memlog_service_dump_reason reason;
    uint32_t *ids;
    uint32_t ids_count;
    struct ml_dump_trigger trigger;
    ml_dump_done *on_done;
    void *context;
    struct ml_dump_file file;
    bool is_snapshot;  /* into the caller's own file.fd, not into the folder */
    bool reads_memory; /* for it, though it is a snapshot: a dump always does */
    enum memlog_service_dump_content content;
    bool started;               /* processes are read for it, or the service writes it */
    unsigned tries;             /* services that have died over it */
    bool is_whole, is_complete; /* once the service has written it */
    char trouble[MEMLOG_SERVICE_DUMP_REPLY_TROUBLE_LIMIT + 1];
    struct ml_dump_job *next;
};

/* Why a dump of this run was taken, for the page's list. */
struct ml_dump_words {
    uint32_t number; /* 0: nothing is here */
    char text[MEMLOG_SERVICE_DECISION_REASON_LIMIT + 1];
};

/* More than people scroll through. */
enum { ML_DUMP_WORDS_KEPT = 128 };

struct ml_dump_jobs {
    struct ml_dumps folder;                         /* open once the program is known */
    struct ml_dump_job *first;                      /* the one that is being written */
    struct ml_dump_words words[ML_DUMP_WORDS_KEPT]; /* a ring */
    uint32_t words_next;
    ev_timer guard_timer;
};

void ml_dump_jobs_init(struct ml_engine *engine);
void ml_dump_jobs_fini(struct ml_engine *engine);

/* A new service serves, or there will be none: what waited for it goes on. */
void ml_dump_jobs_resume(struct ml_engine *engine);

/* There is no service now, but there may be one soon: a dump may wait for it. */
bool ml_dump_jobs_may_wait(const struct ml_engine *engine);

/* End the service if it does not answer within that time and a minute; until ml_dump_unguard. */
void ml_dump_guard(struct ml_engine *engine, uint32_t deadline_ms);
void ml_dump_unguard(struct ml_engine *engine);

/* A job for a dump of everything; NULL: there is no memory, and on_done was called. Owner:
 * ml_dump_job_queue or ml_dump_job_free. */
struct ml_dump_job *
ml_dump_job_new(enum memlog_service_dump_reason reason, ml_dump_done *on_done, void *context);
void ml_dump_job_free(struct ml_dump_job *take_job);

/* Put a job behind the others; its on_done is called once, perhaps before this returns. */
void ml_dump_job_queue(struct ml_engine *engine, struct ml_dump_job *take_job);

/* A dump of everything, for that trigger. As ml_engine_dump. */
void ml_engine_dump_as(
    struct ml_engine *engine,
    enum memlog_service_dump_reason reason,
    const struct ml_dump_trigger *trigger,
    ml_dump_done *on_done,
    void *context
);

/* Say how a dump went that nobody waits for; `path` "": there is none. `why` may be "". */
void ml_dump_notice(
    struct ml_engine *engine, const char *path, const char *why, bool complete, const char *trouble
);

#endif
