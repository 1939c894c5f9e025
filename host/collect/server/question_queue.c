#include "host/collect/server/question_queue.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>

#include <ev.h>

#include "base/threads/own_thread.h"
#include "host/process/loop.h"

enum { STACK_BYTES = 1 << 20, WORDS = 6 };

/* Between two looks at what takes too long, and who has gone. */
#define LOOK_S 0.25

struct team;

/* A question. All but `question` is guarded by the queue's mutex. */
struct asked {
    struct ml_question question; /* its words lie behind it */
    struct team *team;
    void *asker; /* NULL: nobody hears the answer */
    double since;
    enum ml_status status;
    struct ml_error_message error;
    char *text;
    size_t text_bytes;
    TAILQ_ENTRY(asked) links;
};

TAILQ_HEAD(asked_list, asked);

/* One that has questions. */
struct team {
    char name[ML_TEAM_BYTES];
    struct asked_list waiting;
    unsigned waiting_count;
    unsigned asked_count; /* waiting, with a thread, or done and not told */
    bool is_answered;     /* a thread is at one of its questions */
    TAILQ_ENTRY(team) links;
};

struct worker {
    struct ml_question_queue *queue;
    struct ml_questions *questions;
    pthread_t thread;
    bool is_begun;
    struct asked *asked; /* what it is at */
};

struct ml_question_queue {
    struct ml_question_queue_setup setup;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    ev_async told;
    ev_timer looks;
    /* Guarded by the mutex. */
    TAILQ_HEAD(, team) teams; /* the one whose turn is next first */
    struct asked_list done;
    bool is_ending;
    struct worker workers[ML_QUESTION_THREADS];
};

static void lock(struct ml_question_queue *queue) {
    (void)pthread_mutex_lock(&queue->mutex);
}

static void unlock(struct ml_question_queue *queue) {
    (void)pthread_mutex_unlock(&queue->mutex);
}

/* ---- teams; the mutex is held */

static struct team *team_of(struct ml_question_queue *queue, const char *name) {
    struct team *team = NULL;
    TAILQ_FOREACH(team, &queue->teams, links) {
        if (strcmp(team->name, name) == 0) {
            return team;
        }
    }
    team = calloc(1, sizeof(*team));
    if (team != NULL) {
        (void)snprintf(team->name, sizeof(team->name), "%s", name);
        TAILQ_INIT(&team->waiting);
        TAILQ_INSERT_TAIL(&queue->teams, team, links);
    }
    return team;
}

/* It is in no list any more. */
static void asked_free(struct ml_question_queue *queue, struct asked *asked) {
    struct team *team = asked->team;
    if (team != NULL && --team->asked_count == 0) {
        TAILQ_REMOVE(&queue->teams, team, links);
        free(team);
    }
    free(asked->text);
    free(asked);
}

static void take_out(struct asked *asked) {
    TAILQ_REMOVE(&asked->team->waiting, asked, links);
    asked->team->waiting_count--;
}

/* The next question in turn; its team comes last from now on. NULL: there is none. */
static struct asked *next(struct ml_question_queue *queue) {
    struct team *team = NULL;
    TAILQ_FOREACH(team, &queue->teams, links) {
        if (team->waiting_count > 0 && !team->is_answered) {
            struct asked *asked = TAILQ_FIRST(&team->waiting);
            take_out(asked);
            team->is_answered = true;
            TAILQ_REMOVE(&queue->teams, team, links);
            TAILQ_INSERT_TAIL(&queue->teams, team, links);
            return asked;
        }
    }
    return NULL;
}

/* ---- the threads */

static void answer(const struct worker *worker, struct asked *asked) {
    FILE *out = open_memstream(&asked->text, &asked->text_bytes);
    asked->status = ML_ENV_MEMORY;
    if (out != NULL) {
        const enum ml_status status =
            ml_questions_ask(worker->questions, &asked->question, out, &asked->error);
        asked->status = fclose(out) == 0 ? status : ML_ENV_MEMORY;
    }
}

static void *work(void *context) {
    struct worker *worker = context;
    struct ml_question_queue *queue = worker->queue;
    lock(queue);
    while (!queue->is_ending) {
        worker->asked = next(queue);
        if (worker->asked == NULL) {
            (void)pthread_cond_wait(&queue->wake, &queue->mutex);
            continue;
        }
        unlock(queue);
        answer(worker, worker->asked);
        lock(queue);
        worker->asked->team->is_answered = false;
        TAILQ_INSERT_TAIL(&queue->done, worker->asked, links);
        worker->asked = NULL;
        (void)pthread_cond_broadcast(&queue->wake); /* its team may have more */
        ev_async_send(queue->setup.loop, &queue->told);
    }
    unlock(queue);
    return NULL;
}

static bool begin(struct worker *worker) {
    worker->is_begun = ml_own_thread_begin(STACK_BYTES, work, worker, &worker->thread);
    return worker->is_begun;
}

/* ---- the loop's side */

