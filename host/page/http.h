/* An HTTP server on the host's loop: libmicrohttpd within bounds of ours. Room: host. Context: the
 * host's one thread.
 *
 * One rule: nobody who connects can hold anything for long: connections, header sizes, bodies and
 * the time in which a request must be there are bounded, and whoever has asked for nothing gives
 * way first. */
#ifndef MEMLOG_HOST_PAGE_HTTP_H
#define MEMLOG_HOST_PAGE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error_message.h"
#include "ipc/wire/ml_status.h"

struct ev_loop;
struct ml_http;
struct ml_http_request;

/* A browser opens six connections a tab; the rest is for scripts. Above the first number those that
 * wait for nothing are closed, oldest first. */
enum { ML_HTTP_CONNECTIONS = 96, ML_HTTP_CONNECTIONS_MAX = 192 };

/* Request line and headers; no request of ours has a body worth the name. */
enum { ML_HTTP_HEAD_BYTES = 32 * 1024, ML_HTTP_BODY_BYTES = 4096 };

/* A request must be there so soon after its connection, and an answer must make progress. */
enum { ML_HTTP_DEADLINE_S = 15 };

/* Streams that are open at once, and what may wait in one for a reader that is slow. */
enum { ML_HTTP_STREAMS_MAX = 16, ML_HTTP_STREAM_BYTES = 4 << 20 };

struct ml_http_setup {
    struct ev_loop *loop;
    int take_listen_fd; /* listening, non-blocking; closed with the server, or on failure */
    /* The head of a request is here. To go on, do nothing; to refuse it, answer. */
    void (*on_head)(void *context, struct ml_http_request *request);
    /* It is here as a whole: answer now or later, once. */
    void (*on_request)(void *context, struct ml_http_request *request);
    void *context;
};

/* Errors: ML_ENV_SYSTEM, ML_ENV_MEMORY, with an error message. Owner: ml_http_close. */
ML_NODISCARD enum ml_status ml_http_open(
    const struct ml_http_setup *setup, struct ml_http **out_http, struct ml_error_message *error
);

/* Whoever still waits gets 503. NULL is allowed. */
void ml_http_close(struct ml_http *take_http);

/* What was asked, for the life of the request. NULL: no such header, no such argument. */
const char *ml_http_method(const struct ml_http_request *request);
const char *ml_http_path(const struct ml_http_request *request);
const char *ml_http_header(const struct ml_http_request *request, const char *name);
const char *ml_http_argument(const struct ml_http_request *request, const char *name);

/* What is answered: bytes, or a whole file. */
struct ml_http_answer {
    unsigned status;
    const char *content_type;
    const void *bytes; /* copied */
    size_t bytes_count;
    bool is_file; /* file_fd's file_bytes from its beginning instead; closed in any case */
    int take_file_fd;
    uint64_t file_bytes;
    const char *disposition; /* Content-Disposition; NULL: none */
    const char *cookie;      /* Set-Cookie; NULL: none */
    const char *allow;       /* Allow, with 405; NULL: none */
    const char *cache;       /* Cache-Control; NULL: no-store */
};
void ml_http_answer(struct ml_http_request *request, const struct ml_http_answer *answer);

/* Server-sent events instead of an answer. `on_closed` is called when the reader has gone. NULL:
 * there are too many already, or no memory; nothing was answered. */
struct ml_http_stream;
struct ml_http_stream *ml_http_stream_open(
    struct ml_http_request *request,
    void (*on_closed)(void *context, struct ml_http_stream *stream),
    void *context
);

/* Send more. False: the reader is too slow for it, nothing was taken. */
bool ml_http_stream_send(struct ml_http_stream *stream, const void *bytes, size_t bytes_count);

#endif
