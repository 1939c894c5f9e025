#include "host/collect/server/receiver.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/collect/server/internal.h"
#include "host/http/tls.h"

/* ---- words */

void ml_receiver_answer(
    struct ml_http_request *request, unsigned status, const char *retry_after, const char *text
) {
    const struct ml_http_answer said = {
        .status = status,
        .content_type = "text/plain; charset=utf-8",
        .bytes = text,
        .bytes_count = strlen(text),
        .retry_after = retry_after,
    };
    ml_http_answer(request, &said);
}

const char *ml_receiver_argument(const struct ml_http_request *request, const char *name) {
    const char *value = ml_http_argument(request, name);
    return value != NULL ? value : "";
}

/* ---- who it is */

const struct ml_token *ml_receiver_authorize(
    const struct ml_receiver *receiver, struct ml_http_request *request, enum ml_right wanted
) {
    const struct ml_token *token =
        ml_tokens_find(receiver->setup.tokens, ml_http_header(request, "Authorization"));
    if (token == NULL) {
        ml_receiver_answer(
            request, UNKNOWN, NULL, "a token is wanted: Authorization: Bearer TOKEN\n"
        );
        return NULL;
    }
    if (!ml_right_includes(token->right, wanted)) {
        ml_receiver_answer(request, FORBIDDEN, NULL, "this token is for something else\n");
        return NULL;
    }
    return token;
}

/* ---- reports */

static bool is_report(const struct ml_http_request *request) {
    const char *method = ml_http_method(request);
    return strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0;
}

/* Counting asks the ledger, so it is done now and then. */
static bool is_crowded(struct ml_receiver *receiver) {
    enum { COUNT_EVERY = 16 };
    if (receiver->since_counted++ % COUNT_EVERY == 0) {
        receiver->waiting = ml_ledger_count(receiver->setup.ledger, ML_ENTRY_ACCEPTED);
    }
    return receiver->waiting + receiver->since_counted % COUNT_EVERY > receiver->setup.waiting_max;
}

static uint64_t length_of(const struct ml_http_request *request) {
    const char *length = ml_http_header(request, "Content-Length");
    return length != NULL ? strtoull(length, NULL, 10) : 0;
}

/* Before anything of the body is read. */
static void take_in(struct ml_receiver *receiver, struct ml_http_request *request) {
    if (ml_receiver_authorize(receiver, request, ML_RIGHT_WRITE) == NULL) {
        return;
    }
    const uint64_t length = length_of(request);
    if (length > receiver->setup.body_max_bytes) {
        ml_receiver_answer(request, TOO_LARGE, NULL, "the report is too large\n");
    } else if (is_crowded(receiver)) {
        ml_receiver_answer(request, TOO_MANY, "30", "too many reports wait: come again\n");
    } else if (ml_ledger_free_bytes(receiver->setup.ledger) < receiver->setup.free_min_bytes + length) {
        ml_receiver_answer(request, DISK_FULL, "300", "the disk is full\n");
    } else {
        *ml_http_own(request) = ml_body_new(receiver->setup.ledger);
        if (*ml_http_own(request) == NULL) {
            ml_receiver_answer(request, DISK_FULL, "300", "the report cannot be written\n");
        }
    }
}

/* The name that a sender gives its report, the same at each try. False: it is no such name. */
static bool guid_of(const struct ml_http_request *request, char out_guid[ML_GUID_BYTES]) {
    const char *name = ml_http_header(request, "Idempotency-Key");
    const size_t count = name != NULL ? strlen(name) : 0;
    out_guid[0] = '\0';
    if (count >= ML_GUID_BYTES ||
        (count > 0 &&
         strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != count
        )) {
        return false;
    }
    (void)snprintf(out_guid, ML_GUID_BYTES, "%s", name != NULL ? name : "");
    return true;
}

static void accepted(
    struct ml_receiver *receiver,
    struct ml_http_request *request,
    enum ml_accepted what,
    const char *guid
) {
    char text[ML_GUID_BYTES + 32];
    switch (what) {
    case ML_ACCEPTED_NEW:
        ml_collector_wake(receiver->setup.collector);
        __attribute__((fallthrough));
    case ML_ACCEPTED_BEFORE:
        (void)snprintf(text, sizeof(text), "%s\n", guid);
        ml_receiver_answer(request, OK, NULL, text);
        return;
    case ML_ACCEPTED_CONFLICT:
        ml_receiver_answer(request, CONFLICT, NULL, "another report has this name already\n");
        return;
    case ML_ACCEPTED_NOT:
        ml_receiver_answer(request, DISK_FULL, "300", "the report cannot be written\n");
        return;
    }
}

static void took_in(struct ml_receiver *receiver, struct ml_http_request *request) {
    struct ml_body *body = *ml_http_own(request);
    const struct ml_token *token = ml_receiver_authorize(receiver, request, ML_RIGHT_WRITE);
    char guid[ML_GUID_BYTES];
    char host[ML_GUID_BYTES];
    struct ml_entry entry = {.id = 0};
    if (token == NULL || body == NULL) {
        return;
    }
    if (!guid_of(request, guid)) {
        ml_receiver_answer(
            request, BAD, NULL, "Idempotency-Key is a word of at most 64 letters and digits\n"
        );
        return;
    }
    ml_http_client_name(receiver->setup.tls, request, host, sizeof(host));
    *ml_http_own(request) = NULL;
    const enum ml_accepted what =
        ml_ledger_accept(receiver->setup.ledger, body, token->team, guid, host, &entry);
    accepted(receiver, request, what, entry.guid);
}

/* ---- figures */

