/* How much of a user's pipe quota memlog takes. Room: host. Context: the host's one thread.
 *
 * One rule: all of this host's pipes of one user take at most half of that user's quota, so that
 * other programs' pipes are neither small nor refused. The kernel counts a pipe for the real user
 * of the process that made it: the host or a forked child, which may be another user. */
#ifndef MEMLOG_HOST_SOCKETS_PIPE_BUDGET_H
#define MEMLOG_HOST_SOCKETS_PIPE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "ipc/wire/event.h"

/* 1 MiB is the most that an unprivileged process gets (/proc/sys/fs/pipe-max-size), 64 KiB what a
 * pipe has by itself, two frames the least that keeps a writer and a reader busy, one what a pipe
 * cannot be without. */
enum {
    ML_PIPE_LARGE_BYTES = 1 << 20,
    ML_PIPE_MIDDLE_BYTES = 64 << 10,
    ML_PIPE_SMALL_BYTES = 2 * ML_FRAME_MAX_BYTES,
    ML_PIPE_LEAST_BYTES = ML_FRAME_MAX_BYTES,
    ML_PIPE_USERS_MAX = 32 /* more than that share the last account */
};

#define ML_PIPE_QUOTA_FOLDER "/proc/sys/fs"

struct ml_pipe_account {
    uid_t uid;
    uint64_t used_bytes;
};

struct ml_pipe_budget {
    uint64_t limit_bytes; /* for each user; UINT64_MAX: there is no quota */
    uid_t exempt_uid;     /* whom no quota binds; valid if `exempt` */
    bool exempt;
    uint32_t accounts_count;
    struct ml_pipe_account accounts[ML_PIPE_USERS_MAX];
};

/* Half of the least of pipe-user-pages-soft and pipe-user-pages-hard in `folder`
 * (ML_PIPE_QUOTA_FOLDER but in tests), halved again for each of the `others`, hosts of the same
 * user that run already: all of them together stay below the quota. `privileged`: it binds
 * everybody but `uid`. */
void ml_pipe_budget_init(
    struct ml_pipe_budget *budget, const char *folder, uid_t uid, bool privileged, uint32_t others
);

/* Whether the quota does not hold for this process (CAP_SYS_RESOURCE, CAP_SYS_ADMIN). */
bool ml_pipe_privileged(void);

/* Give the pipe of that user the best size that the budget, and the kernel, permit, and take it
 * down. A quarter of the budget is left to pipes of 64 KiB, another to those of two frames, so that
 * the first few processes do not take all. Returns the size. */
uint32_t ml_pipe_budget_take(struct ml_pipe_budget *budget, uid_t uid, int fd);

/* The pipe is closed. */
void ml_pipe_budget_give(struct ml_pipe_budget *budget, uid_t uid, uint32_t bytes);

/* What a forked child shall make its pipe before the host has seen it: ML_PIPE_MIDDLE_BYTES, which
 * it has by itself, or ML_PIPE_SMALL_BYTES where a user has half of the budget in use. */
uint32_t ml_pipe_budget_fork_bytes(const struct ml_pipe_budget *budget);

#endif
