/* One body to its target: a folder, or by libcurl on the host's loop. Room: host. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/credentials.h"
#include "host/uploader_internal.h"

enum {
    CONNECT_TIMEOUT_S = 10,
    STALL_BYTES = 64, /* a second; a server that takes less for a while hangs */
    STALL_S = 30,
    WHOLE_TIMEOUT_S = 600,
    PATH_BYTES = 2 * PATH_MAX
};

/* ---- libcurl's sockets and timer on libev */

static void check_done(struct ml_uploader *uploader);

static void on_socket_ready(struct ev_loop *loop, ev_io *watcher, int events) {
    (void)loop;
    struct ml_uploader *uploader = watcher->data;
    int running = 0;
    const int action = ((events & EV_READ) != 0 ? CURL_CSELECT_IN : 0) |
                       ((events & EV_WRITE) != 0 ? CURL_CSELECT_OUT : 0);
    (void)uploader->api.multi_socket_action(uploader->multi, watcher->fd, action, &running);
    check_done(uploader);
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *socket_context) {
    (void)easy;
    struct ml_uploader *uploader = context;
    ev_io *watcher = socket_context;
    if (watcher != NULL) {
        ev_io_stop(uploader->setup.loop, watcher);
    }
    if (what == CURL_POLL_REMOVE) {
        (void)uploader->api.multi_assign(uploader->multi, fd, NULL);
        free(watcher);
        return 0;
    }
    if (watcher == NULL) {
        watcher = calloc(1, sizeof(*watcher));
        if (watcher == NULL) {
            return -1;
        }
        (void)uploader->api.multi_assign(uploader->multi, fd, watcher);
    }
    ev_io_init(
        watcher,
        on_socket_ready,
        fd,
        ((what & CURL_POLL_IN) != 0 ? EV_READ : 0) | ((what & CURL_POLL_OUT) != 0 ? EV_WRITE : 0)
    );
    watcher->data = uploader;
    ev_io_start(uploader->setup.loop, watcher);
    return 0;
}

static void on_curl_timer(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)loop;
    (void)events;
    struct ml_uploader *uploader = watcher->data;
    int running = 0;
    (void)uploader->api.multi_socket_action(uploader->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    check_done(uploader);
}

static int on_timer_wish(CURLM *multi, long timeout_ms, void *context) {
    (void)multi;
    struct ml_uploader *uploader = context;
    ev_timer_stop(uploader->setup.loop, &uploader->curl_timer);
    if (timeout_ms >= 0) {
        ev_timer_set(&uploader->curl_timer, (double)timeout_ms / 1000., 0.);
        ev_timer_start(uploader->setup.loop, &uploader->curl_timer);
    }
    return 0;
}

/* ---- what comes back */

static size_t on_answer(char *bytes, size_t size, size_t count, void *context) {
    struct ml_uploader *uploader = context;
    const size_t room = sizeof(uploader->answer) - 1 - uploader->answer_bytes;
    const size_t taken = size * count < room ? size * count : room;
    memcpy(uploader->answer + uploader->answer_bytes, bytes, taken);
    uploader->answer_bytes += taken;
    uploader->answer[uploader->answer_bytes] = '\0';
    return size * count;
}

static size_t on_header(char *bytes, size_t size, size_t count, void *context) {
    static const char key[] = "Retry-After:";
    struct ml_uploader *uploader = context;
    const size_t total = size * count;
    if (total > sizeof(key) - 1 && strncasecmp(bytes, key, sizeof(key) - 1) == 0) {
        size_t from = sizeof(key) - 1;
        while (from < total && bytes[from] == ' ') {
            from++;
        }
        size_t to = total;
        while (to > from && (bytes[to - 1] == '\r' || bytes[to - 1] == '\n')) {
            to--;
        }
        (void)snprintf(
            uploader->retry_after,
            sizeof(uploader->retry_after),
            "%.*s",
            (int)(to - from),
            bytes + from
        );
    }
    return total;
}

static void clean_up(struct ml_uploader *uploader) {
    if (uploader->easy != NULL) {
        (void)uploader->api.multi_remove_handle(uploader->multi, uploader->easy);
        uploader->api.easy_cleanup(uploader->easy);
        uploader->easy = NULL;
    }
    if (uploader->headers != NULL) {
        uploader->api.slist_free_all(uploader->headers);
        uploader->headers = NULL;
    }
    free(uploader->body);
    uploader->body = NULL;
}

