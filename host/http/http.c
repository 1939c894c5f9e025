#include "host/http/http.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host/http/internal.h"
#include "host/http/tls.h"
#include "host/process/loop.h"

/* ---- the daemon on the loop */

static void run(struct ml_http *http) {
    MHD_UNSIGNED_LONG_LONG wait_ms = 0;
    ev_timer_stop(http->setup.loop, &http->timer);
    (void)MHD_run(http->daemon);
    if (MHD_get_timeout(http->daemon, &wait_ms) == MHD_YES) {
        ml_timer_start(http->setup.loop, &http->timer, (double)wait_ms / 1000.);
    }
}

static void on_readable(struct ev_loop *loop, ev_io *watcher, int events) {
    (void)loop;
    (void)events;
    run(watcher->data);
}

static void on_timer(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)loop;
    (void)events;
    run(watcher->data);
}

void ml_http_run_soon(struct ml_http *http) {
    ml_timer_start(http->setup.loop, &http->timer, 0.);
}

/* ---- connections: the oldest that waits for nothing gives way */

static void close_connection(struct ml_http_connection *connection) {
    (void)shutdown(connection->fd, SHUT_RDWR); /* libmicrohttpd reads the end and closes it */
}

static void on_sweep(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)events;
    struct ml_http *http = watcher->data;
    const double now = ev_now(loop);
    struct ml_http_connection *one = NULL;
    TAILQ_FOREACH(one, &http->connections, links) {
        if (one->busy == 0 && now - one->since > (double)ML_HTTP_DEADLINE_S) {
            close_connection(one);
        }
    }
    if (TAILQ_EMPTY(&http->connections)) {
        ev_timer_stop(loop, watcher);
    }
}

static void make_room(struct ml_http *http) {
    if (http->connections_count <= ML_HTTP_CONNECTIONS) {
        return;
    }
    struct ml_http_connection *one = NULL;
    TAILQ_FOREACH(one, &http->connections, links) {
        if (one->busy == 0 && one->fd >= 0) {
            close_connection(one);
            one->fd = -1; /* once is enough; the next newcomer closes another one */
            return;
        }
    }
}

static void connection_add(struct ml_http *http, struct MHD_Connection *mhd, void **out_context) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct ml_http_connection *connection = info != NULL ? calloc(1, sizeof(*connection)) : NULL;
    *out_context = connection;
    if (connection == NULL) {
        return;
    }
    *connection = (struct ml_http_connection){
        .http = http,
        .fd = info->connect_fd,
        .since = ev_now(http->setup.loop),
    };
    TAILQ_INSERT_TAIL(&http->connections, connection, links);
    http->connections_count++;
    make_room(http);
    if (!ev_is_active(&http->sweeper)) {
        ev_timer_again(http->setup.loop, &http->sweeper);
    }
}

static void on_connection(
    void *context,
    struct MHD_Connection *mhd,
    void **connection_context,
    enum MHD_ConnectionNotificationCode code
) {
    struct ml_http *http = context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        connection_add(http, mhd, connection_context);
    } else if (*connection_context != NULL) {
        struct ml_http_connection *connection = *connection_context;
        TAILQ_REMOVE(&http->connections, connection, links);
        http->connections_count--;
        free(connection);
        *connection_context = NULL;
    }
}

/* ---- requests */

static struct ml_http_connection *connection_of(struct MHD_Connection *mhd) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info != NULL ? info->socket_context : NULL;
}

static struct ml_http_request *request_new(
    struct ml_http *http, struct MHD_Connection *mhd, const char *path, const char *method
) {
    struct ml_http_request *request = calloc(1, sizeof(*request));
    if (request == NULL) {
        return NULL;
    }
    *request = (struct ml_http_request){
        .http = http,
        .connection = connection_of(mhd),
        .mhd = mhd,
        .method = method,
        .path = path,
    };
    LIST_INSERT_HEAD(&http->requests, request, links);
    return request;
}

static void on_completed(
    void *context,
    struct MHD_Connection *mhd,
    void **request_context,
    enum MHD_RequestTerminationCode code
) {
    (void)mhd;
    (void)code;
    struct ml_http *http = context;
    struct ml_http_request *request = *request_context;
    if (request == NULL) {
        return;
    }
    LIST_REMOVE(request, links);
    if (request->connection != NULL) {
        request->connection->since = ev_now(http->setup.loop);
        request->connection->busy -= request->is_handed ? 1 : 0;
    }
    if (request->stream != NULL) {
        ml_http_stream_free(request->stream);
    }
    if (http->setup.on_end != NULL) {
        http->setup.on_end(http->setup.context, request);
    }
    if (request->response != NULL) {
        MHD_destroy_response(request->response);
    }
    free(request);
    *request_context = NULL;
}

