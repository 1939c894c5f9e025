#include "host/policy/upload_target.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    DELAY_FIRST_MS = 1000,
    DELAY_MAX_MS = 3600 * 1000,
    /* A Retry-After of more than a day is cut to a day. */
    RETRY_AFTER_MAX_S = 24 * 3600,
    HTTP_REQUEST_TIMEOUT = 408,
    HTTP_TOO_LARGE = 413,
    HTTP_TOO_EARLY = 425,
    HTTP_TOO_MANY = 429,
};

struct scheme {
    const char *prefix, *becomes, *path;
    enum ml_upload_kind kind;
};

static const struct scheme schemes[] = {
    {"https://", "https://", "", ML_UPLOAD_REPORT},
    {"http://", "http://", "", ML_UPLOAD_REPORT},
    {"s3+https://", "https://", "", ML_UPLOAD_S3},
    {"s3+http://", "http://", "", ML_UPLOAD_S3},
    {"s3://", "s3://", "", ML_UPLOAD_S3},
    {"pyroscope+https://", "https://", "/push.v1.PusherService/Push", ML_UPLOAD_PYROSCOPE},
    {"pyroscope+http://", "http://", "/push.v1.PusherService/Push", ML_UPLOAD_PYROSCOPE},
    {"pyroscope-ingest+https://", "https://", "/ingest", ML_UPLOAD_PYROSCOPE_INGEST},
    {"pyroscope-ingest+http://", "http://", "/ingest", ML_UPLOAD_PYROSCOPE_INGEST},
    {"otlp+https://", "https://", "/v1development/profiles", ML_UPLOAD_OTLP},
    {"otlp+http://", "http://", "/v1development/profiles", ML_UPLOAD_OTLP},
};

static enum ml_status parse_folder(
    const char *path, struct ml_upload_target *out_target, struct ml_error_message *error
) {
    if (path[0] == '\0' || strlen(path) >= sizeof(out_target->url)) {
        ml_error_set(error, "a folder's path is wanted behind file://");
        return ML_PEER_FORM;
    }
    out_target->kind = ML_UPLOAD_FOLDER;
    memcpy(out_target->url, path, strlen(path) + 1);
    return ML_OK;
}

/* Cut "?region=R" off the address and keep the region. */
static enum ml_status
take_region(struct ml_upload_target *target, char *rest, struct ml_error_message *error) {
    char *query = strchr(rest, '?');
    if (query == NULL) {
        return ML_OK;
    }
    *query++ = '\0';
    if (strncmp(query, "region=", 7) != 0 || query[7] == '\0' ||
        strlen(query + 7) >= sizeof(target->region) || strpbrk(query, "&:") != NULL) {
        ml_error_set(error, "?region=REGION is all that may stand behind an S3 address");
        return ML_PEER_FORM;
    }
    memcpy(target->region, query + 7, strlen(query + 7) + 1);
    return ML_OK;
}

enum ml_status ml_upload_target_parse(
    const char *text, struct ml_upload_target *out_target, struct ml_error_message *error
) {
    *out_target = (struct ml_upload_target){.kind = ML_UPLOAD_NOWHERE};
    if (strncmp(text, "file://", 7) == 0) {
        return parse_folder(text + 7, out_target, error);
    }
    const struct scheme *scheme = NULL;
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]) && scheme == NULL; i++) {
        scheme =
            strncmp(text, schemes[i].prefix, strlen(schemes[i].prefix)) == 0 ? &schemes[i] : NULL;
    }
    if (scheme == NULL && strchr(text, '/') != NULL && strstr(text, "://") == NULL) {
        return parse_folder(text, out_target, error);
    }
    if (scheme == NULL) {
        ml_error_set(
            error,
            "an address is wanted that begins with https://, http://, s3://, s3+https://, "
            "pyroscope+https://, pyroscope-ingest+https://, otlp+https:// or file://, or the path "
            "of a folder"
        );
        return ML_PEER_FORM;
    }
    char rest[ML_UPLOAD_URL_BYTES];
    const int rest_count = snprintf(rest, sizeof(rest), "%s", text + strlen(scheme->prefix));
    const size_t host_count = strcspn(rest, "/?#");
    if (memchr(rest, '@', host_count) != NULL) {
        ml_error_set(
            error,
            "no user or password in an address: everybody sees a command line. "
            "--upload-token-file=FILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
            "~/.aws/credentials"
        );
        return ML_ENV_REFUSED;
    }
    for (const char *at = rest; *at != '\0'; at++) {
        if (!isgraph((unsigned char)*at)) {
            ml_error_set(error, "an address holds no blanks and no control characters");
            return ML_PEER_FORM;
        }
    }
    if (scheme->kind == ML_UPLOAD_S3) {
        const enum ml_status status = take_region(out_target, rest, error);
        if (status != ML_OK) {
            return status;
        }
    }
    size_t end = strlen(rest);
    while (scheme->kind != ML_UPLOAD_REPORT && end > 0 && rest[end - 1] == '/') {
        rest[--end] = '\0';
    }
    const char *bucket = strchr(rest, '/');
    if (host_count == 0 || rest_count >= (int)sizeof(rest) ||
        (scheme->kind == ML_UPLOAD_S3 && strcmp(scheme->becomes, "s3://") != 0 &&
         (bucket == NULL || bucket[1] == '\0'))) {
        ml_error_set(
            error,
            scheme->kind == ML_UPLOAD_S3 ? "ENDPOINT/BUCKET, or s3://BUCKET, is wanted"
                                         : "the name of a host is wanted behind %s",
            scheme->prefix
        );
        return ML_PEER_FORM;
    }
    const int count = snprintf(
        out_target->url, sizeof(out_target->url), "%s%s%s", scheme->becomes, rest, scheme->path
    );
    if (count < 0 || (size_t)count >= sizeof(out_target->url)) {
        ml_error_set(error, "the address is too long");
        return ML_PEER_FORM;
    }
    out_target->kind = scheme->kind;
    return ML_OK;
}

