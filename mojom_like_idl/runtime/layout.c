#include "mojom_like_idl/runtime/layout.h"

#include "mojom_like_idl/runtime/layout_internal.h"

const struct ml_layout ml_layout_bool = {.kind = ML_LAYOUT_BOOL, .size_bytes = 1};
const struct ml_layout ml_layout_int8 = {.kind = ML_LAYOUT_INT, .size_bytes = 1};
const struct ml_layout ml_layout_int16 = {.kind = ML_LAYOUT_INT, .size_bytes = 2};
const struct ml_layout ml_layout_int32 = {.kind = ML_LAYOUT_INT, .size_bytes = 4};
const struct ml_layout ml_layout_int64 = {.kind = ML_LAYOUT_INT, .size_bytes = 8};
const struct ml_layout ml_layout_uint8 = {.kind = ML_LAYOUT_UINT, .size_bytes = 1};
const struct ml_layout ml_layout_uint16 = {.kind = ML_LAYOUT_UINT, .size_bytes = 2};
const struct ml_layout ml_layout_uint32 = {.kind = ML_LAYOUT_UINT, .size_bytes = 4};
const struct ml_layout ml_layout_uint64 = {.kind = ML_LAYOUT_UINT, .size_bytes = 8};
const struct ml_layout ml_layout_float = {.kind = ML_LAYOUT_FLOAT, .size_bytes = 4};
const struct ml_layout ml_layout_double = {.kind = ML_LAYOUT_FLOAT, .size_bytes = 8};

uint64_t ml_layout_load_uint(const struct ml_layout *layout, const void *from) {
    uint64_t value = 0; /* little-endian: the low bytes are the number, see ipc/wire/reader.c */
    memcpy(&value, from, layout->size_bytes);
    return value;
}

int64_t ml_layout_load_int(const struct ml_layout *layout, const void *from) {
    const unsigned unused_bits = 64 - 8 * layout->size_bytes;
    return (int64_t)(ml_layout_load_uint(layout, from) << unused_bits) >> unused_bits;
}

bool ml_layout_enum_has(const struct ml_layout *layout, int64_t value) {
    for (uint32_t i = 0; i < layout->count; i++) {
        if (layout->values[i] == value) {
            return true;
        }
    }
    return false;
}

static int compare_strings(const struct ml_string *a, const struct ml_string *b) {
    const uint32_t shorter = a->count_bytes < b->count_bytes ? a->count_bytes : b->count_bytes;
    const int order = shorter == 0 ? 0 : memcmp(a->data, b->data, shorter);
    if (order != 0) {
        return order;
    }
    return (a->count_bytes > b->count_bytes) - (a->count_bytes < b->count_bytes);
}

int ml_layout_key_compare(const struct ml_layout *layout, const void *a, const void *b) {
    if (layout->kind == ML_LAYOUT_STRING) {
        return compare_strings(a, b);
    }
    if (layout->kind == ML_LAYOUT_UINT) {
        const uint64_t left = ml_layout_load_uint(layout, a);
        const uint64_t right = ml_layout_load_uint(layout, b);
        return (left > right) - (left < right);
    }
    const int64_t left = ml_layout_load_int(layout, a);
    const int64_t right = ml_layout_load_int(layout, b);
    return (left > right) - (left < right);
}

const struct ml_layout_field *ml_layout_member(const struct ml_layout *layout, uint64_t tag) {
    for (uint32_t i = 0; i < layout->count; i++) {
        if (layout->fields[i].min_version == tag) {
            return &layout->fields[i];
        }
    }
    return NULL;
}