static enum MHD_Result send_response(struct ml_http_request *request) {
    return MHD_queue_response(request->mhd, request->status, request->response);
}

static void answer_text(struct ml_http_request *request, unsigned status, const char *text) {
    const struct ml_http_answer answer = {
        .status = status,
        .content_type = "text/plain; charset=utf-8",
        .bytes = text,
        .bytes_count = strlen(text),
    };
    ml_http_answer(request, &answer);
}

static enum MHD_Result hand_over(struct ml_http_request *request) {
    struct ml_http *http = request->http;
    request->is_handed = true;
    if (request->connection != NULL) {
        request->connection->busy++;
    }
    if (http->is_closing) { /* nobody would let it go on: libmicrohttpd aborts where one waits */
        answer_text(request, 503, "memlog ends\n");
    } else {
        http->setup.on_request(http->setup.context, request);
    }
    if (request->response != NULL) {
        return send_response(request);
    }
    if (http->is_closing) {
        return MHD_NO;
    }
    MHD_suspend_connection(request->mhd);
    request->is_waiting = true;
    return MHD_YES;
}

/* Headers that decide something. A proxy may read a second one of them otherwise. */
static const char *const single_headers[] = {
    "Host",
    "Content-Length",
    "Transfer-Encoding",
    "Authorization",
    "Origin",
    "Sec-Fetch-Site",
};
enum { SINGLE_HEADERS = sizeof(single_headers) / sizeof(single_headers[0]) };

struct head {
    unsigned counts[SINGLE_HEADERS];
    const char *length;
    const char *transfer;
    bool is_folded; /* a value goes on behind the end of a line */
};

static enum MHD_Result
on_header(void *context, enum MHD_ValueKind kind, const char *name, const char *value) {
    (void)kind;
    struct head *head = context;
    for (size_t i = 0; i < SINGLE_HEADERS; i++) {
        head->counts[i] += strcasecmp(name, single_headers[i]) == 0 ? 1 : 0;
    }
    if (strcasecmp(name, "Content-Length") == 0) {
        head->length = value != NULL ? value : "";
    } else if (strcasecmp(name, "Transfer-Encoding") == 0) {
        head->transfer = value != NULL ? value : "";
    }
    head->is_folded = head->is_folded || strpbrk(name, " \t\r\n") != NULL ||
                      (value != NULL && strpbrk(value, "\r\n") != NULL);
    return MHD_YES;
}

/* Whether a head can be read in one way only: where its body ends, and which host it is for. */
static bool is_plain(struct MHD_Connection *mhd, const char *path) {
    struct head head = {.length = NULL};
    (void)MHD_get_connection_values(mhd, MHD_HEADER_KIND, on_header, &head);
    for (size_t i = 0; i < SINGLE_HEADERS; i++) {
        if (head.counts[i] > 1) {
            return false;
        }
    }
    if (head.length != NULL && (head.transfer != NULL || head.length[0] == '\0' ||
                                head.length[strspn(head.length, "0123456789")] != '\0')) {
        return false;
    }
    return path[0] == '/' && !head.is_folded &&
           (head.transfer == NULL || strcasecmp(head.transfer, "chunked") == 0);
}

static enum MHD_Result take_body(struct ml_http_request *request, const void *bytes, size_t count) {
    struct ml_http *http = request->http;
    request->body_bytes += count;
    if (http->setup.on_body == NULL) {
        return request->body_bytes <= ML_HTTP_BODY_BYTES ? MHD_YES : MHD_NO;
    }
    if (request->connection != NULL &&
        request->body_bytes - request->progress_bytes >= ML_HTTP_PROGRESS_BYTES) {
        request->progress_bytes = request->body_bytes;
        request->connection->since = ev_now(http->setup.loop);
    }
    /* An answer that is there already follows when the body has been read. */
    return request->response != NULL ||
                   http->setup.on_body(http->setup.context, request, bytes, count) ||
                   request->response != NULL
               ? MHD_YES
               : MHD_NO;
}

