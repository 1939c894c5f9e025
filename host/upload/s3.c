/* One body to S3: by a PUT, or in parts where it is large, so that what has arrived need not be
 * sent twice: not after a fault, and not after the host's end. Room: host. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ev.h>

#include "host/upload/credentials.h"
#include "host/upload/internal.h"
#include "host/upload/s3_xml.h"

enum {
    PART_BYTES = 8 << 20,        /* S3 takes none under 5 MiB but the last */
    WHOLE_MOST_BYTES = 16 << 20, /* what is not larger goes in one piece */
    CONNECT_TIMEOUT_S = 10,
    WHOLE_TIMEOUT_S = 600,
    URL_BYTES = 3 * ML_UPLOAD_URL_BYTES,
    STATUS_BAD_REQUEST = 400,
    STATUS_FORBIDDEN = 403,
    STATUS_NOT_FOUND = 404,
};

_Static_assert(
    ML_SPOOL_MAX_BYTES <= (uint64_t)ML_SPOOL_PARTS_MAX * PART_BYTES, "whatever the spool takes"
);

enum step {
    STEP_WHOLE = 0,
    STEP_BEGIN,
    STEP_PART,
    STEP_JOIN,
    STEP_ABANDON, /* the server would keep the parts for ever */
};

struct ml_uploader_s3 {
    struct ml_s3_credentials credentials; /* of the try at hand */
    struct ml_instance_credentials *instance;
    bool lent;   /* the credentials are the instance's */
    bool in_one; /* also what is large */
    enum step step;
    char xml[ML_S3_JOIN_BYTES];
    /* What is told once the parts are abandoned. */
    unsigned status;
    char why[ML_UPLOAD_WORD_BYTES];
};

static void go_on(struct ml_uploader *uploader);

static void end(struct ml_uploader *uploader, unsigned status, const char *why) {
    explicit_bzero(&uploader->s3->credentials, sizeof(uploader->s3->credentials));
    ml_uploader_sent(uploader, status, why);
}

/* ---- what comes back */

/* libcurl 8.22 writes a key id such as Swift's account:user encoded, and 8.14 does not. */
static const char *hint_on(const struct ml_s3_credentials *credentials, const char *code) {
    const char *const unreserved =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    const char *key_id = credentials->key_id;
    const bool is_odd = key_id[strspn(key_id, unreserved)] != '\0';
    return is_odd && strcmp(code, "SignatureDoesNotMatch") == 0
               ? " (newer libcurl, as 8.22, encodes what is no letter or digit in the key id, "
                 "which "
                 "not every server reads)"
               : "";
}

static unsigned explain(
    const struct ml_uploader_s3 *s3,
    const struct ml_web_answer *answer,
    char out_why[ML_UPLOAD_WORD_BYTES]
) {
    char code[64];
    const unsigned status = ml_uploader_explain(answer, out_why);
    if (status >= STATUS_BAD_REQUEST && ml_s3_element(answer->body, "Code", code, sizeof(code))) {
        (void)snprintf(
            out_why,
            ML_UPLOAD_WORD_BYTES,
            "HTTP status %u: %s%s",
            status,
            code,
            hint_on(&s3->credentials, code)
        );
    }
    return status;
}

static void forget_parts(struct ml_spool_item *item) {
    item->upload_id[0] = '\0';
    item->parts = 0;
}

/* libcurl from 8.14 to 8.18 signs each plus of a query as if it were a blank, so no part would be
 * taken. Of the servers that are known none has one in an upload's id. What was begun stays begun:
 * its end could not be signed either. */
static void avoid_plus(struct ml_uploader *uploader) {
    if (strchr(uploader->sending.upload_id, '+') != NULL) {
        forget_parts(&uploader->sending);
        uploader->s3->in_one = true;
    }
}

/* This try has failed. */
static void failed(struct ml_uploader *uploader, const struct ml_web_answer *answer) {
    char code[64];
    struct ml_uploader_s3 *s3 = uploader->s3;
    struct ml_spool_item *item = &uploader->sending;
    s3->status = explain(s3, answer, s3->why);
    if (s3->status == STATUS_NOT_FOUND && (s3->step == STEP_PART || s3->step == STEP_JOIN)) {
        forget_parts(item);
        end(uploader, 0, "the server has forgotten the parts that it had");
        return;
    }
    if (s3->lent && (s3->status == STATUS_BAD_REQUEST || s3->status == STATUS_FORBIDDEN) &&
        ml_s3_element(answer->body, "Code", code, sizeof(code)) &&
        strcmp(code, "ExpiredToken") == 0) {
        ml_instance_credentials_forget(s3->instance);
        s3->status = 0;
    }
    const enum ml_upload_verdict verdict =
        ml_upload_judge(s3->status, item->tries + 1, item->harder != ML_SPOOL_AS_IT_IS);
    if (item->upload_id[0] != '\0' && verdict != ML_UPLOAD_AGAIN) {
        s3->step = STEP_ABANDON;
        go_on(uploader);
        return;
    }
    end(uploader, s3->status, s3->why);
}