/* What the analyzer writes for each kind of target, and its Content-Type. */
static const struct {
    const char *form, *content_type;
} bodies[ML_UPLOAD_KIND_COUNT] = {
    [ML_UPLOAD_NOWHERE] = {"trace", "application/gzip"},
    [ML_UPLOAD_FOLDER] = {"trace", "application/gzip"},
    [ML_UPLOAD_REPORT] = {"report", "multipart/form-data"},
    [ML_UPLOAD_S3] = {"trace", "application/gzip"},
    [ML_UPLOAD_PYROSCOPE] = {"pyroscope", "application/json"},
    [ML_UPLOAD_PYROSCOPE_INGEST] = {"pyroscope-ingest", "multipart/form-data"},
    [ML_UPLOAD_OTLP] = {"otlp", "application/x-protobuf"},
};

const char *ml_upload_form(enum ml_upload_kind kind) {
    return bodies[kind].form;
}

const char *ml_upload_content_type(enum ml_upload_kind kind) {
    return bodies[kind].content_type;
}

enum ml_upload_verdict ml_upload_judge(unsigned http_status, unsigned tries, bool harder_tried) {
    if (http_status >= 200 && http_status < 300) {
        return ML_UPLOAD_DONE;
    }
    if (http_status == HTTP_TOO_LARGE) {
        return harder_tried ? ML_UPLOAD_GIVE_UP : ML_UPLOAD_HARDER;
    }
    const bool passes = http_status == 0 || http_status >= 500 ||
                        http_status == HTTP_REQUEST_TIMEOUT || http_status == HTTP_TOO_EARLY ||
                        http_status == HTTP_TOO_MANY;
    return passes && tries < ML_UPLOAD_TRIES_MAX ? ML_UPLOAD_AGAIN : ML_UPLOAD_GIVE_UP;
}

/* The seconds of a Retry-After header, which holds seconds or a date. 0: neither. */
static uint64_t retry_after_s(const char *text, uint64_t now_s) {
    if (isdigit((unsigned char)text[0])) {
        return strtoull(text, NULL, 10);
    }
    struct tm parts = {.tm_year = 0};
    if (strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &parts) == NULL) {
        return 0;
    }
    const time_t then = timegm(&parts);
    return then > 0 && (uint64_t)then > now_s ? (uint64_t)then - now_s : 0;
}

uint64_t
ml_upload_delay_ms(unsigned tries, const char *retry_after, uint64_t now_s, uint32_t random) {
    const unsigned doublings = tries > 1 ? tries - 1 : 0;
    uint64_t delay_ms = doublings < 12 ? (uint64_t)DELAY_FIRST_MS << doublings : DELAY_MAX_MS;
    delay_ms = delay_ms < DELAY_MAX_MS ? delay_ms : DELAY_MAX_MS;
    /* Vary it between a half and one and a half, so that hosts that failed together spread out. */
    delay_ms = delay_ms / 2 + random % (delay_ms + 1);
    uint64_t asked_s =
        retry_after != NULL && retry_after[0] != '\0' ? retry_after_s(retry_after, now_s) : 0;
    asked_s = asked_s < RETRY_AFTER_MAX_S ? asked_s : RETRY_AFTER_MAX_S;
    return asked_s * 1000 > delay_ms ? asked_s * 1000 : delay_ms;
}
