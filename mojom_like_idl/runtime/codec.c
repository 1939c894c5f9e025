#include "mojom_like_idl/runtime/codec.h"

#include "mojom_like_idl/runtime/codec_internal.h"

const struct ml_codec ml_mojom_codec = {
    .encode = ml_codec_encode, .check = ml_codec_check, .decode = ml_codec_decode};

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
    return ml_codec_decode(
        type,
        (const uint8_t *)packet + ML_PACKET_HEADER_BYTES,
        body_bytes,
        &handles,
        arena,
        arena_bytes,
        out_value
    );
}
