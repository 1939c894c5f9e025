/* A snapshot, written as a dump file. Room: service. Context: the service's one thread, inside the
 * sandbox: nothing is opened, bytes leave through the sink alone.
 *
 * One rule: memory stays bounded. Packets are put together in a buffer of
 * ML_DUMP_PACKET_MAX_BYTES; besides, a few arrays with a number for each stack node of one process.
 *
 * The file is a Perfetto trace, ipc/trace/trace.proto: standard packets for Perfetto's own tools,
 * and our exact ones, from which the analyzer reads. A file cut anywhere opens with what it has. */
#ifndef MEMLOG_SERVICE_DUMP_WRITER_H
#define MEMLOG_SERVICE_DUMP_WRITER_H

#include <stdint.h>

#include "ipc/wire/ml_status.h"
#include "service/dump/sink.h"
#include "service/snapshot/snapshot.h"

/* Write the whole dump; of a snapshot that is not of everything, our exact packets alone.
 *
 * Errors: what the sink answers; ML_ENV_MEMORY; ML_BUG_CONTRACT for a snapshot whose nodes are not
 *         sorted by id. What was written before stays a readable file.
 * Owner:  snapshot and sink borrowed. *out_written_bytes is set on every answer. */
ML_NODISCARD enum ml_status ml_dump_write(
    const struct ml_snapshot *snapshot, const struct ml_dump_sink *sink, uint64_t *out_written_bytes
);

#endif
