/* Which of the client's system calls the program's own seccomp filter, or its own handler of system
 * calls, lets through. Room: client (private). Context: the thread that installs it; no system call
 * behind it.
 *
 * One rule: a filter may kill for a call that the program itself never makes. So the filter is run
 * here for each call of the client. If recording needs a call that it does not let through, or that
 * the program would notice, recording ends, and that is counted. */
#ifndef MEMLOG_CLIENT_STARTUP_SECCOMP_PROBE_H
#define MEMLOG_CLIENT_STARTUP_SECCOMP_PROBE_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>

/* The program is about to install a filter. Take now what the filter may forbid later. Keeps errno.
 */
void ml_seccomp_probe_before(void);

/* ML_FILTERS_* that this filter asks for where pipe and socket are these; ML_FILTERS_CLOSED: it
 * forbids what recording needs. `no_sigpipe`: the kernel takes RWF_NOSIGNAL. */
uint32_t ml_seccomp_probe_judge(
    const struct sock_fprog *program, int pipe_fd, int socket_fd, bool no_sigpipe
);

/* The kernel has installed this filter, for this thread or for all. */
void ml_seccomp_probe_filter(const struct sock_fprog *program);

/* No call of ours is let through from now on. The kernel kills for all but read, write and the end
 * (strict mode), or hands the calls of this thread to a handler of the program's. */
void ml_seccomp_probe_closed(void);

/* A call of syscall(2) with the number of prctl that installs a filter: handled as prctl is
 * (client/hooks/process.c). */
bool ml_seccomp_probe_wants(long prctl_operation);
long ml_seccomp_probe_syscall(long number, long operation, long a, long b, long c, long d);

#endif
