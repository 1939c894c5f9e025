#include "host/collect/storing/store_thread.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include <check.h>
#include <ev.h>

#include "host/collect/engine.h"
#include "tests/suite.h"

/* A store that does what its guid says: "wait" until it is interrupted. */
static struct {
    struct ml_store head;
    sem_t is_at_it, interruptions;
    atomic_uint calls;
    char done[256]; /* the store's thread's, and the test's when all is told */
    pthread_t by;
} fake;

enum { JOBS = 200 };

static struct ml_store_job jobs[JOBS];
static char told[256];
static unsigned told_count;
static struct ev_loop *loop;
static struct ml_store_thread *thread;

static void note(char *list, const char *word) {
    (void)strncat(list, word, sizeof(fake.done) - strlen(list) - 1);
}

static enum ml_status
add(struct ml_store *store,
    const struct ml_store_item *items,
    size_t count,
    struct ml_error_message *error) {
    (void)store;
    (void)items;
    (void)atomic_fetch_add(&fake.calls, 1);
    note(fake.done, "a");
    if (count == 0) {
        ml_error_set(error, "nothing");
    }
    return count == 0 ? ML_PEER_RANGE : ML_OK;
}

static enum ml_status take_away(
    struct ml_store *store, const char *team, const char *guid, struct ml_error_message *error
) {
    (void)store;
    (void)team;
    (void)atomic_fetch_add(&fake.calls, 1);
    fake.by = pthread_self();
    note(fake.done, "r");
    if (strcmp(guid, "wait") == 0) {
        (void)sem_post(&fake.is_at_it);
        while (sem_wait(&fake.interruptions) != 0) {
        }
        ml_error_set(error, "interrupted");
        return ML_ENV_SYSTEM;
    }
    return ML_OK;
}

static enum ml_status upkeep(
    struct ml_store *store,
    uint64_t before_ms,
    struct ml_store_kept *out_kept,
    struct ml_error_message *error
) {
    (void)store;
    (void)error;
    (void)atomic_fetch_add(&fake.calls, 1);
    note(fake.done, "u");
    out_kept->gone_ms = before_ms + 1;
    return ML_OK;
}

static void interrupt(struct ml_store *store) {
    (void)store;
    (void)sem_post(&fake.interruptions);
}

static const struct ml_store_engine engine = {
    .add = add,
    .remove = take_away,
    .upkeep = upkeep,
    .interrupt = interrupt,
};

static void setup(void) {
    fake.head.engine = &engine;
    ck_assert_int_eq(sem_init(&fake.is_at_it, 0, 0), 0);
    ck_assert_int_eq(sem_init(&fake.interruptions, 0, 0), 0);
    loop = ev_default_loop(0);
    thread = ml_store_thread_new(loop, &fake.head);
    ck_assert_ptr_nonnull(thread);
}

static void on_done(void *context, struct ml_store_job *job) {
    static const char *const words[] = {"a", "r", "u"};
    note(told, words[job->kind]);
    if (++told_count == *(const unsigned *)context) {
        ev_break(loop, EVBREAK_ALL);
    }
}

static void hand_over(struct ml_store_job *job, const unsigned *wanted) {
    job->on_done = on_done;
    job->context = (void *)(uintptr_t)wanted;
    ml_store_thread_do(thread, job);
}

START_TEST(jobs_are_done_in_their_order_and_told_on_the_loop) {
    static const unsigned wanted = 4;
    const struct ml_store_item item = {.entry = NULL};
    jobs[0] = (struct ml_store_job){.kind = ML_STORE_ADD, .items = &item, .items_count = 1};
    jobs[1] = (struct ml_store_job){.kind = ML_STORE_REMOVE, .team = "t", .guid = "g"};
    jobs[2] = (struct ml_store_job){.kind = ML_STORE_UPKEEP, .before_ms = 6};
    jobs[3] = (struct ml_store_job){.kind = ML_STORE_ADD};
    for (size_t i = 0; i < wanted; i++) {
        hand_over(&jobs[i], &wanted);
    }
    ck_assert_uint_eq(told_count, 0);
    (void)ev_run(loop, 0);
    ck_assert_str_eq(told, "arua");
    ck_assert_str_eq(fake.done, "arua");
    ck_assert(!pthread_equal(fake.by, pthread_self()));
    ck_assert_uint_eq(jobs[2].kept.gone_ms, 7);
    ck_assert_int_eq(jobs[3].status, ML_PEER_RANGE);
    ck_assert_str_eq(jobs[3].error.text, "nothing");
    ml_store_thread_free(thread);
}
END_TEST

static unsigned again;

static void on_again(void *context, struct ml_store_job *job) {
    if (++again < 1000) {
        ml_store_thread_do(thread, job);
    } else {
        ev_break(context, EVBREAK_ALL);
    }
}

START_TEST(a_job_may_be_handed_over_again_when_it_is_told) {
    jobs[0] = (struct ml_store_job){.kind = ML_STORE_UPKEEP, .on_done = on_again, .context = loop};
    ml_store_thread_do(thread, &jobs[0]);
    (void)ev_run(loop, 0);
    ck_assert_uint_eq(atomic_load(&fake.calls), 1000);
    ml_store_thread_free(thread);
}
END_TEST

START_TEST(at_the_end_one_that_hangs_is_interrupted_and_the_others_are_not_begun) {
    static const unsigned wanted = JOBS + 1; /* never */
    for (size_t i = 0; i < JOBS; i++) {
        jobs[i] = (struct ml_store_job){.kind = ML_STORE_REMOVE, .team = "t", .guid = "wait"};
        hand_over(&jobs[i], &wanted);
    }
    ck_assert_int_eq(sem_wait(&fake.is_at_it), 0);
    ml_store_thread_free(thread);
    ck_assert_uint_eq(atomic_load(&fake.calls), 1);
    ck_assert_str_eq(told, "r");
    ck_assert_int_eq(jobs[0].status, ML_ENV_SYSTEM);
    ck_assert_str_eq(jobs[0].error.text, "interrupted");
}
END_TEST

START_TEST(what_was_done_is_told_at_the_end) {
    static const unsigned wanted = JOBS + 1; /* never */
    for (size_t i = 0; i < JOBS; i++) {
        jobs[i] = (struct ml_store_job){.kind = ML_STORE_UPKEEP};
        hand_over(&jobs[i], &wanted);
    }
    while (atomic_load(&fake.calls) == 0) {
    }
    ml_store_thread_free(thread);
    ck_assert_uint_eq(told_count, atomic_load(&fake.calls));
    ck_assert_uint_ge(told_count, 1);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("store_thread");
    tcase_add_checked_fixture(tests, setup, NULL);
    tcase_set_timeout(tests, 0); /* it has no bound of time: the runner has */
    tcase_add_test(tests, jobs_are_done_in_their_order_and_told_on_the_loop);
    tcase_add_test(tests, a_job_may_be_handed_over_again_when_it_is_told);
    tcase_add_test(tests, at_the_end_one_that_hangs_is_interrupted_and_the_others_are_not_begun);
    tcase_add_test(tests, what_was_done_is_told_at_the_end);
    return run_suite("store_thread", tests);
}
