/* A process's pipe, staging and control page. Room: host. Context: the host's one thread.
 *
 * One rule: whoever makes one pays for the pipe out of its user's budget
 * (host/sockets/pipe_budget.h). */
#ifndef MEMLOG_HOST_SOCKETS_ENDPOINT_H
#define MEMLOG_HOST_SOCKETS_ENDPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "host/sockets/pipe_budget.h"
#include "ipc/wire/lease.h"
#include "ipc/wire/ml_status.h"
#include "ipc/wire/staging.h"

/* -1 in a descriptor: there is none (any more). */
struct ml_endpoint {
    int pipe_read_fd; /* the host's spare end */
    int staging_fd;
    int control_fd;
    uint32_t pipe_bytes;
    uid_t pipe_uid;                 /* whose quota it is counted in */
    struct ml_control_page control; /* as last written */
};

/* The lease of a run, which each of its processes gets with its endpoint (ipc/wire/lease.h).
 *
 * Errors: -1, errno says why.
 * Owner:  the caller closes it. */
int ml_endpoint_lease(void);

/* Put out whoever holds it, before the host stamps something; whether somebody has come since. */
void ml_endpoint_lease_end(int lease_fd);
bool ml_endpoint_lease_held(int lease_fd);

/* All -1. */
void ml_endpoint_init(struct ml_endpoint *endpoint);

/* Make one for a process that has said Hello.
 *
 * Errors: ML_ENV_SYSTEM, errno says why.
 * Owner:  close with ml_endpoint_close; *out_write_fd, the process's end of the pipe, is the
 *         caller's to send and close. Both ends are O_NONBLOCK and close-on-exec. */
ML_NODISCARD enum ml_status ml_endpoint_make(
    struct ml_endpoint *endpoint,
    struct ml_pipe_budget *budget,
    uint32_t staging_slots,
    const struct ml_control_page *control,
    int *out_write_fd
);

/* Take over what a forked child has made, and perhaps keeps a copy of. The channel has checked the
 * kinds; here: that the pipe is the kernel's own and can be read, by a description that is ours
 * alone (what is read of it never waits, whatever the child does to its own), and that the memfds
 * are plain ones that can be written. `uid` is the child's, by the kernel's word.
 *
 * Errors: ML_PEER_HANDLE; ML_ENV_REFUSED for a pipe of another user's that may not be opened anew;
 *         ML_ENV_SYSTEM. Then all three are closed.
 * Owner:  the three are taken. */
ML_NODISCARD enum ml_status ml_endpoint_adopt(
    struct ml_endpoint *endpoint,
    struct ml_pipe_budget *budget,
    uid_t uid,
    int take_pipe_fd,
    int take_staging_fd,
    int take_control_fd
);

/* Say something new in the control page: everything of `control` but magic, version, clock and
 * generation, which grows by one. Errors: ML_ENV_SYSTEM. */
ML_NODISCARD enum ml_status
ml_endpoint_control(struct ml_endpoint *endpoint, const struct ml_control_page *control);

/* Tell the process how large its forked children make their pipes at first. Nobody need look at the
 * page anew for that: the generation stays. */
void ml_endpoint_fork_pipe(struct ml_endpoint *endpoint, uint32_t bytes);

/* Tell it whether its forked children record until they are judged; as above. */
void ml_endpoint_fork_enabled(struct ml_endpoint *endpoint, bool enabled);

/* What the process has left there of a program that it started unrecorded: ml_left_out, which is
 * its word alone. 0: nothing, or it is closed. */
uint64_t ml_endpoint_left_out(const struct ml_endpoint *endpoint);

/* Close what is open and give the pipe's bytes back. */
void ml_endpoint_close(struct ml_endpoint *endpoint, struct ml_pipe_budget *budget);

#endif
