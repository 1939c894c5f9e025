/* The processes that the program leaves: children, orphans, daemons. Room: host. Context: the
 * host's one thread; `memlog run` only, never a host that is linked into a program.
 *
 * One rule: the host is the subreaper of the tree, so orphans become its children. The run has
 * ended when only its own helpers are left. */
#ifndef MEMLOG_HOST_PROCESS_TREE_H
#define MEMLOG_HOST_PROCESS_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error_message.h"
#include "host/process/info.h"
#include "ipc/wire/ml_status.h"

/* Helpers of our own that may be alive at once: service, analyzer, tracers. */
enum { ML_TREE_HELPERS_MAX = 16 };

struct ml_process_tree {
    pid_t helpers[ML_TREE_HELPERS_MAX]; /* 0: free */
};

/* Become the subreaper. Errors: ML_ENV_SYSTEM with an error message. */
ML_NODISCARD enum ml_status
ml_process_tree_init(struct ml_process_tree *tree, struct ml_error_message *error);

/* A child that is ours and no part of the program; forgotten when it ends. */
void ml_process_tree_add_helper(struct ml_process_tree *tree, pid_t pid);

/* A child that has ended or stopped. */
struct ml_process_tree_event {
    pid_t pid;
    bool helper;
    bool stopped; /* not ended; by stop_signal */
    int stop_signal;
    struct ml_ending ending;
};

/* Take the next event, reaping it. False: there is none now. */
bool ml_process_tree_next(struct ml_process_tree *tree, struct ml_process_tree_event *out_event);

/* The children that are left, helpers aside: up to `capacity` pids; returns how many there are. */
size_t ml_process_tree_left(const struct ml_process_tree *tree, pid_t *out_pids, size_t capacity);

#endif
