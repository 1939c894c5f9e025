/* Sizes and counts as people type and read them. Room: base. Context: any; no state.
 *
 * One rule: a text that is not wholly a number is refused; no prefix is accepted. A refused text
 * leaves the answer as it was. */
#ifndef MEMLOG_BASE_SIZE_H
#define MEMLOG_BASE_SIZE_H

#include <stdbool.h>
#include <stdint.h>

/* Room for any size in words, "1023.9 MiB", with its NUL. */
enum { ML_SIZE_TEXT_BYTES = 24 };

/* "4096", "64K", "1M", "2G", "3T", "64KB", "64KiB": factors of 1024, upper or lower case.
 *
 * Units:  bytes, up to 2^63 - 1.
 * Errors: false: it is no size. */
bool ml_size_read(const char *text, uint64_t *out_bytes);

/* A plain decimal number up to `max`. False: it is none. */
bool ml_count_read(const char *text, uint64_t max, uint64_t *out_count);

/* "312 B", "4.0 KiB", "1.5 GiB" into `out`. Returns `out`. */
const char *ml_size_text(uint64_t bytes, char out[ML_SIZE_TEXT_BYTES]);

#endif
