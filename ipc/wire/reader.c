#include "ipc/wire/reader.h"

#include <string.h>

struct ml_reader ml_reader_over(const void *data, size_t count_bytes) {
    const uint8_t *bytes = data;
    return (struct ml_reader){.pos = bytes, .end = bytes + count_bytes};
}

size_t ml_reader_left(const struct ml_reader *r) {
    return (size_t)(r->end - r->pos);
}

/* The wire is little-endian and so is every machine memlog runs on; a memcpy is then the whole
 * conversion. */
_Static_assert(
    __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the readers copy little-endian bytes as they are"
);

static enum ml_status read_fixed(struct ml_reader *r, void *out_value, size_t width_bytes) {
    if (ml_reader_left(r) < width_bytes) {
        return ML_PEER_SHORT;
    }
    memcpy(out_value, r->pos, width_bytes);
    r->pos += width_bytes;
    return ML_OK;
}

enum ml_status ml_reader_u8(struct ml_reader *r, uint8_t *out_value) {
    return read_fixed(r, out_value, sizeof(*out_value));
}

enum ml_status ml_reader_u16(struct ml_reader *r, uint16_t *out_value) {
    return read_fixed(r, out_value, sizeof(*out_value));
}

enum ml_status ml_reader_u32(struct ml_reader *r, uint32_t *out_value) {
    return read_fixed(r, out_value, sizeof(*out_value));
}

enum ml_status ml_reader_u64(struct ml_reader *r, uint64_t *out_value) {
    return read_fixed(r, out_value, sizeof(*out_value));
}

enum ml_status ml_reader_varint(struct ml_reader *r, uint64_t *out_value) {
    const size_t left = ml_reader_left(r);
    uint64_t value = 0;
    for (unsigned i = 0; i < 10; i++) {
        if (i >= left) {
            return ML_PEER_SHORT;
        }
        const uint8_t byte = r->pos[i];
        if (i == 9 && byte > 1) {
            return ML_PEER_RANGE;
        }
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if ((byte & 0x80) == 0) {
            if (byte == 0 && i > 0) {
                return ML_PEER_FORM;
            }
            r->pos += i + 1;
            *out_value = value;
            return ML_OK;
        }
    }
    return ML_PEER_RANGE;
}

enum ml_status ml_reader_bytes(struct ml_reader *r, size_t count_bytes, const uint8_t **out_bytes) {
    if (ml_reader_left(r) < count_bytes) {
        return ML_PEER_SHORT;
    }
    *out_bytes = r->pos;
    r->pos += count_bytes;
    return ML_OK;
}

enum ml_status ml_reader_blob(
    struct ml_reader *r, size_t max_bytes, const uint8_t **out_bytes, size_t *out_count_bytes
) {
    const uint8_t *start = r->pos;
    uint64_t length = 0;
    enum ml_status status = ml_reader_varint(r, &length);
    if (status == ML_OK && length > max_bytes) {
        status = ML_PEER_LIMIT;
    }
    if (status == ML_OK) {
        status = ml_reader_bytes(r, (size_t)length, out_bytes);
    }
    if (status != ML_OK) {
        r->pos = start;
        return status;
    }
    *out_count_bytes = (size_t)length;
    return ML_OK;
}

enum ml_status ml_reader_finish(const struct ml_reader *r) {
    return r->pos == r->end ? ML_OK : ML_PEER_TRAILING;
}
