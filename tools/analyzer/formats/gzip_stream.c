#include "tools/analyzer/formats/gzip_stream.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/types.h>

#define ZLIB_CONST /* it does not write to what it reads */
#include <zlib.h>

/* zlib's word for "with a gzip header": 15 bits of window and 16. */
enum { WINDOW_BITS_GZIP = 15 + 16, MEMORY_LEVEL = 8, BUFFER_BYTES = 64 * 1024 };

struct gzip {
    z_stream deflate;
    FILE *out;
    char in_bytes[BUFFER_BYTES]; /* the file's buffer */
    unsigned char out_bytes[BUFFER_BYTES];
};

static bool squeeze(struct gzip *gzip, int flush) {
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

static ssize_t write_some(void *cookie, const char *bytes, size_t count_bytes) {
    struct gzip *gzip = cookie;

    gzip->deflate.next_in = (const Bytef *)bytes;
    gzip->deflate.avail_in = (uInt)count_bytes;
    return squeeze(gzip, Z_NO_FLUSH) ? (ssize_t)count_bytes : 0;
}

static int finish(void *cookie) {
    struct gzip *gzip = cookie;
    bool done = squeeze(gzip, Z_FINISH);

    deflateEnd(&gzip->deflate);
    free(gzip);
    return done ? 0 : EOF;
}

FILE *ml_gzip_open(FILE *out) {
    struct gzip *gzip = calloc(1, sizeof *gzip);
    FILE *file = NULL;

    if (!gzip || deflateInit2(
                     &gzip->deflate,
                     Z_DEFAULT_COMPRESSION,
                     Z_DEFLATED,
                     WINDOW_BITS_GZIP,
                     MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY
                 ) != Z_OK) {
        free(gzip);
        return NULL;
    }
    gzip->out = out;
    file = fopencookie(gzip, "w", (cookie_io_functions_t){.write = write_some, .close = finish});
    if (!file) {
        (void)finish(gzip);
        return NULL;
    }
    (void)setvbuf(file, gzip->in_bytes, _IOFBF, sizeof gzip->in_bytes);
    return file;
}

enum ml_status ml_gzip_close(FILE *take_gzip, enum ml_status status) {
    bool done = !ferror(take_gzip);

    done = fclose(take_gzip) == 0 && done;
    return status == ML_OK && !done ? ML_ENV_SYSTEM : status;
}

static bool put_bytes(pb_ostream_t *stream, const pb_byte_t *bytes, size_t count_bytes) {
    return fwrite(bytes, 1, count_bytes, stream->state) == count_bytes;
}

pb_ostream_t ml_pb_stream_into(FILE *out) {
    return (pb_ostream_t){.callback = put_bytes, .state = out, .max_size = SIZE_MAX};
}
