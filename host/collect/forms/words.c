#include "host/collect/forms/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_writer.h"
#include "host/collect/forms/sigv4.h"

enum {
    OK = 200,
    UNKNOWN = 401,
    FORBIDDEN = 403,
    TOO_MANY = 429,
    UNAVAILABLE = 503,
    DISK_FULL = 507
};

static bool ends_with(const char *text, const char *end) {
    const size_t count = strlen(text);
    const size_t end_count = strlen(end);
    return count >= end_count && strcmp(text + count - end_count, end) == 0;
}

enum ml_form ml_form_of(const struct ml_http_request *request) {
    const char *path = ml_http_path(request);
    if (ml_sigv4_is(ml_http_header(request, "Authorization"))) {
        return ML_FORM_S3;
    }
    if (ends_with(path, "/push.v1.PusherService/Push")) {
        return ML_FORM_PUSH;
    }
    return ends_with(path, "/v1development/profiles") ? ML_FORM_OTLP : ML_FORM_PLAIN;
}

/* What a status is called in the forms that have names for it. */
static const struct {
    unsigned status;
    const char *connect;
    unsigned rpc; /* google.rpc.Code */
    const char *s3;
} names[] = {
    {400, "invalid_argument", 3, "InvalidRequest"},
    {401, "unauthenticated", 16, "AccessDenied"},
    {403, "permission_denied", 7, "AccessDenied"},
    {404, "not_found", 5, "NoSuchKey"},
    {405, "unimplemented", 12, "MethodNotAllowed"},
    {409, "already_exists", 6, "InvalidRequest"},
    {413, "resource_exhausted", 8, "EntityTooLarge"},
    {415, "unimplemented", 12, "InvalidRequest"},
    {429, "resource_exhausted", 8, "SlowDown"},
    {501, "unimplemented", 12, "NotImplemented"},
    {503, "unavailable", 14, "SlowDown"},
    {507, "unavailable", 14, "SlowDown"},
};

enum { NAMES = sizeof(names) / sizeof(names[0]) };

static size_t name_of(unsigned status) {
    size_t i = 0;
    while (i < NAMES - 1 && names[i].status != status) {
        i++;
    }
    return i; /* whatever else: it is unavailable */
}

static bool is_json(const struct ml_http_request *request) {
    const char *type = ml_http_header(request, "Content-Type");
    return type != NULL && strncmp(type, "application/json", strlen("application/json")) == 0;
}

static void send_bytes(
    struct ml_http_request *request,
    unsigned status,
    const char *retry_after,
    const char *type,
    const void *bytes,
    size_t count
) {
    const struct ml_http_answer said = {
        .status = status,
        .content_type = type,
        .bytes = bytes,
        .bytes_count = count,
        .retry_after = retry_after,
    };
    ml_http_answer(request, &said);
}

static void send_text(
    struct ml_http_request *request,
    unsigned status,
    const char *retry_after,
    const char *type,
    const char *text
) {
    send_bytes(request, status, retry_after, type, text, strlen(text));
}

/* ---- Connect: an error is JSON whatever the request was */

static void answer_push(
    struct ml_http_request *request, unsigned status, const char *retry_after, const char *text
) {
    char *json_text = NULL;
    size_t count = 0;
    if (status == OK) {
        send_text(
            request,
            OK,
            NULL,
            is_json(request) ? "application/json" : "application/proto",
            is_json(request) ? "{}" : ""
        );
        return;
    }
    FILE *out = open_memstream(&json_text, &count);
    if (out != NULL) {
        struct ml_json json = ml_json_over(out);
        ml_json_open(&json, '{');
        ml_json_string_member(&json, "code", names[name_of(status)].connect);
        ml_json_text_member(&json, "message", text, strcspn(text, "\n"));
        ml_json_close(&json, '}');
        (void)fclose(out);
    }
    send_text(
        request, status, retry_after, "application/json", json_text != NULL ? json_text : "{}"
    );
    free(json_text);
}

/* ---- OTLP: google.rpc.Status, as JSON or protobuf as the request was */

