/* Decodes untrusted bytes into numbers. Room: ipc (:wire). Context: any thread; the reader is its
 * owner's.
 *
 * One rule: on any status but ML_OK the reader has not moved and nothing was written to out_*. */
#ifndef MEMLOG_IPC_WIRE_READER_H
#define MEMLOG_IPC_WIRE_READER_H

#include <stddef.h>
#include <stdint.h>

#include "ipc/wire/ml_status.h"

struct ml_reader {
    const uint8_t *pos; /* next byte */
    const uint8_t *end; /* one behind the last byte */
};

/* A reader over [data, data + count_bytes). The bytes are borrowed and must not change under it:
 * copy shared memory first. */
struct ml_reader ml_reader_over(const void *data, size_t count_bytes);

/* Bytes left. */
size_t ml_reader_left(const struct ml_reader *r);

/* Fixed-width little-endian numbers. Errors: ML_PEER_SHORT. */
ML_NODISCARD enum ml_status ml_reader_u8(struct ml_reader *r, uint8_t *out_value);
ML_NODISCARD enum ml_status ml_reader_u16(struct ml_reader *r, uint16_t *out_value);
ML_NODISCARD enum ml_status ml_reader_u32(struct ml_reader *r, uint32_t *out_value);
ML_NODISCARD enum ml_status ml_reader_u64(struct ml_reader *r, uint64_t *out_value);

/* An unsigned number of 1..10 bytes, 7 bits each, least significant group first, top bit set on all
 * but the last.
 *
 * Errors: ML_PEER_SHORT; ML_PEER_FORM for a non-minimal form (a last byte of 0 behind others);
 *         ML_PEER_RANGE for more than 64 bits. */
ML_NODISCARD enum ml_status ml_reader_varint(struct ml_reader *r, uint64_t *out_value);

/* count_bytes bytes in place. Errors: ML_PEER_SHORT. Owner: *out_bytes points into the reader's
 * data. */
ML_NODISCARD enum ml_status
ml_reader_bytes(struct ml_reader *r, size_t count_bytes, const uint8_t **out_bytes);

/* A varint length, then that many bytes. Errors: ML_PEER_LIMIT over max_bytes; as ml_reader_varint
 * and _bytes. */
ML_NODISCARD enum ml_status ml_reader_blob(
    struct ml_reader *r, size_t max_bytes, const uint8_t **out_bytes, size_t *out_count_bytes
);

/* ML_PEER_TRAILING if bytes are left. */
ML_NODISCARD enum ml_status ml_reader_finish(const struct ml_reader *r);

#endif