/* Called by libmicrohttpd: first with the head alone, then with pieces of the body, then without
 * any; and once more when a waiting one was resumed. */
static enum MHD_Result on_access(
    void *context,
    struct MHD_Connection *mhd,
    const char *path,
    const char *method,
    const char *version,
    const char *body,
    size_t *body_count,
    void **request_context
) {
    (void)version;
    struct ml_http *http = context;
    struct ml_http_request *request = *request_context;
    if (request == NULL) {
        request = request_new(http, mhd, path, method);
        if (request == NULL) {
            return MHD_NO;
        }
        *request_context = request;
        if (!is_plain(mhd, path)) {
            answer_text(request, 400, "this head can be read in more than one way\n");
            if (request->response != NULL) {
                (void)MHD_add_response_header(request->response, "Connection", "close");
                return send_response(request);
            }
            return MHD_NO;
        }
        http->setup.on_head(http->setup.context, request);
        return request->response != NULL ? send_response(request) : MHD_YES;
    }
    if (*body_count > 0) {
        const size_t count = *body_count;
        *body_count = 0;
        return take_body(request, body, count);
    }
    if (request->response != NULL) {
        return send_response(request);
    }
    return request->is_handed ? MHD_YES : hand_over(request);
}

/* %00 would end a text of ours early: it stays as it is. */
static size_t unescape(void *context, struct MHD_Connection *mhd, char *text) {
    (void)context;
    (void)mhd;
    char *out = text;
    for (const char *at = text; *at != '\0'; at++) {
        unsigned byte = 0;
        const bool is_escape =
            at[0] == '%' && strspn(at + 1, "0123456789abcdefABCDEF") >= 2 && at[1] != '\0';
        if (is_escape) {
            const char digits[] = {at[1], at[2], '\0'};
            byte = (unsigned)strtoul(digits, NULL, 16);
        }
        if (is_escape && byte != 0) {
            *out++ = (char)byte;
            at += 2;
        } else {
            *out++ = *at;
        }
    }
    *out = '\0';
    return (size_t)(out - text);
}

const char *ml_http_method(const struct ml_http_request *request) {
    return request->method;
}

const char *ml_http_path(const struct ml_http_request *request) {
    return request->path;
}

const char *ml_http_header(const struct ml_http_request *request, const char *name) {
    return MHD_lookup_connection_value(request->mhd, MHD_HEADER_KIND, name);
}

const char *ml_http_argument(const struct ml_http_request *request, const char *name) {
    return MHD_lookup_connection_value(request->mhd, MHD_GET_ARGUMENT_KIND, name);
}

struct each_argument {
    bool (*call)(void *context, const char *name);
    void *context;
    bool is_done;
};

static enum MHD_Result
on_argument(void *context, enum MHD_ValueKind kind, const char *name, const char *value) {
    struct each_argument *each = context;
    (void)kind;
    (void)value;
    each->is_done = each->call(each->context, name != NULL ? name : "");
    return each->is_done ? MHD_YES : MHD_NO;
}

bool ml_http_each_argument(
    const struct ml_http_request *request,
    bool (*call)(void *context, const char *name),
    void *context
) {
    struct each_argument each = {.call = call, .context = context, .is_done = true};
    (void)MHD_get_connection_values(request->mhd, MHD_GET_ARGUMENT_KIND, on_argument, &each);
    return each.is_done;
}

void **ml_http_own(struct ml_http_request *request) {
    return &request->own;
}

bool ml_http_is_gone(const struct ml_http_request *request) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(request->mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct pollfd client = {.fd = info != NULL ? info->connect_fd : -1, .events = POLLRDHUP};
    return poll(&client, 1, 0) > 0;
}

static void add(struct MHD_Response *response, const char *name, const char *value) {
    if (value != NULL) {
        (void)MHD_add_response_header(response, name, value);
    }
}

