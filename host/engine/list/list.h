/* Every process of the tree from its birth: those that are no members are listed as not recorded.
 * Room: host. The kernel tells of them where it may (events.h), else the tree is walked over
 * (walk.h). */
#ifndef MEMLOG_HOST_ENGINE_LIST_LIST_H
#define MEMLOG_HOST_ENGINE_LIST_LIST_H

#include "host/engine/list/known.h"

/* A process that is no member: `is_forked` as far as is known. NULL: no memory, or no room. */
struct ml_unrecorded *ml_list_add(
    struct ml_engine *engine,
    pid_t pid,
    pid_t parent_pid,
    struct ml_list_somebody parent,
    bool is_forked,
    uint64_t born_ns
);

/* Whether that member was being recorded when it forked, as far as is known. */
bool ml_list_was_recorded(const struct ml_member *parent);

/* A walk has come by a process that is no member. */
void ml_list_seen(
    struct ml_engine *engine, pid_t pid, const struct ml_process_facts *facts, uint32_t walk
);

/* A fork becomes what it made its exec of; another program's image ends, and the next begins. */
void ml_list_replace(struct ml_engine *engine, struct ml_unrecorded *one);

/* A member has become an image that has not reported itself. */
void ml_list_member_replaced(struct ml_engine *engine, const struct ml_member *member);

/* The newest report is of that process, and it is about to execute its own file once more, or has:
 * the same program, which the list has once. */
void ml_list_begins_anew(struct ml_engine *engine, pid_t pid);

/* A new member: it is not listed any more. Returns the id of what it came from, if that was listed
 * or known to the list; 0: nothing was. */
uint32_t ml_list_recorded(struct ml_engine *engine, const struct ml_member *member);

/* Its image has ended; it is not to be used any more. */
void ml_list_finish(
    struct ml_engine *engine,
    struct ml_unrecorded *one,
    enum ml_member_event event,
    const struct ml_ending *ending
);

/* Its process has ended; it is not to be used any more. */
void ml_list_end(
    struct ml_engine *engine, struct ml_unrecorded *one, const struct ml_ending *ending
);

/* End it if its process is gone. False: it is still there. */
bool ml_list_end_gone(struct ml_engine *engine, struct ml_unrecorded *one);

/* Its memory is to be read again when its number of looks says so, counted from then. */
void ml_list_look_later(struct ml_unrecorded *one, uint64_t now_ns);

/* The next walk comes after that time, if not sooner. */
void ml_list_walk_after(struct ml_engine *engine, double after_s);

/* Something has happened in the tree: the next walk, if the tree is walked over, comes soon. */
void ml_list_walk_soon(struct ml_engine *engine);

#endif
