#include "host/upload/web_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/types.h>
#include <unistd.h>

#include <ev.h>

#include "host/process/loop.h"

enum {
    STALL_BYTES = 64, /* a second; a server that takes less for a while hangs */
    STALL_S = 30,
    HASH_BYTES = 32,
    PIECE_BYTES = 8192,
    /* OpenSSL's X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT to _UNABLE_TO_VERIFY_LEAF_SIGNATURE: nobody
     * who is trusted has signed it. */
    X509_SELF_SIGNED = 18,
    X509_NO_ISSUER = 21,
};

struct ml_web_call {
    const struct ml_curl_api *api;
    struct ev_loop *loop;
    CURLM *multi;
    CURL *easy; /* NULL: none is under way */
    struct curl_slist *headers;
    const char *body;
    int body_fd;
    uint64_t body_offset, body_bytes, body_at;
    ev_timer timer;
    bool failed;                 /* it could not be begun: `timer` tells who asked */
    char error[CURL_ERROR_SIZE]; /* libcurl's words for this one, where it has any */
    struct ml_web_answer answer;
    ml_web_done *on_done;
    bool (*on_bytes)(void *context, const char *bytes, size_t count_bytes);
    void *context;
};

/* ---- libcurl's sockets and timer on libev */

static void check_done(struct ml_web_call *call);

static void on_socket_ready(struct ev_loop *loop, ev_io *watcher, int events) {
    (void)loop;
    struct ml_web_call *call = watcher->data;
    int running = 0;
    const int action = ((events & EV_READ) != 0 ? CURL_CSELECT_IN : 0) |
                       ((events & EV_WRITE) != 0 ? CURL_CSELECT_OUT : 0);
    (void)call->api->multi_socket_action(call->multi, watcher->fd, action, &running);
    check_done(call);
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *socket_context) {
    (void)easy;
    struct ml_web_call *call = context;
    ev_io *watcher = socket_context;
    if (watcher != NULL) {
        ev_io_stop(call->loop, watcher);
    }
    if (what == CURL_POLL_REMOVE) {
        (void)call->api->multi_assign(call->multi, fd, NULL);
        free(watcher);
        return 0;
    }
    if (watcher == NULL) {
        watcher = calloc(1, sizeof(*watcher));
        if (watcher == NULL) {
            return -1;
        }
        (void)call->api->multi_assign(call->multi, fd, watcher);
    }
    ev_io_init(
        watcher,
        on_socket_ready,
        fd,
        ((what & CURL_POLL_IN) != 0 ? EV_READ : 0) | ((what & CURL_POLL_OUT) != 0 ? EV_WRITE : 0)
    );
    watcher->data = call;
    ev_io_start(call->loop, watcher);
    return 0;
}