static void tell(struct ml_question_queue *queue, const struct asked *asked) {
    struct ml_question_answer told = {.what = ML_QUESTION_ANSWERED};
    if (asked->status == ML_OK) {
        told.text = asked->text;
        told.text_bytes = asked->text_bytes;
    } else {
        told.what = asked->status == ML_ENV_MISSING ? ML_QUESTION_WRONG : ML_QUESTION_FAILED;
        told.text = asked->error.text[0] != '\0' ? asked->error.text : "memory ran out";
        told.text_bytes = strlen(told.text);
    }
    queue->setup.on_answer(queue->setup.context, asked->asker, &told);
}

static void on_told(struct ev_loop *loop, ev_async *watcher, int events) {
    (void)loop;
    (void)events;
    struct ml_question_queue *queue = watcher->data;
    struct asked *asked = NULL;
    lock(queue);
    while ((asked = TAILQ_FIRST(&queue->done)) != NULL) {
        TAILQ_REMOVE(&queue->done, asked, links);
        unlock(queue);
        if (asked->asker != NULL) {
            tell(queue, asked);
        }
        lock(queue);
        asked_free(queue, asked);
    }
    unlock(queue);
}

/* Whether it is to end now, and as what. */
static bool
is_over(const struct ml_question_queue *queue, const struct asked *asked, bool *out_gone) {
    *out_gone = queue->setup.is_gone(queue->setup.context, asked->asker);
    return *out_gone || ev_now(queue->setup.loop) - asked->since > (double)queue->setup.limit_s;
}

/* The next one that waits or is answered, and is over: nobody hears of it any more. NULL: none. The
 * mutex is held. */
static void *end_one(struct ml_question_queue *queue) {
    struct team *team = NULL;
    bool is_gone = false;
    for (size_t i = 0; i < ML_QUESTION_THREADS; i++) {
        struct asked *asked = queue->workers[i].asked;
        if (asked != NULL && asked->asker != NULL && is_over(queue, asked, &is_gone)) {
            void *asker = asked->asker;
            asked->asker = NULL;
            return asker;
        }
    }
    TAILQ_FOREACH(team, &queue->teams, links) {
        struct asked *asked = NULL;
        TAILQ_FOREACH(asked, &team->waiting, links) {
            if (is_over(queue, asked, &is_gone)) {
                void *asker = asked->asker;
                take_out(asked);
                asked_free(queue, asked);
                return asker;
            }
        }
    }
    return NULL;
}

/* One that goes on in spite of it is interrupted at the next look again. The mutex is held. */
static bool interrupt_those_that_nobody_hears(struct ml_question_queue *queue) {
    bool is_any = false;
    for (size_t i = 0; i < ML_QUESTION_THREADS; i++) {
        const struct worker *worker = &queue->workers[i];
        is_any = is_any || worker->asked != NULL;
        if (worker->asked != NULL && worker->asked->asker == NULL) {
            ml_questions_interrupt(worker->questions);
        }
    }
    return is_any;
}

static void on_look(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)events;
    static const char late[] = "it takes too long: ask for one program, one build or less time";
    static const struct ml_question_answer answer = {
        .what = ML_QUESTION_LATE, .text = late, .text_bytes = sizeof(late) - 1};
    struct ml_question_queue *queue = watcher->data;
    void *asker = NULL;
    lock(queue);
    while ((asker = end_one(queue)) != NULL) {
        unlock(queue);
        queue->setup.on_answer(queue->setup.context, asker, &answer);
        lock(queue);
    }
    const bool is_any = interrupt_those_that_nobody_hears(queue);
    if (!is_any && TAILQ_EMPTY(&queue->teams)) {
        ev_timer_stop(loop, watcher);
    }
    unlock(queue);
}

/* ---- asking */

/* With its words behind it. NULL: no memory. */
static struct asked *copy_of(const struct ml_question *question) {
    struct asked *asked = NULL;
    const char *words[WORDS] = {
        question->team,
        question->program,
        question->build,
        question->host,
        question->guid,
        question->other,
    };
    size_t counts[WORDS];
    size_t all = 0;
    for (size_t i = 0; i < WORDS; i++) {
        counts[i] = words[i] != NULL ? strlen(words[i]) + 1 : 0;
        all += counts[i];
    }
    asked = calloc(1, sizeof(*asked) + all);
    if (asked == NULL) {
        return NULL;
    }
    asked->question = *question;
    const char **places[WORDS] = {
        &asked->question.team,
        &asked->question.program,
        &asked->question.build,
        &asked->question.host,
        &asked->question.guid,
        &asked->question.other,
    };
    char *at = (char *)(asked + 1);
    for (size_t i = 0; i < WORDS; i++) {
        *places[i] = words[i] != NULL ? memcpy(at, words[i], counts[i]) : NULL;
        at += counts[i];
    }
    return asked;
}

