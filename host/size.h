/* Sizes and counts as people type and read them. Room: host. Context: any; no state.
 *
 * One rule: what is not wholly a number is refused, never read as far as it makes sense. */
#ifndef MEMLOG_HOST_SIZE_H
#define MEMLOG_HOST_SIZE_H

#include <stddef.h>
#include <stdint.h>

#include "ipc/ml_status.h"

/* Room for any size in words, "1023.9 MiB", with its NUL. */
enum { ML_SIZE_TEXT_BYTES = 24 };

/* "4096", "64K", "1M", "2G", "64KB", "64KiB": factors of 1024, upper or lower case.
 *
 * Units:  bytes.
 * Errors: ML_PEER_FORM not a number; ML_PEER_RANGE over 2^63 - 1. */
ML_NODISCARD enum ml_status ml_size_parse(const char *text, uint64_t *out_bytes);

/* A plain decimal number up to `max`. Errors: ML_PEER_FORM; ML_PEER_RANGE. */
ML_NODISCARD enum ml_status ml_count_parse(const char *text, uint64_t max, uint64_t *out_count);

/* "312 B", "4.0 KiB", "1.5 GiB" into `out`. Returns `out`. */
const char *ml_size_text(uint64_t bytes, char out[ML_SIZE_TEXT_BYTES]);

#endif
