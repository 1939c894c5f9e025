#include "host/collect/clickhouse/block.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    size_t bytes; /* of a number */
} types[] = {
    [ML_CLICK_UINT8] = {"UInt8", 1},
    [ML_CLICK_DATE] = {"Date", 2},
    [ML_CLICK_INT32] = {"Int32", 4},
    [ML_CLICK_UINT32] = {"UInt32", 4},
    [ML_CLICK_INT64] = {"Int64", 8},
    [ML_CLICK_UINT64] = {"UInt64", 8},
    [ML_CLICK_STRING] = {"String", 0},
    [ML_CLICK_INT64S] = {"Array(Int64)", 8},
};

static bool put(struct ml_click_bytes *to, const void *bytes, size_t count) {
    if (to->capacity - to->count < count) {
        size_t wanted = to->capacity > 0 ? to->capacity : 1024;
        while (wanted - to->count < count) {
            wanted *= 2;
        }
        uint8_t *grown = realloc(to->data, wanted);
        if (grown == NULL) {
            return false;
        }
        to->data = grown;
        to->capacity = wanted;
    }
    if (count > 0) {
        memcpy(to->data + to->count, bytes, count);
    }
    to->count += count;
    return true;
}

/* Seven bits a byte, the lowest first. */
static bool put_count(struct ml_click_bytes *to, uint64_t number) {
    enum { LOW_BITS = 0x7f, MORE = 0x80, BITS = 7, BYTES_MAX = 10 };
    uint8_t bytes[BYTES_MAX];
    size_t count = 0;
    while (number > LOW_BITS) {
        bytes[count++] = (uint8_t)((number & LOW_BITS) | MORE);
        number >>= BITS;
    }
    bytes[count++] = (uint8_t)number;
    return put(to, bytes, count);
}

static bool put_text(struct ml_click_bytes *to, const char *text, size_t count) {
    return put_count(to, count) && put(to, text, count);
}

/* ---- by row */

void ml_click_block_init(struct ml_click_block *block, const struct ml_click_column *columns) {
    *block = (struct ml_click_block){.columns = columns};
    while (columns[block->columns_count].name != NULL) {
        block->columns_count++;
    }
    assert(block->columns_count <= ML_CLICK_COLUMNS_MAX);
}

void ml_click_block_fini(struct ml_click_block *block) {
    for (size_t i = 0; i < block->columns_count; i++) {
        free(block->bytes[i].data);
        free(block->ends[i].data);
    }
    *block = (struct ml_click_block){.columns = NULL};
}

static void next_column(struct ml_click_block *block, bool done) {
    block->is_failed = block->is_failed || !done;
    block->column++;
    if (block->column == block->columns_count) {
        block->column = 0;
        block->rows++;
    }
}

void ml_click_put_number(struct ml_click_block *block, uint64_t value) {
    const enum ml_click_type type = block->columns[block->column].type;
    assert(type < ML_CLICK_STRING);
    next_column(block, put(&block->bytes[block->column], &value, types[type].bytes));
}

void ml_click_put_text(struct ml_click_block *block, const char *text, size_t count) {
    assert(block->columns[block->column].type == ML_CLICK_STRING);
    next_column(block, put_text(&block->bytes[block->column], text, count));
}

void ml_click_put_ids(struct ml_click_block *block, const int64_t *ids, size_t count) {
    const size_t column = block->column;
    assert(block->columns[column].type == ML_CLICK_INT64S);
    block->elements[column] += count;
    const bool done = put(&block->bytes[column], ids, count * sizeof(*ids)) &&
                      put(&block->ends[column], &block->elements[column], sizeof(uint64_t));
    next_column(block, done);
}

/* ---- by column */

bool ml_click_block_whole(const struct ml_click_block *block, struct ml_click_bytes *out) {
    *out = (struct ml_click_bytes){.data = NULL};
    assert(block->column == 0);
    bool done =
        !block->is_failed && put_count(out, block->columns_count) && put_count(out, block->rows);
    for (size_t i = 0; done && i < block->columns_count; i++) {
        const char *name = block->columns[i].name;
        const char *type = types[block->columns[i].type].name;
        done = put_text(out, name, strlen(name)) && put_text(out, type, strlen(type)) &&
               put(out, block->ends[i].data, block->ends[i].count) &&
               put(out, block->bytes[i].data, block->bytes[i].count);
    }
    if (!done) {
        free(out->data);
        *out = (struct ml_click_bytes){.data = NULL};
    }
    return done;
}
