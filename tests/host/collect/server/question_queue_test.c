/* Questions of several teams to a store that answers when the test lets it. */
#include "host/collect/server/question_queue.h"

#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>
#include <ev.h>

#include "host/collect/engine.h"
#include "tests/suite.h"

enum { ASKERS = 4000, LOG_BYTES = 256, TEAMS = 5 };

/* Who asks, and what was heard. */
static struct asker {
    unsigned heard;
    int what;
    char text[128];
    bool is_gone, is_cancelled;
} askers[ASKERS];

/* What the threads were at: guarded by the mutex. */
static struct {
    pthread_mutex_t mutex;
    char begun[LOG_BYTES]; /* the first letters of teams, in the order of their questions */
    unsigned at_once[UCHAR_MAX + 1], most_at_once;
    unsigned open;
} seen = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static sem_t gate, is_at_it; /* a question "held" waits for the one and posts the other */
static struct ev_loop *loop;
static struct ml_question_queue *queue;
static unsigned heard_count;

/* ---- a store whose questions do what their program is called */

struct fake_asking {
    struct ml_asking head;
    sem_t interruptions;
};

static void note_begun(const char *team, bool is_begun) {
    (void)pthread_mutex_lock(&seen.mutex);
    unsigned *at_once = &seen.at_once[(unsigned char)team[0]];
    if (is_begun) {
        (void
        )strncat(seen.begun, (const char[]){team[0], '\0'}, LOG_BYTES - strlen(seen.begun) - 1);
        seen.most_at_once = ++*at_once > seen.most_at_once ? *at_once : seen.most_at_once;
    } else {
        --*at_once;
    }
    (void)pthread_mutex_unlock(&seen.mutex);
}

static void wait_for(sem_t *semaphore) {
    while (sem_wait(semaphore) != 0) {
    }
}

static enum ml_status
begin(struct ml_asking *head, const struct ml_question *question, struct ml_error_message *error) {
    struct fake_asking *asking = (struct fake_asking *)head;
    const char *how = question->program != NULL ? question->program : "quick";
    enum ml_status status = ML_OK;
    note_begun(question->team, true);
    while (sem_trywait(&asking->interruptions) == 0) { /* they were for another question */
    }
    if (strcmp(how, "held") == 0) {
        (void)sem_post(&is_at_it);
        wait_for(&gate);
    } else if (strcmp(how, "endless") == 0) {
        (void)sem_post(&is_at_it);
        wait_for(&asking->interruptions);
        ml_error_set(error, "interrupted");
        status = ML_ENV_SYSTEM;
    } else if (strcmp(how, "fails") == 0) {
        ml_error_set(error, "the store is away");
        status = ML_ENV_SYSTEM;
    }
    note_begun(question->team, false);
    return status;
}

static enum ml_status end(struct ml_asking *asking, struct ml_error_message *error) {
    (void)asking;
    (void)error;
    return ML_OK;
}

static const char *const *missing(const struct ml_asking *asking) {
    static const char *const none[] = {NULL};
    (void)asking;
    return none;
}

static bool no_row(struct ml_store_rows *rows) {
    (void)rows;
    return false;
}

static struct ml_store_rows *
rows_of(struct ml_asking *asking, enum ml_ask which, struct ml_ask_bound bound) {
    static const struct ml_store_rows_engine engine = {.next = no_row};
    static struct ml_store_rows rows = {.engine = &engine};
    (void)asking;
    (void)which;
    (void)bound;
    return &rows;
}

static void interrupt(const struct ml_asking *head) {
    (void)sem_post((sem_t *)(uintptr_t) & ((const struct fake_asking *)head)->interruptions);
}

static void close_asking(struct ml_asking *take_asking) {
    (void)sem_destroy(&((struct fake_asking *)take_asking)->interruptions);
    free(take_asking);
    seen.open--;
}

static struct ml_asking *ask_open(const struct ml_store *asked, struct ml_error_message *error);

static const struct ml_store_engine store_engine = {.ask_open = ask_open};
static const struct ml_store store = {.engine = &store_engine};
static unsigned opens_most = ML_QUESTION_THREADS;

static struct ml_asking *ask_open(const struct ml_store *asked, struct ml_error_message *error) {
    static const struct ml_asking_engine engine = {
        .close = close_asking,
        .interrupt = interrupt,
        .begin = begin,
        .end = end,
        .missing = missing,
        .rows = rows_of};
    struct fake_asking *asking = NULL;
    (void)asked;
    if (seen.open == opens_most) {
        ml_error_set(error, "no more");
        return NULL;
    }
    asking = calloc(1, sizeof(*asking));
    ck_assert_ptr_nonnull(asking);
    asking->head.engine = &engine;
    ck_assert_int_eq(sem_init(&asking->interruptions, 0, 0), 0);
    seen.open++;
    return &asking->head;
}

/* ---- the loop's side */