void ml_http_add_headers(struct MHD_Response *response, const struct ml_http_answer *answer) {
    add(response, "Content-Type", answer->content_type);
    add(response, "Content-Disposition", answer->disposition);
    add(response, "Set-Cookie", answer->cookie);
    add(response, "Allow", answer->allow);
    add(response, "Retry-After", answer->retry_after);
    add(response, "ETag", answer->etag);
    add(response, "Cache-Control", answer->cache != NULL ? answer->cache : "no-store");
    add(response,
        "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
    add(response, "X-Content-Type-Options", "nosniff");
    add(response, "X-Frame-Options", "DENY");
    add(response, "Referrer-Policy", "no-referrer");
    add(response, "Cross-Origin-Resource-Policy", "same-origin");
    add(response, "Cross-Origin-Opener-Policy", "same-origin");
}

void ml_http_answer(struct ml_http_request *request, const struct ml_http_answer *answer) {
    struct MHD_Response *response = NULL;
    if (answer->is_file) {
        response = MHD_create_response_from_fd64(answer->file_bytes, answer->take_file_fd);
        if (response == NULL) {
            (void)close(answer->take_file_fd);
        }
    } else {
        response = MHD_create_response_from_buffer(
            answer->bytes_count, (void *)(uintptr_t)answer->bytes, MHD_RESPMEM_MUST_COPY
        );
    }
    request->status = response != NULL ? answer->status : 500;
    if (response == NULL) {
        static char nothing[] = "";
        response = MHD_create_response_from_buffer(0, nothing, MHD_RESPMEM_PERSISTENT);
    }
    if (response == NULL) {
        return; /* no memory even for that: the connection ends by its timeout */
    }
    ml_http_add_headers(response, answer);
    request->response = response;
    if (request->is_waiting) {
        request->is_waiting = false;
        MHD_resume_connection(request->mhd);
        ml_http_run_soon(request->http);
    }
}

/* ---- birth and end */

enum ml_status ml_http_open(
    const struct ml_http_setup *setup, struct ml_http **out_http, struct ml_error_message *error
) {
    struct ml_http *http = calloc(1, sizeof(*http));
    if (http == NULL) {
        (void)close(setup->take_listen_fd);
        return ML_ENV_MEMORY;
    }
    http->setup = *setup;
    TAILQ_INIT(&http->connections);
    const struct MHD_OptionItem none = {.option = MHD_OPTION_END};
    const bool is_secret = setup->tls != NULL;
    http->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | (is_secret ? MHD_USE_TLS : 0U),
        0,
        NULL,
        NULL,
        on_access,
        http,
        MHD_OPTION_LISTEN_SOCKET,
        setup->take_listen_fd,
        MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)ML_HTTP_CONNECTIONS_MAX,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)ML_HTTP_HEAD_BYTES,
        MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)ML_HTTP_DEADLINE_S,
        MHD_OPTION_NOTIFY_COMPLETED,
        on_completed,
        http,
        MHD_OPTION_NOTIFY_CONNECTION,
        on_connection,
        http,
        MHD_OPTION_UNESCAPE_CALLBACK,
        unescape,
        NULL,
        MHD_OPTION_STRICT_FOR_CLIENT,
        1,
        MHD_OPTION_ARRAY,
        is_secret ? setup->tls->options : &none,
        MHD_OPTION_END
    );
    const union MHD_DaemonInfo *info =
        http->daemon != NULL ? MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
    if (info == NULL) {
        ml_error_set(error, "the HTTP server did not start: %s", strerror(errno));
        if (http->daemon != NULL) {
            MHD_stop_daemon(http->daemon);
        } else {
            (void)close(setup->take_listen_fd);
        }
        free(http);
        return ML_ENV_SYSTEM;
    }
    ml_watch_readable(setup->loop, &http->watcher, on_readable, info->epoll_fd, http);
    ml_timer_init(&http->timer, on_timer, http);
    ml_timer_init_every(&http->sweeper, on_sweep, 1., http);
    *out_http = http;
    return ML_OK;
}

void ml_http_close(struct ml_http *take_http) {
    struct ml_http *http = take_http;
    if (http == NULL) {
        return;
    }
    http->is_closing = true;
    struct ml_http_request *one = NULL;
    LIST_FOREACH(one, &http->requests, links) {
        if (one->stream != NULL) {
            one->stream->is_ending = true;
            if (one->stream->is_waiting) {
                one->stream->is_waiting = false;
                MHD_resume_connection(one->mhd);
            }
        } else if (one->is_waiting) {
            answer_text(one, 503, "memlog ends\n");
        }
    }
    (void)MHD_run(http->daemon);
    ev_timer_stop(http->setup.loop, &http->sweeper);
    ev_timer_stop(http->setup.loop, &http->timer);
    ev_io_stop(http->setup.loop, &http->watcher);
    MHD_stop_daemon(http->daemon);
    free(http);
}
