/* How memlog is in a process: started with it, or attached to it as it ran. Room: host. Context:
 * pure.
 *
 * One rule: it changes only by the table in attachment.c. While the entries of a process's
 * functions are being changed, nothing of it is recorded: half of its calls would be told as all.
 */
#ifndef MEMLOG_HOST_ENGINE_PROCESSES_ATTACHMENT_H
#define MEMLOG_HOST_ENGINE_PROCESSES_ATTACHMENT_H

#include <stdbool.h>

/* ML_ATTACHMENT_FORBIDDEN is 0: a cell of the table that nobody wrote is not allowed. */
enum ml_attachment_state {
    ML_ATTACHMENT_FORBIDDEN = 0,
    ML_ATTACHMENT_NONE,      /* memlog was loaded when its program started */
    ML_ATTACHMENT_ATTACHING, /* it has said Hello, and the tracer is at work */
    ML_ATTACHMENT_ATTACHED,  /* its functions lead to memlog, or may */
    ML_ATTACHMENT_DETACHING, /* the tracer takes that back */
    ML_ATTACHMENT_DETACHED,  /* its functions are its own again */
    ML_ATTACHMENT_COUNT
};

enum ml_attachment_event {
    ML_ATTACHMENT_BEGIN,   /* it says Hello to a tracer */
    ML_ATTACHMENT_INHERIT, /* it was forked by one that is attached */
    ML_ATTACHMENT_HOOKED,  /* the tracer has done it, or nobody knows whether */
    ML_ATTACHMENT_LEAVE,   /* a tracer begins to detach */
    ML_ATTACHMENT_CLEAN,   /* the process is as it was */
    ML_ATTACHMENT_EVENT_COUNT
};

/* Where it goes from a state by an event; ML_ATTACHMENT_FORBIDDEN: it may not. Pure. */
enum ml_attachment_state
ml_attachment_next(enum ml_attachment_state state, enum ml_attachment_event event);

/* Whether it may record. */
static inline bool ml_attachment_may_record(enum ml_attachment_state state) {
    return state == ML_ATTACHMENT_NONE || state == ML_ATTACHMENT_ATTACHED;
}

/* Why it cannot be started or stopped now; "": it can. */
const char *ml_attachment_why_not(enum ml_attachment_state state);

#endif
