/* The exact packets of a dump: everything that a snapshot holds, for our own reader. Room: service.
 * Context: one thread.
 *
 * One rule: what is read back equals the snapshot to the byte. */
#ifndef MEMLOG_SERVICE_DUMP_EXACT_H
#define MEMLOG_SERVICE_DUMP_EXACT_H

#include "service/dump/packet.h"
#include "service/snapshot/snapshot.h"

/* The run, in the file's first packet: with the clocks, which must come first, too. */
void ml_dump_exact_run(struct ml_dump_packet *packet, const struct ml_snapshot *snapshot);

/* The heads of all processes, gaps, what was not profiled. Small: a file cut soon after still tells
 * who was there. */
void ml_dump_exact_heads(struct ml_dump_packet *packet, const struct ml_snapshot *snapshot);

/* The tree's series. */
void ml_dump_exact_tree(struct ml_dump_packet *packet, const struct ml_snapshot *snapshot);

/* One process's tables and series. */
void ml_dump_exact_tables(struct ml_dump_packet *packet, const struct ml_snapshot_process *process);

/* The command line of a process that has no profile; its head is among the others'. */
void ml_dump_exact_unrecorded(
    struct ml_dump_packet *packet, const struct memlog_service_unrecorded *one
);

/* The mark that the file is whole. */
void ml_dump_exact_end(struct ml_dump_packet *packet);

#endif