/* Whether the upload has ended; then judge it. */
static void check_done(struct ml_uploader *uploader) {
    int queued = 0;
    const CURLMsg *message = uploader->api.multi_info_read(uploader->multi, &queued);
    while (message != NULL && message->msg != CURLMSG_DONE) {
        message = uploader->api.multi_info_read(uploader->multi, &queued);
    }
    if (message == NULL || uploader->easy == NULL) {
        return;
    }
    const CURLcode result = message->data.result;
    long status = 0;
    char why[ML_UPLOAD_WORD_BYTES + 64];
    (void)uploader->api.easy_getinfo(uploader->easy, CURLINFO_RESPONSE_CODE, &status);
    if (result != CURLE_OK) {
        status = status >= 400 ? status : 0; /* it has answered before it hung up */
    }
    if (status == 0) {
        (void)snprintf(why, sizeof(why), "%s", uploader->api.easy_strerror(result));
    } else if (status >= 300 && status < 400) {
        (void)snprintf(why, sizeof(why), "it is redirected (%ld), which is not followed", status);
    } else {
        (void)snprintf(
            why,
            sizeof(why),
            "HTTP status %ld%s%.120s",
            status,
            uploader->answer[0] != '\0' ? ": " : "",
            uploader->answer
        );
    }
    clean_up(uploader);
    ml_uploader_tried(uploader, (unsigned)status, why);
}

/* ---- what goes out */

static bool read_body(struct ml_uploader *uploader, const char *id) {
    char path[PATH_MAX];
    struct stat facts;
    ml_spool_body(&uploader->spool, id, path);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &facts) != 0) {
        if (fd >= 0) {
            (void)close(fd);
        }
        return false;
    }
    const size_t wanted = (size_t)facts.st_size;
    uploader->body = malloc(wanted + 1);
    uploader->body_bytes = 0;
    while (uploader->body != NULL && uploader->body_bytes < wanted) {
        const ssize_t count =
            read(fd, uploader->body + uploader->body_bytes, wanted - uploader->body_bytes);
        if (count <= 0) {
            break;
        }
        uploader->body_bytes += (size_t)count;
    }
    (void)close(fd);
    if (uploader->body_bytes != wanted) {
        free(uploader->body);
        uploader->body = NULL;
    }
    return uploader->body != NULL;
}

/* "" when it lies there under its name. */
static const char *copy_into_folder(struct ml_uploader *uploader) {
    char path[PATH_BYTES];
    char part[PATH_BYTES];
    const char *folder = uploader->options->target.url;
    (void)mkdir(folder, 0777);
    (void)snprintf(path, sizeof(path), "%s/memlog-%s.trace.json.gz", folder, uploader->sending.id);
    (void)snprintf(part, sizeof(part), "%s/.memlog-%s.part", folder, uploader->sending.id);
    const int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    bool fine = fd >= 0;
    for (size_t at = 0; fine && at < uploader->body_bytes;) {
        const ssize_t count = write(fd, uploader->body + at, uploader->body_bytes - at);
        fine = count > 0;
        at += fine ? (size_t)count : 0;
    }
    fine = fine && fsync(fd) == 0;
    const int error = errno;
    if (fd >= 0 && close(fd) != 0) {
        fine = false;
    }
    if (fine && rename(part, path) == 0) {
        return "";
    }
    (void)unlink(part);
    return strerror(fine ? errno : error);
}

static void add_header(struct ml_uploader *uploader, const char *text) {
    struct curl_slist *headers = uploader->api.slist_append(uploader->headers, text);
    uploader->headers = headers != NULL ? headers : uploader->headers;
}

/* S3 wants it as a header, too. */
static void add_content_hash(struct ml_uploader *uploader) {
    unsigned char hash[32];
    char header[sizeof("x-amz-content-sha256: ") + 2 * sizeof(hash)] = "x-amz-content-sha256: ";
    const size_t at = strlen(header);
    (void)uploader->api.sha256((const unsigned char *)uploader->body, uploader->body_bytes, hash);
    for (size_t i = 0; i < sizeof(hash); i++) {
        (void)snprintf(header + at + 2 * i, 3, "%02x", hash[i]);
    }
    add_header(uploader, header);
}

