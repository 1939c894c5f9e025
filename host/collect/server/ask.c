/* Questions: read from their addresses, and answered when the queue has the answer. Room: host. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "host/collect/server/internal.h"

enum { MOST_BYTES_OF_WORD = 64 };

/* What is wrong with a question is said in `error`, and none of it is asked. */
struct reading {
    const struct ml_http_request *request;
    enum ml_question_kind kind;
    bool is_wrong;
    struct ml_error_message error;
};

static bool on_argument(void *context, const char *name) {
    struct reading *reading = context;
    char word[MOST_BYTES_OF_WORD];
    char takes[ML_QUESTION_PARAMETERS_BYTES];
    reading->is_wrong = !ml_question_takes(reading->kind, name);
    if (reading->is_wrong) {
        (void)ml_printable_copy(name, strlen(name), word, sizeof(word));
        ml_question_parameters(reading->kind, takes);
        ml_error_set(
            &reading->error,
            "%s takes no '%s'; it takes %s",
            ml_question_names[reading->kind],
            word,
            takes
        );
    }
    return !reading->is_wrong;
}

/* NULL: it says nothing. */
static const char *word(const struct ml_http_request *request, const char *name) {
    const char *value = ml_receiver_argument(request, name);
    return value[0] != '\0' ? value : NULL;
}

static const char *build(const struct ml_http_request *request, const char *name) {
    const char *value = word(request, name);
    return value != NULL && strcmp(value, ML_BUILD_WITHOUT_ID) == 0 ? "" : value;
}

static uint64_t number(struct reading *reading, const char *name, uint64_t most) {
    const char *text = ml_receiver_argument(reading->request, name);
    const uint64_t value = strtoull(text, NULL, 10);
    if (text[strspn(text, "0123456789")] != '\0') {
        reading->is_wrong = true;
        ml_error_set(&reading->error, "%s is a number", name);
    }
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
static bool read_question(
    struct ml_http_request *request, const struct ml_token *token, struct ml_question *out_question
) {
    static const char prefix[] = "/api/v1/fleet/";
    const int kind = index_of(ml_question_names, ml_http_path(request) + sizeof(prefix) - 1);
    const char *metric_word = word(request, "metric");
    const int metric = metric_word != NULL ? index_of(ml_asked_metrics, metric_word) : 0;
    if (kind < 0) {
        ml_receiver_answer(request, MISSING, NULL, "there is no such question\n");
        return false;
    }
    struct reading reading = {.request = request, .kind = (enum ml_question_kind)kind};
    (void)ml_http_each_argument(request, on_argument, &reading);
    *out_question = (struct ml_question){
        .kind = (enum ml_question_kind)kind,
        .team = token->team,
        .program = word(request, "program"),
        .build = build(request, "build"),
        .other = build(request, "other"),
        .host = word(request, "host"),
        .guid = word(request, "guid"),
        .metric = metric >= 0 ? (enum ml_asked_metric)metric : ML_ASKED_LIVE,
        .stack = (int64_t)number(&reading, "stack", INT64_MAX),
        .from_ms = number(&reading, "from_ms", (uint64_t)1 << 52),
        .until_ms = number(&reading, "until_ms", (uint64_t)1 << 52),
        .limit = number(&reading, "limit", ML_ASK_LIMIT_MOST),
        .control_only = number(&reading, "control", 2) == 1,
    };
    if (metric < 0) {
        reading.is_wrong = true;
        ml_error_set(&reading.error, "metric is live, peak or total");
    }
    if (reading.is_wrong) {
        char line[sizeof(struct ml_error_message) + 2];
        (void)snprintf(line, sizeof(line), "%s\n", reading.error.text);
        ml_receiver_answer(request, BAD, NULL, line);
    }
    return !reading.is_wrong;
}

void ml_receiver_ask(struct ml_receiver *receiver, struct ml_http_request *request) {
    const struct ml_token *token = ml_receiver_authorize(receiver, request, ML_RIGHT_READ);
    struct ml_question question;
    if (token == NULL || !read_question(request, token, &question)) {
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