static void on_timer(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)loop;
    (void)events;
    struct ml_web_call *call = watcher->data;
    int running = 0;
    if (!call->failed) {
        (void)call->api->multi_socket_action(call->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
    check_done(call);
}

static int on_timer_change(CURLM *multi, long timeout_ms, void *context) {
    (void)multi;
    struct ml_web_call *call = context;
    if (timeout_ms >= 0) {
        ml_timer_start(call->loop, &call->timer, (double)timeout_ms / 1000.);
    } else {
        ev_timer_stop(call->loop, &call->timer);
    }
    return 0;
}

/* ---- what comes back */

void ml_web_answer_body(struct ml_web_answer *answer, const char *bytes, size_t count_bytes) {
    const size_t room = sizeof(answer->body) - 1 - answer->body_bytes;
    const size_t taken = count_bytes < room ? count_bytes : room;
    memcpy(answer->body + answer->body_bytes, bytes, taken);
    answer->body_bytes += taken;
    answer->body[answer->body_bytes] = '\0';
}

static size_t on_answer(char *bytes, size_t size, size_t count, void *context) {
    struct ml_web_call *call = context;
    ml_web_answer_body(&call->answer, bytes, size * count);
    if (call->on_bytes != NULL && !call->on_bytes(call->context, bytes, size * count)) {
        return 0; /* libcurl ends the request */
    }
    return size * count;
}

/* Its value, if the line is that header. */
static void take_value(
    const char *line, size_t line_bytes, const char *key, char out_value[ML_WEB_VALUE_BYTES]
) {
    size_t from = strlen(key);
    if (line_bytes <= from || strncasecmp(line, key, from) != 0) {
        return;
    }
    while (from < line_bytes && line[from] == ' ') {
        from++;
    }
    while (line_bytes > from && (line[line_bytes - 1] == '\r' || line[line_bytes - 1] == '\n')) {
        line_bytes--;
    }
    (void)snprintf(out_value, ML_WEB_VALUE_BYTES, "%.*s", (int)(line_bytes - from), line + from);
}

void ml_web_answer_line(struct ml_web_answer *answer, const char *line, size_t line_bytes) {
    take_value(line, line_bytes, "Retry-After:", answer->retry_after);
    take_value(line, line_bytes, "ETag:", answer->etag);
}

static size_t on_header(char *bytes, size_t size, size_t count, void *context) {
    ml_web_answer_line(&((struct ml_web_call *)context)->answer, bytes, size * count);
    return size * count;
}

static void clean_up(struct ml_web_call *call) {
    ev_timer_stop(call->loop, &call->timer);
    if (call->easy != NULL) {
        (void)call->api->multi_remove_handle(call->multi, call->easy);
        call->api->easy_cleanup(call->easy);
        call->easy = NULL;
    }
    if (call->headers != NULL) {
        for (struct curl_slist *at = call->headers; at != NULL; at = at->next) {
            explicit_bzero(at->data, strlen(at->data)); /* a token, perhaps */
        }
        call->api->slist_free_all(call->headers);
        call->headers = NULL;
    }
    call->body = NULL;
    call->body_fd = -1;
    call->failed = false;
}

static void take_trouble(struct ml_web_call *call, CURLcode result) {
    struct ml_web_answer *answer = &call->answer;
    const char *words = call->error[0] != '\0' ? call->error : call->api->easy_strerror(result);
    long verdict = 0;
    (void)snprintf(answer->trouble, sizeof(answer->trouble), "%s", words);
    if (result == CURLE_PEER_FAILED_VERIFICATION) {
        (void)call->api->easy_getinfo(call->easy, CURLINFO_SSL_VERIFYRESULT, &verdict);
        answer->untrusted = verdict >= X509_SELF_SIGNED && verdict <= X509_NO_ISSUER;
    }
}

/* Whether it has ended; then tell who asked. */
static void check_done(struct ml_web_call *call) {
    int queued = 0;
    const CURLMsg *message = call->api->multi_info_read(call->multi, &queued);
    while (message != NULL && message->msg != CURLMSG_DONE) {
        message = call->api->multi_info_read(call->multi, &queued);
    }
    if (!call->failed && (message == NULL || call->easy == NULL)) {
        return;
    }
    struct ml_web_answer *answer = &call->answer;
    if (message != NULL && call->easy != NULL) {
        const CURLcode result = message->data.result;
        long status = 0;
        (void)call->api->easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
        if (result != CURLE_OK && status < 400) {
            status = 0; /* else it has answered before it hung up */
        }
        answer->status = (unsigned)status;
        take_trouble(call, result);
    }
    ml_web_done *on_done = call->on_done;
    call->on_done = NULL;
    clean_up(call);
    /* The next request may be begun from there: it gets the answer's place. */
    struct ml_web_answer *own = malloc(sizeof(*own));
    if (own != NULL) {
        *own = *answer;
        on_done(call->context, own);
        explicit_bzero(own, sizeof(*own));
        free(own);
    } else {
        answer->status = 0;
        (void)snprintf(answer->trouble, sizeof(answer->trouble), "no memory");
        on_done(call->context, answer);
    }
}

/* ---- what goes out */

static size_t read_at(struct ml_web_call *call, uint64_t at, char *out_bytes, size_t room) {
    const uint64_t left = call->body_bytes - at;
    const size_t wanted = left < room ? (size_t)left : room;
    if (call->body != NULL) {
        memcpy(out_bytes, call->body + at, wanted);
        return wanted;
    }
    if (wanted == 0) {
        return 0;
    }
    const ssize_t count = pread(call->body_fd, out_bytes, wanted, (off_t)(call->body_offset + at));
    return count > 0 ? (size_t)count : 0;
}

static size_t on_read(char *bytes, size_t size, size_t count, void *context) {
    struct ml_web_call *call = context;
    const size_t taken = read_at(call, call->body_at, bytes, size * count);
    if (taken == 0 && call->body_at < call->body_bytes) {
        return CURL_READFUNC_ABORT; /* somebody has cut the file */
    }
    call->body_at += taken;
    return taken;
}

static int on_seek(void *context, curl_off_t offset, int origin) {
    struct ml_web_call *call = context;
    if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > call->body_bytes) {
        return CURL_SEEKFUNC_CANTSEEK;
    }
    call->body_at = (uint64_t)offset;
    return CURL_SEEKFUNC_OK;
}

