/* The series of one process as counter tracks for Perfetto's UI: live bytes, allocated bytes, and
 * live bytes of its largest stacks. Room: service. Context: one thread.
 *
 * One rule: the tracks are for looking at. Changes too small to be seen are left out, so that a
 * track has at most ML_DUMP_COUNTER_POINTS points (a stack's ML_DUMP_STACK_POINTS). The exact
 * packets have all points. */
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
    /* Fewer points make no picture: the process lived a moment. */
    ML_DUMP_COUNTER_LEAST = 3
};

/* Write the tracks of snapshot->processes[index]. */
void ml_dump_counters(
    struct ml_dump_packet *packet,
    struct ml_dump_standard *standard,
    const struct ml_snapshot *snapshot,
    uint32_t index
);

#endif
