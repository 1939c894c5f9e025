/* The seccomp filters that watch a process's threads, and what they say to the calls of a start.
 * Room: tracer. Context: one thread.
 *
 * One rule: a filter may kill for a call that the program itself never makes. So each call is held
 * against each filter before it is made. Filters can be read with root's rights alone
 * (CAP_SYS_ADMIN); without them whoever is watched is refused. */
#ifndef MEMLOG_TRACER_FILTERS_H
#define MEMLOG_TRACER_FILTERS_H

#include <stdbool.h>

#include "base/error_message.h"
#include "ipc/attach/block.h"
#include "tracer/process/threads.h"

/* Whether any thread of the process is watched now. */
bool ml_filters_watch(pid_t pid);

/* A stop interrupts waits, and the kernel goes on with some by a call of its own, restart_syscall.
 * Where a filter of a stopped thread does not let that through, its wait is to begin anew. To be
 * called whenever threads of a process that is watched have been stopped. */
void ml_filters_mend_waits(const struct ml_threads *stopped);

/* Those of all threads, which are stopped. False, with an error message: they cannot be read, or
 * are more than there is room for. */
bool ml_filters_read(
    const struct ml_threads *stopped,
    struct ml_attach_filters *out_filters,
    struct ml_error_message *error
);

/* Whether all stopped threads have these and no others. */
bool ml_filters_are(const struct ml_threads *stopped, const struct ml_attach_filters *filters);

/* Whether they let through what a start needs; what recording needs, the start itself looks at.
 * False, with an error message that names the call. */
bool ml_filters_permit(const struct ml_attach_filters *filters, struct ml_error_message *error);

/* Have the kernel not ask them for a stopped thread's calls while it is traced. Where a tracer dies
 * they are asked again: nothing may depend on it but what fails harmlessly. */
void ml_filters_suspend(const struct ml_traced *thread);

#endif
