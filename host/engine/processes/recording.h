/* Where the recording of a process stands: whether its control page says record, and who reads what
 * it writes. Room: host. Context: pure.
 *
 * One rule: it changes only by the table in recording.c. */
#ifndef MEMLOG_HOST_ENGINE_PROCESSES_RECORDING_H
#define MEMLOG_HOST_ENGINE_PROCESSES_RECORDING_H

#include <stdbool.h>

/* ML_RECORDING_FORBIDDEN is 0: a cell of the table that nobody wrote is not allowed. A pipe is torn
 * when a service that has died read a part of it: what it still holds may begin within a frame. */
enum ml_recording {
    ML_RECORDING_FORBIDDEN = 0,
    ML_RECORDING_NEVER,        /* it does not record, and never did */
    ML_RECORDING_WAITS,        /* it records; its pipe waits for a service */
    ML_RECORDING_WAITS_TORN,   /* it shall record; the next service gets a new profile */
    ML_RECORDING_SERVED,       /* it records, and the service reads */
    ML_RECORDING_KEPT,         /* it records no more; the service has its profile */
    ML_RECORDING_GONE,         /* it records no more, and no service has its profile */
    ML_RECORDING_GONE_TORN,    /* the same, of a torn pipe */
    ML_RECORDING_LOST_NEVER,   /* it cannot be recorded, and never was */
    ML_RECORDING_LOST_IN_TIME, /* it can be recorded no more; the service has what came before */
    ML_RECORDING_LOST,         /* the same, and no service has its profile */
    ML_RECORDING_COUNT
};

enum ml_recording_event {
    ML_RECORDING_SERVE,  /* it records and is brought to a service, or begins a profile there */
    ML_RECORDING_WAIT,   /* it records, but there is no service */
    ML_RECORDING_EMPTY,  /* its pipe was emptied: frames in it are whole again */
    ML_RECORDING_STOP,   /* it records no more */
    ML_RECORDING_DETACH, /* the service that had it has died */
    ML_RECORDING_LOSE,   /* its stream cannot be read, now or later */
    ML_RECORDING_EVENT_COUNT
};

/* Where it goes from a state by an event; ML_RECORDING_FORBIDDEN: it may not. Pure. */
enum ml_recording ml_recording_next(enum ml_recording state, enum ml_recording_event event);

/* The control page says record, or will when there is a service. */
static inline bool ml_recording_is_on(enum ml_recording state) {
    return state == ML_RECORDING_WAITS || state == ML_RECORDING_WAITS_TORN ||
           state == ML_RECORDING_SERVED;
}

/* The service has its profile. */
static inline bool ml_recording_in_service(enum ml_recording state) {
    return state == ML_RECORDING_SERVED || state == ML_RECORDING_KEPT ||
           state == ML_RECORDING_LOST_IN_TIME;
}

static inline bool ml_recording_is_lost(enum ml_recording state) {
    return state == ML_RECORDING_LOST_NEVER || state == ML_RECORDING_LOST_IN_TIME ||
           state == ML_RECORDING_LOST;
}

/* It records, or has recorded. */
static inline bool ml_recording_was_ever_on(enum ml_recording state) {
    return state != ML_RECORDING_NEVER && state != ML_RECORDING_LOST_NEVER;
}

#endif
