/* What a team asks of the store, answered in JSON. Room: host. Context: the store's thread.
 *
 * One rule: an answer is of one team. Whatever a question says, its words are bound, and a word
 * that the store does not have is an empty answer. */
#ifndef MEMLOG_HOST_COLLECT_QUESTIONS_H
#define MEMLOG_HOST_COLLECT_QUESTIONS_H

#include <stdio.h>

#include "base/error_message.h"
#include "host/collect/store.h"

enum ml_question_kind {
    ML_ASK_PROGRAMS,
    ML_ASK_BUILDS,
    ML_ASK_TOP,
    ML_ASK_FLAME,
    ML_ASK_DIFF,
    ML_ASK_HOSTS,
    ML_ASK_REPORTS,
    ML_ASK_REPORT,
    ML_ASK_COUNT
};

/* "programs", "builds", ...; NULL behind the last. */
extern const char *const ml_question_names[ML_ASK_COUNT + 1];

enum ml_asked_metric { ML_ASKED_LIVE, ML_ASKED_PEAK, ML_ASKED_TOTAL };
extern const char *const ml_asked_metrics[4]; /* NULL behind the last */

enum { ML_ASK_LIMIT = 30, ML_ASK_LIMIT_MOST = 10000 };

/* Whether a question takes the parameter of that name, of an address. */
bool ml_question_takes(enum ml_question_kind kind, const char *parameter);

/* "program, build, limit": all that it takes. */
enum { ML_QUESTION_PARAMETERS_BYTES = 128 };
void ml_question_parameters(
    enum ml_question_kind kind, char out_text[ML_QUESTION_PARAMETERS_BYTES]
);

/* How an address calls the build without an id. Ids are in hex, so none of them is that. */
#define ML_BUILD_WITHOUT_ID "none"

/* NULL and 0: not said. A build that is "" has no id. */
struct ml_question {
    enum ml_question_kind kind;
    const char *team;
    const char *program, *build, *host, *guid;
    const char *other; /* of a diff: the build after `build` */
    enum ml_asked_metric metric;
    int64_t stack;              /* the id of names: with a stack of those names alone */
    uint64_t from_ms, until_ms; /* time of day; until_ms 0: now */
    uint64_t limit;             /* rows at most; of a flame graph nodes, 0: all of them */
    bool control_only;          /* dumps by chance alone */
};

struct ml_questions;

/* NULL: a statement is wrong, with an error message. `store` outlives it. */
struct ml_questions *
ml_questions_open(const struct ml_store *store, struct ml_error_message *error);
void ml_questions_close(struct ml_questions *take_questions);

/* Write the answer. Errors: ML_ENV_MISSING: the question lacks something, with an error message;
 * ML_ENV_SYSTEM; ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status ml_questions_ask(
    struct ml_questions *questions,
    const struct ml_question *question,
    FILE *out,
    struct ml_error_message *error
);

/* Let what is asked now fail soon; one that goes on nevertheless is interrupted again. From any
 * thread, while the questions are open. */
void ml_questions_interrupt(const struct ml_questions *questions);

#endif
