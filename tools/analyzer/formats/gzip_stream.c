#include "tools/analyzer/formats/gzip_stream.h"

#include <stdbool.h>
#include <string.h>
#include <sys/types.h>

/* zlib's word for "with a gzip header": 15 bits of window and 16. */
enum { WINDOW_BITS_GZIP = 15 + 16, MEMORY_LEVEL = 8 };

enum ml_status ml_gzip_stream_init(struct ml_gzip_stream *gzip, FILE *out) {
    memset(&gzip->deflate, 0, sizeof gzip->deflate);
    gzip->out = out;
    gzip->in_count = 0;
    if (deflateInit2(
            &gzip->deflate,
            Z_DEFAULT_COMPRESSION,
            Z_DEFLATED,
            WINDOW_BITS_GZIP,
            MEMORY_LEVEL,
            Z_DEFAULT_STRATEGY
        ) != Z_OK) {
        return ML_ENV_MEMORY;
    }
    return ML_OK;
}

static bool squeeze(struct ml_gzip_stream *gzip, int flush) {
    gzip->deflate.next_in = gzip->in_bytes;
    gzip->deflate.avail_in = (uInt)gzip->in_count;
    gzip->in_count = 0;
    do {
        size_t count = 0;

        gzip->deflate.next_out = gzip->out_bytes;
        gzip->deflate.avail_out = sizeof gzip->out_bytes;
        if (deflate(&gzip->deflate, flush) == Z_STREAM_ERROR) {
            return false;
        }
        count = sizeof gzip->out_bytes - gzip->deflate.avail_out;
        if (fwrite(gzip->out_bytes, 1, count, gzip->out) != count) {
            return false;
        }
    } while (gzip->deflate.avail_out == 0);
    return true;
}

static bool take(pb_ostream_t *stream, const pb_byte_t *bytes, size_t count_bytes) {
    struct ml_gzip_stream *gzip = stream->state;

    while (count_bytes > 0) {
        size_t room = sizeof gzip->in_bytes - gzip->in_count;
        size_t count = count_bytes < room ? count_bytes : room;

        memcpy(gzip->in_bytes + gzip->in_count, bytes, count);
        gzip->in_count += count;
        bytes += count;
        count_bytes -= count;
        if (gzip->in_count == sizeof gzip->in_bytes && !squeeze(gzip, Z_NO_FLUSH)) {
            return false;
        }
    }
    return true;
}

pb_ostream_t ml_gzip_stream_over(struct ml_gzip_stream *gzip) {
    return (pb_ostream_t){.callback = take, .state = gzip, .max_size = SIZE_MAX};
}

static ssize_t file_write(void *cookie, const char *bytes, size_t count_bytes) {
    pb_ostream_t stream = ml_gzip_stream_over(cookie);

    return take(&stream, (const pb_byte_t *)bytes, count_bytes) ? (ssize_t)count_bytes : 0;
}

FILE *ml_gzip_stream_file(struct ml_gzip_stream *gzip) {
    return fopencookie(gzip, "w", (cookie_io_functions_t){.write = file_write});
}

enum ml_status ml_gzip_stream_finish(struct ml_gzip_stream *gzip) {
    bool done = squeeze(gzip, Z_FINISH);

    deflateEnd(&gzip->deflate);
    return done ? ML_OK : ML_ENV_SYSTEM;
}
