/* runner: no second chance */
#include "tests/mojom_like_idl/oracle.h"

#include <msgpack.h>

#include "mojom_like_idl/runtime/layout_internal.h"

/* Descriptors are counted through the message. */
struct oracle {
    uint64_t handle_count;
};

static bool agrees(
    struct oracle *o,
    const struct ml_layout *layout,
    const void *value,
    const msgpack_object *object
);

static bool
number_agrees(const struct ml_layout *layout, const void *value, const msgpack_object *object) {
    if (object->type == MSGPACK_OBJECT_NEGATIVE_INTEGER) {
        return layout->kind != ML_LAYOUT_UINT &&
               object->via.i64 == ml_layout_load_int(layout, value);
    }
    return object->type == MSGPACK_OBJECT_POSITIVE_INTEGER &&
           (layout->kind == ML_LAYOUT_UINT
                ? object->via.u64 == ml_layout_load_uint(layout, value)
                : (int64_t)object->via.u64 == ml_layout_load_int(layout, value));
}

static bool
float_agrees(const struct ml_layout *layout, const void *value, const msgpack_object *object) {
    if (layout->size_bytes == sizeof(float)) {
        float narrow = 0;
        memcpy(&narrow, value, sizeof(narrow));
        return object->type == MSGPACK_OBJECT_FLOAT32 && object->via.f64 == (double)narrow;
    }
    double wide = 0;
    memcpy(&wide, value, sizeof(wide));
    return object->type == MSGPACK_OBJECT_FLOAT64 && object->via.f64 == wide;
}

static bool
text_agrees(const struct ml_layout *layout, const void *value, const msgpack_object *object) {
    struct ml_string text = {0};
    memcpy(&text, value, sizeof(text));
    const bool is_string = layout->kind == ML_LAYOUT_STRING;
    if (object->type != (is_string ? MSGPACK_OBJECT_STR : MSGPACK_OBJECT_BIN)) {
        return false;
    }
    const uint32_t count_bytes = is_string ? object->via.str.size : object->via.bin.size;
    const char *bytes = is_string ? object->via.str.ptr : object->via.bin.ptr;
    return count_bytes == text.count_bytes &&
           (count_bytes == 0 || memcmp(bytes, text.data, count_bytes) == 0);
}

static bool array_agrees(
    struct oracle *o,
    const struct ml_layout *layout,
    const void *value,
    const msgpack_object *object
) {
    struct ml_slice slice = {0};
    memcpy(&slice, value, sizeof(slice));
    if (object->type != MSGPACK_OBJECT_ARRAY || object->via.array.size != slice.count) {
        return false;
    }
    bool equal = true;
    for (uint32_t i = 0; i < slice.count && equal; i++) {
        const uint8_t *item = (const uint8_t *)slice.items + (size_t)i * layout->entry_bytes;
        equal = agrees(o, layout->value, item, &object->via.array.ptr[i]);
    }
    return equal;
}

static bool map_agrees(
    struct oracle *o,
    const struct ml_layout *layout,
    const void *value,
    const msgpack_object *object
) {
    struct ml_slice slice = {0};
    memcpy(&slice, value, sizeof(slice));
    if (object->type != MSGPACK_OBJECT_MAP || object->via.map.size != slice.count) {
        return false;
    }
    bool equal = true;
    for (uint32_t i = 0; i < slice.count && equal; i++) {
        const uint8_t *entry = (const uint8_t *)slice.items + (size_t)i * layout->entry_bytes;
        const msgpack_object_kv *pair = &object->via.map.ptr[i];
        equal = agrees(o, layout->key, entry, &pair->key) &&
                agrees(o, layout->value, entry + layout->value_offset, &pair->val);
    }
    return equal;
}

static bool struct_agrees(
    struct oracle *o,
    const struct ml_layout *layout,
    const void *value,
    const msgpack_object *object
) {
    const uint8_t *base = value;
    if (object->type != MSGPACK_OBJECT_ARRAY || object->via.array.size != layout->count) {
        return false;
    }
    bool equal = true;
    for (uint32_t i = 0; i < layout->count && equal; i++) {
        const struct ml_layout_field *field = &layout->fields[i];
        const msgpack_object *item = &object->via.array.ptr[i];
        if (field->has_offset != ML_LAYOUT_NOT_NULLABLE && base[field->has_offset] == 0) {
            equal = item->type == MSGPACK_OBJECT_NIL;
        } else {
            equal = agrees(o, field->type, base + field->offset, item);
        }
    }
    return equal;
}

static bool union_agrees(
    struct oracle *o,
    const struct ml_layout *layout,
    const void *value,
    const msgpack_object *object
) {
    uint32_t tag = 0;
    memcpy(&tag, value, sizeof(tag));
    const struct ml_layout_field *member = ml_layout_member(layout, tag);
    return object->type == MSGPACK_OBJECT_ARRAY && object->via.array.size == 2 &&
           object->via.array.ptr[0].type == MSGPACK_OBJECT_POSITIVE_INTEGER &&
           object->via.array.ptr[0].via.u64 == tag && member != NULL &&
           agrees(
               o, member->type, (const uint8_t *)value + member->offset, &object->via.array.ptr[1]
           );
}

static bool agrees(
    struct oracle *o,
    const struct ml_layout *layout,
    const void *value,
    const msgpack_object *object
) {
    switch (layout->kind) {
    case ML_LAYOUT_BOOL:
        return object->type == MSGPACK_OBJECT_BOOLEAN &&
               object->via.boolean == (*(const uint8_t *)value != 0);
    case ML_LAYOUT_INT:
    case ML_LAYOUT_UINT:
    case ML_LAYOUT_ENUM:
        return number_agrees(layout, value, object);
    case ML_LAYOUT_FLOAT:
        return float_agrees(layout, value, object);
    case ML_LAYOUT_STRING:
    case ML_LAYOUT_BYTES:
        return text_agrees(layout, value, object);
    case ML_LAYOUT_ARRAY:
        return array_agrees(o, layout, value, object);
    case ML_LAYOUT_MAP:
        return map_agrees(o, layout, value, object);
    case ML_LAYOUT_STRUCT:
        return struct_agrees(o, layout, value, object);
    case ML_LAYOUT_UNION:
        return union_agrees(o, layout, value, object);
    case ML_LAYOUT_HANDLE:
        return object->type == MSGPACK_OBJECT_POSITIVE_INTEGER &&
               object->via.u64 == o->handle_count++;
    }
    return false;
}

bool oracle_agrees(
    const struct ml_layout *layout, const void *value, const void *body, size_t body_bytes
) {
    msgpack_unpacked result;
    size_t offset = 0;
    msgpack_unpacked_init(&result);
    struct oracle oracle = {0};
    const bool equal =
        msgpack_unpack_next(&result, body, body_bytes, &offset) == MSGPACK_UNPACK_SUCCESS &&
        offset == body_bytes && agrees(&oracle, layout, value, &result.data);
    msgpack_unpacked_destroy(&result);
    return equal;
}
