#include "mojom_like_idl/runtime/codec_internal.h"

#include "mojom_like_idl/runtime/layout_internal.h"
#include "mojom_like_idl/runtime/pack_reader.h"

/* Arrays in the arena start at multiples of this; no generated type needs more. */
enum { ARENA_ALIGN_BYTES = 8 };

/* One walk serves both: a check stores nothing (every `to` is NULL), and counts what decoding would
 * take of its arena. */
struct decoder {
    struct ml_reader r;
    bool is_storing;
    uint8_t *arena;
    size_t arena_bytes;
    size_t arena_used_bytes;
    const struct ml_handles *handles; /* while storing: what came with the message */
    struct ml_handles declared;       /* what its fields have asked for so far */
};

static void store(void *to, const void *from, size_t count_bytes) {
    if (to != NULL) {
        memcpy(to, from, count_bytes);
    }
}

static void *inside(void *to, size_t offset) {
    return to == NULL ? NULL : (uint8_t *)to + offset;
}

static enum ml_status arena_take(struct decoder *d, size_t count_bytes, void **out_place) {
    const size_t mask = ARENA_ALIGN_BYTES - 1;
    const size_t padding_bytes = (0 - ((uintptr_t)d->arena + d->arena_used_bytes)) & mask;
    const size_t start = d->arena_used_bytes + padding_bytes;
    if (count_bytes > SIZE_MAX - start) {
        return ML_PEER_LIMIT;
    }
    if (d->is_storing && (start > d->arena_bytes || count_bytes > d->arena_bytes - start)) {
        return ML_BUG_SPACE;
    }
    d->arena_used_bytes = start + count_bytes;
    *out_place = d->is_storing ? d->arena + start : NULL;
    return ML_OK;
}

static enum ml_status decode_value(struct decoder *d, const struct ml_layout *layout, void *to);

static enum ml_status decode_bool(struct decoder *d, void *to) {
    bool value = false;
    const enum ml_status status = ml_pack_reader_bool(&d->r, &value);
    if (status == ML_OK) {
        store(to, &value, sizeof(value));
    }
    return status;
}

static enum ml_status decode_int(struct decoder *d, const struct ml_layout *layout, void *to) {
    int64_t value = 0;
    const enum ml_status status = ml_pack_reader_int(&d->r, &value);
    if (status != ML_OK) {
        return status;
    }
    const int64_t highest = INT64_MAX >> (64 - 8 * layout->size_bytes);
    if (value > highest || value < -highest - 1) {
        return ML_PEER_RANGE;
    }
    if (layout->kind == ML_LAYOUT_ENUM && !ml_layout_enum_has(layout, value)) {
        return ML_PEER_UNKNOWN;
    }
    store(to, &value, layout->size_bytes);
    return ML_OK;
}

static enum ml_status decode_uint(struct decoder *d, const struct ml_layout *layout, void *to) {
    uint64_t value = 0;
    const enum ml_status status = ml_pack_reader_uint(&d->r, &value);
    if (status != ML_OK) {
        return status;
    }
    if (value > UINT64_MAX >> (64 - 8 * layout->size_bytes)) {
        return ML_PEER_RANGE;
    }
    store(to, &value, layout->size_bytes);
    return ML_OK;
}

static enum ml_status decode_float(struct decoder *d, const struct ml_layout *layout, void *to) {
    if (layout->size_bytes == sizeof(float)) {
        float value = 0;
        const enum ml_status status = ml_pack_reader_float(&d->r, &value);
        if (status == ML_OK) {
            store(to, &value, sizeof(value));
        }
        return status;
    }
    double value = 0;
    const enum ml_status status = ml_pack_reader_double(&d->r, &value);
    if (status == ML_OK) {
        store(to, &value, sizeof(value));
    }
    return status;
}

/* A string or bytes: their structs are the same but for the type of what they point to. */
static enum ml_status decode_blob(struct decoder *d, const struct ml_layout *layout, void *to) {
    const bool is_string = layout->kind == ML_LAYOUT_STRING;
    struct ml_bytes value = {0};
    const enum ml_status status =
        (is_string ? ml_pack_reader_str : ml_pack_reader_bin
        )(&d->r, layout->limit, &value.data, &value.count_bytes);
    if (status != ML_OK) {
        return status;
    }
    if (is_string && memchr(value.data, 0, value.count_bytes) != NULL) {
        return ML_PEER_FORM;
    }
    store(to, &value, sizeof(value));
    return ML_OK;
}

