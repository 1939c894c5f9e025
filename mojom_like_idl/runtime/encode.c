#include "mojom_like_idl/runtime/codec_internal.h"

#include <msgpack/pack.h>

#include "mojom_like_idl/runtime/layout_internal.h"

struct encoder {
    msgpack_packer packer;
    uint8_t *buffer; /* NULL: only measure */
    size_t size_bytes;
    size_t count_bytes;
    struct ml_handles *handles;
};

/* msgpack-c's way out. It stops at the first -1, and then nothing behind it was written either. */
static int write_out(void *data, const char *bytes, size_t count_bytes) {
    struct encoder *e = data;
    if (e->buffer != NULL) {
        if (count_bytes > e->size_bytes - e->count_bytes) {
            return -1;
        }
        memcpy(e->buffer + e->count_bytes, bytes, count_bytes);
    }
    e->count_bytes += count_bytes;
    return 0;
}

static enum ml_status packed(int result) {
    return result == 0 ? ML_OK : ML_BUG_SPACE;
}

static enum ml_status
encode_value(struct encoder *e, const struct ml_layout *layout, const void *from);

static enum ml_status
encode_float(struct encoder *e, const struct ml_layout *layout, const void *from) {
    if (layout->size_bytes == sizeof(float)) {
        float value = 0;
        memcpy(&value, from, sizeof(value));
        return value == value ? packed(msgpack_pack_float(&e->packer, value)) : ML_BUG_CONTRACT;
    }
    double value = 0;
    memcpy(&value, from, sizeof(value));
    return value == value ? packed(msgpack_pack_double(&e->packer, value)) : ML_BUG_CONTRACT;
}

/* A string or bytes: their structs are the same but for the type of what they point to. */
static enum ml_status
encode_blob(struct encoder *e, const struct ml_layout *layout, const void *from) {
    const bool is_string = layout->kind == ML_LAYOUT_STRING;
    struct ml_bytes value = {0};
    memcpy(&value, from, sizeof(value));
    if (value.count_bytes > layout->limit ||
        (is_string && value.count_bytes > 0 && memchr(value.data, 0, value.count_bytes) != NULL)) {
        return ML_BUG_CONTRACT;
    }
    const int head = is_string ? msgpack_pack_str(&e->packer, value.count_bytes)
                               : msgpack_pack_bin(&e->packer, value.count_bytes);
    if (head != 0 || value.count_bytes == 0) {
        return packed(head);
    }
    return packed(write_out(e, (const char *)value.data, value.count_bytes));
}

static enum ml_status
encode_array(struct encoder *e, const struct ml_layout *layout, const void *from) {
    struct ml_slice slice = {0};
    memcpy(&slice, from, sizeof(slice));
    if (slice.count > layout->limit) {
        return ML_BUG_CONTRACT;
    }
    enum ml_status status = packed(msgpack_pack_array(&e->packer, slice.count));
    const uint8_t *item = slice.items;
    for (uint32_t i = 0; i < slice.count && status == ML_OK; i++) {
        status = encode_value(e, layout->value, item + (size_t)i * layout->entry_bytes);
    }
    return status;
}

static enum ml_status
encode_map(struct encoder *e, const struct ml_layout *layout, const void *from) {
    struct ml_slice slice = {0};
    memcpy(&slice, from, sizeof(slice));
    if (slice.count > layout->limit) {
        return ML_BUG_CONTRACT;
    }
    enum ml_status status = packed(msgpack_pack_map(&e->packer, slice.count));
    const uint8_t *entry = slice.items;
    for (uint32_t i = 0; i < slice.count && status == ML_OK; i++) {
        if (i > 0 && ml_layout_key_compare(layout->key, entry - layout->entry_bytes, entry) >= 0) {
            return ML_BUG_CONTRACT;
        }
        status = encode_value(e, layout->key, entry);
        if (status == ML_OK) {
            status = encode_value(e, layout->value, entry + layout->value_offset);
        }
        entry += layout->entry_bytes;
    }
    return status;
}

static enum ml_status
encode_struct(struct encoder *e, const struct ml_layout *layout, const void *from) {
    const uint8_t *base = from;
    enum ml_status status = packed(msgpack_pack_array(&e->packer, layout->count));
    for (uint32_t i = 0; i < layout->count && status == ML_OK; i++) {
        const struct ml_layout_field *field = &layout->fields[i];
        if (field->has_offset != ML_LAYOUT_NOT_NULLABLE && base[field->has_offset] == 0) {
            status = packed(msgpack_pack_nil(&e->packer));
        } else {
            status = encode_value(e, field->type, base + field->offset);
        }
    }
    return status;
}

