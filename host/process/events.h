/* The kernel's events of every birth, exec and end on this machine: its process connector. Room:
 * host. Context: the host's one thread.
 *
 * One rule: it is the best source, and never the only one. The kernel grants it only in the initial
 * namespaces (until Linux 6.6 only to CAP_NET_ADMIN), and drops events that are not read fast
 * enough. */
#ifndef MEMLOG_HOST_PROCESS_EVENTS_H
#define MEMLOG_HOST_PROCESS_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum ml_process_event_kind {
    ML_PROCESS_EVENT_OTHER = 0, /* not about a whole process */
    ML_PROCESS_EVENT_BORN,
    ML_PROCESS_EVENT_EXEC,
    ML_PROCESS_EVENT_ENDED /* its first thread has; others may run on */
};

struct ml_process_event {
    enum ml_process_event_kind kind;
    pid_t pid;
    pid_t parent;          /* of a process that was born or has ended; 0: not known */
    pid_t parent_thread;   /* of one that was born: which thread of its parent; 0: not known */
    int wait_status;       /* of a process that ended, as of wait */
    uint64_t monotonic_ns; /* when it happened */
};

/* A non-blocking socket on which the kernel sends events; -1: it does not. Owner: the caller. */
int ml_process_events_open(void);

/* Take the next event. False: there is none now. `*out_lost` is set when the kernel dropped some
 * since the last call. */
bool ml_process_events_next(int fd, struct ml_process_event *out_event, bool *out_lost);

/* The event in a netlink packet; ML_PROCESS_EVENT_OTHER when it is none or too short. */
struct ml_process_event ml_process_event_parse(const void *packet, size_t count_bytes);

#endif
