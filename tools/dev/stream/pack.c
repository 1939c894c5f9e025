#include "tools/dev/stream/pack.h"

#include <stdlib.h>
#include <string.h>

struct ml_stream_packer *ml_stream_packer_new(void) {
    return calloc(1, sizeof(struct ml_stream_packer));
}

void ml_stream_packer_free(struct ml_stream_packer *take_packer) {
    if (take_packer != NULL) {
        free(take_packer->out);
        free(take_packer);
    }
}

static enum ml_status append(struct ml_stream_packer *packer, const void *bytes, size_t count) {
    if (packer->out_capacity - packer->out_count < count) {
        const size_t capacity = (packer->out_count + count) * 2;
        uint8_t *out = realloc(packer->out, capacity);
        if (out == NULL) {
            return ML_ENV_MEMORY;
        }
        packer->out = out;
        packer->out_capacity = capacity;
    }
    memcpy(packer->out + packer->out_count, bytes, count);
    packer->out_count += count;
    return ML_OK;
}

enum ml_status ml_stream_packer_flush(struct ml_stream_packer *packer) {
    if (!packer->frame_open) {
        return ML_OK;
    }
    packer->frame_open = false;
    uint8_t header[ML_FRAME_HEADER_BYTES];
    packer->frame.end_bytes = (uint16_t)(packer->frame.start_bytes + packer->payload_bytes);
    packer->lanes[packer->frame.lane].bytes = packer->frame.end_bytes;
    ml_frame_header_write(header, &packer->frame);
    enum ml_status status = append(packer, header, sizeof(header));
    if (status == ML_OK) {
        status = append(packer, packer->payload, packer->payload_bytes);
    }
    return status;
}

static enum ml_status
wrong(struct ml_stream_packer *packer, enum ml_status status, const char *what) {
    snprintf(packer->scratch.error, sizeof(packer->scratch.error), "%s", what);
    return status;
}

static enum ml_status open_frame(struct ml_stream_packer *packer, const char *fields) {
    const enum ml_status status = ml_stream_packer_flush(packer);
    if (status != ML_OK) {
        return status;
    }
    uint64_t number = 0;
    (void)ml_stream_text_number(fields, "lane", &number);
    if (number >= ML_LANES_MAX) {
        return wrong(packer, ML_PEER_RANGE, "there are not so many lanes");
    }
    struct ml_stream_packer_lane *lane = &packer->lanes[number];
    packer->frame = (struct ml_frame_header){.lane = (uint16_t)number};
    uint64_t chunk = lane->used ? lane->chunk + 1 : 0;
    (void)ml_stream_text_number(fields, "chunk", &chunk);
    uint64_t start = lane->used && lane->chunk == chunk ? lane->bytes : 0;
    if (start == 0) {
        lane->state = (struct ml_event_state){0};
    }
    (void)ml_stream_text_number(fields, "start", &start);
    uint64_t thread = 0;
    (void)ml_stream_text_number(fields, "thread", &thread);
    if (chunk >> 48 != 0 || start >= ML_CHUNK_MAX_BYTES || thread > UINT32_MAX) {
        return wrong(packer, ML_PEER_RANGE, "a frame cannot say that");
    }
    packer->frame.chunk_number = chunk;
    packer->frame.start_bytes = (uint16_t)start;
    packer->frame.thread_id = (uint32_t)thread;
    packer->frame_open = true;
    packer->payload_bytes = 0;
    lane->used = true;
    lane->chunk = chunk;
    return ML_OK;
}

static struct ml_writer payload_writer(struct ml_stream_packer *packer) {
    const size_t room =
        (size_t)(ML_CHUNK_MAX_BYTES - packer->frame.start_bytes) - packer->payload_bytes;
    return ml_writer_into(packer->payload + packer->payload_bytes, room);
}

static enum ml_status add_record(struct ml_stream_packer *packer, const char *line) {
    struct ml_event event;
    enum ml_status status = ml_stream_text_parse(line, &packer->scratch, &event);
    if (status != ML_OK) {
        return status;
    }
    struct ml_writer w = payload_writer(packer);
    status = ml_event_encode(&w, &packer->lanes[packer->frame.lane].state, &event);
    if (status == ML_BUG_SPACE) {
        return wrong(packer, ML_PEER_LIMIT, "the chunk is full: begin another frame");
    }
    if (status != ML_OK) {
        return wrong(
            packer, ML_PEER_RANGE, "a value is out of range, or its time is before the last one's"
        );
    }
    packer->payload_bytes += (uint32_t)ml_writer_count(&w);
    return ML_OK;
}

static enum ml_status parse_hex(struct ml_stream_packer *packer, const char *text) {
    packer->scratch.used_bytes = 0;
    return ml_stream_text_bytes(text, strlen(text), &packer->scratch)
               ? ML_OK
               : wrong(packer, ML_PEER_FORM, "bytes are pairs of hexadecimal digits");
}

static enum ml_status add_bytes(struct ml_stream_packer *packer, const char *text) {
    const enum ml_status status = parse_hex(packer, text);
    if (status != ML_OK) {
        return status;
    }
    struct ml_writer w = payload_writer(packer);
    ml_writer_bytes(&w, packer->scratch.bytes, packer->scratch.used_bytes);
    if (w.overflow) {
        return wrong(packer, ML_PEER_LIMIT, "the chunk is full: begin another frame");
    }
    packer->payload_bytes += (uint32_t)packer->scratch.used_bytes;
    return ML_OK;
}

static enum ml_status add_raw(struct ml_stream_packer *packer, const char *text) {
    enum ml_status status = ml_stream_packer_flush(packer);
    if (status == ML_OK) {
        status = parse_hex(packer, text);
    }
    return status == ML_OK ? append(packer, packer->scratch.bytes, packer->scratch.used_bytes)
                           : status;
}

enum ml_status ml_stream_packer_line(struct ml_stream_packer *packer, const char *line) {
    line += strspn(line, " ");
    packer->scratch.error[0] = 0;
    if (*line == 0 || *line == '#') {
        return ML_OK;
    }
    if (strncmp(line, "frame", 5) == 0 && (line[5] == 0 || line[5] == ' ')) {
        return open_frame(packer, line + 5);
    }
    if (strncmp(line, "raw ", 4) == 0) {
        return add_raw(packer, line + 4);
    }
    if (!packer->frame_open) {
        const enum ml_status status = open_frame(packer, "");
        if (status != ML_OK) {
            return status;
        }
    }
    return strncmp(line, "bytes ", 6) == 0 ? add_bytes(packer, line + 6) : add_record(packer, line);
}
