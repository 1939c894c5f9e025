/* Questions: read from their addresses, and answered when the queue has the answer. Room: host. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/collect/server/internal.h"

static uint64_t number(const struct ml_http_request *request, const char *name, uint64_t most) {
    const uint64_t value = strtoull(ml_receiver_argument(request, name), NULL, 10);
    return value < most ? value : most;
}

static int index_of(const char *const *words, const char *word) {
    for (int i = 0; words[i] != NULL; i++) {
        if (strcmp(words[i], word) == 0) {
            return i;
        }
    }
    return -1;
}

/* False: some word of it is wrong, and it was answered. */
static bool question_read(
    struct ml_http_request *request, const struct ml_token *token, struct ml_question *out_question
) {
    static const char prefix[] = "/api/v1/fleet/";
    const int kind = index_of(ml_question_names, ml_http_path(request) + sizeof(prefix) - 1);
    const char *metric_word = ml_receiver_argument(request, "metric");
    const int metric = metric_word[0] != '\0' ? index_of(ml_asked_metrics, metric_word) : 0;
    if (kind < 0) {
        ml_receiver_answer(request, MISSING, NULL, "there is no such question\n");
        return false;
    }
    if (metric < 0) {
        ml_receiver_answer(request, BAD, NULL, "metric is live, peak or total\n");
        return false;
    }
    *out_question = (struct ml_question){
        .kind = (enum ml_question_kind)kind,
        .team = token->team,
        .program = ml_receiver_argument(request, "program"),
        .build = ml_receiver_argument(request, "build"),
        .other = ml_receiver_argument(request, "other"),
        .host = ml_receiver_argument(request, "host"),
        .guid = ml_receiver_argument(request, "guid"),
        .metric = (enum ml_asked_metric)metric,
        .stack = (int64_t)number(request, "stack", INT64_MAX),
        .from_ms = number(request, "from_ms", (uint64_t)1 << 52),
        .until_ms = number(request, "until_ms", (uint64_t)1 << 52),
        .limit = number(request, "limit", ML_ASK_LIMIT_MOST),
        .control_only = strcmp(ml_receiver_argument(request, "control"), "1") == 0,
    };
    return true;
}

void ml_receiver_ask(struct ml_receiver *receiver, struct ml_http_request *request) {
    const struct ml_token *token = ml_receiver_authorize(receiver, request, ML_RIGHT_READ);
    struct ml_question question;
    if (token == NULL || !question_read(request, token, &question)) {
        return;
    }
    if (!ml_question_queue_ask(receiver->questions, &question, request)) {
        ml_receiver_answer(
            request, TOO_MANY, "5", "too many questions of your team wait: ask again later\n"
        );
    }
}

/* ---- answers */

static void on_answer(void *context, void *asker, const struct ml_question_answer *answer) {
    static const struct {
        unsigned status;
        const char *retry_after;
    } kinds[] = {
        [ML_QUESTION_ANSWERED] = {.status = OK},
        [ML_QUESTION_LATE] = {.status = UNAVAILABLE, .retry_after = "30"},
        [ML_QUESTION_FAILED] = {.status = FAILED},
        [ML_QUESTION_WRONG] = {.status = BAD},
    };
    char line[sizeof(struct ml_error_message) + 2];
    (void)context;
    if (answer->what != ML_QUESTION_ANSWERED) {
        (void)snprintf(line, sizeof(line), "%s\n", answer->text);
        ml_receiver_answer(
            asker, kinds[answer->what].status, kinds[answer->what].retry_after, line
        );
        return;
    }
    const struct ml_http_answer said = {
        .status = OK,
        .content_type = "application/json",
        .bytes = answer->text,
        .bytes_count = answer->text_bytes,
    };
    ml_http_answer(asker, &said);
}

static bool is_gone(void *context, void *asker) {
    (void)context;
    return ml_http_is_gone(asker);
}

bool ml_receiver_ask_open(struct ml_receiver *receiver, struct ml_error_message *error) {
    const struct ml_question_queue_setup setup = {
        .loop = receiver->setup.loop,
        .store = receiver->setup.store,
        .limit_s = receiver->setup.question_limit_s,
        .on_answer = on_answer,
        .is_gone = is_gone,
        .context = receiver,
    };
    receiver->questions = ml_question_queue_new(&setup, error);
    return receiver->questions != NULL;
}
