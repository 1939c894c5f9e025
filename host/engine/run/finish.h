/* The end of a run: drained, dumped, sent; and the dumps in between that come by the clock. Room:
 * host. */
#ifndef MEMLOG_HOST_ENGINE_RUN_FINISH_H
#define MEMLOG_HOST_ENGINE_RUN_FINISH_H

#include <limits.h>

#include <ev.h>

#include "host/engine/state.h"

/* How the run's last dump went. */
struct ml_final_dump {
    char path[PATH_MAX];
    bool complete;
    char trouble[ML_ERROR_MESSAGE_BYTES];
};

struct ml_finish {
    ev_timer interval_timer;
    ml_dump_done *on_done;
    void *context;
    struct ml_final_dump final; /* while its run's uploads settle */
};

void ml_finish_init(struct ml_engine *engine);
void ml_finish_fini(struct ml_engine *engine);

/* A new service serves, or there will be none: what waited for it goes on. */
void ml_finish_resume(struct ml_engine *engine);

#endif
