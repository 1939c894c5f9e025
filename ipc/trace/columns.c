#include "ipc/trace/columns.h"

#include <string.h>

#include "ipc/wire/writer.h"

static uint64_t member_get(const struct ml_column *column, const unsigned char *row) {
    const void *member = row + column->offset;

    switch (column->width) {
    case 1:
        return *(const uint8_t *)member;
    case 2:
        return *(const uint16_t *)member;
    case 4:
        return *(const uint32_t *)member;
    default:
        return *(const uint64_t *)member;
    }
}

/* False when the value does not fit the member. The low bytes of a number come first, see
 * ipc/wire/reader.c. */
static bool member_set(const struct ml_column *column, unsigned char *row, uint64_t value) {
    memcpy(row + column->offset, &value, column->width);
    return member_get(column, row) == value;
}

/* Encode a column's values into `bytes`, which has room for all of them. Returns how many bytes
 * they take. Encoding them one by one into the stream is slow: a dump has millions. */
static size_t values_put(
    const struct ml_column *column,
    const unsigned char *rows,
    size_t row_bytes,
    size_t count,
    uint8_t *bytes
) {
    uint8_t *pos = bytes;
    uint64_t before = 0;

    for (size_t i = 0; i < count; i++) {
        uint64_t value = member_get(column, rows + i * row_bytes);
        pos = ml_put_varint(pos, column->delta ? ml_zigzag((int64_t)(value - before)) : value);
        before = value;
    }
    return (size_t)(pos - bytes);
}

static bool
is_zero(const struct ml_column *column, const unsigned char *rows, size_t row_bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (member_get(column, rows + i * row_bytes) != 0) {
            return false;
        }
    }
    return true;
}

bool ml_columns_encode(
    pb_ostream_t *stream,
    const struct ml_column *columns,
    size_t columns_count,
    const void *rows,
    size_t row_bytes,
    size_t count
) {
    uint8_t values[ML_COLUMNS_ROWS_MAX * ML_VARINT_MAX_BYTES];

    if (count > ML_COLUMNS_ROWS_MAX || !pb_encode_tag(stream, PB_WT_VARINT, ML_COLUMNS_COUNT_TAG) ||
        !pb_encode_varint(stream, count)) {
        return false;
    }
    for (size_t c = 0; c < columns_count; c++) {
        if (c > 0 && is_zero(&columns[c], rows, row_bytes, count)) {
            continue;
        }
        size_t values_bytes = values_put(&columns[c], rows, row_bytes, count, values);
        if (!pb_encode_tag(stream, PB_WT_STRING, columns[c].tag) ||
            !pb_encode_string(stream, values, values_bytes)) {
            return false;
        }
    }
    return true;
}

bool ml_columns_peek_count(const pb_istream_t *stream, size_t *out_count) {
    pb_istream_t copy = *stream;
    pb_wire_type_t wire_type = PB_WT_VARINT;
    uint32_t tag = 0;
    uint64_t count = 0;
    bool eof = false;

    if (!pb_decode_tag(&copy, &wire_type, &tag, &eof) || tag != ML_COLUMNS_COUNT_TAG ||
        wire_type != PB_WT_VARINT || !pb_decode_varint(&copy, &count) || count == 0 ||
        count > ML_COLUMNS_ROWS_MAX) {
        return false;
    }
    *out_count = (size_t)count;
    return true;
}

static bool decode_values(
    pb_istream_t *stream,
    const struct ml_column *column,
    unsigned char *rows,
    size_t row_bytes,
    size_t count
) {
    uint64_t before = 0;

    for (size_t i = 0; i < count; i++) {
        uint64_t value = 0;

        if (column->delta) {
            int64_t difference = 0;
            if (!pb_decode_svarint(stream, &difference)) {
                return false;
            }
            value = before + (uint64_t)difference;
        } else if (!pb_decode_varint(stream, &value)) {
            return false;
        }
        if (!member_set(column, rows + i * row_bytes, value)) {
            return false;
        }
        before = value;
    }
    return stream->bytes_left == 0;
}

static const struct ml_column *
column_find(const struct ml_column *columns, size_t columns_count, uint32_t tag) {
    for (size_t c = 0; c < columns_count; c++) {
        if (columns[c].tag == tag) {
            return &columns[c];
        }
    }
    return NULL;
}

static bool decode_column(
    pb_istream_t *stream, const struct ml_column *column, void *rows, size_t row_bytes, size_t count
) {
    pb_istream_t values;
    bool decoded = false;

    if (!pb_make_string_substream(stream, &values)) {
        return false;
    }
    decoded = decode_values(&values, column, rows, row_bytes, count);
    return pb_close_string_substream(stream, &values) && decoded;
}

bool ml_columns_decode(
    pb_istream_t *stream,
    const struct ml_column *columns,
    size_t columns_count,
    void *rows,
    size_t row_bytes,
    size_t count
) {
    bool first_seen = false;

    while (stream->bytes_left > 0) {
        pb_wire_type_t wire_type = PB_WT_VARINT;
        uint32_t tag = 0;
        bool eof = false;
        const struct ml_column *column = NULL;

        if (!pb_decode_tag(stream, &wire_type, &tag, &eof)) {
            return false;
        }
        column = column_find(columns, columns_count, tag);
        if (!column) {
            if (!pb_skip_field(stream, wire_type)) {
                return false;
            }
            continue;
        }
        if (wire_type != PB_WT_STRING || !decode_column(stream, column, rows, row_bytes, count)) {
            return false;
        }
        first_seen = first_seen || column == columns;
    }
    return first_seen;
}
