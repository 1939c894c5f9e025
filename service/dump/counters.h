/* The series of one process as counter tracks, for Perfetto's UI: what is live, what was allocated,
 * and what its largest stacks hold. Room: service. Context: one thread.
 *
 * One rule: they are for looking at. What changes too little to be seen is left out, so that a
 * track has at most ML_DUMP_COUNTER_POINTS points (a stack's ML_DUMP_STACK_POINTS); all of it
 * stands in the exact packets. */
#ifndef MEMLOG_SERVICE_DUMP_COUNTERS_H
#define MEMLOG_SERVICE_DUMP_COUNTERS_H

#include <stdint.h>

#include "service/dump/packet.h"
#include "service/dump/standard.h"
#include "service/snapshot/snapshot.h"

enum {
    ML_DUMP_COUNTER_POINTS = 512,
    ML_DUMP_STACK_POINTS = 128,
    ML_DUMP_COUNTER_STACKS = 8,
    /* Less is no picture: a process of a moment. */
    ML_DUMP_COUNTER_LEAST = 3
};

/* Write those of snapshot->processes[index]. */
void ml_dump_counters(
    struct ml_dump_packet *packet,
    struct ml_dump_standard *standard,
    const struct ml_snapshot *snapshot,
    uint32_t index
);

#endif
