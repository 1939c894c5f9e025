/* What a seccomp filter that the program puts up leaves us, and its own handler of system calls.
 * Room: client (private). Context: the thread that puts it up; behind it no system call.
 *
 * One rule: a filter may kill for a call that the program itself never makes. So the filter is
 * asked, by running it here, what it would say to each of ours; where one would not be let through,
 * or would be noticed, we make none any more: the process is recorded no further, and that is
 * counted. */
#ifndef MEMLOG_CLIENT_RECORDING_SECCOMP_PROBE_H
#define MEMLOG_CLIENT_RECORDING_SECCOMP_PROBE_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>

/* The program is about to put up a filter, whatever it says: what may not be had behind it is had
 * now. Keeps errno. */
void ml_seccomp_probe_before(void);

/* The kernel has taken this filter, for this thread or for all. */
void ml_seccomp_probe_filter(const struct sock_fprog *program);

/* No call of ours is let through from now on. The kernel kills for all but read, write and the end
 * (strict mode), or hands the calls of this thread to a handler of the program's. */
void ml_seccomp_probe_closed(void);

/* What syscall(2) is asked for by the number of prctl, and that puts up a filter: as prctl does
 * (client/hooks/process.c). */
bool ml_seccomp_probe_wants(long prctl_operation);
long ml_seccomp_probe_syscall(long number, long operation, long a, long b, long c, long d);

#endif