/* Who may see it: the secrets are read anew at each try, and forgotten behind it. */
static bool add_secrets(struct ml_uploader *uploader, struct ml_complaint *complaint) {
    char header[ML_UPLOAD_SECRET_BYTES + 64];
    const struct ml_upload_options *options = uploader->options;
    if (options->target.kind == ML_UPLOAD_S3) {
        struct ml_s3_credentials credentials;
        char scheme[ML_UPLOAD_REGION_BYTES + 32];
        if (ml_s3_credentials_find(&credentials, complaint) != ML_OK) {
            return false;
        }
        (void)snprintf(
            scheme,
            sizeof(scheme),
            "aws:amz:%s:s3",
            options->target.region[0] != '\0' ? options->target.region : ml_s3_region()
        );
        (void)uploader->api.easy_setopt(uploader->easy, CURLOPT_AWS_SIGV4, scheme);
        (void)uploader->api.easy_setopt(uploader->easy, CURLOPT_USERNAME, credentials.key_id);
        (void)uploader->api.easy_setopt(uploader->easy, CURLOPT_PASSWORD, credentials.secret);
        (void)uploader->api.easy_setopt(uploader->easy, CURLOPT_CUSTOMREQUEST, "PUT");
        add_content_hash(uploader);
        if (credentials.token[0] != '\0') {
            (void)snprintf(header, sizeof(header), "X-Amz-Security-Token: %s", credentials.token);
            add_header(uploader, header);
        }
        explicit_bzero(&credentials, sizeof(credentials));
    } else if (options->token_file != NULL) {
        char token[ML_UPLOAD_SECRET_BYTES];
        if (ml_secret_read(options->token_file, token, sizeof(token), complaint) != ML_OK) {
            return false;
        }
        (void)snprintf(header, sizeof(header), "Authorization: Bearer %s", token);
        add_header(uploader, header);
        explicit_bzero(token, sizeof(token));
    }
    explicit_bzero(header, sizeof(header));
    return true;
}

/* Where it goes, with what belongs to this one. */
static void make_url(struct ml_uploader *uploader, char *out_url, size_t url_bytes) {
    const struct ml_upload_target *target = &uploader->options->target;
    const uint64_t now_s = ml_uploader_now_ms() / 1000;
    if (target->kind == ML_UPLOAD_S3) {
        char endpoint[ML_UPLOAD_URL_BYTES] = "";
        const char *rest = target->url;
        if (strncmp(rest, "s3://", 5) == 0) {
            rest += 5;
            ml_s3_endpoint(target->region, endpoint, sizeof(endpoint));
        }
        (void)snprintf(
            out_url,
            url_bytes,
            "%s%s%s/memlog-%s.trace.json.gz",
            endpoint,
            endpoint[0] != '\0' ? "/" : "",
            rest,
            uploader->sending.id
        );
    } else if (target->kind == ML_UPLOAD_PYROSCOPE_INGEST) {
        char name[64];
        const char *program = uploader->setup.options->program[0];
        const char *slash = strrchr(program, '/');
        (void)snprintf(name, sizeof(name), "%.60s", slash != NULL ? slash + 1 : program);
        for (char *at = name; *at != '\0'; at++) {
            const bool plain =
                strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._", *at) !=
                NULL;
            *at = plain ? *at : '_';
        }
        (void)snprintf(
            out_url,
            url_bytes,
            "%s?name=%s&from=%" PRIu64 "&until=%" PRIu64 "&format=pprof",
            target->url,
            name,
            now_s - 1,
            now_s
        );
    } else {
        (void)snprintf(out_url, url_bytes, "%s", target->url);
    }
}

static void set_options(struct ml_uploader *uploader, const char *url) {
    const struct ml_curl_api *api = &uploader->api;
    CURL *easy = uploader->easy;
    (void)api->easy_setopt(easy, CURLOPT_URL, url);
    (void)api->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void)api->easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    (void)api->easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)api->easy_setopt(easy, CURLOPT_POST, 1L);
    (void)api->easy_setopt(easy, CURLOPT_POSTFIELDS, uploader->body);
    (void)api->easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)uploader->body_bytes);
    (void)api->easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_TIMEOUT_S);
    (void)api->easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, (long)STALL_BYTES);
    (void)api->easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)STALL_S);
    (void)api->easy_setopt(easy, CURLOPT_TIMEOUT, (long)WHOLE_TIMEOUT_S);
    (void)api->easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_answer);
    (void)api->easy_setopt(easy, CURLOPT_WRITEDATA, uploader);
    (void)api->easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    (void)api->easy_setopt(easy, CURLOPT_HEADERDATA, uploader);
    (void)api->easy_setopt(easy, CURLOPT_USERAGENT, "memlog");
    if (uploader->options->ca_file != NULL) {
        (void)api->easy_setopt(easy, CURLOPT_CAINFO, uploader->options->ca_file);
    }
}

