/* Server-sent events: an answer without an end. Room: host. */
#include <stdlib.h>
#include <string.h>

#include "host/http/internal.h"

enum { STREAM_PIECE_BYTES = 64 * 1024 };

ssize_t ml_http_stream_read(void *context, uint64_t at, char *out_bytes, size_t bytes_max) {
    (void)at;
    struct ml_http_stream *stream = context;
    if (stream->is_ending) {
        return MHD_CONTENT_READER_END_OF_STREAM;
    }
    if (stream->bytes_count == 0) {
        stream->is_waiting = true;
        MHD_suspend_connection(stream->request->mhd);
        return 0;
    }
    const size_t count = stream->bytes_count < bytes_max ? stream->bytes_count : bytes_max;
    memcpy(out_bytes, stream->bytes, count);
    stream->bytes_count -= count;
    memmove(stream->bytes, stream->bytes + count, stream->bytes_count);
    return (ssize_t)count;
}

void ml_http_stream_free(struct ml_http_stream *stream) {
    stream->http->streams_count--;
    stream->on_closed(stream->context, stream);
    free(stream->bytes);
    free(stream);
}

struct ml_http_stream *ml_http_stream_open(
    struct ml_http_request *request,
    void (*on_closed)(void *context, struct ml_http_stream *stream),
    void *context
) {
    struct ml_http *http = request->http;
    if (http->streams_count >= ML_HTTP_STREAMS_MAX || http->is_closing) {
        return NULL;
    }
    struct ml_http_stream *stream = calloc(1, sizeof(*stream));
    if (stream == NULL) {
        return NULL;
    }
    *stream = (struct ml_http_stream
    ){.http = http, .request = request, .on_closed = on_closed, .context = context};
    request->response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, STREAM_PIECE_BYTES, ml_http_stream_read, stream, NULL
    );
    if (request->response == NULL) {
        free(stream);
        return NULL;
    }
    const struct ml_http_answer answer = {.content_type = "text/event-stream"};
    ml_http_add_headers(request->response, &answer);
    request->status = 200;
    request->stream = stream;
    http->streams_count++;
    /* It may well have nothing to say for longer. */
    (void)MHD_set_connection_option(request->mhd, MHD_CONNECTION_OPTION_TIMEOUT, 0U);
    return stream;
}

bool ml_http_stream_send(struct ml_http_stream *stream, const void *bytes, size_t bytes_count) {
    const size_t needed = stream->bytes_count + bytes_count;
    if (stream->is_ending || needed > ML_HTTP_STREAM_BYTES) {
        return false;
    }
    if (needed > stream->bytes_capacity) {
        char *grown = realloc(stream->bytes, needed);
        if (grown == NULL) {
            return false;
        }
        stream->bytes = grown;
        stream->bytes_capacity = needed;
    }
    memcpy(stream->bytes + stream->bytes_count, bytes, bytes_count);
    stream->bytes_count = needed;
    if (stream->is_waiting) {
        stream->is_waiting = false;
        MHD_resume_connection(stream->request->mhd);
        ml_http_run_soon(stream->http);
    }
    return true;
}
