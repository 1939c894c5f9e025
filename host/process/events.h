/* The kernel's own word of every birth, exec and end on this machine: its process connector. Room:
 * host. Context: the host's one thread.
 *
 * One rule: it is the best source, and never the only one. The kernel grants it in the
 * initial namespaces alone (until Linux 6.6 to CAP_NET_ADMIN alone), and drops events when nobody
 * reads them fast enough; whoever uses it can also do without. */
#ifndef MEMLOG_HOST_PROCESS_EVENTS_H
#define MEMLOG_HOST_PROCESS_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum ml_process_event_kind {
    ML_PROCESS_EVENT_OTHER = 0, /* nothing that concerns a whole process */
    ML_PROCESS_EVENT_BORN,
    ML_PROCESS_EVENT_EXEC,
    ML_PROCESS_EVENT_ENDED /* its first thread has; others may run on */
};

struct ml_process_event {
    enum ml_process_event_kind kind;
    pid_t pid;
    pid_t parent;          /* of one that was born, or has ended; 0: not told */
    int wait_status;       /* of one that ended, as wait tells it */
    uint64_t monotonic_ns; /* when it happened */
};

/* A non-blocking socket on which the kernel has begun to tell; -1 where it does not. Owner: the
 * caller's. */
int ml_process_events_open(void);

/* Take the next event. False: there is none now. `*out_lost` is set when the kernel had to drop
 * some since the last call. */
bool ml_process_events_next(int fd, struct ml_process_event *out_event, bool *out_lost);

/* The event in a netlink packet; ML_PROCESS_EVENT_OTHER when it is none or too short. */
struct ml_process_event ml_process_event_parse(const void *packet, size_t count_bytes);

#endif
