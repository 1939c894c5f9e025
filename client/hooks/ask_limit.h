/* Limits how often a program may send requests to the host. Room: client (private). Context: any
 * thread, a signal handler too; no lock, no system call.
 *
 * One rule: a program that asks in a loop costs the host next to nothing: most of its calls are
 * only counted here. */
#ifndef MEMLOG_CLIENT_HOOKS_ASK_LIMIT_H
#define MEMLOG_CLIENT_HOOKS_ASK_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

/* A call in 100 ms, and eight of them at once after a silence. */
enum { ML_ASK_INTERVAL_NS = 100000000, ML_ASK_BURST = 8 };

/* All zero: no request yet. */
struct ml_ask_limit {
    _Atomic uint64_t asked_to_ns; /* the quota is used up to this time */
    _Atomic uint32_t passed_over; /* refused since the last permitted one */
};

/* Whether a request is permitted now, on a monotonic clock; else it is counted. */
bool ml_ask_may(struct ml_ask_limit *limit, uint64_t now_ns);

#endif
