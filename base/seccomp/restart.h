/* Waits of threads that a seccomp filter watches, at a stop by their tracer. Room: base. Context:
 * one thread of the tracer, whose thread it is, and which is stopped. Allocates nothing.
 *
 * One rule: a stop kills nobody. It interrupts waits, and the kernel goes on with some by a call of
 * its own, restart_syscall. A filter that does not know that call kills for it. */
#ifndef MEMLOG_BASE_SECCOMP_RESTART_H
#define MEMLOG_BASE_SECCOMP_RESTART_H

#include <stdbool.h>
#include <sys/types.h>

/* Where a filter of the thread does not let restart_syscall through, or cannot be read, and the
 * thread was to go on by it, its wait is to begin anew. */
void ml_seccomp_mend_wait(pid_t tid);

/* Whether the kernel lets this process read the filters of others. */
bool ml_seccomp_filters_are_readable(void);

#endif