static bool take_etag(struct ml_spool_item *item, const char *etag) {
    const bool taken =
        item->parts < ML_SPOOL_PARTS_MAX && ml_s3_etag(etag, item->etags[item->parts]);
    item->parts += taken ? 1 : 0;
    return taken;
}

static void on_answer(void *context, const struct ml_web_answer *answer) {
    struct ml_uploader *uploader = context;
    struct ml_uploader_s3 *s3 = uploader->s3;
    struct ml_spool_item *item = &uploader->sending;
    memcpy(uploader->retry_after, answer->retry_after, sizeof(uploader->retry_after));
    if (s3->step == STEP_ABANDON) {
        forget_parts(item);
        end(uploader, s3->status, s3->why);
        return;
    }
    const bool fine = answer->status >= 200 && answer->status < 300 &&
                      (s3->step != STEP_JOIN || !ml_s3_is_error(answer->body));
    if (!fine && answer->status >= 200 && answer->status < 300) {
        end(uploader, 0, "the server could not join the parts");
        return;
    }
    if (!fine) {
        failed(uploader, answer);
        return;
    }
    switch (s3->step) {
    case STEP_BEGIN:
        if (!ml_s3_element(answer->body, "UploadId", item->upload_id, sizeof(item->upload_id))) {
            end(uploader, 0, "the server's answer names no UploadId");
            return;
        }
        item->parts = 0;
        avoid_plus(uploader);
        break;
    case STEP_PART:
        if (!take_etag(item, answer->etag)) {
            end(uploader, 0, "the server's answer to a part has no ETag");
            return;
        }
        break;
    default:
        end(uploader, answer->status, "");
        return;
    }
    /* If the disk does not take it, a restart begins anew, no more. */
    (void)!ml_spool_keep(&uploader->spool, item);
    go_on(uploader);
}

/* ---- what goes out */

static size_t object_url(const struct ml_uploader *uploader, char out_url[URL_BYTES]) {
    const struct ml_upload_target *target = &uploader->options->target;
    char endpoint[ML_UPLOAD_URL_BYTES] = "";
    const char *rest = target->url;
    if (strncmp(rest, "s3://", 5) == 0) {
        rest += 5;
        ml_s3_endpoint(target->region, endpoint, sizeof(endpoint));
    }
    const int count = snprintf(
        out_url,
        URL_BYTES,
        "%s%s%s/memlog-%s.trace.json.gz",
        endpoint,
        endpoint[0] != '\0' ? "/" : "",
        rest,
        uploader->sending.id
    );
    return count > 0 ? (size_t)count : 0;
}

/* "uploadId=" and its value as a query has it. */
static void add_upload_id(const struct ml_spool_item *item, char out_url[URL_BYTES], size_t at) {
    at += (size_t)snprintf(out_url + at, URL_BYTES - at, "uploadId=");
    (void)ml_s3_encode(item->upload_id, out_url + at, URL_BYTES - at);
}

static void start(struct ml_uploader *uploader, struct ml_web_request *request) {
    struct ml_uploader_s3 *s3 = uploader->s3;
    const struct ml_upload_target *target = &uploader->options->target;
    char header[ML_UPLOAD_SECRET_BYTES + 64];
    request->region = target->region[0] != '\0' ? target->region : ml_s3_region();
    request->key_id = s3->credentials.key_id;
    request->secret = s3->credentials.secret;
    request->ca_file = uploader->options->ca_file;
    request->connect_timeout_s = CONNECT_TIMEOUT_S;
    request->whole_timeout_s = WHOLE_TIMEOUT_S;
    ml_web_call_header(
        uploader->web,
        s3->step == STEP_JOIN ? "Content-Type: application/xml" : "Content-Type: application/gzip"
    );
    if (s3->credentials.token[0] != '\0') {
        (void)snprintf(header, sizeof(header), "X-Amz-Security-Token: %s", s3->credentials.token);
        ml_web_call_header(uploader->web, header);
        explicit_bzero(header, sizeof(header));
    }
    ml_web_call_start(uploader->web, request, on_answer, uploader);
}

static enum step next_step(const struct ml_uploader *uploader) {
    const struct ml_spool_item *item = &uploader->sending;
    if (uploader->s3->step == STEP_ABANDON) {
        return STEP_ABANDON;
    }
    if (uploader->body_bytes <= WHOLE_MOST_BYTES || uploader->s3->in_one) {
        return STEP_WHOLE;
    }
    if (item->upload_id[0] == '\0') {
        return STEP_BEGIN;
    }
    return (uint64_t)item->parts * PART_BYTES < uploader->body_bytes ? STEP_PART : STEP_JOIN;
}

