/* Questions that wait, and the threads that answer them. Room: host. Context: the loop's thread.
 *
 * One rule: a question holds up nothing but its own team. Teams have their turns, a team has one
 * thread at most, and whoever asks is answered in time, if only that it took too long. */
#ifndef MEMLOG_HOST_COLLECT_SERVER_QUESTION_QUEUE_H
#define MEMLOG_HOST_COLLECT_SERVER_QUESTION_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

#include "host/collect/questions.h"

struct ev_loop;
struct ml_question_queue;

/* The threads that answer, and the questions of one team that may wait for them. */
enum { ML_QUESTION_THREADS = 2, ML_QUESTIONS_WAITING = 8 };

struct ml_question_answer {
    enum { ML_QUESTION_ANSWERED, ML_QUESTION_LATE, ML_QUESTION_FAILED, ML_QUESTION_WRONG } what;
    const char *text; /* the answer, or why there is none */
    size_t text_bytes;
};

struct ml_question_queue_setup {
    struct ev_loop *loop;
    const struct ml_store *store; /* each thread asks it by itself */
    unsigned limit_s;             /* for a question, from the moment when it is asked */
    /* Once for each question that was not cancelled. */
    void (*on_answer)(void *context, void *asker, const struct ml_question_answer *answer);
    /* Whether nobody waits for the answer any more: asked now and then, it ends the question. */
    bool (*is_gone)(void *context, void *asker);
    void *context;
};

/* NULL: with an error message. Owner: ml_question_queue_free. */
struct ml_question_queue *
ml_question_queue_new(const struct ml_question_queue_setup *setup, struct ml_error_message *error);

/* No answer comes any more. NULL is allowed. */
void ml_question_queue_free(struct ml_question_queue *take_queue);

/* Ask. The question is copied; `asker` says who hears the answer. False: too many of the team's
 * wait, or no memory; nothing comes. */
bool ml_question_queue_ask(
    struct ml_question_queue *queue, const struct ml_question *question, void *asker
);

/* The asker hears nothing any more; one that waits for nothing is passed over. */
void ml_question_queue_cancel(struct ml_question_queue *queue, const void *asker);

#endif
