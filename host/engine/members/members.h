/* The life of a member: added, looked at, ended. Room: host. */
#ifndef MEMLOG_HOST_ENGINE_MEMBERS_MEMBERS_H
#define MEMLOG_HOST_ENGINE_MEMBERS_MEMBERS_H

#include "host/engine/state.h"

/* Make a process that has reported itself a member. NULL: there is no room. */
struct ml_member *ml_engine_add_member(struct ml_engine *engine, pid_t pid);

/* Plan the next look. Looks become rarer. */
void ml_member_look_soon(struct ml_engine *engine, struct ml_member *member);

/* Read a member's facts in /proc, and tell the service what is new. */
void ml_member_look(struct ml_engine *engine, struct ml_member *member);

/* Whether the kernel says that its process runs another image. Then the member ends here. */
bool ml_member_check_image(struct ml_engine *engine, struct ml_member *member);

/* Hand the service the files in which the process's run-time tells of its code, as they are now. */
void ml_member_hand_code(struct ml_engine *engine, const struct ml_member *member);

/* Its process runs another image, which has not reported itself. */
void ml_member_replaced(struct ml_engine *engine, struct ml_member *member);

/* The same, where the other image is the next member. */
void ml_member_end_image(struct ml_engine *engine, struct ml_member *member);

/* Its process has ended. */
void ml_member_end_process(
    struct ml_engine *engine, struct ml_member *member, const struct ml_ending *ending
);

/* Stop its watchers and close its descriptors. */
void ml_member_release(struct ml_engine *engine, struct ml_member *member);

#endif
