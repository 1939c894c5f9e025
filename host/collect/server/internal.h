/* What the files of the receiver share. Room: host (private).
 *
 * One rule: receiver.c reads a request's path and knows who asks; the others answer. */
#ifndef MEMLOG_HOST_COLLECT_SERVER_INTERNAL_H
#define MEMLOG_HOST_COLLECT_SERVER_INTERNAL_H

#include "host/collect/server/forms.h"
#include "host/collect/server/question_queue.h"
#include "host/collect/server/quotas.h"
#include "host/collect/server/receiver.h"

enum {
    OK = 200,
    NOTED = 202,
    BAD = 400,
    UNKNOWN = 401,
    FORBIDDEN = 403,
    MISSING = 404,
    WRONG_METHOD = 405,
    CONFLICT = 409,
    TOO_LARGE = 413,
    TOO_MANY = 429,
    FAILED = 500,
    UNAVAILABLE = 503,
    DISK_FULL = 507
};

struct ml_receiver {
    struct ml_receiver_setup setup;
    struct ml_http *http;
    struct ml_forms *forms;
    struct ml_question_queue *questions;
    struct ml_quotas quotas;
};

/* A line of text. `retry_after` NULL: it is not said. */
void ml_receiver_answer(
    struct ml_http_request *request, unsigned status, const char *retry_after, const char *text
);

/* An argument of the address; "": it has none of that name. */
const char *ml_receiver_argument(const struct ml_http_request *request, const char *name);

/* The token that came with it. NULL: it was answered. */
const struct ml_token *ml_receiver_authorize(
    const struct ml_receiver *receiver, struct ml_http_request *request, enum ml_right wanted
);

/* ask.c: questions. False: with an error message. */
bool ml_receiver_ask_open(struct ml_receiver *receiver, struct ml_error_message *error);
void ml_receiver_ask(struct ml_receiver *receiver, struct ml_http_request *request);

/* remove.c: DELETE, and what of it is left to do. */
void ml_receiver_remove(struct ml_receiver *receiver, struct ml_http_request *request);
void ml_receiver_removals(struct ml_receiver *receiver, struct ml_http_request *request);

#endif
