/* Who a pid is, and what is known of a process that is not recorded. Room: host. */
#ifndef MEMLOG_HOST_ENGINE_LIST_KNOWN_H
#define MEMLOG_HOST_ENGINE_LIST_KNOWN_H

#include <ev.h>

#include "host/engine/state.h"

enum { ML_LIST_HELPERS = 64 };

/* The unrecorded processes are in engine->unrecorded. This is how they are found. */
struct ml_list {
    int events_fd; /* host/process/events.h; -1: the tree is walked over */
    ev_io events_watcher;
    bool has_lost_events;
    bool is_losing;          /* the kernel drops events until the queue is read empty */
    uint64_t heard_ns;       /* when the queue was last empty; CLOCK_MONOTONIC */
    uint64_t lost_ns;        /* before then the last event was dropped; 0: none was */
    uint32_t lost_walk;      /* the first walk after that */
    bool has_children_files; /* /proc/PID/task/TID/children */
    ev_timer walk_timer;
    double every_s, least_s;        /* between two walks; the least that their cost permits */
    uint32_t walk;                  /* their number */
    uint64_t walked_ns;             /* when the last walk began; CLOCK_MONOTONIC */
    uint64_t blind_ns;              /* the longest time between two walks */
    pid_t helpers[ML_LIST_HELPERS]; /* a ring; 0: nobody */
    unsigned helpers_next;
    char why_not[ML_UNRECORDED_REASON_BYTES + 128]; /* ml_engine_why_not's answer */
};

/* Whether it is a process of memlog's own, not of the program. */
bool ml_list_is_helper(const struct ml_engine *engine, pid_t pid);
void ml_list_forget_helper(struct ml_engine *engine, pid_t pid);

/* A member, an entry of the list, or neither. */
struct ml_list_somebody {
    const struct ml_member *member;
    struct ml_unrecorded *one;
    uint32_t gone_id; /* of an entry that may have been folded; 0: of none */
};

/* For ml_list_find: processes that have ended do not count. */
#define ML_LIST_AT_PRESENT UINT64_MAX

/* Which process had that pid at that moment (CLOCK_MONOTONIC). */
struct ml_list_somebody ml_list_find(struct ml_engine *engine, pid_t pid, uint64_t at_ns);

/* 0: nobody known. */
uint32_t ml_list_id_of(struct ml_list_somebody somebody);

/* A process's report is read at most this long after its end. */
static const uint64_t ml_list_report_late_ns = UINT64_C(10000000000);

/* Whether that report is about this process. */
bool ml_list_told_of(const struct ml_not_profiled *item, const struct ml_unrecorded *one);

#endif
