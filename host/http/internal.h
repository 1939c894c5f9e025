/* Private to the HTTP server: its connections, requests and streams. Room: host. */
#ifndef MEMLOG_HOST_HTTP_INTERNAL_H
#define MEMLOG_HOST_HTTP_INTERNAL_H

#include <sys/queue.h>

#include <ev.h>
#include <microhttpd.h>

#include "host/http/http.h"

/* One that somebody has opened; oldest first. */
struct ml_http_connection {
    struct ml_http *http;
    int fd;        /* libmicrohttpd's */
    double since;  /* when it was opened, or its last request was answered */
    unsigned busy; /* requests that we have and that are not answered to the end */
    TAILQ_ENTRY(ml_http_connection) links;
};

struct ml_http_request {
    struct ml_http *http;
    struct ml_http_connection *connection;
    struct MHD_Connection *mhd;
    const char *method;
    const char *path;
    struct MHD_Response *response; /* NULL: none yet */
    unsigned status;
    size_t body_bytes;
    size_t progress_bytes; /* of it when the connection's time was last prolonged */
    void *own;
    bool is_handed;  /* on_request was called */
    bool is_waiting; /* suspended until somebody answers */
    struct ml_http_stream *stream;
    LIST_ENTRY(ml_http_request) links;
};

struct ml_http_stream {
    struct ml_http *http;
    struct ml_http_request *request;
    char *bytes;
    size_t bytes_count;
    size_t bytes_capacity;
    bool is_waiting; /* its connection is suspended: it has sent all there was */
    bool is_ending;  /* the server closes */
    void (*on_closed)(void *context, struct ml_http_stream *stream);
    void *context;
};

struct ml_http {
    struct ml_http_setup setup;
    struct MHD_Daemon *daemon;
    ev_io watcher;
    ev_timer timer;   /* libmicrohttpd's own */
    ev_timer sweeper; /* ends what takes too long */
    bool is_closing;
    unsigned connections_count;
    TAILQ_HEAD(, ml_http_connection) connections;
    LIST_HEAD(, ml_http_request) requests;
    unsigned streams_count;
};

/* stream.c: what libmicrohttpd asks for more of a stream, and when it lets go of it. */
ssize_t ml_http_stream_read(void *context, uint64_t at, char *out_bytes, size_t bytes_max);
void ml_http_stream_free(struct ml_http_stream *stream);

/* Let the daemon look at what has changed: a connection was resumed. */
void ml_http_run_soon(struct ml_http *http);

/* Headers that every answer of ours carries. */
void ml_http_add_headers(struct MHD_Response *response, const struct ml_http_answer *answer);

#endif
