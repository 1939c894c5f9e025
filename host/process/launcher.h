/* Starts the program that is to be profiled. Room: host. Context: the host's one thread.
 *
 * One rule: the program finds everything as without memlog (descriptors, signal mask and
 * dispositions, limits, environment), but for LD_PRELOAD and MEMLOG_SOCKET. The client takes these
 * back before the program looks.
 *
 * Two steps, so that what needs the program's pid (the name of its folder) can still fail before
 * the program has run: fork, then release. */
#ifndef MEMLOG_HOST_PROCESS_LAUNCHER_H
#define MEMLOG_HOST_PROCESS_LAUNCHER_H

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/error_message.h"
#include "ipc/wire/ml_status.h"

/* What the host changes of itself, and gives back to every program that it starts. */
struct ml_inherited {
    sigset_t mask;
    struct sigaction on_child;
    struct rlimit descriptors;
};

/* Read how the host was started, and change nothing. */
void ml_inherited_read(struct ml_inherited *out_inherited);

/* The same, then make the host's own: SIGCHLD by default, as many descriptors as permitted. The
 * signal mask is changed by ml_signals_open. */
void ml_inherited_take(struct ml_inherited *out_inherited);

/* Give it back; between fork and exec: async-signal-safe. */
void ml_inherited_restore(const struct ml_inherited *inherited);

/* Remove what the loader reads (LD_PRELOAD, LD_LIBRARY_PATH, LD_AUDIT, ...) from an environment, in
 * place. It is meant for the program, not for memlog's own programs. Async-signal-safe. */
void ml_launcher_forget_loader(char **environment);

/* A copy of an environment without them; it stays whole while threads of the program change theirs.
 * One block, to be freed by one free(); NULL: no memory. */
char **ml_launcher_own_environment(char *const *environment);

struct ml_launch {
    char *const *argv;
    char *const *environment; /* the one the program would have had */
    const char *preload_path; /* NULL: nothing is preloaded */
    const char *socket_path;  /* of the control socket, with preload_path */
    const struct ml_inherited *inherited;
};

/* A forked child that waits for its exec. */
struct ml_launched {
    pid_t pid;
    int gate_fd;  /* closed: it goes; the child's copy reads EOF */
    int error_fd; /* the child's errno, or EOF when exec went well */
    char **environment;
};

/* Fork. Errors: ML_ENV_MEMORY, ML_ENV_SYSTEM with an error message. */
ML_NODISCARD enum ml_status ml_launcher_fork(
    const struct ml_launch *launch, struct ml_launched *out_launched, struct ml_error_message *error
);

/* Let it exec. *out_errno is 0, or why it could not (then the child has ended, unreaped). */
void ml_launcher_release(struct ml_launched *launched, int *out_errno);

/* End it before it runs anything, and reap it. */
void ml_launcher_cancel(struct ml_launched *launched);

/* The environment with our two variables; an LD_PRELOAD that is there follows ours. One block, to
 * be freed by one free(); NULL: no memory. */
char **ml_launcher_environment(
    char *const *environment, const char *preload_path, const char *socket_path
);

/* Exit codes as of env(1): 127 for a program that does not exist, else 126. */
int ml_launcher_exit_code(int exec_errno);

#endif
