/* Who a pid is, and what is known of a process that is not recorded. Room: host. */
#ifndef MEMLOG_HOST_ENGINE_LIST_KNOWN_H
#define MEMLOG_HOST_ENGINE_LIST_KNOWN_H

#include <ev.h>

#include "host/engine/state.h"

enum { ML_LIST_HELPERS = 64 };

/* Who of the tree is not recorded stands in engine->unrecorded; how that is found out, here. */
struct ml_list {
    int events_fd; /* host/process/events.h; -1: the tree is walked over */
    ev_io events_watcher;
    bool has_lost_events;
    bool is_losing;          /* the kernel drops events until the queue has been emptied */
    uint64_t heard_ns;       /* the queue was empty the last time; CLOCK_MONOTONIC */
    uint64_t lost_ns;        /* the last one was dropped before; 0: none was */
    uint32_t lost_walk;      /* the first one behind that */
    bool has_children_files; /* /proc/PID/task/TID/children */
    ev_timer walk_timer;
    double every_s, least_s;        /* between two walks; what their cost permits */
    uint32_t walk;                  /* their number */
    uint64_t walked_ns;             /* the last one; CLOCK_MONOTONIC */
    uint64_t blind_ns;              /* the longest time between two */
    pid_t helpers[ML_LIST_HELPERS]; /* a ring; 0: nobody */
    unsigned helpers_next;
    char why_not[ML_UNRECORDED_REASON_BYTES + 128]; /* ml_engine_why_not's answer */
};

/* Whether it is a process of our own, and no part of the program. */
bool ml_list_is_helper(const struct ml_engine *engine, pid_t pid);
void ml_list_forget_helper(struct ml_engine *engine, pid_t pid);

/* A member, or one of the list, or neither. */
struct ml_list_somebody {
    const struct ml_member *member;
    struct ml_unrecorded *one;
    uint32_t gone_id; /* of one of the list that may be folded meanwhile; 0: of nobody */
};

/* For ml_list_find: whoever has ended is not meant. */
#define ML_LIST_AT_PRESENT UINT64_MAX

/* Who was that pid at that moment (CLOCK_MONOTONIC), or is it at present. */
struct ml_list_somebody ml_list_find(struct ml_engine *engine, pid_t pid, uint64_t at_ns);

/* 0: nobody who is known. */
uint32_t ml_list_id_of(struct ml_list_somebody somebody);

/* A process's report is read so long behind its end at most. */
static const uint64_t ml_list_report_late_ns = UINT64_C(10000000000);

/* Whether anybody could look at its program. */
bool ml_list_has_name(const struct ml_unrecorded *one);

/* Whether that report is about this process. */
bool ml_list_told_of(const struct ml_not_profiled *item, const struct ml_unrecorded *one);

/* Name, command line, what it runs, as /proc has them; an unreadable part stays as it was. Of one
 * that has ended and is not waited for yet there is the name. */
void ml_list_identify(
    struct ml_engine *engine, struct ml_unrecorded *one, const struct ml_process_facts *facts
);

/* The same, as somebody else knows them; `path` may be "", `argv` NULL. */
void ml_list_copy_identity(
    struct ml_unrecorded *one, const char *name, const char *path, char *const *argv
);

/* Its image is another one now; what was known is of the one before. */
void ml_list_forget_identity(struct ml_unrecorded *one);

#endif
