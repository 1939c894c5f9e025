/* An HTTP server on the host's loop: libmicrohttpd within bounds of ours. Room: host. Context: the
 * host's one thread.
 *
 * One rule: no client can hold anything for long. Connections, headers, bodies and the time for a
 * request are bounded, and idle connections are closed first. */
#ifndef MEMLOG_HOST_HTTP_HTTP_H
#define MEMLOG_HOST_HTTP_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error_message.h"
#include "ipc/wire/ml_status.h"

struct ev_loop;
struct ml_http;
struct ml_http_request;
struct ml_http_tls;

/* A browser opens six connections a tab; the rest is for scripts. Above the first number those that
 * wait for nothing are closed, oldest first. */
enum { ML_HTTP_CONNECTIONS = 96, ML_HTTP_CONNECTIONS_MAX = 192 };

/* Request line and headers; and a body that nobody reads. */
enum { ML_HTTP_HEAD_BYTES = 32 * 1024, ML_HTTP_BODY_BYTES = 4096 };

/* The time for a request after its connection, for so many further bytes of a body that is read,
 * and for an answer to make progress. */
enum { ML_HTTP_DEADLINE_S = 15, ML_HTTP_PROGRESS_BYTES = 64 << 10 };

/* Streams that are open at once, and the bytes that may wait in one for a slow reader. */
enum { ML_HTTP_STREAMS_MAX = 16, ML_HTTP_STREAM_BYTES = 4 << 20 };

struct ml_http_setup {
    struct ev_loop *loop;
    int take_listen_fd; /* listening, non-blocking; closed with the server, or on failure */
    /* The head of a request was read. Answer to refuse it, do nothing to go on. */
    void (*on_head)(void *context, struct ml_http_request *request);
    /* A piece of its body. False: no more of it is wanted; answer then, or the connection is cut.
     * NULL: bodies are not read. */
    bool (*on_body
    )(void *context, struct ml_http_request *request, const void *bytes, size_t bytes_count);
    /* The whole request was read: answer once, now or later. */
    void (*on_request)(void *context, struct ml_http_request *request);
    /* It has ended, answered or not: its `own` is to be freed. NULL is allowed. */
    void (*on_end)(void *context, struct ml_http_request *request);
    void *context;
    /* For TLS: host/http/tls.h. Borrowed for the server's life. NULL: plain HTTP. */
    const struct ml_http_tls *tls;
};

/* Errors: ML_ENV_SYSTEM, ML_ENV_MEMORY, with an error message. Owner: ml_http_close. */
ML_NODISCARD enum ml_status ml_http_open(
    const struct ml_http_setup *setup, struct ml_http **out_http, struct ml_error_message *error
);

/* Requests that still wait get 503. NULL is allowed. */
void ml_http_close(struct ml_http *take_http);

/* Parts of the request, for its life. NULL: no such header, no such argument. */
const char *ml_http_method(const struct ml_http_request *request);
const char *ml_http_path(const struct ml_http_request *request);
const char *ml_http_header(const struct ml_http_request *request, const char *name);
const char *ml_http_argument(const struct ml_http_request *request, const char *name);

/* Call it with the name of each argument, until it says false; then this does, too. */
bool ml_http_each_argument(
    const struct ml_http_request *request,
    bool (*call)(void *context, const char *name),
    void *context
);

/* What the owner of the server keeps of a request. NULL at first. */
void **ml_http_own(struct ml_http_request *request);

/* Whether its client has hung up. One that waits is not told of it otherwise. */
bool ml_http_is_gone(const struct ml_http_request *request);

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
    const char *retry_after; /* Retry-After; NULL: none */
    const char *etag;        /* ETag; NULL: none */
    const char *cache;       /* Cache-Control; NULL: no-store */
};
void ml_http_answer(struct ml_http_request *request, const struct ml_http_answer *answer);

/* Server-sent events instead of an answer. `on_closed` is called when the reader has gone. NULL:
 * there are too many streams, or no memory; nothing was answered. */
struct ml_http_stream;
struct ml_http_stream *ml_http_stream_open(
    struct ml_http_request *request,
    void (*on_closed)(void *context, struct ml_http_stream *stream),
    void *context
);

/* Send more. False: the reader is too slow for it, nothing was taken. */
bool ml_http_stream_send(struct ml_http_stream *stream, const void *bytes, size_t bytes_count);

#endif