static void on_answer(void *context, void *of, const struct ml_question_answer *answer) {
    struct asker *asker = of;
    ck_assert_ptr_eq(context, askers);
    ck_assert(!asker->is_cancelled);
    asker->heard++;
    asker->what = (int)answer->what;
    ck_assert_uint_eq(strlen(answer->text), answer->text_bytes);
    (void)snprintf(asker->text, sizeof(asker->text), "%s", answer->text);
    heard_count++;
}

static bool is_gone(void *context, void *of) {
    (void)context;
    return ((const struct asker *)of)->is_gone;
}

static void open_queue(unsigned limit_s) {
    const struct ml_question_queue_setup setup = {
        .loop = loop,
        .store = &store,
        .limit_s = limit_s,
        .on_answer = on_answer,
        .is_gone = is_gone,
        .context = askers};
    struct ml_error_message error;
    queue = ml_question_queue_new(&setup, &error);
}

enum { HOUR_S = 3600 };

static void setup_test(void) {
    ck_assert_int_eq(sem_init(&gate, 0, 0), 0);
    ck_assert_int_eq(sem_init(&is_at_it, 0, 0), 0);
    loop = ev_loop_new(0);
    open_queue(HOUR_S);
    ck_assert_ptr_nonnull(queue);
}

static void teardown(void) {
    ml_question_queue_free(queue);
    ck_assert_uint_eq(seen.open, 0);
    ck_assert_uint_le(seen.most_at_once, 1);
    ev_loop_destroy(loop);
}

static bool ask(const char *team, const char *how, size_t asker) {
    char of[] = "?", program[16]; /* both are gone when it is answered */
    of[0] = team[0];
    (void)snprintf(program, sizeof(program), "%s", how);
    const struct ml_question question = {.kind = ML_ASK_REPORTS, .team = of, .program = program};
    const bool is_taken = ml_question_queue_ask(queue, &question, &askers[asker]);
    memset(program, 'x', sizeof(program) - 1);
    return is_taken;
}

static void hear(unsigned count) {
    while (heard_count < count) {
        (void)ev_run(loop, EVRUN_ONCE);
    }
    ck_assert_uint_eq(heard_count, count);
}

static void cancel(size_t asker) {
    askers[asker].is_cancelled = true;
    ml_question_queue_cancel(queue, &askers[asker]);
}

/* ---- what is held against it */

START_TEST(each_hears_its_answer_once) {
    const struct ml_question incomplete = {.kind = ML_ASK_BUILDS, .team = "a"};
    ck_assert(ask("a", "quick", 0));
    ck_assert(ask("b", "fails", 1));
    ck_assert(ml_question_queue_ask(queue, &incomplete, &askers[2]));
    hear(3);
    ck_assert_int_eq(askers[0].what, ML_QUESTION_ANSWERED);
    ck_assert_str_eq(askers[0].text, "{\"memlog\":1,\"missing_shards\":[],\"reports\":[]}\n");
    ck_assert_int_eq(askers[1].what, ML_QUESTION_FAILED);
    ck_assert_str_eq(askers[1].text, "the store is away");
    ck_assert_int_eq(askers[2].what, ML_QUESTION_WRONG);
    ck_assert_str_eq(askers[2].text, "say of which program: program=NAME");
}
END_TEST

START_TEST(a_team_has_one_thread_and_holds_up_no_other) {
    for (size_t i = 0; i < 3; i++) {
        ck_assert(ask("a", "held", i));
    }
    wait_for(&is_at_it);
    ck_assert(ask("b", "quick", 3));
    ck_assert(ask("b", "quick", 4));
    hear(2);
    ck_assert_uint_eq(askers[3].heard + askers[4].heard, 2);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(sem_post(&gate), 0);
    }
    hear(5);
    ck_assert_str_eq(seen.begun, "abbaa");
}
END_TEST

/* Both threads are busy meanwhile, so who is next is known. */
START_TEST(teams_have_their_turns) {
    ck_assert(ask("x", "held", 0));
    ck_assert(ask("y", "held", 1));
    wait_for(&is_at_it);
    wait_for(&is_at_it);
    for (size_t i = 2; i < 2 + ML_QUESTIONS_WAITING; i++) {
        ck_assert(ask("a", "quick", i));
    }
    ck_assert(ask("b", "quick", 11));
    ck_assert_int_eq(sem_post(&gate), 0);
    ck_assert_int_eq(sem_post(&gate), 0);
    hear(2 + ML_QUESTIONS_WAITING + 1);
    const char *of_b = strchr(seen.begun, 'b');
    ck_assert_ptr_nonnull(of_b);
    ck_assert_int_le(of_b - seen.begun, 3); /* behind x, y and one of a */
}
END_TEST

START_TEST(too_many_of_one_team_are_refused) {
    ck_assert(ask("a", "held", 0));
    wait_for(&is_at_it);
    for (size_t i = 1; i <= ML_QUESTIONS_WAITING; i++) {
        ck_assert(ask("a", "quick", i));
    }
    ck_assert(!ask("a", "quick", 20));
    ck_assert(ask("b", "quick", 21));
    hear(1);
    cancel(3); /* there is room again */
    ck_assert(ask("a", "quick", 22));
    ck_assert(!ask("a", "quick", 23));
    ck_assert_int_eq(sem_post(&gate), 0);
    hear(1 + 1 + ML_QUESTIONS_WAITING);
    ck_assert_uint_eq(askers[20].heard + askers[23].heard + askers[3].heard, 0);
}
END_TEST

