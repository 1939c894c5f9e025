#include "mojom_like_idl/runtime/pack_reader.h"

#include <string.h>

/* First bytes, as the msgpack specification numbers them. */
enum {
    FIXMAP = 0x80,
    FIXARRAY = 0x90,
    FIXSTR = 0xa0,
    NIL = 0xc0,
    FALSE = 0xc2,
    TRUE = 0xc3,
    BIN8 = 0xc4,
    FLOAT32 = 0xca,
    FLOAT64 = 0xcb,
    UINT8 = 0xcc,
    INT8 = 0xd0,
    STR8 = 0xd9,
    ARRAY16 = 0xdc,
    ARRAY32 = 0xdd,
    MAP16 = 0xde,
    MAP32 = 0xdf,
    NEGATIVE_FIXINT = 0xe0
};

/* msgpack is big-endian. */
static enum ml_status read_big(struct ml_reader *r, unsigned width_bytes, uint64_t *out_value) {
    uint64_t value = 0;
    for (unsigned i = 0; i < width_bytes; i++) {
        uint8_t byte = 0;
        const enum ml_status status = ml_reader_u8(r, &byte);
        if (status != ML_OK) {
            return status;
        }
        value = value << 8 | byte;
    }
    *out_value = value;
    return ML_OK;
}

static enum ml_status peek(const struct ml_reader *r, uint8_t *out_tag) {
    struct ml_reader copy = *r;
    return ml_reader_u8(&copy, out_tag);
}

enum ml_status ml_pack_reader_nil(struct ml_reader *r, bool *out_was_nil) {
    uint8_t tag = 0;
    const enum ml_status status = peek(r, &tag);
    if (status != ML_OK) {
        return status;
    }
    *out_was_nil = tag == NIL;
    if (tag == NIL) {
        r->pos++;
    }
    return ML_OK;
}

enum ml_status ml_pack_reader_bool(struct ml_reader *r, bool *out_value) {
    uint8_t tag = 0;
    const enum ml_status status = peek(r, &tag);
    if (status != ML_OK) {
        return status;
    }
    if (tag != FALSE && tag != TRUE) {
        return ML_PEER_TYPE;
    }
    r->pos++;
    *out_value = tag == TRUE;
    return ML_OK;
}

/* A number behind its tag, and whether it is below zero; then *out_value is two's complement. */
static enum ml_status read_number(struct ml_reader *r, uint64_t *out_value, bool *out_is_negative) {
    struct ml_reader at = *r;
    uint8_t tag = 0;
    uint64_t value = 0;
    bool is_negative = false;
    enum ml_status status = ml_reader_u8(&at, &tag);
    if (status != ML_OK) {
        return status;
    }
    if (tag < FIXMAP) {
        value = tag;
    } else if (tag >= NEGATIVE_FIXINT) {
        value = (uint64_t)(int64_t)(int8_t)tag;
        is_negative = true;
    } else if (tag >= UINT8 && tag < UINT8 + 4) {
        const unsigned shift = tag - UINT8;
        status = read_big(&at, 1U << shift, &value);
        const uint64_t shorter_end = shift == 0 ? 0x80 : UINT64_C(1) << (8U << (shift - 1));
        if (status == ML_OK && value < shorter_end) {
            status = ML_PEER_FORM;
        }
    } else if (tag >= INT8 && tag < INT8 + 4) {
        const unsigned shift = tag - INT8;
        const unsigned unused_bits = 64 - (8U << shift);
        status = read_big(&at, 1U << shift, &value);
        const int64_t number = (int64_t)(value << unused_bits) >> unused_bits;
        const int64_t shorter_end = shift == 0 ? -32 : -(INT64_C(1) << ((8U << (shift - 1)) - 1));
        if (status == ML_OK && number >= shorter_end) {
            status = ML_PEER_FORM;
        }
        value = (uint64_t)number;
        is_negative = true;
    } else {
        status = ML_PEER_TYPE;
    }
    if (status != ML_OK) {
        return status;
    }
    *r = at;
    *out_value = value;
    *out_is_negative = is_negative;
    return ML_OK;
}

/* A whole number that the wanted type can hold; two's complement. */
static enum ml_status read_whole(struct ml_reader *r, bool is_signed, uint64_t *out_value) {
    struct ml_reader at = *r;
    uint64_t value = 0;
    bool is_negative = false;
    const enum ml_status status = read_number(&at, &value, &is_negative);
    if (status != ML_OK) {
        return status;
    }
    if (is_signed ? !is_negative && value > INT64_MAX : is_negative) {
        return ML_PEER_RANGE;
    }
    *r = at;
    *out_value = value;
    return ML_OK;
}

enum ml_status ml_pack_reader_uint(struct ml_reader *r, uint64_t *out_value) {
    return read_whole(r, false, out_value);
}

enum ml_status ml_pack_reader_int(struct ml_reader *r, int64_t *out_value) {
    return read_whole(r, true, (uint64_t *)out_value);
}

/* `width_bytes` bits of a number behind `tag`. */
static enum ml_status
read_bits(struct ml_reader *r, uint8_t wanted_tag, unsigned width_bytes, uint64_t *out_bits) {
    uint8_t tag = 0;
    const enum ml_status status = ml_reader_u8(r, &tag);
    if (status != ML_OK) {
        return status;
    }
    return tag == wanted_tag ? read_big(r, width_bytes, out_bits) : ML_PEER_TYPE;
}

