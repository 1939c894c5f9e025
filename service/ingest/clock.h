/* The process tree's one clock, as the service reads it. Room: service. Context: one thread; no
 * state but what configure set.
 *
 * One rule: ticks are compared with ticks of the same clock only; nanoseconds become ticks here. */
#ifndef MEMLOG_SERVICE_INGEST_CLOCK_H
#define MEMLOG_SERVICE_INGEST_CLOCK_H

#include <stdint.h>

#include "ipc/wire/event.h"
#include "service/snapshot/snapshot.h"

struct ml_clock_source {
    enum ml_clock kind;
    struct ml_timestamp start; /* one moment on both clocks, to measure the tick rate */
};

/* Now, in ticks. A machine without a TSC answers CLOCK_MONOTONIC for both kinds. */
uint64_t ml_clock_ticks(const struct ml_clock_source *clock);

/* At least as many ticks as these nanoseconds have. Counted from the source's start; within its
 * first millisecond an upper bound. */
uint64_t ml_clock_ticks_of_ns(const struct ml_clock_source *clock, uint64_t ns);

uint64_t ml_clock_monotonic_ns(void);

#endif
