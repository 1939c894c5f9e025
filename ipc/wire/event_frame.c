#include "ipc/wire/event.h"

#include <string.h>

enum { NAME_BYTES = 10 /* of the longest kind of event, with its NUL */ };

enum ml_status ml_frame_header_read(struct ml_reader *r, struct ml_frame_header *out_header) {
    struct ml_reader at = *r;
    uint64_t word = 0;
    struct ml_frame_header header = {.chunk_number = 0};
    if (ml_reader_u64(&at, &word) != ML_OK || ml_reader_u16(&at, &header.lane) != ML_OK ||
        ml_reader_u16(&at, &header.start_bytes) != ML_OK ||
        ml_reader_u32(&at, &header.thread_id) != ML_OK) {
        return ML_PEER_SHORT;
    }
    header.chunk_number = word >> 16;
    header.end_bytes = (uint16_t)word;
    if (header.lane >= ML_LANES_MAX || header.end_bytes > ML_CHUNK_MAX_BYTES ||
        header.start_bytes >= header.end_bytes) {
        return ML_PEER_RANGE;
    }
    *r = at;
    *out_header = header;
    return ML_OK;
}

const char *ml_event_kind_name(enum ml_event_kind kind) {
    /* Rows of characters, not pointers: a pointer is a relocation in every process. */
    static const char names[][NAME_BYTES] = {
        [ML_EVENT_START] = "START",
        [ML_EVENT_THREAD] = "THREAD",
        [ML_EVENT_MODULE] = "MODULE",
        [ML_EVENT_STRING] = "STRING",
        [ML_EVENT_TYPE] = "TYPE",
        [ML_EVENT_HEAP] = "HEAP",
        [ML_EVENT_SAMPLING] = "SAMPLING",
        [ML_EVENT_FORK] = "FORK",
        [ML_EVENT_REAPED] = "REAPED",
        [ML_EVENT_END] = "END",
        [ML_EVENT_MAPPING] = "MAPPING",
        [ML_EVENT_UNLOAD] = "UNLOAD",
        [ML_EVENT_LOSS] = "LOSS",
        [ML_EVENT_ALLOC] = "ALLOC",
        [ML_EVENT_FREE] = "FREE",
        [ML_EVENT_RESIZE] = "RESIZE",
        [ML_EVENT_CANCEL] = "CANCEL",
        [ML_EVENT_NODE] = "NODE",
    };
    if ((unsigned)kind >= sizeof(names) / sizeof(*names) || names[kind][0] == 0) {
        return "?";
    }
    return names[kind];
}

void ml_frame_header_write(uint8_t *out, const struct ml_frame_header *header) {
    const uint64_t word = header->chunk_number << 16 | header->end_bytes;
    memcpy(out, &word, sizeof(word));
    memcpy(out + 8, &header->lane, sizeof(header->lane));
    memcpy(out + 10, &header->start_bytes, sizeof(header->start_bytes));
    memcpy(out + 12, &header->thread_id, sizeof(header->thread_id));
}
