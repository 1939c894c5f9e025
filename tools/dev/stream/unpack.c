#include "tools/dev/stream/pack.h"

#include <stdlib.h>

static void write_hex(FILE *out, const char *word, const uint8_t *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (i % 32 == 0) {
            fprintf(out, "%s%s ", i == 0 ? "" : "\n", word);
        }
        fprintf(out, "%02x", bytes[i]);
    }
    fputc('\n', out);
}

/* A frame's first line; what its defaults say is left out. */
static void write_frame_line(
    FILE *out, const struct ml_frame_header *header, const struct ml_stream_packer_lane *lane
) {
    const uint64_t chunk = lane->used ? lane->chunk + 1 : 0;
    const bool continues = lane->used && lane->chunk == header->chunk_number;
    fprintf(out, "frame lane=%u", (unsigned)header->lane);
    if (header->chunk_number != chunk) {
        fprintf(out, " chunk=%llu", (unsigned long long)header->chunk_number);
    }
    if (header->start_bytes != (continues ? lane->bytes : 0)) {
        fprintf(out, " start=%u", (unsigned)header->start_bytes);
    }
    if (header->thread_id != 0) {
        fprintf(out, " thread=%u", (unsigned)header->thread_id);
    }
    fputc('\n', out);
}

static void write_payload(
    FILE *out,
    const struct ml_frame_header *header,
    struct ml_stream_packer_lane *lane,
    const uint8_t *bytes
) {
    char line[ML_STREAM_LINE_MAX_BYTES];
    const bool continues = lane->used && lane->chunk == header->chunk_number;
    struct ml_reader r = ml_reader_over(bytes, (size_t)(header->end_bytes - header->start_bytes));
    if (!continues || lane->bytes == 0) {
        lane->state = (struct ml_event_state){0};
    }
    enum ml_status status = ML_OK;
    if (header->start_bytes != (continues ? lane->bytes : 0)) {
        fprintf(out, "# what comes before in this chunk is missing\n");
        status = ML_PEER_STATE;
    }
    while (status == ML_OK && ml_reader_left(&r) > 0) {
        struct ml_event event;
        status = ml_event_decode(&r, &lane->state, &event);
        if (status == ML_OK) {
            ml_stream_text_format(&event, line);
            fprintf(out, "%s\n", line);
        } else {
            fprintf(out, "# %s: %s\n", ml_status_name(status), ml_status_text(status));
        }
    }
    if (status != ML_OK) {
        write_hex(out, "bytes", r.pos, ml_reader_left(&r));
    }
    lane->used = true;
    lane->chunk = header->chunk_number;
    lane->bytes = header->end_bytes;
}

enum ml_status ml_stream_unpack(const uint8_t *bytes, size_t count_bytes, FILE *out) {
    struct ml_stream_packer_lane *lanes = calloc(ML_LANES_MAX, sizeof(*lanes));
    if (lanes == NULL) {
        return ML_ENV_MEMORY;
    }
    struct ml_reader r = ml_reader_over(bytes, count_bytes);
    while (ml_reader_left(&r) > 0) {
        struct ml_reader whole = r;
        struct ml_frame_header header = {.lane = 0};
        const uint8_t *payload = NULL;
        enum ml_status status = ml_frame_header_read(&r, &header);
        if (status == ML_OK) {
            status = ml_reader_bytes(&r, (size_t)(header.end_bytes - header.start_bytes), &payload);
        }
        if (status != ML_OK) {
            fprintf(out, "# %s: %s\n", ml_status_name(status), ml_status_text(status));
            write_hex(out, "raw", whole.pos, ml_reader_left(&whole));
            break;
        }
        write_frame_line(out, &header, &lanes[header.lane]);
        write_payload(out, &header, &lanes[header.lane], payload);
    }
    free(lanes);
    return fflush(out) == 0 && ferror(out) == 0 ? ML_OK : ML_ENV_SYSTEM;
}
