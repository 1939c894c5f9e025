/* memlog-analyzer, started once for each thing that the page wants of a dump, or that a dump is to
 * have: the host parses none. Room: host. Context: the host's one thread.
 *
 * One rule: one analyzer runs at a time, at low priority, for a bounded time. Its output is handed
 * on as a file, unread. It is no child of the host's, whose program may wait for its own
 * (base/watched.h). */
#ifndef MEMLOG_HOST_ANALYSIS_ANALYZER_H
#define MEMLOG_HOST_ANALYSIS_ANALYZER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/process/launcher.h"
#include "ipc/wire/ml_status.h"

struct ev_loop;
struct ml_analyzer;

/* Jobs that may wait, arguments of a job, and the time for a job. */
enum { ML_ANALYZER_JOBS_MAX = 32, ML_ANALYZER_ARGUMENTS_MAX = 12, ML_ANALYZER_TIMEOUT_S = 120 };

/* The paths of the descriptors that it is given, and how many more it may be given. */
#define ML_ANALYZER_FIRST_PATH "/proc/self/fd/3"
#define ML_ANALYZER_SECOND_PATH "/proc/self/fd/4"
enum { ML_ANALYZER_MORE_MAX = 32 };

struct ml_analyzer_setup {
    struct ev_loop *loop;
    const char *path; /* of the program; borrowed for the analyzer's life */
    const struct ml_inherited *inherited;
    /* A process that is no part of the program was started. May be NULL. */
    void (*on_helper)(void *context, pid_t pid);
    void *context;
    unsigned timeout_s; /* for a job; 0: ML_ANALYZER_TIMEOUT_S */
};

enum ml_analyzer_verdict {
    ML_ANALYZER_MADE,
    ML_ANALYZER_LACKING, /* the dump has not what was asked for */
    ML_ANALYZER_FAILED
};

/* How a job ended. The callee closes `file_fd`, which holds file_bytes of output. -1: there is
 * none, and `trouble` says why. */
typedef void ml_analyzer_done(
    void *context,
    enum ml_analyzer_verdict verdict,
    int take_file_fd,
    uint64_t file_bytes,
    const char *trouble
);

struct ml_analyzer_job {
    const char *arguments[ML_ANALYZER_ARGUMENTS_MAX + 1]; /* the command first, NULL-terminated */
    int first_fd;  /* ML_ANALYZER_FIRST_PATH; borrowed until ml_analyzer_start returns; -1: none */
    int second_fd; /* ML_ANALYZER_SECOND_PATH, likewise */
    const int *more_fds; /* from ML_WATCHED_FD + 1 on, likewise */
    size_t more_count;   /* ML_ANALYZER_MORE_MAX at most */
    ml_analyzer_done *on_done;
    void *context;
};

/* It runs in the environment of now, without what the loader reads. Errors: ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status
ml_analyzer_open(const struct ml_analyzer_setup *setup, struct ml_analyzer **out_analyzer);

/* End the running job; every job's on_done is called. NULL is allowed. */
void ml_analyzer_close(struct ml_analyzer *take_analyzer);

/* Queue a job. Everything but the context is copied. `on_done` is called once, perhaps before this
 * returns. */
void ml_analyzer_start(struct ml_analyzer *analyzer, const struct ml_analyzer_job *job);

#endif
