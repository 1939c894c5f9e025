/* What a process streams through: its pipe, its staging, its control page. Room: host. Context: the
 * host's one thread.
 *
 * One rule: all our pipes together take at most half of what the user may have in pipes; beyond it
 * they are small. A stranger's pipe must never hang because of us. */
#ifndef MEMLOG_HOST_ENDPOINT_H
#define MEMLOG_HOST_ENDPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/ml_status.h"
#include "ipc/staging.h"

/* 1 MiB is the most that an unprivileged process gets (/proc/sys/fs/pipe-max-size), 64 KiB what a
 * pipe has by itself, two frames the least that keeps a writer and a reader busy. */
enum {
    ML_PIPE_LARGE_BYTES = 1 << 20,
    ML_PIPE_MIDDLE_BYTES = 64 << 10,
    ML_PIPE_SMALL_BYTES = 2 * ML_FRAME_MAX_BYTES
};

#define ML_PIPE_QUOTA_PATH "/proc/sys/fs/pipe-user-pages-soft"

/* What our pipes may take and take. */
struct ml_pipe_budget {
    uint64_t limit_bytes; /* UINT64_MAX: no quota holds for us */
    uint64_t used_bytes;
};

/* Half of the user's quota; no bound for those whom the kernel does not hold to it
 * (CAP_SYS_RESOURCE, CAP_SYS_ADMIN). `quota_path` is ML_PIPE_QUOTA_PATH but in tests. */
void ml_pipe_budget_init(struct ml_pipe_budget *budget, const char *quota_path, bool privileged);

/* Whether the quota does not hold for this process. */
bool ml_pipe_privileged(void);

/* -1 in a descriptor: there is none (any more). */
struct ml_endpoint {
    int pipe_read_fd; /* the host's spare end */
    int staging_fd;
    int control_fd;
    uint32_t pipe_bytes;
    struct ml_control_page control; /* as last written */
};

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

/* Take over what a forked child has made. The channel has checked the kinds; here: that the pipe
 * end can be read and the control page written.
 *
 * Errors: ML_PEER_HANDLE, then all three are closed.
 * Owner:  the three are taken. */
ML_NODISCARD enum ml_status ml_endpoint_adopt(
    struct ml_endpoint *endpoint,
    struct ml_pipe_budget *budget,
    int take_pipe_fd,
    int take_staging_fd,
    int take_control_fd
);

/* Say something new in the control page: everything of `control` but magic, version, clock and
 * generation, which grows by one. Errors: ML_ENV_SYSTEM. */
ML_NODISCARD enum ml_status
ml_endpoint_control(struct ml_endpoint *endpoint, const struct ml_control_page *control);

/* Close what is open and give the pipe's bytes back. */
void ml_endpoint_close(struct ml_endpoint *endpoint, struct ml_pipe_budget *budget);

#endif
