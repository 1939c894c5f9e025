/* Noticing that a process has ended: by its pidfd, or where the kernel gives none by looking. Room:
 * host. */
#ifndef MEMLOG_HOST_ENGINE_MEMBERS_WATCH_H
#define MEMLOG_HOST_ENGINE_MEMBERS_WATCH_H

#include <ev.h>

#include "host/engine/state.h"

/* A child that was reaped before its report was read. */
struct ml_reaped {
    pid_t pid;       /* 0: none */
    bool is_unknown; /* it is in no list */
    struct ml_ending ending;
};

enum { ML_REAPED_MAX = 256 };

struct ml_watch {
    ev_timer poll_timer;                    /* runs while some member has no pidfd */
    struct ml_reaped reaped[ML_REAPED_MAX]; /* a ring */
    uint32_t reaped_next;
    uint64_t unknown_count; /* entries that have left the ring */
};

void ml_watch_init(struct ml_engine *engine);
void ml_watch_fini(struct ml_engine *engine);

/* Watch for its end: by the sender's pidfd (-1: none; borrowed), else by a pidfd of our own, else
 * in /proc. A process that is already gone ends at once. */
void ml_member_watch(struct ml_engine *engine, struct ml_member *member, int borrowed_pidfd);

/* Whether its process has ended unnoticed. Then the member ends here. */
bool ml_member_has_ended(struct ml_engine *engine, struct ml_member *member);

/* End the image that a Hello of this pid replaces. Its id; 0: there was none. */
uint32_t ml_engine_leave_old_image(struct ml_engine *engine, pid_t pid);

/* End members without a pidfd that are gone. */
void ml_engine_poll_members(struct ml_engine *engine);

/* Keep how a child ended that is no member yet: its report may still be in the socket. */
void ml_engine_keep_ending(
    struct ml_engine *engine, pid_t pid, const struct ml_ending *ending, bool is_helper
);

/* How a process ended that is gone: by the ending that was kept, which is forgotten then, or by the
 * kernel. `pidfd` may be -1. */
struct ml_ending ml_engine_ending_of_gone(struct ml_engine *engine, pid_t pid, int pidfd);

/* Ended children that were in no list. */
uint64_t ml_engine_unknown_endings(const struct ml_engine *engine);

#endif
