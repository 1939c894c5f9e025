/* Writes a snapshot as a dump file. Room: service. Context: the service's one thread, inside the
 * sandbox: nothing is opened, and bytes leave through the sink alone.
 *
 * One rule: memory stays bounded. Packets are made in a buffer of ML_DUMP_PACKET_MAX_BYTES. Beside
 * it there are a few arrays with a number for each stack node of one process.
 *
 * The file is a Perfetto trace, ipc/trace/trace.proto: standard packets for Perfetto's own tools,
 * and exact ones for the analyzer. A file that is cut anywhere opens with what it has. */
#ifndef MEMLOG_SERVICE_DUMP_WRITER_H
#define MEMLOG_SERVICE_DUMP_WRITER_H

#include <stdint.h>

#include "ipc/wire/ml_status.h"
#include "service/dump/sink.h"
#include "service/snapshot/snapshot.h"

/* Write the whole dump. If the snapshot has not everything, only the exact packets.
 *
 * Errors: those of the sink; ML_ENV_MEMORY; ML_BUG_CONTRACT for a snapshot whose nodes are not
 * sorted by id. What was written by then is a readable file.
 * Owner:  snapshot and sink borrowed. *out_written_bytes is set in any case. */
ML_NODISCARD enum ml_status ml_dump_write(
    const struct ml_snapshot *snapshot, const struct ml_dump_sink *sink, uint64_t *out_written_bytes
);

#endif
