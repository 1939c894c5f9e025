/* What the triggers look at, and what becomes of their decisions: looks, the log, dumps. The
 * service decides (service/triggers/triggers.h). Room: host. */
#ifndef MEMLOG_HOST_ENGINE_TRIGGERS_TRIGGERS_H
#define MEMLOG_HOST_ENGINE_TRIGGERS_TRIGGERS_H

#include <ev.h>

#include "host/engine/dump/jobs.h"

enum {
    ML_TRIGGER_KINDS = MEMLOG_SERVICE_TRIGGER_KIND_ASKED + 1,
    ML_TRIGGER_DUMPED = MEMLOG_SERVICE_OBSERVATION_DUMPED_NS_LIMIT,
};

struct ml_engine_triggers {
    ev_timer look_timer, memory_timer, killed_timer;
    unsigned asked;    /* looks without an answer yet */
    bool killed_waits; /* a member was killed, and the service does not know yet */
    void (*on_flushed)(struct ml_engine *); /* set while the run's end waits for a decision */
    struct ml_dump_trigger last;            /* the run's last dump is also for this */
    uint64_t oom_kills;                     /* the kernel's count at the last look, ... */
    uint64_t oom_ns;                        /* ... and when it was seen to rise; 0: never */
    int log_fd;                             /* -1: not made yet */
    uint64_t log_bytes;
    uint64_t decisions[ML_TRIGGER_KINDS][2]; /* [1]: for a dump */
    uint64_t dumps_count;
    uint64_t dumped_ns[ML_TRIGGER_DUMPED]; /* for a service that follows on this one */
    uint32_t dumped_count;
};

void ml_engine_triggers_init(struct ml_engine *engine);
void ml_engine_triggers_fini(struct ml_engine *engine);

/* A member was killed by a signal. */
void ml_engine_member_killed(struct ml_engine *engine, const struct ml_member *member);

/* The run ends: have pending kills decided. False: there are none, and on_flushed is not called. */
bool ml_engine_triggers_flush(
    struct ml_engine *engine, void (*on_flushed)(struct ml_engine *engine)
);

/* "footprint". */
const char *ml_engine_trigger_name(enum memlog_service_trigger_kind kind);

/* A dump of that kind was decided on, or not. Count it and log it; `what` is "dump", "no dump" or
 * "written". */
void ml_engine_trigger_decided(
    struct ml_engine *engine,
    enum memlog_service_trigger_kind kind,
    bool is_dump,
    const char *what,
    const char *why
);

#endif
