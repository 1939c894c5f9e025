/* How a process leaves the tree. Room: service. Context: pure.
 *
 * One rule: the state changes only by the table in leaving.c. */
#ifndef MEMLOG_SERVICE_SESSION_LEAVING_H
#define MEMLOG_SERVICE_SESSION_LEAVING_H

enum ml_leaving {
    ML_LEAVING_NOT,
    ML_LEAVING_EXEC, /* it becomes another program; void with its next event, as the exec has failed
                      */
    ML_LEAVING_EXIT, /* for good: later events only move the moment */
    ML_LEAVING_APART, /* it has left for good, and is still in its parent's list of children */
    ML_LEAVING_LEFT,  /* it has left for good, and is in no such list */
    ML_LEAVING_COUNT
};

enum ml_leaving_event {
    ML_LEAVING_ON_EXEC,  /* its END record: an exec */
    ML_LEAVING_ON_EXIT,  /* its END record: an exit */
    ML_LEAVING_ON_BLOCK, /* an event of a process after its END record */
    ML_LEAVING_ON_LEAVE, /* the host or its parent says that it is gone, or its recording is stopped
                          */
    ML_LEAVING_ON_APART, /* the same, while another worker may have its parent */
    ML_LEAVING_ON_PROFILE, /* it begins a new profile */
    ML_LEAVING_EVENT_COUNT
};

/* The state after an event. */
enum ml_leaving ml_leaving_next(enum ml_leaving state, enum ml_leaving_event event);

#endif
