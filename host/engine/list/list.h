/* Every process of the tree from its birth: those that are no members are listed as not recorded.
 * Room: host. The kernel's events tell of them (events.h), or walks over the tree (walk.h). */
#ifndef MEMLOG_HOST_ENGINE_LIST_LIST_H
#define MEMLOG_HOST_ENGINE_LIST_LIST_H

#include "host/engine/list/known.h"

/* Add a process that is no member; `is_forked` as far as is known. NULL: no memory, or no room. */
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

/* A walk has seen a process that is no member. */
void ml_list_seen(
    struct ml_engine *engine, pid_t pid, const struct ml_process_facts *facts, uint32_t walk
);

/* An unrecorded process has made an exec. A fork becomes the new program; a program's image ends,
 * and the next one begins. */
void ml_list_replace(struct ml_engine *engine, struct ml_unrecorded *one);

/* A member runs an image that has not reported itself. */
void ml_list_member_replaced(struct ml_engine *engine, const struct ml_member *member);

/* The newest report is of that process, which executes its own file again: it is the same program,
 * and the list has it once. */
void ml_list_begins_anew(struct ml_engine *engine, pid_t pid);

/* Take a new member out of the list. Returns the id of the entry that it came from; 0: there was
 * none. */
uint32_t ml_list_recorded(struct ml_engine *engine, const struct ml_member *member);

/* Its image has ended: do not use it any more. */
void ml_list_finish(
    struct ml_engine *engine,
    struct ml_unrecorded *one,
    enum ml_member_event event,
    const struct ml_ending *ending
);

/* Its process has ended: do not use it any more. */
void ml_list_end(
    struct ml_engine *engine, struct ml_unrecorded *one, const struct ml_ending *ending
);

/* End it if its process is gone. False: the process is still there. */
bool ml_list_end_gone(struct ml_engine *engine, struct ml_unrecorded *one);

/* Plan the next reading of its memory. Readings become rarer. */
void ml_list_look_later(struct ml_unrecorded *one, uint64_t now_ns);

/* Plan the next walk after that time at the latest. */
void ml_list_walk_after(struct ml_engine *engine, double after_s);

/* Something has happened in the tree: walk soon, if there are no events. */
void ml_list_walk_soon(struct ml_engine *engine);

#endif