enum ml_status ml_pack_reader_float(struct ml_reader *r, float *out_value) {
    struct ml_reader at = *r;
    uint64_t wide = 0;
    const enum ml_status status = read_bits(&at, FLOAT32, sizeof(float), &wide);
    if (status != ML_OK) {
        return status;
    }
    const uint32_t bits = (uint32_t)wide;
    float value = 0;
    memcpy(&value, &bits, sizeof(value));
    if (value != value) {
        return ML_PEER_FORM;
    }
    *r = at;
    *out_value = value;
    return ML_OK;
}

enum ml_status ml_pack_reader_double(struct ml_reader *r, double *out_value) {
    struct ml_reader at = *r;
    uint64_t bits = 0;
    const enum ml_status status = read_bits(&at, FLOAT64, sizeof(double), &bits);
    if (status != ML_OK) {
        return status;
    }
    double value = 0;
    memcpy(&value, &bits, sizeof(value));
    if (value != value) {
        return ML_PEER_FORM;
    }
    *r = at;
    *out_value = value;
    return ML_OK;
}

/* The forms of a length: none or one "fix" tag range, then tags of 1 (or 2) to 4 bytes in a row. */
struct length_forms {
    uint8_t fix_tag; /* 0: no such form */
    uint8_t fix_count;
    uint8_t first_tag;
    uint8_t first_shift; /* log2 of the bytes behind first_tag */
};

static const struct length_forms str_forms = {FIXSTR, 32, STR8, 0};
static const struct length_forms bin_forms = {0, 0, BIN8, 0};
static const struct length_forms array_forms = {FIXARRAY, 16, ARRAY16, 1};
static const struct length_forms map_forms = {FIXMAP, 16, MAP16, 1};

static enum ml_status
read_length(struct ml_reader *r, const struct length_forms *forms, uint32_t *out_length) {
    uint8_t tag = 0;
    enum ml_status status = ml_reader_u8(r, &tag);
    if (status != ML_OK) {
        return status;
    }
    if (forms->fix_tag != 0 && tag >= forms->fix_tag && tag < forms->fix_tag + forms->fix_count) {
        *out_length = (uint32_t)(tag - forms->fix_tag);
        return ML_OK;
    }
    const unsigned last_tag = forms->first_tag + 2U - forms->first_shift;
    if (tag < forms->first_tag || tag > last_tag) {
        return ML_PEER_TYPE;
    }
    const unsigned shift = forms->first_shift + (unsigned)(tag - forms->first_tag);
    uint64_t length = 0;
    status = read_big(r, 1U << shift, &length);
    if (status != ML_OK) {
        return status;
    }
    const uint64_t shorter_end =
        tag == forms->first_tag ? forms->fix_count : UINT64_C(1) << (8U << (shift - 1));
    if (length < shorter_end) {
        return ML_PEER_FORM;
    }
    *out_length = (uint32_t)length;
    return ML_OK;
}

static enum ml_status read_blob(
    struct ml_reader *r,
    const struct length_forms *forms,
    uint32_t max_bytes,
    const uint8_t **out_bytes,
    uint32_t *out_count_bytes
) {
    struct ml_reader at = *r;
    uint32_t length = 0;
    enum ml_status status = read_length(&at, forms, &length);
    if (status == ML_OK && length > max_bytes) {
        status = ML_PEER_LIMIT;
    }
    if (status == ML_OK) {
        status = ml_reader_bytes(&at, length, out_bytes);
    }
    if (status != ML_OK) {
        return status;
    }
    *r = at;
    *out_count_bytes = length;
    return ML_OK;
}

enum ml_status ml_pack_reader_str(
    struct ml_reader *r, uint32_t max_bytes, const uint8_t **out_bytes, uint32_t *out_count_bytes
) {
    return read_blob(r, &str_forms, max_bytes, out_bytes, out_count_bytes);
}

enum ml_status ml_pack_reader_bin(
    struct ml_reader *r, uint32_t max_bytes, const uint8_t **out_bytes, uint32_t *out_count_bytes
) {
    return read_blob(r, &bin_forms, max_bytes, out_bytes, out_count_bytes);
}

static enum ml_status read_head(
    struct ml_reader *r,
    const struct length_forms *forms,
    size_t entry_bytes_min,
    uint32_t *out_count
) {
    struct ml_reader at = *r;
    uint32_t count = 0;
    const enum ml_status status = read_length(&at, forms, &count);
    if (status != ML_OK) {
        return status;
    }
    if (count > ml_reader_left(&at) / entry_bytes_min) {
        return ML_PEER_SHORT;
    }
    *r = at;
    *out_count = count;
    return ML_OK;
}

enum ml_status ml_pack_reader_array(struct ml_reader *r, uint32_t *out_count) {
    return read_head(r, &array_forms, 1, out_count);
}

enum ml_status ml_pack_reader_map(struct ml_reader *r, uint32_t *out_count) {
    return read_head(r, &map_forms, 2, out_count);
}
