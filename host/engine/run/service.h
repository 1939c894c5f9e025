/* The service's birth, death and successor. Room: host. */
#ifndef MEMLOG_HOST_ENGINE_RUN_SERVICE_H
#define MEMLOG_HOST_ENGINE_RUN_SERVICE_H

#include <ev.h>

#include "host/engine/state.h"
#include "host/policy/restart_policy.h"

struct ml_supervisor {
    char *path;   /* of the service's program */
    int words_fd; /* ipc/wire/last_words.h */
    struct ml_restart_policy restart_policy;
    ev_timer restart_timer;
    struct memlog_service_moment serving_since; /* of the present service, or the last one */
    struct memlog_service_moment died;
    struct ml_ending ending; /* as its parent was told */
    char last_ending[64];    /* of the last service, in words */
};

/* Start the first one. Errors: ML_ENV_* with an error message. */
ML_NODISCARD enum ml_status
ml_engine_service_open(struct ml_engine *engine, const char *path, struct ml_error_message *error);
void ml_engine_service_close(struct ml_engine *engine);

#endif