void ml_web_call_header(struct ml_web_call *call, const char *text) {
    struct curl_slist *headers = call->api->slist_append(call->headers, text);
    call->headers = headers != NULL ? headers : call->headers;
}

/* S3 wants the body's hash as a header, too. */
static void add_content_hash(struct ml_web_call *call) {
    unsigned char hash[HASH_BYTES] = {0};
    char header[sizeof("x-amz-content-sha256: ") + 2 * HASH_BYTES] = "x-amz-content-sha256: ";
    char piece[PIECE_BYTES];
    const size_t at = strlen(header);
    void *digest = call->api->digest_new();
    if (digest == NULL || call->api->digest_begin(digest, call->api->digest_sha256(), NULL) != 1) {
        call->api->digest_free(digest);
        return; /* the server will say what is missing */
    }
    for (uint64_t done = 0; done < call->body_bytes;) {
        const size_t count = read_at(call, done, piece, sizeof(piece));
        if (count == 0) {
            break;
        }
        (void)call->api->digest_add(digest, piece, count);
        done += count;
    }
    (void)call->api->digest_end(digest, hash, NULL);
    call->api->digest_free(digest);
    for (size_t i = 0; i < sizeof(hash); i++) {
        (void)snprintf(header + at + 2 * i, 3, "%02x", hash[i]);
    }
    ml_web_call_header(call, header);
}

static void sign(struct ml_web_call *call, const struct ml_web_request *request) {
    char scheme[ML_WEB_VALUE_BYTES];
    (void)snprintf(scheme, sizeof(scheme), "aws:amz:%.100s:s3", request->region);
    (void)call->api->easy_setopt(call->easy, CURLOPT_AWS_SIGV4, scheme);
    (void)call->api->easy_setopt(call->easy, CURLOPT_USERNAME, request->key_id);
    (void)call->api->easy_setopt(call->easy, CURLOPT_PASSWORD, request->secret);
    add_content_hash(call);
}

static void set_body(struct ml_web_call *call, const char *method) {
    const struct ml_curl_api *api = call->api;
    CURL *easy = call->easy;
    const curl_off_t bytes = (curl_off_t)call->body_bytes;
    (void)api->easy_setopt(easy, CURLOPT_READFUNCTION, on_read);
    (void)api->easy_setopt(easy, CURLOPT_READDATA, call);
    (void)api->easy_setopt(easy, CURLOPT_SEEKFUNCTION, on_seek);
    (void)api->easy_setopt(easy, CURLOPT_SEEKDATA, call);
    if (strcmp(method, "PUT") == 0) {
        (void)api->easy_setopt(easy, CURLOPT_UPLOAD, 1L);
        (void)api->easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, bytes);
    } else if (strcmp(method, "POST") == 0) {
        (void)api->easy_setopt(easy, CURLOPT_POST, 1L);
        (void)api->easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, bytes);
    } else if (strcmp(method, "GET") != 0) {
        (void)api->easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method);
    }
}