static enum ml_status
encode_union(struct encoder *e, const struct ml_layout *layout, const void *from) {
    uint32_t tag = 0;
    memcpy(&tag, from, sizeof(tag));
    const struct ml_layout_field *member = ml_layout_member(layout, tag);
    if (member == NULL) {
        return ML_BUG_CONTRACT;
    }
    if (msgpack_pack_array(&e->packer, 2) != 0 || msgpack_pack_uint32(&e->packer, tag) != 0) {
        return ML_BUG_SPACE;
    }
    return encode_value(e, member->type, (const uint8_t *)from + member->offset);
}

static enum ml_status
encode_handle(struct encoder *e, const struct ml_layout *layout, const void *from) {
    int fd = -1;
    memcpy(&fd, from, sizeof(fd));
    if (fd < 0 || e->handles->count >= ML_HANDLES_MAX) {
        return ML_BUG_CONTRACT;
    }
    const uint32_t index = e->handles->count++;
    e->handles->fds[index] = fd;
    e->handles->kinds[index] = layout->handle;
    return packed(msgpack_pack_uint32(&e->packer, index));
}

static enum ml_status
encode_value(struct encoder *e, const struct ml_layout *layout, const void *from) {
    switch (layout->kind) {
    case ML_LAYOUT_BOOL:
        return packed(
            *(const uint8_t *)from != 0 ? msgpack_pack_true(&e->packer)
                                        : msgpack_pack_false(&e->packer)
        );
    case ML_LAYOUT_ENUM:
        if (!ml_layout_enum_has(layout, ml_layout_load_int(layout, from))) {
            return ML_BUG_CONTRACT;
        }
        return packed(msgpack_pack_int64(&e->packer, ml_layout_load_int(layout, from)));
    case ML_LAYOUT_INT:
        return packed(msgpack_pack_int64(&e->packer, ml_layout_load_int(layout, from)));
    case ML_LAYOUT_UINT:
        return packed(msgpack_pack_uint64(&e->packer, ml_layout_load_uint(layout, from)));
    case ML_LAYOUT_FLOAT:
        return encode_float(e, layout, from);
    case ML_LAYOUT_STRING:
    case ML_LAYOUT_BYTES:
        return encode_blob(e, layout, from);
    case ML_LAYOUT_ARRAY:
        return encode_array(e, layout, from);
    case ML_LAYOUT_MAP:
        return encode_map(e, layout, from);
    case ML_LAYOUT_STRUCT:
        return encode_struct(e, layout, from);
    case ML_LAYOUT_UNION:
        return encode_union(e, layout, from);
    case ML_LAYOUT_HANDLE:
        return encode_handle(e, layout, from);
    }
    return ML_BUG_CONTRACT;
}

enum ml_status ml_codec_encode(
    const struct ml_message_type *type,
    const void *value,
    void *buffer,
    size_t size_bytes,
    size_t *out_count_bytes,
    struct ml_handles *out_handles
) {
    struct ml_handles handles = {0};
    struct encoder e = {.buffer = buffer, .size_bytes = size_bytes, .handles = &handles};
    msgpack_packer_init(&e.packer, &e, write_out);
    const enum ml_status status = encode_value(&e, type->layout, value);
    if (status != ML_OK) {
        return status;
    }
    *out_count_bytes = e.count_bytes;
    *out_handles = handles;
    return ML_OK;
}

enum ml_status ml_codec_encode_packet(
    const struct ml_message_type *type,
    uint32_t request_id,
    const void *value,
    void *buffer,
    size_t size_bytes,
    size_t *out_count_bytes,
    struct ml_handles *out_handles
) {
    if (size_bytes < ML_PACKET_HEADER_BYTES) {
        return ML_BUG_SPACE;
    }
    uint8_t *bytes = buffer;
    size_t body_bytes = 0;
    struct ml_handles handles = {0};
    const size_t usable_bytes = size_bytes < ML_PACKET_MAX_BYTES ? size_bytes : ML_PACKET_MAX_BYTES;
    const enum ml_status status = ml_codec_encode(
        type,
        value,
        bytes + ML_PACKET_HEADER_BYTES,
        usable_bytes - ML_PACKET_HEADER_BYTES,
        &body_bytes,
        &handles
    );
    if (status != ML_OK) {
        return status;
    }
    const struct ml_packet_header header = {
        .kind = type->kind,
        .method = type->method,
        .request_id = request_id,
        .body_bytes = (uint32_t)body_bytes};
    ml_packet_header_write(&header, bytes);
    *out_count_bytes = ML_PACKET_HEADER_BYTES + body_bytes;
    *out_handles = handles;
    return ML_OK;
}
