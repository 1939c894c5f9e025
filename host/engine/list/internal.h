/* What list.c and events.c call of one another. Room: host (private). */
#ifndef MEMLOG_HOST_ENGINE_LIST_INTERNAL_H
#define MEMLOG_HOST_ENGINE_LIST_INTERNAL_H

#include "host/engine/state.h"

/* A process's memory is read for the first time so long after its birth. */
enum { ML_LIST_FIRST_LOOK_MS = 20 };

/* For ml_list_find: whoever has ended is not meant. */
#define ML_LIST_AT_PRESENT UINT64_MAX

/* A member, or one of the list, or neither. */
struct ml_list_somebody {
    const struct ml_member *member;
    struct ml_unrecorded *one;
    uint32_t gone_id; /* of one of the list that may be folded meanwhile; 0: of nobody */
};

/* Who was that pid at that moment (CLOCK_MONOTONIC), or is it at present. */
struct ml_list_somebody ml_list_find(struct ml_engine *engine, pid_t pid, uint64_t at_ns);

/* 0: nobody who is known. */
uint32_t ml_list_id_of(struct ml_list_somebody somebody);

/* Why it is not recorded; copied. */
void ml_list_set_reason(struct ml_unrecorded *one, const char *reason);

/* A process that is no member: `is_forked` as far as is known. NULL: no memory, or no room. */
struct ml_unrecorded *ml_list_add(
    struct ml_engine *engine,
    pid_t pid,
    pid_t parent_pid,
    struct ml_list_somebody parent,
    bool is_forked,
    uint64_t born_ns
);

/* Its image has ended; it is not to be used any more. */
void ml_list_finish(
    struct ml_engine *engine,
    struct ml_unrecorded *one,
    enum ml_member_event event,
    const struct ml_ending *ending
);

/* A fork becomes what it made its exec of; another program's image ends, and the next begins. */
void ml_list_replace(struct ml_engine *engine, struct ml_unrecorded *one);

/* End it if its process is gone. False: it is still there. */
bool ml_list_end_gone(struct ml_engine *engine, struct ml_unrecorded *one);

/* Hear of births, execs and ends from the kernel, where it tells; undone by _close_events. */
void ml_engine_list_open_events(struct ml_engine *engine);
void ml_engine_list_close_events(struct ml_engine *engine);

#endif
