/* Noticing that a process has ended: by its pidfd, or where the kernel gives none by looking. Room:
 * host. */
#ifndef MEMLOG_HOST_ENGINE_MEMBERS_WATCH_H
#define MEMLOG_HOST_ENGINE_MEMBERS_WATCH_H

#include <ev.h>

#include "host/engine/state.h"

/* A child that was reaped before it had reported itself: its report is still in the socket. */
struct ml_reaped {
    pid_t pid;       /* 0: none */
    bool is_unknown; /* no list has ever had it */
    struct ml_ending ending;
};

enum { ML_REAPED_MAX = 256 };

struct ml_watch {
    ev_timer poll_timer;                    /* some member has no pidfd */
    struct ml_reaped reaped[ML_REAPED_MAX]; /* a ring */
    uint32_t reaped_next;
    uint64_t unknown_count; /* that have left it */
};

void ml_watch_init(struct ml_engine *engine);
void ml_watch_fini(struct ml_engine *engine);

/* Notice its end, by the sender's pidfd where the kernel gave one (-1: none; borrowed), by looking
 * into /proc where there is none to be had. A process that is gone already ends at once. */
void ml_member_watch(struct ml_engine *engine, struct ml_member *member, int borrowed_pidfd);

/* Whether the process behind it has ended without our having noticed yet; then it ends here. */
bool ml_member_has_ended(struct ml_engine *engine, struct ml_member *member);

/* End the image that a Hello of this pid leaves behind. Its id; 0: there was none. */
uint32_t ml_engine_leave_old_image(struct ml_engine *engine, pid_t pid);

/* End those that have no pidfd and are gone. */
void ml_engine_poll_members(struct ml_engine *engine);

/* How a child ended that no member is known of: its report may still be in the socket. */
void ml_engine_keep_ending(
    struct ml_engine *engine, pid_t pid, const struct ml_ending *ending, bool is_helper
);

/* How a process ended that was gone when it was listed: as was kept, which is forgotten, or as the
 * kernel says. `pidfd` may be -1. */
struct ml_ending ml_engine_ending_of_gone(struct ml_engine *engine, pid_t pid, int pidfd);

/* Children that have ended, and that no list has ever had. */
uint64_t ml_engine_unknown_endings(const struct ml_engine *engine);

#endif
