/* The tree's one clock, and times on all clocks. Room: host. Context: any thread.
 *
 * One rule: ticks are the TSC only where the kernel itself keeps time by it; everywhere else they
 * are CLOCK_MONOTONIC in nanoseconds. */
#ifndef MEMLOG_HOST_PROCESS_CLOCK_H
#define MEMLOG_HOST_PROCESS_CLOCK_H

#include "ipc/wire/event.h"
#include "mojom_like_idl/contracts/heap_service_mojom.h"

/* Where the kernel names its clock source. */
#define ML_CLOCK_SOURCE_PATH "/sys/devices/system/clocksource/clocksource0/current_clocksource"

/* The clock for this machine. `source_path` is ML_CLOCK_SOURCE_PATH but in tests. */
enum ml_clock ml_clock_decide(const char *source_path);

/* Now, on all clocks, within a microsecond or two of one another. */
struct memlog_service_moment ml_clock_timestamp(enum ml_clock clock);

#endif