static void answer_otlp(
    struct ml_http_request *request, unsigned status, const char *retry_after, const char *text
) {
    enum { CODE = 1 << 3, MESSAGE = 2 << 3 | 2, MOST = 127 }; /* keys; a length of one byte */
    const unsigned code = names[name_of(status)].rpc;
    const size_t count = strcspn(text, "\n") < MOST ? strcspn(text, "\n") : MOST;
    uint8_t bytes[4 + MOST] = {CODE, (uint8_t)code, MESSAGE, (uint8_t)count};
    char json[2 * MOST + 64];
    memcpy(bytes + 4, text, count);
    /* Its senders come again after 429 and 503 alone. */
    status = status == DISK_FULL ? UNAVAILABLE : status;
    if (!is_json(request)) {
        send_bytes(
            request,
            status,
            retry_after,
            "application/x-protobuf",
            bytes,
            status == OK ? 0 : 4 + count
        );
        return;
    }
    (void
    )snprintf(json, sizeof(json), "{\"code\":%u,\"message\":\"%.*s\"}", code, (int)count, text);
    send_text(request, status, retry_after, "application/json", status == OK ? "{}" : json);
}

/* ---- S3 */

/* "Code: text": both of them. */
static const char *split(const char *text, char *out_code, size_t code_bytes) {
    const size_t count =
        strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789");
    if (count > 0 && count < code_bytes && text[count] == ':' && text[count + 1] == ' ') {
        memcpy(out_code, text, count);
        out_code[count] = '\0';
        return text + count + 2;
    }
    return text;
}

/* `text` is the report's name. */
static void accept_s3(struct ml_http_request *request, const char *text) {
    char xml[512];
    char etag[128];
    const int count = (int)strcspn(text, "\n");
    (void)snprintf(etag, sizeof(etag), "\"%.*s-1\"", count, text);
    (void)snprintf(
        xml,
        sizeof(xml),
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<CompleteMultipartUploadResult><ETag>%.*s-1"
        "</ETag></CompleteMultipartUploadResult>\n",
        count,
        text
    );
    ml_form_answer_s3(request, OK, strcmp(ml_http_method(request), "PUT") == 0 ? NULL : xml, etag);
}

static void answer_s3(
    struct ml_http_request *request, unsigned status, const char *retry_after, const char *text
) {
    char xml[1024];
    char code[64];
    if (status == OK) {
        accept_s3(request, text);
        return;
    }
    (void)snprintf(code, sizeof(code), "%s", names[name_of(status)].s3);
    text = split(text, code, sizeof(code));
    (void)snprintf(
        xml,
        sizeof(xml),
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>%s</Code><Message>%.*s</Message>"
        "</Error>\n",
        code,
        (int)strcspn(text, "\n<&"),
        text
    );
    if (status == UNKNOWN) {
        status = FORBIDDEN;
    } else if (status == TOO_MANY || status == DISK_FULL) {
        status = UNAVAILABLE;
    }
    send_text(request, status, retry_after, "application/xml", xml);
}

void ml_form_answer_s3(
    struct ml_http_request *request, unsigned status, const char *xml, const char *etag
) {
    const struct ml_http_answer said = {
        .status = status,
        .content_type = xml != NULL ? "application/xml" : NULL,
        .bytes = xml != NULL ? xml : "",
        .bytes_count = xml != NULL ? strlen(xml) : 0,
        .etag = etag,
    };
    ml_http_answer(request, &said);
}

void ml_form_answer(
    struct ml_http_request *request, unsigned status, const char *retry_after, const char *text
) {
    switch (ml_form_of(request)) {
    case ML_FORM_PUSH:
        answer_push(request, status, retry_after, text);
        return;
    case ML_FORM_OTLP:
        answer_otlp(request, status, retry_after, text);
        return;
    case ML_FORM_S3:
        answer_s3(request, status, retry_after, text);
        return;
    case ML_FORM_PLAIN:
        send_text(request, status, retry_after, "text/plain; charset=utf-8", text);
        return;
    }
}
