/* Rows of structs as packed columns of varints, both ways. Room: ipc (:trace). Context: any.
 *
 * One rule: a table of columns is the format; writer and reader apply the same one to structs of
 * their own (ipc/trace/tables.h). The first column is always written, so a piece has at least one
 * byte a row. */
#ifndef MEMLOG_IPC_TRACE_COLUMNS_H
#define MEMLOG_IPC_TRACE_COLUMNS_H

#include <pb_decode.h>
#include <pb_encode.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Rows of one piece. So many rows of the widest table (cells: under 192 bytes each as varints) stay
 * under 1 MiB. */
enum { ML_COLUMNS_ROWS_MAX = 4096 };

/* The field that holds the number of rows; it comes first. */
enum { ML_COLUMNS_COUNT_TAG = 1 };

struct ml_column {
    uint32_t tag;
    uint16_t offset; /* of the member in the row's struct */
    uint8_t width;   /* of the member in bytes: 1, 2, 4, 8; unsigned */
    bool delta;      /* zigzag difference to the row before; wraps at 64 bits */
};

/* A column over a member. */
#define ML_COLUMN(tag_, type_, member_, delta_)                                                    \
    {                                                                                              \
        .tag = (tag_), .offset = offsetof(type_, member_), .width = sizeof(((type_ *)0)->member_), \
        .delta = (delta_)                                                                          \
    }

/* Write count rows, at most ML_COLUMNS_ROWS_MAX. False when there are more or the stream refuses.
 * Takes 40 KiB of stack. */
bool ml_columns_encode(
    pb_ostream_t *stream,
    const struct ml_column *columns,
    size_t columns_count,
    const void *rows,
    size_t row_bytes,
    size_t count
);

/* How many rows the piece announces, without moving the caller's stream. False: it does not begin
 * with a count in 1..ML_COLUMNS_ROWS_MAX. */
bool ml_columns_peek_count(const pb_istream_t *stream, size_t *out_count);

/* Read the piece to the stream's end into `rows`, which holds `count` rows (as peeked), all bytes
 * zero. False: form, range of a member, or another number of values than rows. Columns of unknown
 * number are skipped. */
bool ml_columns_decode(
    pb_istream_t *stream,
    const struct ml_column *columns,
    size_t columns_count,
    void *rows,
    size_t row_bytes,
    size_t count
);

#endif