/* Room for `count` entries, and the slice over them into `to`. */
static enum ml_status decode_slice(
    struct decoder *d, const struct ml_layout *layout, uint32_t count, void *to, void **out_items
) {
    if (count > layout->limit) {
        return ML_PEER_LIMIT;
    }
    const enum ml_status status = arena_take(d, (size_t)count * layout->entry_bytes, out_items);
    if (status == ML_OK) {
        const struct ml_slice slice = {.items = *out_items, .count = count};
        if (d->is_storing && count > 0) {
            memset(*out_items, 0, (size_t)count * layout->entry_bytes); /* padding too */
        }
        store(to, &slice, sizeof(slice));
    }
    return status;
}

static enum ml_status decode_array(struct decoder *d, const struct ml_layout *layout, void *to) {
    uint32_t count = 0;
    void *items = NULL;
    enum ml_status status = ml_pack_reader_array(&d->r, &count);
    if (status == ML_OK) {
        status = decode_slice(d, layout, count, to, &items);
    }
    for (uint32_t i = 0; i < count && status == ML_OK; i++) {
        status = decode_value(d, layout->value, inside(items, (size_t)i * layout->entry_bytes));
    }
    return status;
}

/* A key: large enough for any permitted type, so that it can be compared without being stored. */
struct any_key {
    _Alignas(8) uint8_t bytes[sizeof(struct ml_string)];
};

static enum ml_status decode_map(struct decoder *d, const struct ml_layout *layout, void *to) {
    uint32_t count = 0;
    void *entries = NULL;
    enum ml_status status = ml_pack_reader_map(&d->r, &count);
    if (status == ML_OK) {
        status = decode_slice(d, layout, count, to, &entries);
    }
    struct any_key last = {{0}};
    for (uint32_t i = 0; i < count && status == ML_OK; i++) {
        struct any_key key = {{0}};
        void *entry = inside(entries, (size_t)i * layout->entry_bytes);
        status = decode_value(d, layout->key, key.bytes);
        if (status != ML_OK) {
            break;
        }
        if (i > 0 && ml_layout_key_compare(layout->key, last.bytes, key.bytes) >= 0) {
            return ML_PEER_FORM;
        }
        last = key;
        store(entry, key.bytes, layout->key->size_bytes);
        status = decode_value(d, layout->value, inside(entry, layout->value_offset));
    }
    return status;
}

/* The number of fields tells the sender's version: it must end where a version ends. */
static enum ml_status check_field_count(const struct ml_layout *layout, uint32_t count) {
    if (count > layout->count) {
        return ML_PEER_VERSION;
    }
    if (count == layout->count) {
        return ML_OK;
    }
    const uint32_t next_version = layout->fields[count].min_version;
    const uint32_t last_version = count == 0 ? 0 : layout->fields[count - 1].min_version;
    return next_version > last_version ? ML_OK : ML_PEER_FORM;
}

/* A descriptor that is not there must not read as number 0, somebody's stdin. */
static void store_absent(const struct ml_layout_field *field, void *to) {
    if (field->type->kind == ML_LAYOUT_HANDLE) {
        store(inside(to, field->offset), &(int){-1}, sizeof(int));
    }
}

static enum ml_status
decode_field(struct decoder *d, const struct ml_layout_field *field, void *to) {
    if (field->has_offset != ML_LAYOUT_NOT_NULLABLE) {
        bool is_nil = false;
        const enum ml_status status = ml_pack_reader_nil(&d->r, &is_nil);
        if (status != ML_OK) {
            return status;
        }
        const bool has = !is_nil;
        store(inside(to, field->has_offset), &has, sizeof(has));
        if (is_nil) {
            store_absent(field, to);
            return ML_OK;
        }
    }
    return decode_value(d, field->type, inside(to, field->offset));
}

static enum ml_status decode_struct(struct decoder *d, const struct ml_layout *layout, void *to) {
    uint32_t count = 0;
    enum ml_status status = ml_pack_reader_array(&d->r, &count);
    if (status == ML_OK) {
        status = check_field_count(layout, count);
    }
    for (uint32_t i = 0; i < count && status == ML_OK; i++) {
        status = decode_field(d, &layout->fields[i], to);
    }
    for (uint32_t i = count; i < layout->count && status == ML_OK; i++) {
        store_absent(&layout->fields[i], to);
    }
    return status;
}

static enum ml_status decode_union(struct decoder *d, const struct ml_layout *layout, void *to) {
    uint32_t count = 0;
    uint64_t tag = 0;
    enum ml_status status = ml_pack_reader_array(&d->r, &count);
    if (status == ML_OK && count != 2) {
        status = ML_PEER_FORM;
    }
    if (status == ML_OK) {
        status = ml_pack_reader_uint(&d->r, &tag);
    }
    if (status != ML_OK) {
        return status;
    }
    const struct ml_layout_field *member = ml_layout_member(layout, tag);
    if (member == NULL) {
        return ML_PEER_UNKNOWN;
    }
    store(to, &(uint32_t){(uint32_t)tag}, sizeof(uint32_t));
    return decode_value(d, member->type, inside(to, member->offset));
}

