/* Where a run stands, and where its service does. Room: host. Context: pure.
 *
 * One rule: they change only by the tables in lifecycle.c. */
#ifndef MEMLOG_HOST_ENGINE_LIFECYCLE_H
#define MEMLOG_HOST_ENGINE_LIFECYCLE_H

#include "host/engine/engine.h"

/* ML_PHASE_FORBIDDEN is 0: a cell of the table that nobody wrote is not allowed. */
enum ml_engine_phase {
    ML_PHASE_FORBIDDEN = 0,
    ML_PHASE_RUNNING,
    ML_PHASE_ENDING,  /* what has ended is drained, and the last dump taken */
    ML_PHASE_WAITING, /* the same, once there is a service again or none will be */
    ML_PHASE_CLOSED,
    ML_PHASE_COUNT
};

enum ml_engine_phase_event {
    ML_PHASE_END,
    ML_PHASE_WAIT,
    ML_PHASE_RESUME,
    ML_PHASE_CLOSE,
    ML_PHASE_EVENT_COUNT
};

enum ml_engine_service_event {
    ML_ENGINE_READY,   /* the service serves */
    ML_ENGINE_DIED,    /* it has died */
    ML_ENGINE_GIVE_UP, /* there will be no other one */
    ML_ENGINE_EVENT_COUNT
};

/* Where they go by an event; 0: they may not. Pure. */
enum ml_engine_phase
ml_engine_phase_next(enum ml_engine_phase phase, enum ml_engine_phase_event event);
enum ml_engine_service
ml_engine_service_next(enum ml_engine_service state, enum ml_engine_service_event event);

/* The last service has died, and no other one serves. */
static inline bool ml_engine_service_is_dead(enum ml_engine_service state) {
    return state != ML_ENGINE_STARTING && state != ML_ENGINE_SERVING;
}

#endif
