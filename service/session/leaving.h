/* How a process leaves the tree. Room: service. Context: pure.
 *
 * One rule: it changes only by the table in leaving.c. */
#ifndef MEMLOG_SERVICE_SESSION_LEAVING_H
#define MEMLOG_SERVICE_SESSION_LEAVING_H

enum ml_leaving {
    ML_LEAVING_NOT,
    ML_LEAVING_EXEC, /* it becomes another program; void with its next event: the exec has failed */
    ML_LEAVING_EXIT, /* for good: whatever it still sends only moves the moment */
    ML_LEAVING_APART, /* it has left for good, but is still in its parent's list of children */
    ML_LEAVING_LEFT,  /* and it is in no such list */
    ML_LEAVING_COUNT
};

enum ml_leaving_event {
    ML_LEAVING_ON_EXEC,    /* its END record: an exec */
    ML_LEAVING_ON_EXIT,    /* its END record: an exit */
    ML_LEAVING_ON_BLOCK,   /* an event, of a process that has said its end */
    ML_LEAVING_ON_LEAVE,   /* somebody who knows says that it is gone, or it is recorded no more */
    ML_LEAVING_ON_APART,   /* the same, while its parent may be another worker's */
    ML_LEAVING_ON_PROFILE, /* it begins a new profile */
    ML_LEAVING_EVENT_COUNT
};

/* Where it goes from a state by an event. */
enum ml_leaving ml_leaving_next(enum ml_leaving state, enum ml_leaving_event event);

#endif
