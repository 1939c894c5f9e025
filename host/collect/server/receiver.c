#include "host/collect/server/receiver.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ev.h>

#include "host/collect/crash_point.h"
#include "host/collect/forms/words.h"
#include "host/collect/server/pages.h"
#include "host/collect/server/internal.h"
#include "host/http/tls.h"

/* ---- words */

void ml_receiver_answer(
    struct ml_http_request *request, unsigned status, const char *retry_after, const char *text
) {
    ml_form_answer(request, status, retry_after, text);
}

const char *ml_receiver_argument(const struct ml_http_request *request, const char *name) {
    const char *value = ml_http_argument(request, name);
    return value != NULL ? value : "";
}

/* ---- who it is */

const struct ml_token *ml_receiver_authorize(
    const struct ml_receiver *receiver, struct ml_http_request *request, enum ml_right wanted
) {
    const char *why = NULL;
    const struct ml_token *token = ml_forms_token(receiver->forms, request, &why);
    if (token == NULL) {
        ml_receiver_answer(request, UNKNOWN, NULL, why);
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

static uint64_t length_of(const struct ml_http_request *request) {
    const char *length = ml_http_header(request, "Content-Length");
    return length != NULL ? strtoull(length, NULL, 10) : 0;
}

static void
refuse_by_rate(struct ml_http_request *request, unsigned wait_s, uint64_t reports_a_minute) {
    char seconds[16];
    char text[128];
    (void)snprintf(seconds, sizeof(seconds), "%u", wait_s);
    (void)snprintf(
        text,
        sizeof(text),
        "your team may send %" PRIu64 " reports a minute: come again\n",
        reports_a_minute
    );
    ml_receiver_answer(request, TOO_MANY, seconds, text);
}

/* Whether there is room for it. False: it was answered. A team may have as many reports waiting as
 * there is room left for those of others. */
static bool has_room(
    struct ml_receiver *receiver, struct ml_http_request *request, const char *team, uint64_t bytes
) {
    const struct ml_receiver_setup *setup = &receiver->setup;
    const struct ml_team_figures its = ml_ledger_figures(setup->ledger, team);
    const struct ml_team_figures all = ml_ledger_figures(setup->ledger, NULL);
    const uint64_t waiting = all.counts[ML_ENTRY_ACCEPTED] + its.counts[ML_ENTRY_ACCEPTED];
    const uint64_t wanted = ml_forms_is_join(request) ? 0 : bytes;
    if (bytes > setup->body_max_bytes) {
        ml_receiver_answer(request, TOO_LARGE, NULL, "the report is too large\n");
    } else if (waiting >= setup->waiting_max) {
        ml_receiver_answer(request, TOO_MANY, "30", "too many reports wait: come again\n");
    } else if (setup->team_bytes > 0 && its.bytes + ml_forms_bytes(receiver->forms, team) + wanted > setup->team_bytes) {
        ml_receiver_answer(
            request, DISK_FULL, "3600", "your team's reports fill its room: delete some\n"
        );
    } else if (ml_ledger_free_bytes(setup->ledger) < setup->free_min_bytes + bytes) {
        ml_receiver_answer(request, DISK_FULL, "300", "the disk is full\n");
    } else {
        return true;
    }
    return false;
}

/* Before anything of the body is read. */
static void take_in(struct ml_receiver *receiver, struct ml_http_request *request) {
    const struct ml_token *token = ml_receiver_authorize(receiver, request, ML_RIGHT_WRITE);
    const uint64_t length = length_of(request);
    if (token == NULL || !ml_forms_begin(receiver->forms, request, token, length) ||
        !has_room(receiver, request, token->team, length)) {
        return;
    }
    const unsigned wait_s =
        ml_quotas_take(&receiver->quotas, token->team, ev_now(receiver->setup.loop));
    if (wait_s > 0) {
        refuse_by_rate(request, wait_s, receiver->quotas.a_minute);
        return;
    }
    *ml_http_own(request) = ml_body_new(receiver->setup.ledger);
    if (*ml_http_own(request) == NULL) {
        ml_receiver_answer(request, DISK_FULL, "300", "the report cannot be written\n");
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
        ml_crash_point("answered");
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
    /* One that came without its length is known only now. */
    if (ml_http_header(request, "Content-Length") == NULL &&
        !has_room(receiver, request, token->team, ml_body_bytes(body))) {
        return;
    }
    *ml_http_own(request) = NULL;
    if (!ml_forms_end(receiver->forms, request, token, &body, guid)) {
        return;
    }
    const enum ml_accepted what =
        ml_ledger_accept(receiver->setup.ledger, body, token->team, guid, host, &entry);
    accepted(receiver, request, what, entry.guid);
}

/* ---- figures */

/* Of the token's team, and what is nobody's. */
static void answer_figures(struct ml_receiver *receiver, struct ml_http_request *request) {
    const struct ml_token *token = ml_receiver_authorize(receiver, request, ML_RIGHT_READ);
    char text[1024];
    if (token == NULL) {
        return;
    }
    const struct ml_team_figures its = ml_ledger_figures(receiver->setup.ledger, token->team);
    (void)snprintf(
        text,
        sizeof(text),
        "# TYPE memlog_collect_reports gauge\n"
        "memlog_collect_reports{state=\"waiting\"} %" PRIu64 "\n"
        "memlog_collect_reports{state=\"stored\"} %" PRIu64 "\n"
        "memlog_collect_reports{state=\"refused\"} %" PRIu64 "\n"
        "# TYPE memlog_collect_spool_bytes gauge\n"
        "memlog_collect_spool_bytes %" PRIu64 "\n"
        "# TYPE memlog_collect_store_failures_total counter\n"
        "memlog_collect_store_failures_total %" PRIu64 "\n",
        its.counts[ML_ENTRY_ACCEPTED],
        its.counts[ML_ENTRY_STORED],
        its.counts[ML_ENTRY_REFUSED],
        its.bytes + ml_forms_bytes(receiver->forms, token->team),
        ml_collector_store_failures(receiver->setup.collector)
    );
    ml_receiver_answer(request, OK, NULL, text);
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
    ml_remover_cancel(receiver->setup.remover, request);
}

static void on_request(void *context, struct ml_http_request *request) {
    struct ml_receiver *receiver = context;
    const char *method = ml_http_method(request);
    const char *path = ml_http_path(request);
    if (ml_forms_other(receiver->forms, request)) {
        return;
    }
    if (is_report(request)) {
        took_in(receiver, request);
    } else if (strcmp(method, "DELETE") == 0) {
        ml_receiver_remove(receiver, request);
    } else if (strcmp(method, "GET") != 0) {
        ml_receiver_answer(
            request, WRONG_METHOD, NULL, "GET asks, POST sends a report, DELETE removes\n"
        );
    } else if (strcmp(path, "/health") == 0) {
        ml_receiver_answer(request, OK, NULL, "ok\n");
    } else if (strcmp(path, "/metrics") == 0) {
        answer_figures(receiver, request);
    } else if (strcmp(path, "/api/v1/fleet/removals") == 0) {
        ml_receiver_removals(receiver, request);
    } else if (strncmp(path, "/api/v1/fleet/", strlen("/api/v1/fleet/")) == 0) {
        ml_receiver_ask(receiver, request);
    } else if (!ml_collect_pages_answer(request)) {
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
    receiver->quotas.a_minute = setup->team_rate;
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
    const struct ml_forms_setup forms = {
        .tokens = setup->tokens,
        .ledger = setup->ledger,
        .is_secret = setup->tls != NULL,
        .body_max_bytes = setup->body_max_bytes,
    };
    enum ml_status status = ml_forms_open(&forms, &receiver->forms, error);
    if (status == ML_OK && !ml_receiver_ask_open(receiver, error)) {
        status = ML_ENV_SYSTEM;
    }
    if (status == ML_OK) {
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
        ml_forms_close(take_receiver->forms);
        ml_quotas_fini(&take_receiver->quotas);
        free(take_receiver);
    }
}
