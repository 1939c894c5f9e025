/* An interpreter for seccomp filters. Room: client (private; :filter). Context: any; pure.
 *
 * One rule: the result is the kernel's; a program that the kernel would refuse still terminates. */
#ifndef MEMLOG_CLIENT_STARTUP_FILTER_H
#define MEMLOG_CLIENT_STARTUP_FILTER_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>

/* The filter's result for that call, a SECCOMP_RET_*; SECCOMP_RET_KILL_PROCESS for a filter that
 * the kernel would refuse. */
uint32_t
ml_filter_answer(const struct sock_filter *filter, size_t count, const struct seccomp_data *call);

#endif
