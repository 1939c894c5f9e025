#include "host/upload/instance_credentials.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <jansson.h>

enum {
    URL_BYTES = 1024,
    /* They are asked for again when they are good for less than this: several tries' time. */
    MARGIN_S = 300,
    /* Where there is no such service, nothing answers: Amazon's own tools wait a second. */
    CONNECT_TIMEOUT_S = 1,
    WHOLE_TIMEOUT_S = 5,
    STATUS_OK = 200,
};

static const char relative_base[] = "http://169.254.170.2";
static const char metadata_base[] = "http://169.254.169.254";
static const char role_path[] = "/latest/meta-data/iam/security-credentials/";

enum step { STEP_NONE = 0, STEP_TOKEN, STEP_ROLE, STEP_CREDENTIALS };

struct ml_instance_credentials {
    struct ml_web_call *web;
    enum step step;
    char url[URL_BYTES];
    char token_header[ML_WEB_ANSWER_BYTES]; /* of the metadata service */
    struct ml_s3_credentials credentials;
    uint64_t end_s; /* 0: none are known */
    ml_instance_credentials_done *on_done;
    void *context;
};

/* ---- the answer */

static bool take(json_t *root, const char *key, char *out, size_t out_bytes) {
    const char *value = json_string_value(json_object_get(root, key));
    const int count = value != NULL ? snprintf(out, out_bytes, "%s", value) : -1;
    bool plain = count > 0 && (size_t)count < out_bytes;
    for (const char *at = out; plain && *at != '\0'; at++) {
        plain = isgraph((unsigned char)*at); /* it becomes part of a header */
    }
    return plain;
}

enum ml_status ml_instance_credentials_parse(
    const char *text,
    struct ml_s3_credentials *out_credentials,
    uint64_t *out_end_s,
    struct ml_error_message *error
) {
    struct tm parts = {.tm_year = 0};
    json_t *root = json_loads(text, 0, NULL);
    *out_credentials = (struct ml_s3_credentials){.key_id = ""};
    *out_end_s = 0;
    bool fine = take(root, "AccessKeyId", out_credentials->key_id, sizeof(out_credentials->key_id));
    fine = fine &&
           take(root, "SecretAccessKey", out_credentials->secret, sizeof(out_credentials->secret));
    /* A container's may have no token. */
    if (fine && json_object_get(root, "Token") != NULL) {
        fine = take(root, "Token", out_credentials->token, sizeof(out_credentials->token));
    }
    const char *end = json_string_value(json_object_get(root, "Expiration"));
    if (end != NULL && strptime(end, "%Y-%m-%dT%H:%M:%S", &parts) != NULL) {
        const time_t end_s = timegm(&parts);
        *out_end_s = end_s > 0 ? (uint64_t)end_s : 0;
    }
    json_decref(root);
    if (!fine || *out_end_s == 0) {
        explicit_bzero(out_credentials, sizeof(*out_credentials));
        ml_error_set(
            error, "its answer has no AccessKeyId, SecretAccessKey and Expiration in JSON"
        );
        return ML_PEER_FORM;
    }
    return ML_OK;
}

/* ---- where to ask */

bool ml_instance_credentials_may_ask(const char *url) {
    static const char *const hosts[] = {
        "localhost", "127.0.0.1", "[::1]", "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"};
    if (strncmp(url, "https://", 8) == 0) {
        return true;
    }
    if (strncmp(url, "http://", 7) != 0) {
        return false;
    }
    const char *host = url + 7;
    const char *end = host[0] == '[' ? strchr(host, ']') : NULL;
    const size_t count = end != NULL ? (size_t)(end + 1 - host) : strcspn(host, ":/?#@");
    /* A host, a port, a path: nobody hides another host behind a name and a password. */
    if (host[count] != '\0' && host[count] != ':' && host[count] != '/') {
        return false;
    }
    if (memchr(host, '@', strcspn(host, "/?#")) != NULL) {
        return false;
    }
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        if (strlen(hosts[i]) == count && strncmp(host, hosts[i], count) == 0) {
            return true;
        }
    }
    return false;
}

