/* A seccomp filter, run here. Room: client (private; :filter). Context: any; pure.
 *
 * One rule: it says what the kernel would say; what the kernel would not have taken ends all the
 * same. */
#ifndef MEMLOG_CLIENT_STARTUP_FILTER_H
#define MEMLOG_CLIENT_STARTUP_FILTER_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>

/* What the filter answers to that call, a SECCOMP_RET_*; SECCOMP_RET_KILL_PROCESS to what is no
 * filter that the kernel would take. */
uint32_t
ml_filter_answer(const struct sock_filter *filter, size_t count, const struct seccomp_data *call);

#endif
