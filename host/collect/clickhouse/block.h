/* A block of rows in ClickHouse's format Native. Room: host. Context: any; pure.
 *
 * One rule: a block says how many rows it has before it has them, so a server that gets a part of
 * it stores nothing. Rows in RowBinary, cut between two of them, are stored as if they were all.
 *
 * Source: ClickHouse's documentation of Native; all integers little-endian. */
#ifndef MEMLOG_HOST_COLLECT_CLICKHOUSE_BLOCK_H
#define MEMLOG_HOST_COLLECT_CLICKHOUSE_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Rows of one insert at most: above 1,048,576 a server makes more than one block of it. */
enum { ML_CLICK_ROWS_MAX = 1000000 };

enum ml_click_type {
    ML_CLICK_UINT8,
    ML_CLICK_DATE, /* days since 1970 */
    ML_CLICK_INT32,
    ML_CLICK_UINT32,
    ML_CLICK_INT64,
    ML_CLICK_UINT64,
    ML_CLICK_STRING,
    ML_CLICK_INT64S /* an array */
};

struct ml_click_column {
    const char *name; /* NULL behind the last */
    enum ml_click_type type;
};

struct ml_click_bytes {
    uint8_t *data;
    size_t count, capacity;
};

enum { ML_CLICK_COLUMNS_MAX = 32 };

/* Owner: ml_click_block_fini. */
struct ml_click_block {
    const struct ml_click_column *columns;
    size_t columns_count, column; /* where the next value goes */
    uint64_t rows;
    struct ml_click_bytes bytes[ML_CLICK_COLUMNS_MAX];
    struct ml_click_bytes ends[ML_CLICK_COLUMNS_MAX]; /* of arrays */
    uint64_t elements[ML_CLICK_COLUMNS_MAX];
    bool is_failed; /* memory ran out */
};

void ml_click_block_init(struct ml_click_block *block, const struct ml_click_column *columns);
void ml_click_block_fini(struct ml_click_block *block);

/* Values come by row, one for each column in their order. */
void ml_click_put_number(struct ml_click_block *block, uint64_t value);
void ml_click_put_text(struct ml_click_block *block, const char *text, size_t count);
void ml_click_put_ids(struct ml_click_block *block, const int64_t *ids, size_t count);

/* All of it, as it is sent. False: memory ran out. Owner of out->data: free. */
bool ml_click_block_whole(const struct ml_click_block *block, struct ml_click_bytes *out);

#endif