static void go_on(struct ml_uploader *uploader) {
    struct ml_uploader_s3 *s3 = uploader->s3;
    const struct ml_spool_item *item = &uploader->sending;
    char url[URL_BYTES];
    size_t at = object_url(uploader, url);
    struct ml_web_request request = {.method = "PUT", .url = url, .body_fd = uploader->body_fd};
    s3->step = next_step(uploader);
    switch (s3->step) {
    case STEP_WHOLE:
        request.body_bytes = uploader->body_bytes;
        break;
    case STEP_BEGIN:
        request.method = "POST";
        request.body = "";
        (void)snprintf(url + at, sizeof(url) - at, "?uploads=");
        break;
    case STEP_PART: {
        request.body_offset = (uint64_t)item->parts * PART_BYTES;
        const uint64_t left = uploader->body_bytes - request.body_offset;
        request.body_bytes = left < PART_BYTES ? left : PART_BYTES;
        at += (size_t)snprintf(url + at, sizeof(url) - at, "?partNumber=%u&", item->parts + 1);
        add_upload_id(item, url, at);
        break;
    }
    case STEP_JOIN:
        ml_s3_join(item, s3->xml);
        request.method = "POST";
        request.body = s3->xml;
        request.body_bytes = strlen(s3->xml);
        url[at++] = '?';
        add_upload_id(item, url, at);
        break;
    case STEP_ABANDON:
        request.method = "DELETE";
        request.body = "";
        url[at++] = '?';
        add_upload_id(item, url, at);
        break;
    }
    start(uploader, &request);
}

static void on_lent(
    void *context, const struct ml_s3_credentials *credentials, const struct ml_error_message *error
) {
    struct ml_uploader *uploader = context;
    if (credentials == NULL) {
        end(uploader, 0, error->text);
        return;
    }
    uploader->s3->credentials = *credentials;
    uploader->s3->lent = true;
    go_on(uploader);
}

void ml_uploader_s3_send(struct ml_uploader *uploader) {
    struct ml_uploader_s3 *s3 = uploader->s3;
    struct ml_error_message error = {.text = ""};
    s3->step = STEP_WHOLE;
    s3->lent = false;
    s3->in_one = false;
    avoid_plus(uploader);
    /* What a former body had sent is none of this one's. */
    if ((uint64_t)uploader->sending.parts * PART_BYTES >= uploader->body_bytes + PART_BYTES) {
        forget_parts(&uploader->sending);
    }
    if (ml_s3_credentials_find(&s3->credentials, &error) == ML_OK) {
        go_on(uploader);
    } else {
        ml_instance_credentials_get(s3->instance, on_lent, uploader);
    }
}

/* ---- before the program starts */

struct trial {
    struct ev_loop *loop;
    bool found;
    struct ml_error_message error;
};

static void on_tried(
    void *context, const struct ml_s3_credentials *credentials, const struct ml_error_message *error
) {
    struct trial *trial = context;
    trial->found = credentials != NULL;
    if (error != NULL) {
        trial->error = *error;
    }
    ev_break(trial->loop, EVBREAK_ALL);
}

/* Whether this machine lends any, on a loop of its own: here it is fine to wait. */
static enum ml_status try_instance(const struct ml_curl_api *api, struct ml_error_message *error) {
    struct trial trial = {.loop = ev_loop_new(EVFLAG_AUTO)};
    struct ml_instance_credentials *instance =
        trial.loop != NULL ? ml_instance_credentials_new(api, trial.loop) : NULL;
    if (instance != NULL) {
        ml_instance_credentials_get(instance, on_tried, &trial);
        if (!trial.found && trial.error.text[0] == '\0') {
            (void)ev_run(trial.loop, 0);
        }
        ml_instance_credentials_free(instance);
    }
    if (trial.loop != NULL) {
        ev_loop_destroy(trial.loop);
    }
    if (!trial.found) {
        ml_error_set(error, "nor does this machine lend any (%.500s)", trial.error.text);
        return ML_ENV_MISSING;
    }
    return ML_OK;
}

enum ml_status ml_uploader_s3_init(struct ml_uploader *uploader, struct ml_error_message *error) {
    struct ml_error_message lent = {.text = ""};
    struct ml_error_message own = {.text = ""};
    struct ml_uploader_s3 *s3 = calloc(1, sizeof(*s3));
    uploader->s3 = s3;
    if (!uploader->api.has_digest) {
        ml_error_set(error, "--upload: S3 needs the libcurl that is built with OpenSSL");
        return ML_ENV_MISSING;
    }
    if (s3 != NULL) {
        s3->instance = ml_instance_credentials_new(&uploader->api, uploader->setup.loop);
    }
    if (s3 == NULL || s3->instance == NULL) {
        return ML_ENV_MEMORY;
    }
    enum ml_status status = ml_s3_credentials_find(&s3->credentials, &own);
    explicit_bzero(&s3->credentials, sizeof(s3->credentials));
    if (status != ML_OK) {
        status = try_instance(&uploader->api, &lent);
    }
    if (status != ML_OK) {
        ml_error_set(error, "%.3000s, %.600s", own.text, lent.text);
    }
    return status;
}

void ml_uploader_s3_fini(struct ml_uploader *uploader) {
    struct ml_uploader_s3 *s3 = uploader->s3;
    if (s3 != NULL) {
        ml_instance_credentials_free(s3->instance);
        explicit_bzero(s3, sizeof(*s3));
        free(s3);
        uploader->s3 = NULL;
    }
}