static void send_by_curl(struct ml_uploader *uploader) {
    const enum ml_upload_kind kind = uploader->options->target.kind;
    const char *type = ml_upload_content_type(kind);
    struct ml_complaint complaint = {.text = ""};
    char url[2 * ML_UPLOAD_URL_BYTES];
    char header[256];
    uploader->easy = uploader->api.easy_init();
    if (uploader->easy == NULL) {
        clean_up(uploader);
        ml_uploader_tried(uploader, 0, "no memory");
        return;
    }
    make_url(uploader, url, sizeof(url));
    set_options(uploader, url);
    (void)snprintf(
        header,
        sizeof(header),
        "Content-Type: %s%s%s",
        type,
        strncmp(type, "multipart/", 10) == 0 ? "; boundary=memlog-" : "",
        strncmp(type, "multipart/", 10) == 0 ? uploader->sending.id : ""
    );
    add_header(uploader, header);
    if (kind != ML_UPLOAD_S3) {
        add_header(uploader, "Expect:"); /* a body is sent at once, not after a question */
    }
    if (kind == ML_UPLOAD_OTLP) {
        add_header(uploader, "Content-Encoding: gzip");
    }
    if (!add_secrets(uploader, &complaint)) {
        clean_up(uploader);
        ml_uploader_tried(uploader, 0, complaint.text);
        return;
    }
    (void)uploader->api.easy_setopt(uploader->easy, CURLOPT_HTTPHEADER, uploader->headers);
    (void)uploader->api.multi_add_handle(uploader->multi, uploader->easy);
}

void ml_uploader_send(struct ml_uploader *uploader, const struct ml_spool_item *item) {
    uploader->sending = *item;
    uploader->retry_after[0] = '\0';
    uploader->answer[0] = '\0';
    uploader->answer_bytes = 0;
    if (!read_body(uploader, item->id)) {
        uploader->body_bytes = 0;
        ml_uploader_tried(uploader, 0, "its body cannot be read from the spool");
    } else if (uploader->options->target.kind == ML_UPLOAD_FOLDER) {
        const char *why = copy_into_folder(uploader);
        free(uploader->body);
        uploader->body = NULL;
        ml_uploader_tried(uploader, why[0] == '\0' ? 200 : 0, why);
    } else {
        send_by_curl(uploader);
    }
}

enum ml_status ml_uploader_send_init(struct ml_uploader *uploader, struct ml_complaint *complaint) {
    ev_init(&uploader->curl_timer, on_curl_timer);
    uploader->curl_timer.data = uploader;
    if (uploader->options->target.kind == ML_UPLOAD_FOLDER) {
        return ML_OK;
    }
    if (!ml_curl_api_load(&uploader->api)) {
        ml_complain(complaint, "--upload: libcurl.so.4 is not here (Debian: libcurl4)");
        return ML_ENV_MISSING;
    }
    uploader->multi = uploader->api.multi_init();
    if (uploader->multi == NULL) {
        return ML_ENV_MEMORY;
    }
    (void)uploader->api.multi_setopt(uploader->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    (void)uploader->api.multi_setopt(uploader->multi, CURLMOPT_SOCKETDATA, uploader);
    (void)uploader->api.multi_setopt(uploader->multi, CURLMOPT_TIMERFUNCTION, on_timer_wish);
    (void)uploader->api.multi_setopt(uploader->multi, CURLMOPT_TIMERDATA, uploader);
    /* A secret that cannot be read is said before the program starts. */
    struct ml_s3_credentials credentials;
    char token[ML_UPLOAD_SECRET_BYTES];
    enum ml_status status = ML_OK;
    if (uploader->options->target.kind == ML_UPLOAD_S3 && uploader->api.sha256 == NULL) {
        ml_complain(complaint, "--upload: S3 needs the libcurl that is built with OpenSSL");
        status = ML_ENV_MISSING;
    } else if (uploader->options->target.kind == ML_UPLOAD_S3) {
        status = ml_s3_credentials_find(&credentials, complaint);
        explicit_bzero(&credentials, sizeof(credentials));
    } else if (uploader->options->token_file != NULL) {
        status = ml_secret_read(uploader->options->token_file, token, sizeof(token), complaint);
        explicit_bzero(token, sizeof(token));
    }
    return status;
}

void ml_uploader_send_fini(struct ml_uploader *uploader) {
    clean_up(uploader);
    ev_timer_stop(uploader->setup.loop, &uploader->curl_timer);
    if (uploader->multi != NULL) {
        (void)uploader->api.multi_cleanup(uploader->multi);
        uploader->multi = NULL;
    }
    ev_timer_stop(uploader->setup.loop, &uploader->curl_timer);
}