static void set_options(struct ml_web_call *call, const struct ml_web_request *request) {
    const struct ml_curl_api *api = call->api;
    CURL *easy = call->easy;
    (void)api->easy_setopt(easy, CURLOPT_URL, request->url);
    (void)api->easy_setopt(easy, CURLOPT_ERRORBUFFER, call->error);
    (void)api->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void)api->easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    (void)api->easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)api->easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, (long)request->connect_timeout_s);
    (void)api->easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, (long)STALL_BYTES);
    (void)api->easy_setopt(
        easy,
        CURLOPT_LOW_SPEED_TIME,
        (long)(request->stall_timeout_s > 0 ? request->stall_timeout_s : STALL_S)
    );
    (void)api->easy_setopt(easy, CURLOPT_TIMEOUT, (long)request->whole_timeout_s);
    (void)api->easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_answer);
    (void)api->easy_setopt(easy, CURLOPT_WRITEDATA, call);
    (void)api->easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    (void)api->easy_setopt(easy, CURLOPT_HEADERDATA, call);
    (void)api->easy_setopt(easy, CURLOPT_USERAGENT, "memlog");
    if (request->ca_file != NULL) {
        (void)api->easy_setopt(easy, CURLOPT_CAINFO, request->ca_file);
    }
    if (request->direct) {
        (void)api->easy_setopt(easy, CURLOPT_PROXY, "");
    }
}

void ml_web_call_start(
    struct ml_web_call *call,
    const struct ml_web_request *request,
    ml_web_done *on_done,
    void *context
) {
    call->on_done = on_done;
    call->on_bytes = request->on_bytes;
    call->context = context;
    call->answer = (struct ml_web_answer){.status = 0};
    call->error[0] = '\0';
    call->body = request->body;
    call->body_fd = request->body_fd;
    call->body_offset = request->body_offset;
    call->body_bytes = request->body_bytes;
    call->body_at = 0;
    call->easy = call->api->easy_init();
    if (call->easy != NULL) {
        set_options(call, request);
        set_body(call, request->method);
        if (request->region != NULL) {
            sign(call, request);
        }
        (void)call->api->easy_setopt(call->easy, CURLOPT_HTTPHEADER, call->headers);
        if (call->api->multi_add_handle(call->multi, call->easy) == CURLM_OK) {
            return;
        }
    }
    call->failed = true;
    (void)snprintf(call->answer.trouble, sizeof(call->answer.trouble), "no memory");
    ml_timer_start(call->loop, &call->timer, 0.);
}

struct ml_web_call *ml_web_call_new(const struct ml_curl_api *api, struct ev_loop *loop) {
    struct ml_web_call *call = calloc(1, sizeof(*call));
    CURLM *multi = call != NULL ? api->multi_init() : NULL;
    if (multi == NULL) {
        free(call);
        return NULL;
    }
    *call = (struct ml_web_call){.api = api, .loop = loop, .multi = multi, .body_fd = -1};
    ml_timer_init(&call->timer, on_timer, call);
    (void)api->multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    (void)api->multi_setopt(multi, CURLMOPT_SOCKETDATA, call);
    (void)api->multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer_change);
    (void)api->multi_setopt(multi, CURLMOPT_TIMERDATA, call);
    return call;
}

void ml_web_call_free(struct ml_web_call *take_call) {
    if (take_call == NULL) {
        return;
    }
    clean_up(take_call);
    (void)take_call->api->multi_cleanup(take_call->multi);
    ev_timer_stop(take_call->loop, &take_call->timer);
    explicit_bzero(&take_call->answer, sizeof(take_call->answer));
    free(take_call);
}
