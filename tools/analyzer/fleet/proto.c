#include "tools/analyzer/fleet/proto.h"

#include <pb_decode.h>

enum { FIXED64_BYTES = 8, FIXED32_BYTES = 4 };

static void pass(struct ml_fleet_piece *rest, size_t count) {
    rest->bytes += count;
    rest->count_bytes -= count;
}

bool ml_fleet_packed(struct ml_fleet_piece *rest, uint64_t *out_number) {
    pb_istream_t stream = pb_istream_from_buffer(rest->bytes, rest->count_bytes);

    if (rest->count_bytes == 0 || !pb_decode_varint(&stream, out_number)) {
        return false;
    }
    pass(rest, rest->count_bytes - stream.bytes_left);
    return true;
}

static bool take_bytes(struct ml_fleet_piece *rest, struct ml_fleet_field *field) {
    uint64_t count = 0;

    if (!ml_fleet_packed(rest, &count) || count > rest->count_bytes) {
        return false;
    }
    field->is_bytes = true;
    field->bytes = (struct ml_fleet_piece){rest->bytes, (size_t)count};
    pass(rest, (size_t)count);
    return true;
}

static bool take_fixed(struct ml_fleet_piece *rest, size_t count, uint64_t *out_value) {
    if (rest->count_bytes < count) {
        return false;
    }
    *out_value = 0;
    for (size_t i = 0; i < count; i++) {
        *out_value |= (uint64_t)rest->bytes[i] << (8 * i);
    }
    pass(rest, count);
    return true;
}

bool ml_fleet_field(struct ml_fleet_piece *rest, struct ml_fleet_field *out_field) {
    const struct ml_fleet_piece whole = *rest;
    uint64_t key = 0;
    bool is_taken = false;

    *out_field = (struct ml_fleet_field){.number = 0};
    if (!ml_fleet_packed(rest, &key) || key >> 3 == 0 || key >> 3 > UINT32_MAX >> 3) {
        *rest = whole;
        return false;
    }
    out_field->number = (uint32_t)(key >> 3);
    switch ((pb_wire_type_t)(key & 7)) {
    case PB_WT_VARINT:
        is_taken = ml_fleet_packed(rest, &out_field->value);
        break;
    case PB_WT_64BIT:
        is_taken = take_fixed(rest, FIXED64_BYTES, &out_field->value);
        break;
    case PB_WT_32BIT:
        is_taken = take_fixed(rest, FIXED32_BYTES, &out_field->value);
        break;
    case PB_WT_STRING:
        is_taken = take_bytes(rest, out_field);
        break;
    default:
        break; /* groups, which no message of ours has */
    }
    if (!is_taken) {
        *rest = whole;
    }
    return is_taken;
}

bool ml_fleet_numbers(
    const struct ml_fleet_field *field, bool (*take)(void *context, uint64_t number), void *context
) {
    struct ml_fleet_piece rest = field->bytes;
    uint64_t number = 0;

    if (!field->is_bytes) {
        return take(context, field->value);
    }
    while (ml_fleet_packed(&rest, &number)) {
        if (!take(context, number)) {
            return false;
        }
    }
    return rest.count_bytes == 0;
}