static enum ml_status decode_handle(struct decoder *d, const struct ml_layout *layout, void *to) {
    uint64_t index = 0;
    const enum ml_status status = ml_pack_reader_uint(&d->r, &index);
    if (status != ML_OK) {
        return status;
    }
    if (index != d->declared.count || index >= ML_HANDLES_MAX) {
        return ML_PEER_HANDLE;
    }
    if (d->is_storing) {
        if (index >= d->handles->count) {
            return ML_PEER_HANDLE;
        }
        store(to, &d->handles->fds[index], sizeof(int));
    }
    d->declared.fds[index] = -1;
    d->declared.kinds[index] = layout->handle;
    d->declared.count++;
    return ML_OK;
}

static enum ml_status decode_value(struct decoder *d, const struct ml_layout *layout, void *to) {
    switch (layout->kind) {
    case ML_LAYOUT_BOOL:
        return decode_bool(d, to);
    case ML_LAYOUT_INT:
    case ML_LAYOUT_ENUM:
        return decode_int(d, layout, to);
    case ML_LAYOUT_UINT:
        return decode_uint(d, layout, to);
    case ML_LAYOUT_FLOAT:
        return decode_float(d, layout, to);
    case ML_LAYOUT_STRING:
    case ML_LAYOUT_BYTES:
        return decode_blob(d, layout, to);
    case ML_LAYOUT_ARRAY:
        return decode_array(d, layout, to);
    case ML_LAYOUT_MAP:
        return decode_map(d, layout, to);
    case ML_LAYOUT_STRUCT:
        return decode_struct(d, layout, to);
    case ML_LAYOUT_UNION:
        return decode_union(d, layout, to);
    case ML_LAYOUT_HANDLE:
        return decode_handle(d, layout, to);
    }
    return ML_BUG_CONTRACT;
}

static enum ml_status decode_body(struct decoder *d, const struct ml_message_type *type, void *to) {
    const enum ml_status status = decode_value(d, type->layout, to);
    return status == ML_OK ? ml_reader_finish(&d->r) : status;
}

static enum ml_status check(
    const struct ml_message_type *type,
    const void *body,
    size_t body_bytes,
    size_t *out_arena_bytes,
    struct ml_handles *out_handles
) {
    struct decoder d = {.r = ml_reader_over(body, body_bytes)};
    const enum ml_status status = decode_body(&d, type, NULL);
    if (status != ML_OK) {
        return status;
    }
    *out_arena_bytes = d.arena_used_bytes;
    *out_handles = d.declared;
    return ML_OK;
}

static enum ml_status decode(
    const struct ml_message_type *type,
    const void *body,
    size_t body_bytes,
    const struct ml_handles *handles,
    void *arena,
    size_t arena_bytes,
    void *out_value
) {
    struct decoder d = {
        .r = ml_reader_over(body, body_bytes),
        .is_storing = true,
        .arena = arena,
        .arena_bytes = arena_bytes,
        .handles = handles};
    memset(out_value, 0, type->size_bytes);
    const enum ml_status status = decode_body(&d, type, out_value);
    if (status != ML_OK) {
        return status;
    }
    return d.declared.count == handles->count ? ML_OK : ML_PEER_HANDLE;
}

const struct ml_codec ml_mojom_codec = {
    .encode = ml_codec_encode, .check = check, .decode = decode};

enum ml_status ml_codec_decode_packet(
    const struct ml_message_type *type,
    uint32_t request_id,
    const void *packet,
    size_t packet_bytes,
    const int *fds,
    size_t fd_count,
    void *arena,
    size_t arena_bytes,
    void *out_value
) {
    struct ml_packet_header header = {0};
    const enum ml_status status = ml_packet_header_read(packet, packet_bytes, &header);
    if (status != ML_OK) {
        return status;
    }
    if (header.kind != type->kind || header.method != type->method ||
        header.request_id != request_id) {
        return ML_PEER_STATE;
    }
    const size_t body_bytes = packet_bytes - ML_PACKET_HEADER_BYTES;
    if (header.flags != 0 || body_bytes != header.body_bytes) {
        return ML_PEER_FORM;
    }
    if (fd_count > ML_HANDLES_MAX) {
        return ML_PEER_HANDLE;
    }
    struct ml_handles handles = {.count = (uint32_t)fd_count};
    for (size_t i = 0; i < fd_count; i++) {
        handles.fds[i] = fds[i];
    }
    return decode(
        type,
        (const uint8_t *)packet + ML_PACKET_HEADER_BYTES,
        body_bytes,
        &handles,
        arena,
        arena_bytes,
        out_value
    );
}
