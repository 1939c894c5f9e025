/* The exact packets of a dump: all that a snapshot holds, for the analyzer. Room: service. Context:
 * one thread.
 *
 * One rule: what is read back equals the snapshot to the byte. */
#ifndef MEMLOG_SERVICE_DUMP_EXACT_H
#define MEMLOG_SERVICE_DUMP_EXACT_H

#include "service/dump/packet.h"
#include "service/snapshot/snapshot.h"

/* Write the run, in the file's first packet beside the clocks, which must come first as well. */
void ml_dump_exact_run(struct ml_dump_packet *packet, const struct ml_snapshot *snapshot);

/* Write the heads of all processes, gaps, and what was not profiled. They are small, so a file that
 * is cut soon after still has all processes. */
void ml_dump_exact_heads(struct ml_dump_packet *packet, const struct ml_snapshot *snapshot);

/* Write the tree's series. */
void ml_dump_exact_tree(struct ml_dump_packet *packet, const struct ml_snapshot *snapshot);

/* Write one process's tables and series. */
void ml_dump_exact_tables(struct ml_dump_packet *packet, const struct ml_snapshot_process *process);

/* Write the command line of a process without a profile; its head is among the others. */
void ml_dump_exact_unrecorded(
    struct ml_dump_packet *packet, const struct memlog_service_unrecorded *one
);

/* Write the mark that the file is whole. */
void ml_dump_exact_end(struct ml_dump_packet *packet);

#endif
