/* One body to its target: a folder, or over HTTP. Room: host. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/printable.h"
#include "host/upload/credentials.h"
#include "host/upload/internal.h"

enum {
    CONNECT_TIMEOUT_S = 10,
    WHOLE_TIMEOUT_S = 600,
    PATH_BYTES = 2 * PATH_MAX,
    PIECE_BYTES = 8192,
    WORDS_BYTES = 140,
    STATUS_UNAUTHORIZED = 401,
};

static bool open_body(struct ml_uploader *uploader, const char *id) {
    char path[PATH_MAX];
    struct stat facts;
    ml_spool_body(&uploader->spool, id, path);
    uploader->body_fd = open(path, O_RDONLY | O_CLOEXEC);
    if (uploader->body_fd < 0 || fstat(uploader->body_fd, &facts) != 0) {
        return false;
    }
    uploader->body_bytes = (uint64_t)facts.st_size;
    return true;
}

void ml_uploader_sent(struct ml_uploader *uploader, unsigned http_status, const char *why) {
    ml_descriptor_close(&uploader->body_fd);
    ml_uploader_tried(uploader, http_status, why);
}

/* ---- a folder */

/* False: errno says why. */
static bool copy(int from_fd, int to_fd) {
    char piece[PIECE_BYTES];
    for (;;) {
        const ssize_t count = read(from_fd, piece, sizeof(piece));
        if (count <= 0) {
            return count == 0;
        }
        for (ssize_t at = 0; at < count;) {
            const ssize_t written = write(to_fd, piece + at, (size_t)(count - at));
            if (written <= 0) {
                return false;
            }
            at += written;
        }
    }
}

/* So that the name is there, too, after the machine's death. Not every file system can. */
static void sync_folder(const char *folder) {
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd);
        (void)close(fd);
    }
}

/* "" when it lies there under its name. */
static const char *copy_into_folder(struct ml_uploader *uploader) {
    char path[PATH_BYTES];
    char part[PATH_BYTES];
    const char *folder = uploader->options->target.url;
    (void)mkdir(folder, 0700);
    (void)snprintf(path, sizeof(path), "%s/memlog-%s.trace.json.gz", folder, uploader->sending.id);
    (void)snprintf(part, sizeof(part), "%s/.memlog-%s.part", folder, uploader->sending.id);
    (void)unlink(part); /* of an earlier try, or a link */
    const int fd =
        open(part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
    bool fine = fd >= 0 && copy(uploader->body_fd, fd) && fsync(fd) == 0;
    const int error = errno;
    if (fd >= 0 && close(fd) != 0) {
        fine = false;
    }
    if (fine && rename(part, path) == 0) {
        sync_folder(folder);
        return "";
    }
    (void)unlink(part);
    return strerror(fine ? errno : error);
}

/* ---- HTTP */

/* What may help; "": nothing in particular. */
static const char *hint(const struct ml_web_answer *answer) {
    if (answer->untrusted) {
        return "; --upload-ca=FILE names the certificate that has signed it, if you trust that";
    }
    if (answer->status == STATUS_UNAUTHORIZED) {
        return "; --upload-token-file=FILE has the token that it wants";
    }
    return "";
}

unsigned
ml_uploader_explain(const struct ml_web_answer *answer, char out_why[ML_UPLOAD_WORD_BYTES]) {
    char words[WORDS_BYTES]; /* the server's, or about its certificate */
    const char *from = answer->status == 0 ? answer->trouble : answer->body;
    (void)ml_printable_copy(from, strlen(from), words, sizeof(words));
    if (answer->status >= 300 && answer->status < 400) {
        (void)snprintf(
            out_why,
            ML_UPLOAD_WORD_BYTES,
            "it is redirected (%u), which is not followed",
            answer->status
        );
        return answer->status;
    }
    char status[32] = "";
    if (answer->status != 0) {
        (void)snprintf(status, sizeof(status), "HTTP status %u", answer->status);
    }
    (void)snprintf(
        out_why,
        ML_UPLOAD_WORD_BYTES,
        "%s%s%s%s",
        status,
        status[0] != '\0' && words[0] != '\0' ? ": " : "",
        words,
        hint(answer)
    );
    return answer->status;
}

static void on_answer(void *context, const struct ml_web_answer *answer) {
    struct ml_uploader *uploader = context;
    char why[ML_UPLOAD_WORD_BYTES];
    memcpy(uploader->retry_after, answer->retry_after, sizeof(uploader->retry_after));
    const unsigned status = ml_uploader_explain(answer, why);
    ml_uploader_sent(uploader, status, why);
}

/* Read anew at each try, and forgotten behind it. */
static bool add_token(struct ml_uploader *uploader, struct ml_error_message *error) {
    char header[ML_UPLOAD_SECRET_BYTES + 64];
    char token[ML_UPLOAD_SECRET_BYTES];
    const struct ml_upload_options *options = uploader->options;
    if (options->token_file == NULL) {
        return true;
    }
    if (ml_secret_read(options->token_file, token, sizeof(token), error) != ML_OK) {
        return false;
    }
    (void)snprintf(header, sizeof(header), "Authorization: Bearer %s", token);
    ml_web_call_header(uploader->web, header);
    explicit_bzero(token, sizeof(token));
    explicit_bzero(header, sizeof(header));
    return true;
}

/* Where it goes, with what belongs to this one: it is the same at each try, whichever run's. */
static void make_url(struct ml_uploader *uploader, char *out_url, size_t url_bytes) {
    const struct ml_upload_target *target = &uploader->options->target;
    const struct ml_spool_item *item = &uploader->sending;
    if (target->kind == ML_UPLOAD_PYROSCOPE_INGEST) {
        const uint64_t made_s = item->made_ms / 1000;
        char name[ML_SPOOL_NAME_BYTES];
        (void
        )snprintf(name, sizeof(name), "%s", item->program[0] != '\0' ? item->program : "memlog");
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
            made_s > 0 ? made_s - 1 : 0,
            made_s
        );
    } else {
        (void)snprintf(out_url, url_bytes, "%s", target->url);
    }
}