static void answer_figures(struct ml_receiver *receiver, struct ml_http_request *request) {
    const struct ml_collector_figures figures = ml_collector_figures(receiver->setup.collector);
    char text[512];
    (void)snprintf(
        text,
        sizeof(text),
        "# TYPE memlog_collect_reports gauge\n"
        "memlog_collect_reports{state=\"waiting\"} %" PRIu64 "\n"
        "memlog_collect_reports{state=\"stored\"} %" PRIu64 "\n"
        "memlog_collect_reports{state=\"refused\"} %" PRIu64 "\n"
        "# TYPE memlog_collect_store_failures_total counter\n"
        "memlog_collect_store_failures_total %" PRIu64 "\n",
        figures.waiting,
        figures.stored,
        figures.refused,
        figures.store_failures
    );
    ml_receiver_answer(request, OK, NULL, text);
}

/* ---- deleting */

static void remove_report(struct ml_receiver *receiver, struct ml_http_request *request) {
    const struct ml_token *token = ml_receiver_authorize(receiver, request, ML_RIGHT_ADMIN);
    const char *guid = ml_receiver_argument(request, "guid");
    struct ml_error_message error = {.text = ""};
    struct ml_entry entry;
    if (token == NULL) {
        return;
    }
    if (!ml_ledger_find(receiver->setup.ledger, token->team, guid, &entry)) {
        ml_receiver_answer(request, MISSING, NULL, "there is no such report\n");
        return;
    }
    if (entry.state == ML_ENTRY_ACCEPTED) {
        ml_receiver_answer(
            request, UNAVAILABLE, "5", "it is on its way into the store: try again\n"
        );
        return;
    }
    if (ml_store_remove(receiver->setup.store, token->team, guid, &error) != ML_OK ||
        ml_ledger_remove(receiver->setup.ledger, &entry) != ML_OK) {
        ml_receiver_answer(request, FAILED, NULL, "it cannot be removed\n");
        return;
    }
    ml_receiver_answer(request, OK, NULL, "removed\n");
}

/* ---- requests */

static void on_head(void *context, struct ml_http_request *request) {
    if (is_report(request)) {
        take_in(context, request);
    }
}

static bool
on_body(void *context, struct ml_http_request *request, const void *bytes, size_t bytes_count) {
    struct ml_receiver *receiver = context;
    struct ml_body *body = *ml_http_own(request);
    if (body == NULL) {
        return false; /* nobody wanted it */
    }
    if (ml_body_bytes(body) + bytes_count > receiver->setup.body_max_bytes) {
        ml_receiver_answer(request, TOO_LARGE, NULL, "the report is too large\n");
    } else if (!ml_body_add(body, bytes, bytes_count)) {
        ml_receiver_answer(request, DISK_FULL, "300", "the report cannot be written\n");
    } else {
        return true;
    }
    *ml_http_own(request) = NULL;
    ml_body_drop(body);
    return true;
}

static void on_end(void *context, struct ml_http_request *request) {
    struct ml_receiver *receiver = context;
    ml_body_drop(*ml_http_own(request));
    *ml_http_own(request) = NULL;
    ml_question_queue_cancel(receiver->questions, request);
}

static void on_request(void *context, struct ml_http_request *request) {
    struct ml_receiver *receiver = context;
    const char *method = ml_http_method(request);
    const char *path = ml_http_path(request);
    if (is_report(request)) {
        took_in(receiver, request);
    } else if (strcmp(method, "DELETE") == 0 && strcmp(path, "/api/v1/fleet/report") == 0) {
        remove_report(receiver, request);
    } else if (strcmp(method, "GET") != 0) {
        ml_receiver_answer(request, WRONG_METHOD, NULL, "GET asks, POST sends a report\n");
    } else if (strcmp(path, "/health") == 0) {
        ml_receiver_answer(request, OK, NULL, "ok\n");
    } else if (strcmp(path, "/metrics") == 0) {
        if (ml_receiver_authorize(receiver, request, ML_RIGHT_READ) != NULL) {
            answer_figures(receiver, request);
        }
    } else if (strncmp(path, "/api/v1/fleet/", strlen("/api/v1/fleet/")) == 0) {
        ml_receiver_ask(receiver, request);
    } else {
        ml_receiver_answer(request, MISSING, NULL, "there is nothing here\n");
    }
}

enum ml_status ml_receiver_open(
    const struct ml_receiver_setup *setup,
    struct ml_receiver **out_receiver,
    struct ml_error_message *error
) {
    struct ml_receiver *receiver = calloc(1, sizeof(*receiver));
    if (receiver == NULL) {
        return ML_ENV_MEMORY;
    }
    receiver->setup = *setup;
    const struct ml_http_setup http = {
        .loop = setup->loop,
        .take_listen_fd = setup->take_listen_fd,
        .on_head = on_head,
        .on_body = on_body,
        .on_request = on_request,
        .on_end = on_end,
        .context = receiver,
        .tls = setup->tls,
    };
    enum ml_status status = ML_ENV_SYSTEM;
    if (ml_receiver_ask_open(receiver, error)) {
        status = ml_http_open(&http, &receiver->http, error);
    } else {
        (void)close(setup->take_listen_fd);
    }
    if (status != ML_OK) {
        ml_receiver_close(receiver);
        return status;
    }
    *out_receiver = receiver;
    return ML_OK;
}

void ml_receiver_close(struct ml_receiver *take_receiver) {
    if (take_receiver != NULL) {
        ml_http_close(take_receiver->http);
        ml_question_queue_free(take_receiver->questions);
        free(take_receiver);
    }
}
