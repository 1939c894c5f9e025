#include "host/fleet/client.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ev.h>

#include "base/printable.h"
#include "host/upload/curl_api.h"
#include "host/upload/web_call.h"

enum {
    CONNECT_TIMEOUT_S = 10,
    ANSWER_TIMEOUT_S = 300, /* a large store counts for a while before it answers */
    TELL_TIMEOUT_S = 30,
    WORDS_BYTES = 300,
    PLACE_BYTES = 320,
    FIRST_BYTES = 64 << 10,
    URL_BYTES = 8192,
    STATUS_OK = 200,
    STATUS_REDIRECTED = 300,
    STATUS_WRONG = 400,
    STATUS_UNAUTHORIZED = 401,
    STATUS_FORBIDDEN = 403,
    STATUS_MISSING = 404,
};

struct ml_fleet_client {
    struct ml_curl_api api;
    struct ev_loop *loop;
    struct ml_web_call *call;
    struct ml_fleet_address place;
    const bool *stopped;
    char *bytes;
    size_t count, capacity;
    bool is_too_large, is_done;
    struct ml_web_answer answer;
};

struct ml_fleet_client *ml_fleet_client_new(
    struct ev_loop *loop,
    const struct ml_fleet_address *place,
    const bool *stopped,
    struct ml_error_message *error
) {
    struct ml_fleet_client *client = calloc(1, sizeof(*client));
    if (client == NULL) {
        ml_error_set(error, "no memory");
        return NULL;
    }
    *client = (struct ml_fleet_client){.loop = loop, .place = *place, .stopped = stopped};
    if (!ml_curl_api_load(&client->api)) {
        ml_error_set(error, "there is no libcurl here, or an old one: install libcurl4");
        free(client);
        return NULL;
    }
    client->call = ml_web_call_new(&client->api, loop);
    if (client->call == NULL) {
        ml_error_set(error, "no memory");
        free(client);
        return NULL;
    }
    return client;
}

void ml_fleet_client_free(struct ml_fleet_client *take_client) {
    if (take_client != NULL) {
        ml_web_call_free(take_client->call);
        free(take_client->bytes);
        free(take_client);
    }
}

/* ---- a request, while the loop runs */

static bool on_bytes(void *context, const char *bytes, size_t count_bytes) {
    struct ml_fleet_client *client = context;
    const size_t wanted = client->count + count_bytes + 1;
    client->is_too_large = wanted > ML_FLEET_ANSWER_BYTES_MAX;
    if (client->is_too_large) {
        return false;
    }
    if (wanted > client->capacity) {
        size_t capacity = client->capacity > 0 ? client->capacity : FIRST_BYTES;
        while (capacity < wanted) {
            capacity *= 2;
        }
        char *grown = realloc(client->bytes, capacity);
        if (grown == NULL) {
            return false;
        }
        client->bytes = grown;
        client->capacity = capacity;
    }
    memcpy(client->bytes + client->count, bytes, count_bytes);
    client->count += count_bytes;
    client->bytes[client->count] = '\0';
    return true;
}

static void on_done(void *context, const struct ml_web_answer *answer) {
    struct ml_fleet_client *client = context;
    client->answer = *answer;
    client->is_done = true;
    ev_break(client->loop, EVBREAK_ALL);
}