START_TEST(what_takes_too_long_is_said_and_its_thread_is_free_again) {
    ml_question_queue_free(queue);
    open_queue(1);
    ck_assert(ask("a", "endless", 0));
    ck_assert(ask("a", "endless", 1)); /* it waits all the time */
    ck_assert(ask("b", "endless", 2));
    hear(3);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(askers[i].what, ML_QUESTION_LATE);
        ck_assert_ptr_nonnull(strstr(askers[i].text, "takes too long"));
    }
    ck_assert(ask("a", "quick", 3));
    ck_assert(ask("b", "quick", 4));
    hear(5);
    for (size_t i = 0; i < 5; i++) {
        ck_assert_uint_eq(askers[i].heard, 1);
    }
}
END_TEST

START_TEST(of_whom_nobody_waits_any_more_ends_at_the_next_look) {
    ck_assert(ask("a", "endless", 0));
    ck_assert(ask("a", "quick", 1));
    wait_for(&is_at_it);
    askers[0].is_gone = true;
    hear(2);
    ck_assert_int_eq(askers[0].what, ML_QUESTION_LATE);
    ck_assert_int_eq(askers[1].what, ML_QUESTION_ANSWERED);
}
END_TEST

START_TEST(who_cancels_hears_nothing) {
    ck_assert(ask("a", "endless", 0)); /* at a thread */
    wait_for(&is_at_it);
    ck_assert(ask("a", "quick", 1)); /* waiting */
    ck_assert(ask("a", "quick", 2));
    ck_assert(ask("b", "held", 3)); /* done, and not told yet */
    wait_for(&is_at_it);
    cancel(1);
    cancel(0);
    ck_assert_int_eq(sem_post(&gate), 0);
    cancel(3);
    cancel(3);
    hear(1);
    ck_assert_uint_eq(askers[2].heard, 1);
    ck_assert(ask("b", "quick", 4));
    hear(2);
}
END_TEST

START_TEST(at_the_end_nobody_hears_any_more) {
    static const char *const teams[] = {"a", "b", "c"};
    for (size_t i = 0; i < 9; i++) {
        ck_assert(ask(teams[i % 3], i == 0 ? "quick" : "endless", i));
    }
    wait_for(&is_at_it);
    ml_question_queue_free(queue);
    queue = NULL;
    (void)ev_run(loop, EVRUN_NOWAIT);
    ck_assert_uint_eq(heard_count, 0);
}
END_TEST

START_TEST(without_all_of_its_threads_there_is_none) {
    ml_question_queue_free(queue);
    opens_most = ML_QUESTION_THREADS - 1;
    open_queue(1);
    ck_assert_ptr_null(queue);
}
END_TEST

/* Asked, cancelled and answered at once, for as long as it takes. */
START_TEST(of_thousands_none_is_lost_and_none_is_told_twice) {
    static const char *const teams[TEAMS] = {"a", "b", "c", "d", "e"};
    unsigned cancelled = 0;
    unsigned number = 1;
    for (size_t i = 0; i < ASKERS; i++) {
        number = number * 1103515245 + 12345;
        const unsigned die = number >> 16;
        while (!ask(teams[die % TEAMS], die % 7 == 0 ? "fails" : "quick", i)) {
            (void)ev_run(loop, EVRUN_ONCE); /* too many wait */
        }
        if (die % 3 == 0) {
            cancel(i);
            cancelled++;
        }
        if (die % 2 == 0) {
            (void)ev_run(loop, EVRUN_NOWAIT);
        }
    }
    hear(ASKERS - cancelled);
    for (size_t i = 0; i < ASKERS; i++) {
        ck_assert_uint_eq(askers[i].heard, askers[i].is_cancelled ? 0 : 1);
    }
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("question_queue");
    tcase_add_checked_fixture(tests, setup_test, teardown);
    tcase_set_timeout(tests, 0); /* it has no bound of time: the runner has */
    tcase_add_test(tests, each_hears_its_answer_once);
    tcase_add_test(tests, a_team_has_one_thread_and_holds_up_no_other);
    tcase_add_test(tests, teams_have_their_turns);
    tcase_add_test(tests, too_many_of_one_team_are_refused);
    tcase_add_test(tests, what_takes_too_long_is_said_and_its_thread_is_free_again);
    tcase_add_test(tests, of_whom_nobody_waits_any_more_ends_at_the_next_look);
    tcase_add_test(tests, who_cancels_hears_nothing);
    tcase_add_test(tests, at_the_end_nobody_hears_any_more);
    tcase_add_test(tests, without_all_of_its_threads_there_is_none);
    tcase_add_test(tests, of_thousands_none_is_lost_and_none_is_told_twice);
    return run_suite("question_queue", tests);
}
