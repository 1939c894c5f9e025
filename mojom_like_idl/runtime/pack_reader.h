/* Strict msgpack, one item at a time. Room: mojom_like_idl, private. Context: any; no allocation.
 *
 * One rule: an item in any but its shortest form is ML_PEER_FORM, of another type ML_PEER_TYPE. On
 * any status but ML_OK the reader has not moved and nothing was written to out_*. */
#ifndef MEMLOG_MOJOM_LIKE_IDL_RUNTIME_PACK_READER_H
#define MEMLOG_MOJOM_LIKE_IDL_RUNTIME_PACK_READER_H

#include <stdbool.h>

#include "ipc/wire/reader.h"

/* Is a nil next? Then it is skipped. Errors: ML_PEER_SHORT. */
ML_NODISCARD enum ml_status ml_pack_reader_nil(struct ml_reader *r, bool *out_was_nil);

ML_NODISCARD enum ml_status ml_pack_reader_bool(struct ml_reader *r, bool *out_value);

/* A whole number. Errors: also ML_PEER_RANGE for one that the out type cannot hold. */
ML_NODISCARD enum ml_status ml_pack_reader_uint(struct ml_reader *r, uint64_t *out_value);
ML_NODISCARD enum ml_status ml_pack_reader_int(struct ml_reader *r, int64_t *out_value);

/* Errors: also ML_PEER_FORM for a NaN, which has many forms. */
ML_NODISCARD enum ml_status ml_pack_reader_float(struct ml_reader *r, float *out_value);
ML_NODISCARD enum ml_status ml_pack_reader_double(struct ml_reader *r, double *out_value);

/* Bytes in place. Errors: also ML_PEER_LIMIT over max_bytes. Owner: they are the reader's. */
ML_NODISCARD enum ml_status ml_pack_reader_str(
    struct ml_reader *r, uint32_t max_bytes, const uint8_t **out_bytes, uint32_t *out_count_bytes
);
ML_NODISCARD enum ml_status ml_pack_reader_bin(
    struct ml_reader *r, uint32_t max_bytes, const uint8_t **out_bytes, uint32_t *out_count_bytes
);

/* The head of an array or a map: how many entries follow. Errors: also ML_PEER_SHORT when fewer
 * bytes are left than the entries need at least, so a count never costs more memory than the bytes
 * it came in. */
ML_NODISCARD enum ml_status ml_pack_reader_array(struct ml_reader *r, uint32_t *out_count);
ML_NODISCARD enum ml_status ml_pack_reader_map(struct ml_reader *r, uint32_t *out_count);

#endif
