/* Stacks of threads: given by the library, of a size that was asked for, or the program's own. */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <threads.h>
#include <unistd.h>

#include "tests/oracle/maps/claims.h"

enum { DEEP_BYTES = 300 << 10 };

MAPS_PATH static void stacks_default(void);
MAPS_PATH static void stacks_sized(void);
MAPS_PATH static void stacks_given(void);
MAPS_PATH static void stacks_detached(void);
MAPS_PATH static void stacks_ended(void);
MAPS_PATH static void stacks_many(void);
MAPS_PATH static void stacks_c11(void);
MAPS_PATH int rest_as_c11(void *argument);
MAPS_PATH void *rest_here(void *argument);
MAPS_PATH void *end_at_once(void *argument);
MAPS_PATH void use_stack(void);

static pthread_barrier_t resting;

/* All of its range belongs to the thread; what is resident there the kernel knows. */
static void claim_own_stack(const char *chain) {
    pthread_attr_t attributes;
    void *start;
    size_t bytes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0 ||
        pthread_attr_getstack(&attributes, &start, &bytes) != 0) {
        claims_die("pthread_getattr_np failed");
    }
    (void)pthread_attr_destroy(&attributes);
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    (void)pthread_mutex_lock(&one_at_a_time);
    claim((struct claim
    ){.kind = "stack",
      .chain = chain,
      .start = start,
      .mapped_bytes = bytes,
      .private_bytes = CLAIM_KERNEL});
    (void)pthread_mutex_unlock(&one_at_a_time);
}

MAPS_PATH void use_stack(void) {
    volatile char room[DEEP_BYTES];
    for (size_t i = 0; i < sizeof(room); i += MAPS_PAGE) {
        room[i] = 1;
    }
}

MAPS_PATH void *rest_here(void *argument) {
    if (argument != NULL) {
        use_stack();
    }
    claim_own_stack("rest_here");
    (void)pthread_barrier_wait(&resting);
    for (;;) {
        (void)pause();
    }
}

MAPS_PATH void *end_at_once(void *argument) {
    use_stack();
    return argument;
}

static void start(const pthread_attr_t *attributes, void *(*routine)(void *), void *argument) {
    pthread_t thread;
    if (pthread_create(&thread, attributes, routine, argument) != 0) {
        claims_die("pthread_create failed");
    }
}

static void begin(unsigned threads) {
    if (pthread_barrier_init(&resting, NULL, threads + 1) != 0) {
        claims_die("pthread_barrier_init failed");
    }
}

MAPS_PATH static void stacks_default(void) {
    begin(3);
    for (int i = 0; i < 3; i++) {
        start(NULL, rest_here, i == 1 ? "deep" : NULL);
    }
    (void)pthread_barrier_wait(&resting);
}

MAPS_PATH static void stacks_sized(void) {
    pthread_attr_t attributes;
    begin(2);
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setstacksize(&attributes, 1 << 20);
    start(&attributes, rest_here, "deep");
    (void)pthread_attr_setguardsize(&attributes, 0);
    start(&attributes, rest_here, NULL);
    (void)pthread_barrier_wait(&resting);
}

/* A part of the program's own mapping: the thread owns its stack, the stack of calls the rest. */
MAPS_PATH static void stacks_given(void) {
    enum { PAGES = 512, BEFORE = 20, STACK = 256 };
    pthread_attr_t attributes;
    begin(1);
    char *at = map_pages(PAGES);
    touch(at, 3 * MAPS_PAGE);
    touch(at + 400 * MAPS_PAGE, 5 * MAPS_PAGE);
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setstack(&attributes, at + BEFORE * MAPS_PAGE, (size_t)STACK * MAPS_PAGE);
    start(&attributes, rest_here, "deep");
    (void)pthread_barrier_wait(&resting);
    claim_pages("map_pages<stacks_given", at, BEFORE, 3);
    claim_pages(
        "map_pages<stacks_given", at + (BEFORE + STACK) * MAPS_PAGE, PAGES - BEFORE - STACK, 5
    );
}

MAPS_PATH static void stacks_detached(void) {
    pthread_attr_t attributes;
    begin(2);
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    start(&attributes, rest_here, "deep");
    start(&attributes, rest_here, NULL);
    (void)pthread_barrier_wait(&resting);
}

/* glibc keeps stacks of ended threads for others. The next takes one of them. */
MAPS_PATH static void stacks_ended(void) {
    pthread_t threads[4];
    begin(1);
    for (int i = 0; i < 4; i++) {
        if (pthread_create(&threads[i], NULL, end_at_once, NULL) != 0) {
            claims_die("pthread_create failed");
        }
    }
    for (int i = 0; i < 4; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    start(NULL, rest_here, NULL);
    (void)pthread_barrier_wait(&resting);
}

MAPS_PATH static void stacks_many(void) {
    enum { THREADS = 200 };
    begin(THREADS);
    for (int i = 0; i < THREADS; i++) {
        start(NULL, rest_here, NULL);
    }
    (void)pthread_barrier_wait(&resting);
}

MAPS_PATH int rest_as_c11(void *argument) {
    use_stack();
    claim_own_stack("rest_as_c11");
    (void)pthread_barrier_wait(&resting);
    for (;;) {
        (void)pause();
    }
    return argument != NULL;
}

/* C11's threads have a call of their own. */
MAPS_PATH static void stacks_c11(void) {
    thrd_t thread;
    begin(2);
    for (int i = 0; i < 2; i++) {
        if (thrd_create(&thread, rest_as_c11, NULL) != thrd_success) {
            claims_die("thrd_create failed");
        }
    }
    (void)pthread_barrier_wait(&resting);
}

bool stacks_case(const char *name) {
    static const struct maps_case cases[] = {
        {"stacks_default", stacks_default},
        {"stacks_sized", stacks_sized},
        {"stacks_given", stacks_given},
        {"stacks_detached", stacks_detached},
        {"stacks_ended", stacks_ended},
        {"stacks_many", stacks_many},
        {"stacks_c11", stacks_c11},
    };
    return maps_run(cases, sizeof(cases) / sizeof(*cases), name);
}
