/* The life of a member: added, looked at, ended. Room: host. */
#ifndef MEMLOG_HOST_ENGINE_MEMBERS_MEMBERS_H
#define MEMLOG_HOST_ENGINE_MEMBERS_MEMBERS_H

#include "host/engine/state.h"

/* A process that has shown itself: make it a member. NULL: there is no room. */
struct ml_member *ml_engine_add_member(struct ml_engine *engine, pid_t pid);

/* Look at it again when its number of looks says so. */
void ml_member_look_soon(struct ml_engine *engine, struct ml_member *member);

/* Look at a member in /proc again, and tell the service what is new. */
void ml_member_look(struct ml_engine *engine, struct ml_member *member);

/* Look at its threads and its memory, and tell the service. */
void ml_member_show(struct ml_engine *engine, struct ml_member *member);

/* Whether its process has become another image, by what the kernel says; then it ends here. */
bool ml_member_check_image(struct ml_engine *engine, struct ml_member *member);

/* Its process has become another image, which has not reported itself. */
void ml_member_replaced(struct ml_engine *engine, struct ml_member *member);

/* The same, and the other image is the next member. */
void ml_member_end_image(struct ml_engine *engine, struct ml_member *member);

/* Its process has ended, in that way. */
void ml_member_end_process(
    struct ml_engine *engine, struct ml_member *member, const struct ml_ending *ending
);

/* Stop its watchers, close what it has open. */
void ml_member_release(struct ml_engine *engine, struct ml_member *member);

#endif