/* Loopback is reached by no proxy. */
static bool is_here(const char *url) {
    static const char *const names[] = {"127.", "localhost", "[::1]"};
    const char *host = strstr(url, "://");
    for (size_t i = 0; host != NULL && i < sizeof(names) / sizeof(names[0]); i++) {
        if (strncmp(host + 3, names[i], strlen(names[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* False: a signal came first. */
static bool
request(struct ml_fleet_client *client, const struct ml_web_request *request, const char *id) {
    char header[ML_FLEET_TOKEN_BYTES + 64];
    client->count = 0;
    client->is_too_large = client->is_done = false;
    if (client->bytes != NULL) {
        client->bytes[0] = '\0';
    }
    if (client->place.token[0] != '\0') {
        (void)snprintf(header, sizeof(header), "Authorization: Bearer %s", client->place.token);
        ml_web_call_header(client->call, header);
        explicit_bzero(header, sizeof(header));
    }
    if (id != NULL) {
        (void)snprintf(header, sizeof(header), "Idempotency-Key: %.100s", id);
        ml_web_call_header(client->call, header);
        ml_web_call_header(client->call, "Content-Type: application/json");
    }
    ml_web_call_start(client->call, request, on_done, client);
    while (!client->is_done && !*client->stopped) {
        (void)ev_run(client->loop, 0);
    }
    return client->is_done;
}

/* ---- what came of it, in words */

/* Scheme, host and port: a webhook's path may be its secret. */
static void place_of(const char *url, char out_place[PLACE_BYTES]) {
    const char *host = strstr(url, "://");
    const size_t count = host != NULL ? (size_t)(host + 3 - url) + strcspn(host + 3, "/?#") : 0;
    (void)ml_printable_copy(url, count, out_place, PLACE_BYTES);
}

/* What may help. */
static const char *hint(const struct ml_fleet_client *client, bool is_webhook) {
    const struct ml_web_answer *answer = &client->answer;
    if (answer->untrusted) {
        return is_webhook
                   ? "; --webhook-ca=FILE names who has signed its certificate, if you trust that"
                   : "; --ca=FILE names who has signed its certificate, if you trust that";
    }
    if (is_webhook) {
        return answer->status == STATUS_UNAUTHORIZED && client->place.token[0] == '\0'
                   ? "; --webhook-token-file=FILE has a token for it"
                   : "";
    }
    switch (answer->status) {
    case 0:
        return "; is 'memlog collect' listening there? --at=URL names another place, and one with "
               "TLS is https://";
    case STATUS_UNAUTHORIZED:
        return client->place.token[0] == '\0'
                   ? "; --token-file=FILE has one that may read (fleet.db.tokens of a collector "
                     "with --store=sqlite:fleet.db)"
                   : "; --token-file=FILE has one that it does not know";
    case STATUS_FORBIDDEN:
        return "; --token-file=FILE has one that may not read: a line TEAM read TOKEN of the "
               "collector's has";
    case STATUS_MISSING:
        return "; is it 'memlog collect' that listens there?";
    default:
        return "";
    }
}

static void
explain(const struct ml_fleet_client *client, bool is_webhook, struct ml_error_message *error) {
    const struct ml_web_answer *answer = &client->answer;
    char place[PLACE_BYTES];
    char words[WORDS_BYTES];
    const char *from = answer->status == 0 ? answer->trouble : answer->body;
    place_of(client->place.url, place);
    (void)ml_printable_copy(from, strcspn(from, "\r\n"), words, sizeof(words));
    if (client->is_too_large) {
        ml_error_set(
            error,
            "%s: the answer is larger than 256 MiB: ask of one program, one build, or a shorter "
            "time",
            place
        );
    } else if (answer->status == 0) {
        ml_error_set(error, "%s: %s%s", place, words, hint(client, is_webhook));
    } else if (answer->status >= STATUS_REDIRECTED && answer->status < STATUS_WRONG) {
        ml_error_set(
            error, "%s: it is redirected (%u), which is not followed", place, answer->status
        );
    } else {
        ml_error_set(
            error,
            "%s: HTTP status %u%s%s%s",
            place,
            answer->status,
            words[0] != '\0' ? ": " : "",
            words,
            hint(client, is_webhook)
        );
    }
}

enum ml_status ml_fleet_client_ask(
    struct ml_fleet_client *client,
    const char *path,
    const char **out_answer,
    size_t *out_count,
    struct ml_error_message *error
) {
    char url[URL_BYTES];
    const int count = snprintf(url, sizeof(url), "%s%s", client->place.url, path);
    if (count < 0 || (size_t)count >= sizeof(url)) {
        ml_error_set(error, "the question is too long");
        return ML_ENV_SYSTEM;
    }
    const struct ml_web_request get = {
        .method = "GET",
        .url = url,
        .body_fd = -1,
        .ca_file = client->place.ca,
        .direct = is_here(client->place.url),
        .connect_timeout_s = CONNECT_TIMEOUT_S,
        .whole_timeout_s = ANSWER_TIMEOUT_S,
        .stall_timeout_s = ANSWER_TIMEOUT_S,
        .on_bytes = on_bytes,
    };
    if (!request(client, &get, NULL)) {
        ml_error_set(error, "interrupted");
        return ML_ENV_SYSTEM;
    }
    if (client->answer.status != STATUS_OK || client->is_too_large) {
        explain(client, false, error);
        return ML_ENV_SYSTEM;
    }
    *out_answer = client->bytes != NULL ? client->bytes : "";
    *out_count = client->count;
    return ML_OK;
}

enum ml_status ml_fleet_client_tell(
    struct ml_fleet_client *client, const char *json, const char *id, struct ml_error_message *error
) {
    const struct ml_web_request post = {
        .method = "POST",
        .url = client->place.url,
        .body = json,
        .body_fd = -1,
        .body_bytes = strlen(json),
        .ca_file = client->place.ca,
        .direct = is_here(client->place.url),
        .connect_timeout_s = CONNECT_TIMEOUT_S,
        .whole_timeout_s = TELL_TIMEOUT_S,
    };
    if (!request(client, &post, id)) {
        ml_error_set(error, "interrupted");
        return ML_ENV_SYSTEM;
    }
    if (client->answer.status < STATUS_OK || client->answer.status >= STATUS_REDIRECTED) {
        explain(client, true, error);
        return ML_ENV_SYSTEM;
    }
    return ML_OK;
}

bool ml_fleet_path_add(char *path, size_t path_bytes, const char *name, const char *value) {
    if (value == NULL || value[0] == '\0') {
        return true;
    }
    size_t at = strlen(path);
    int count =
        snprintf(path + at, path_bytes - at, "%s%s=", strchr(path, '?') != NULL ? "&" : "?", name);
    for (; count > 0 && (size_t)count < path_bytes - at && *value != '\0'; value++) {
        const unsigned char letter = (unsigned char)*value;
        at += (size_t)count;
        count = snprintf(
            path + at,
            path_bytes - at,
            isalnum(letter) || strchr("-._~", letter) != NULL ? "%c" : "%%%02X",
            letter
        );
    }
    return count > 0 && (size_t)count < path_bytes - at;
}
