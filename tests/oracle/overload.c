/* overload THREADS MILLISECONDS KEEP: threads that do nothing but allocate and free, for that long
 * and until nearly all of their KEEP blocks live; what is read back must be what was written.
 * Writes "ready" when they wait for a line on standard input (another one ends them sooner), and at
 * the end the calls and whether memory was its own: "done CALLS ok". */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_MAX = 64, KEEP_MAX = 1 << 20, CALLS_A_LOOK = 256, ROUNDS_A_SLOT = 3 };

static _Atomic uint64_t calls;
static _Atomic bool wrong;
static _Atomic uint64_t until_ns;
static uint32_t keep;

static uint64_t now_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void *work(void *argument) {
    uint64_t random = (uintptr_t)argument * 2654435761u + 1;
    uint64_t **blocks = calloc(keep, sizeof(*blocks));
    uint64_t own = 1;
    uint64_t left = (uint64_t)keep * ROUNDS_A_SLOT / CALLS_A_LOOK; /* e^-3 of the slots stay free */
    while (blocks != NULL && (left > 0 || now_ns() < until_ns)) {
        left -= left > 0 ? 1 : 0;
        for (int i = 0; i < CALLS_A_LOOK; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            uint64_t **slot = &blocks[(random >> 33) % keep];
            if (*slot != NULL && **slot != (uintptr_t)slot) {
                wrong = true;
            }
            own += *slot != NULL ? 2 : 1;
            free(*slot);
            *slot = malloc(sizeof(uint64_t) + (random >> 56));
            if (*slot != NULL) {
                **slot = (uintptr_t)slot;
            }
        }
    }
    for (uint32_t i = 0; blocks != NULL && i < keep; i++) {
        own += blocks[i] != NULL ? 1 : 0;
        free(blocks[i]);
    }
    free(blocks);
    calls += own + 1;
    return NULL;
}

/* Until the time is over; a line ends it at once, the input's end does not. */
static void wait_for_end(void) {
    for (uint64_t now = now_ns(); now < until_ns; now = now_ns()) {
        struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
        char line[8];
        if (poll(&input, 1, (int)((until_ns - now) / 1000000u) + 1) > 0) {
            if (read(STDIN_FILENO, line, sizeof(line)) > 0) {
                until_ns = now;
            }
            return;
        }
    }
}

int main(int count, char **arguments) {
    pthread_t threads[THREADS_MAX];
    const uint32_t wanted = count == 4 ? (uint32_t)strtoul(arguments[1], NULL, 10) : 0;
    const uint64_t milliseconds = count == 4 ? strtoull(arguments[2], NULL, 10) : 0;
    keep = count == 4 ? (uint32_t)strtoul(arguments[3], NULL, 10) : 0;
    if (wanted < 1 || wanted > THREADS_MAX || keep < 1 || keep > KEEP_MAX) {
        return 2;
    }
    char line[8];
    if (write(STDOUT_FILENO, "ready\n", 6) != 6 || read(STDIN_FILENO, line, sizeof(line)) < 0) {
        return 3;
    }
    until_ns = now_ns() + milliseconds * 1000000u;
    for (uintptr_t i = 0; i < wanted; i++) {
        if (pthread_create(&threads[i], NULL, work, (void *)i) != 0) {
            return 4;
        }
    }
    wait_for_end();
    for (uint32_t i = 0; i < wanted; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    (void)printf("done %llu %s\n", (unsigned long long)calls, wrong ? "WRONG" : "ok");
    return 42;
}
