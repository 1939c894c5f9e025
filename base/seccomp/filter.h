/* An interpreter for seccomp filters. Room: base (seccomp:filter). Context: any; pure.
 *
 * One rule: the result is the kernel's; a program that the kernel would refuse still terminates. */
#ifndef MEMLOG_BASE_SECCOMP_FILTER_H
#define MEMLOG_BASE_SECCOMP_FILTER_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>

/* The filter's result for that call, a SECCOMP_RET_*; SECCOMP_RET_KILL_PROCESS for a filter that
 * the kernel would refuse. */
uint32_t
ml_filter_answer(const struct sock_filter *filter, size_t count, const struct seccomp_data *call);

#endif