static void
end(struct ml_instance_credentials *source,
    const struct ml_s3_credentials *credentials,
    const struct ml_error_message *error) {
    ml_instance_credentials_done *on_done = source->on_done;
    source->on_done = NULL;
    source->step = STEP_NONE;
    explicit_bzero(source->token_header, sizeof(source->token_header));
    on_done(source->context, credentials, error);
}

static uint64_t now_s(void) {
    return (uint64_t)time(NULL);
}

/* What is still good will do. */
static void fail(struct ml_instance_credentials *source, const char *why) {
    struct ml_error_message error = {.text = ""};
    if (source->end_s > now_s()) {
        end(source, &source->credentials, NULL);
        return;
    }
    ml_error_set(&error, "%s: %s", source->url, why);
    end(source, NULL, &error);
}

static void ask(struct ml_instance_credentials *source, const char *method, enum step step);

static const char *metadata_endpoint(void) {
    const char *base = ml_secret_setting("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    return base != NULL ? base : metadata_base;
}

/* "BASE PATH NAME" without two slashes in between; false: too long. */
static bool make_url(
    struct ml_instance_credentials *source, const char *base, const char *path, const char *name
) {
    size_t base_count = strlen(base);
    while (path[0] == '/' && base_count > 0 && base[base_count - 1] == '/') {
        base_count--;
    }
    const int count =
        snprintf(source->url, sizeof(source->url), "%.*s%s%s", (int)base_count, base, path, name);
    return count > 0 && (size_t)count < sizeof(source->url);
}

/* The first line of an answer, if it is one plain word. */
static bool one_word(const struct ml_web_answer *answer, char *out_word, size_t word_bytes) {
    const size_t count = strcspn(answer->body, "\r\n");
    if (count == 0 || count >= word_bytes) {
        return false;
    }
    memcpy(out_word, answer->body, count);
    out_word[count] = '\0';
    for (size_t i = 0; i < count; i++) {
        if (!isgraph((unsigned char)out_word[i])) {
            return false;
        }
    }
    return true;
}

static void
take_credentials(struct ml_instance_credentials *source, const struct ml_web_answer *answer) {
    struct ml_s3_credentials credentials;
    struct ml_error_message error = {.text = ""};
    uint64_t end_s = 0;
    if (ml_instance_credentials_parse(answer->body, &credentials, &end_s, &error) != ML_OK) {
        fail(source, error.text);
        return;
    }
    source->credentials = credentials;
    source->end_s = end_s;
    explicit_bzero(&credentials, sizeof(credentials));
    end(source, &source->credentials, NULL);
}

static void on_answer(void *context, const struct ml_web_answer *answer) {
    struct ml_instance_credentials *source = context;
    char word[512];
    char why[ML_WEB_VALUE_BYTES + 64];
    if (answer->status != STATUS_OK) {
        (void)snprintf(why, sizeof(why), "HTTP status %u", answer->status);
        fail(source, answer->status == 0 ? answer->trouble : why);
        return;
    }
    switch (source->step) {
    case STEP_TOKEN:
        if (!one_word(answer, word, sizeof(word))) {
            fail(source, "it gives no token");
            return;
        }
        (void)snprintf(
            source->token_header, sizeof(source->token_header), "X-aws-ec2-metadata-token: %s", word
        );
        explicit_bzero(word, sizeof(word));
        (void)make_url(source, metadata_endpoint(), role_path, "");
        ask(source, "GET", STEP_ROLE);
        return;
    case STEP_ROLE:
        if (!one_word(answer, word, sizeof(word)) || strpbrk(word, "?#") != NULL ||
            !make_url(source, metadata_endpoint(), role_path, word)) {
            fail(source, "this instance has no role");
            return;
        }
        ask(source, "GET", STEP_CREDENTIALS);
        return;
    default:
        take_credentials(source, answer);
    }
}

static void ask(struct ml_instance_credentials *source, const char *method, enum step step) {
    const struct ml_web_request request = {
        .method = method,
        .url = source->url,
        .body = "",
        .direct = true,
        .connect_timeout_s = CONNECT_TIMEOUT_S,
        .whole_timeout_s = WHOLE_TIMEOUT_S};
    source->step = step;
    if (step == STEP_TOKEN) {
        ml_web_call_header(source->web, "X-aws-ec2-metadata-token-ttl-seconds: 300");
    } else if (source->token_header[0] != '\0') {
        ml_web_call_header(source->web, source->token_header);
    }
    ml_web_call_start(source->web, &request, on_answer, source);
}

/* False and a word in `error message`: the token cannot be read. */
static bool
add_container_token(struct ml_instance_credentials *source, struct ml_error_message *error) {
    char header[sizeof(source->credentials.token) + 32];
    char token[sizeof(source->credentials.token)];
    const char *file = ml_secret_setting("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    const char *plain = ml_secret_setting("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    if (file == NULL && plain == NULL) {
        return true;
    }
    if (file != NULL && ml_secret_read(file, token, sizeof(token), error) != ML_OK) {
        return false;
    }
    (void)snprintf(
        header,
        sizeof(header),
        "Authorization: %.*s",
        (int)sizeof(token),
        file != NULL ? token : plain
    );
    ml_web_call_header(source->web, header);
    explicit_bzero(token, sizeof(token));
    explicit_bzero(header, sizeof(header));
    return true;
}

static void
ask_container(struct ml_instance_credentials *source, const char *base, const char *path) {
    struct ml_error_message error = {.text = ""};
    if (!make_url(source, base, path, "") || strpbrk(source->url, " \r\n") != NULL ||
        !ml_instance_credentials_may_ask(source->url)) {
        fail(source, "secrets are asked for by https or on this machine alone");
        return;
    }
    if (!add_container_token(source, &error)) {
        fail(source, error.text);
        return;
    }
    ask(source, "GET", STEP_CREDENTIALS);
}

void ml_instance_credentials_get(
    struct ml_instance_credentials *source, ml_instance_credentials_done *on_done, void *context
) {
    const char *relative = ml_secret_setting("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    const char *full = ml_secret_setting("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    const char *disabled = ml_secret_setting("AWS_EC2_METADATA_DISABLED");
    source->on_done = on_done;
    source->context = context;
    if (source->end_s > now_s() + MARGIN_S) {
        end(source, &source->credentials, NULL);
    } else if (relative != NULL) {
        ask_container(source, relative_base, relative);
    } else if (full != NULL) {
        ask_container(source, full, "");
    } else if (disabled != NULL && strcasecmp(disabled, "true") == 0) {
        (void)snprintf(source->url, sizeof(source->url), "instance metadata");
        fail(source, "AWS_EC2_METADATA_DISABLED");
    } else if (!make_url(source, metadata_endpoint(), "/latest/api/token", "")) {
        fail(source, "AWS_EC2_METADATA_SERVICE_ENDPOINT is too long");
    } else {
        ask(source, "PUT", STEP_TOKEN);
    }
}

void ml_instance_credentials_forget(struct ml_instance_credentials *source) {
    explicit_bzero(&source->credentials, sizeof(source->credentials));
    source->end_s = 0;
}

struct ml_instance_credentials *
ml_instance_credentials_new(const struct ml_curl_api *api, struct ev_loop *loop) {
    struct ml_instance_credentials *source = calloc(1, sizeof(*source));
    if (source != NULL) {
        source->web = ml_web_call_new(api, loop);
    }
    if (source != NULL && source->web == NULL) {
        free(source);
        return NULL;
    }
    return source;
}

void ml_instance_credentials_free(struct ml_instance_credentials *take_source) {
    if (take_source != NULL) {
        ml_web_call_free(take_source->web);
        explicit_bzero(take_source, sizeof(*take_source));
        free(take_source);
    }
}