static void send_by_http(struct ml_uploader *uploader) {
    const enum ml_upload_kind kind = uploader->options->target.kind;
    const char *type = ml_upload_content_type(kind);
    const bool in_parts = strncmp(type, "multipart/", 10) == 0;
    struct ml_error_message error = {.text = ""};
    char url[2 * ML_UPLOAD_URL_BYTES];
    char header[256];
    if (!add_token(uploader, &error)) {
        ml_uploader_sent(uploader, 0, error.text);
        return;
    }
    make_url(uploader, url, sizeof(url));
    (void)snprintf(
        header,
        sizeof(header),
        "Content-Type: %s%s%s",
        type,
        in_parts ? "; boundary=memlog-" : "",
        in_parts ? uploader->sending.id : ""
    );
    ml_web_call_header(uploader->web, header);
    ml_web_call_header(uploader->web, "Expect:"); /* it is sent at once, not after a question */
    /* The same at each try: a receiver that asks for it takes a report once. */
    (void)snprintf(header, sizeof(header), "Idempotency-Key: %s", uploader->sending.id);
    ml_web_call_header(uploader->web, header);
    if (kind == ML_UPLOAD_OTLP) {
        ml_web_call_header(uploader->web, "Content-Encoding: gzip");
    }
    const struct ml_web_request request = {
        .method = "POST",
        .url = url,
        .body_fd = uploader->body_fd,
        .body_bytes = uploader->body_bytes,
        .ca_file = uploader->options->ca_file,
        .connect_timeout_s = CONNECT_TIMEOUT_S,
        .whole_timeout_s = WHOLE_TIMEOUT_S};
    ml_web_call_start(uploader->web, &request, on_answer, uploader);
}

void ml_uploader_send(struct ml_uploader *uploader, const struct ml_spool_item *item) {
    uploader->sending = *item;
    uploader->retry_after[0] = '\0';
    uploader->body_bytes = 0;
    if (!open_body(uploader, item->id)) {
        ml_uploader_sent(uploader, 0, "its body cannot be read from the spool");
    } else if (uploader->options->target.kind == ML_UPLOAD_FOLDER) {
        const char *why = copy_into_folder(uploader);
        ml_uploader_sent(uploader, why[0] == '\0' ? 200 : 0, why);
    } else if (uploader->s3 != NULL) {
        ml_uploader_s3_send(uploader);
    } else {
        send_by_http(uploader);
    }
}

enum ml_status ml_uploader_send_init(struct ml_uploader *uploader, struct ml_error_message *error) {
    const struct ml_upload_options *options = uploader->options;
    if (options->target.kind == ML_UPLOAD_FOLDER) {
        return ML_OK;
    }
    if (!ml_curl_api_load(&uploader->api)) {
        ml_error_set(error, "--upload: libcurl.so.4 is not here (Debian: libcurl4)");
        return ML_ENV_MISSING;
    }
    if (options->ca_file != NULL && access(options->ca_file, R_OK) != 0) {
        ml_error_set(error, "--upload-ca=%s: %s", options->ca_file, strerror(errno));
        return ML_ENV_SYSTEM;
    }
    uploader->web = ml_web_call_new(&uploader->api, uploader->setup.loop);
    if (uploader->web == NULL) {
        return ML_ENV_MEMORY;
    }
    /* A secret that cannot be read is said before the program starts. */
    if (options->target.kind == ML_UPLOAD_S3) {
        return ml_uploader_s3_init(uploader, error);
    }
    if (options->token_file != NULL) {
        char token[ML_UPLOAD_SECRET_BYTES];
        const enum ml_status status =
            ml_secret_read(options->token_file, token, sizeof(token), error);
        explicit_bzero(token, sizeof(token));
        return status;
    }
    return ML_OK;
}

void ml_uploader_send_fini(struct ml_uploader *uploader) {
    ml_uploader_s3_fini(uploader);
    ml_web_call_free(uploader->web);
    uploader->web = NULL;
    ml_descriptor_close(&uploader->body_fd);
}
