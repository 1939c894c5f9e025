#include "tools/analyzer/fleet/form.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

enum { BOUNDARY_MAX = 128, FIRST_BYTES = 64 << 10 };

bool ml_fleet_is_multipart(struct ml_fleet_piece body) {
    return body.count_bytes > 2 && memcmp(body.bytes, "--", 2) == 0;
}

bool ml_fleet_is_gzip(struct ml_fleet_piece body) {
    return body.count_bytes > 2 && body.bytes[0] == 0x1f && body.bytes[1] == 0x8b;
}

/* Up to the text, which is passed over; all of it and false: it is not there. */
static bool
until(struct ml_fleet_piece *rest, const void *text, size_t count, struct ml_fleet_piece *out) {
    const uint8_t *found = memmem(rest->bytes, rest->count_bytes, text, count);

    *out = *rest;
    if (!found) {
        *rest = (struct ml_fleet_piece){rest->bytes + rest->count_bytes, 0};
        return false;
    }
    out->count_bytes = (size_t)(found - rest->bytes);
    rest->bytes = found + count;
    rest->count_bytes -= out->count_bytes + count;
    return true;
}

/* Whether a part's head has that name: name="...". */
static bool has_name(struct ml_fleet_piece head, const char *name) {
    char wanted[64];
    const int count = snprintf(wanted, sizeof wanted, " name=\"%s\"", name);

    return count > 0 && (size_t)count < sizeof wanted &&
           memmem(head.bytes, head.count_bytes, wanted, (size_t)count);
}

bool ml_fleet_part(struct ml_fleet_piece body, const char *name, struct ml_fleet_piece *out_part) {
    char boundary[BOUNDARY_MAX + 5] = "\r\n";
    struct ml_fleet_piece line;
    struct ml_fleet_piece head;
    struct ml_fleet_piece part;

    if (!ml_fleet_is_multipart(body) || !until(&body, "\r\n", 2, &line) ||
        line.count_bytes > BOUNDARY_MAX) {
        return false;
    }
    memcpy(boundary + 2, line.bytes, line.count_bytes);
    while (until(&body, "\r\n\r\n", 4, &head) && until(&body, boundary, line.count_bytes + 2, &part)
    ) {
        if (has_name(head, name)) {
            *out_part = part;
            return true;
        }
    }
    return false;
}

/* The bytes so far, with room for more. */
static bool grow(uint8_t **bytes, size_t *capacity) {
    uint8_t *grown = realloc(*bytes, *capacity * 2);

    if (!grown) {
        return false;
    }
    *bytes = grown;
    *capacity *= 2;
    return true;
}

static enum ml_status
inflate_all(z_stream *stream, uint8_t **bytes, size_t capacity, size_t *out_count) {
    int state = Z_OK;
    size_t count = 0;

    while (state == Z_OK) {
        if (count == capacity && capacity > ML_FLEET_UNPACKED_MAX / 2) {
            return ML_PEER_LIMIT;
        }
        if (count == capacity && !grow(bytes, &capacity)) {
            return ML_ENV_MEMORY;
        }
        stream->next_out = *bytes + count;
        stream->avail_out = (unsigned)(capacity - count);
        state = inflate(stream, Z_NO_FLUSH);
        count = capacity - stream->avail_out;
    }
    *out_count = count;
    return state == Z_STREAM_END ? ML_OK : ML_PEER_FORM;
}

enum ml_status
ml_fleet_unpack(struct ml_fleet_piece packed, uint8_t **out_bytes, size_t *out_count) {
    enum { GZIP_WINDOW = 15 + 16 };
    z_stream stream = {
        .next_in = (uint8_t *)(uintptr_t)packed.bytes, .avail_in = (unsigned)packed.count_bytes};
    uint8_t *bytes = malloc(FIRST_BYTES);
    enum ml_status status = ML_ENV_MEMORY;

    *out_bytes = NULL;
    if (packed.count_bytes > UINT32_MAX) {
        free(bytes);
        return ML_PEER_LIMIT;
    }
    if (bytes && inflateInit2(&stream, GZIP_WINDOW) == Z_OK) {
        status = inflate_all(&stream, &bytes, FIRST_BYTES, out_count);
        (void)inflateEnd(&stream);
    }
    if (status != ML_OK) {
        free(bytes);
        return status;
    }
    *out_bytes = bytes;
    return ML_OK;
}
