#include "ipc/wire/message.h"

#include "ipc/wire/reader.h"
#include "ipc/wire/writer.h"

void ml_packet_header_write(const struct ml_packet_header *header, uint8_t *out_bytes) {
    struct ml_writer w = ml_writer_into(out_bytes, ML_PACKET_HEADER_BYTES);
    ml_writer_u8(&w, ML_PACKET_VERSION);
    ml_writer_u8(&w, (uint8_t)header->kind);
    ml_writer_u8(&w, (uint8_t)header->flags);
    ml_writer_u8(&w, 0);
    ml_writer_u32(&w, header->method);
    ml_writer_u32(&w, header->request_id);
    ml_writer_u32(&w, header->body_bytes);
}

static enum ml_status check_header(const struct ml_packet_header *header, size_t share_bytes) {
    const size_t share_max = ML_PACKET_MAX_BYTES - ML_PACKET_HEADER_BYTES;
    if ((header->flags & ~(uint32_t)ML_PACKET_MORE) != 0) {
        return ML_PEER_FORM;
    }
    if (header->kind == ML_MESSAGE_REPLY && header->request_id == 0) {
        return ML_PEER_FORM;
    }
    if (share_bytes == 0) {
        return ML_PEER_SHORT; /* an empty message is still an empty array, one byte */
    }
    if (share_bytes > share_max || share_bytes > header->body_bytes) {
        return ML_PEER_FORM;
    }
    if ((header->flags & ML_PACKET_MORE) != 0) {
        return share_bytes == share_max && header->body_bytes > share_max ? ML_OK : ML_PEER_FORM;
    }
    return ML_OK;
}

enum ml_status ml_packet_header_read(
    const void *packet, size_t packet_bytes, struct ml_packet_header *out_header
) {
    struct ml_reader r = ml_reader_over(packet, packet_bytes);
    uint8_t version = 0;
    uint8_t kind = 0;
    uint8_t flags = 0;
    uint8_t reserved = 0;
    struct ml_packet_header header = {.kind = ML_MESSAGE_REQUEST};
    if (ml_reader_u8(&r, &version) != ML_OK || ml_reader_u8(&r, &kind) != ML_OK ||
        ml_reader_u8(&r, &flags) != ML_OK || ml_reader_u8(&r, &reserved) != ML_OK ||
        ml_reader_u32(&r, &header.method) != ML_OK ||
        ml_reader_u32(&r, &header.request_id) != ML_OK ||
        ml_reader_u32(&r, &header.body_bytes) != ML_OK) {
        return ML_PEER_SHORT;
    }
    if (version != ML_PACKET_VERSION) {
        return ML_PEER_VERSION;
    }
    if (kind != ML_MESSAGE_REQUEST && kind != ML_MESSAGE_REPLY) {
        return ML_PEER_UNKNOWN;
    }
    if (reserved != 0) {
        return ML_PEER_FORM;
    }
    header.kind = kind;
    header.flags = flags;
    const enum ml_status status = check_header(&header, ml_reader_left(&r));
    if (status != ML_OK) {
        return status;
    }
    *out_header = header;
    return ML_OK;
}

const struct ml_method *ml_interface_method(const struct ml_interface *interface, uint32_t method) {
    for (uint32_t i = 0; i < interface->method_count; i++) {
        if (interface->methods[i].request->method == method) {
            return &interface->methods[i];
        }
    }
    return NULL;
}