bool ml_question_queue_ask(
    struct ml_question_queue *queue, const struct ml_question *question, void *asker
) {
    struct asked *asked = copy_of(question);
    if (asked == NULL) {
        return false;
    }
    asked->asker = asker;
    asked->since = ev_now(queue->setup.loop);
    lock(queue);
    asked->team = team_of(queue, question->team);
    const bool is_taken = asked->team != NULL && asked->team->waiting_count < ML_QUESTIONS_WAITING;
    if (is_taken) {
        TAILQ_INSERT_TAIL(&asked->team->waiting, asked, links);
        asked->team->waiting_count++;
        asked->team->asked_count++;
        (void)pthread_cond_signal(&queue->wake);
        if (!ev_is_active(&queue->looks)) {
            ev_timer_again(queue->setup.loop, &queue->looks);
        }
    }
    unlock(queue);
    if (!is_taken) {
        free(asked);
    }
    return is_taken;
}

/* NULL: none of his waits. The mutex is held. */
static struct asked *find_waiting(const struct ml_question_queue *queue, const void *asker) {
    const struct team *team = NULL;
    struct asked *asked = NULL;
    TAILQ_FOREACH(team, &queue->teams, links) {
        TAILQ_FOREACH(asked, &team->waiting, links) {
            if (asked->asker == asker) {
                return asked;
            }
        }
    }
    return NULL;
}

void ml_question_queue_cancel(struct ml_question_queue *queue, const void *asker) {
    struct asked *asked = NULL;
    lock(queue);
    for (size_t i = 0; i < ML_QUESTION_THREADS; i++) {
        asked = queue->workers[i].asked;
        if (asked != NULL && asked->asker == asker) {
            asked->asker = NULL;
            ml_questions_interrupt(queue->workers[i].questions);
        }
    }
    TAILQ_FOREACH(asked, &queue->done, links) {
        asked->asker = asked->asker == asker ? NULL : asked->asker;
    }
    asked = find_waiting(queue, asker);
    if (asked != NULL) {
        take_out(asked);
        asked_free(queue, asked);
    }
    unlock(queue);
}

/* ---- birth and end */

struct ml_question_queue *
ml_question_queue_new(const struct ml_question_queue_setup *setup, struct ml_error_message *error) {
    struct ml_question_queue *queue = calloc(1, sizeof(*queue));
    if (queue == NULL) {
        ml_error_set(error, "memory ran out");
        return NULL;
    }
    queue->setup = *setup;
    TAILQ_INIT(&queue->teams);
    TAILQ_INIT(&queue->done);
    (void)pthread_mutex_init(&queue->mutex, NULL);
    (void)pthread_cond_init(&queue->wake, NULL);
    ev_async_init(&queue->told, on_told);
    queue->told.data = queue;
    ev_async_start(setup->loop, &queue->told);
    ml_timer_init_every(&queue->looks, on_look, LOOK_S, queue);
    for (size_t i = 0; i < ML_QUESTION_THREADS; i++) {
        struct worker *worker = &queue->workers[i];
        worker->queue = queue;
        worker->questions = ml_questions_open(setup->store, error);
        if (worker->questions != NULL && !begin(worker)) {
            ml_error_set(error, "no thread to answer questions");
        }
        if (!worker->is_begun) {
            ml_question_queue_free(queue);
            return NULL;
        }
    }
    return queue;
}

/* Whatever a thread is at ends soon. */
static void end_thread(struct ml_question_queue *queue, const struct worker *worker) {
    const struct timespec pause = {.tv_nsec = 10000000};
    bool is_at_one = true;
    while (is_at_one) {
        lock(queue);
        is_at_one = worker->asked != NULL;
        if (is_at_one) {
            ml_questions_interrupt(worker->questions);
        }
        unlock(queue);
        if (is_at_one) {
            (void)nanosleep(&pause, NULL);
        }
    }
    (void)pthread_join(worker->thread, NULL);
}

static void free_list(struct asked_list *list) {
    struct asked *asked = TAILQ_FIRST(list);
    while (asked != NULL) {
        struct asked *next_one = TAILQ_NEXT(asked, links);
        free(asked->text);
        free(asked);
        asked = next_one;
    }
}

static void free_all(struct ml_question_queue *queue) {
    struct team *team = TAILQ_FIRST(&queue->teams);
    free_list(&queue->done);
    while (team != NULL) {
        struct team *next_one = TAILQ_NEXT(team, links);
        free_list(&team->waiting);
        free(team);
        team = next_one;
    }
}

void ml_question_queue_free(struct ml_question_queue *take_queue) {
    struct ml_question_queue *queue = take_queue;
    if (queue == NULL) {
        return;
    }
    lock(queue);
    queue->is_ending = true;
    (void)pthread_cond_broadcast(&queue->wake);
    unlock(queue);
    for (size_t i = 0; i < ML_QUESTION_THREADS; i++) {
        if (queue->workers[i].is_begun) {
            end_thread(queue, &queue->workers[i]);
        }
        ml_questions_close(queue->workers[i].questions);
    }
    ev_async_stop(queue->setup.loop, &queue->told);
    ev_timer_stop(queue->setup.loop, &queue->looks);
    free_all(queue);
    (void)pthread_cond_destroy(&queue->wake);
    (void)pthread_mutex_destroy(&queue->mutex);
    free(queue);
}
