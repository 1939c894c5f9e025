/* exercise LINE NAME: inside the sandbox without line LINE of
 * service/sandbox/policy/syscalls.policy (0: with all of them), do what lines are there for. `life`
 * is the whole service with a host at descriptor 3; the others are what it does now and then, done
 * at once. */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "service/limits/budget.h"
#include "service/process.h"
#include "service/sandbox/host_fd.h"
#include "service/workers/workers.h"

enum { WORKERS = 2, PIECES = 100 };

#define HELD_NS UINT64_C(20000000000) /* at most */
enum { DONE = 0, UNKNOWN = 98, FAILED = 97, MANY = 4096, LARGE_BYTES = 1 << 20 };

/* Not optimised away. */
static void *volatile kept;

static int grow_heap(void) {
    for (int i = 0; i < MANY; i++) {
        kept = malloc(1000);
    }
    return kept != NULL ? DONE : FAILED;
}

static int grow_block(void) {
    kept = malloc(LARGE_BYTES);
    for (size_t i = 2; kept != NULL && i < 64; i++) {
        kept = realloc(kept, i * LARGE_BYTES);
    }
    return kept != NULL ? DONE : FAILED;
}

static int free_block(void) {
    /* One freed large block raises malloc's threshold: the second is larger still. */
    for (size_t i = 1; i < 64; i *= 2) {
        kept = malloc(i * LARGE_BYTES);
        free(kept);
    }
    return DONE;
}

static int large_table(void) {
    struct ml_budget budget = {.max_bytes = UINT64_MAX};
    kept = ml_budget_new_table(&budget, (size_t)8 * LARGE_BYTES);
    return kept != NULL ? DONE : FAILED;
}

static int give_back(void) {
    static void *blocks[MANY];
    for (int i = 0; i < MANY; i++) {
        blocks[i] = malloc(LARGE_BYTES / 64);
    }
    kept = malloc(1); /* above them */
    for (int i = 0; i < MANY; i++) {
        free(blocks[i]);
    }
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return DONE; /* another allocator's blocks, which the service does not trim */
#else
    return malloc_trim(0) == 1 ? DONE : FAILED;
#endif
}

static int by_value(const void *a, const void *b) {
    const int *first = a;
    const int *second = b;
    return (*first > *second) - (*first < *second);
}

static int sort(void) {
    static int values[MANY];
    qsort(values, MANY, sizeof(values[0]), by_value);
    return DONE;
}

static int ask_time(void) {
    struct timespec now;
    return syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now) == 0 ? DONE : FAILED;
}

static int ask_fstat(void) {
#ifdef SYS_fstat
    struct stat about;
    return syscall(SYS_fstat, STDERR_FILENO, &about) == 0 ? DONE : FAILED;
#else
    return FAILED;
#endif
}

static int hang_up(void) {
    return shutdown(ML_SERVICE_HOST_FD, SHUT_RDWR) == 0 ? DONE : FAILED;
}

static struct ml_workers *workers;

static void make_workers(void *context) {
    (void)context;
    workers = ml_workers_new(WORKERS);
}

/* Each item waits for the other one: both workers are at work. */
static void meet(void *context, uint32_t item, unsigned worker) {
    atomic_uint *here = context;
    (void)item;
    (void)worker;
    const unsigned met = (atomic_fetch_add(here, 1) / WORKERS + 1) * WORKERS;
    while (atomic_load(here) < met) {
    }
}

/* Between two pieces everybody sleeps. */
static int share_out(void) {
    atomic_uint here = 0;
    for (int i = 0; i < PIECES; i++) {
        ml_workers_run(workers, meet, &here, WORKERS);
    }
    return DONE;
}

static pthread_mutex_t contended = PTHREAD_MUTEX_INITIALIZER;

static uint64_t now_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Of glibc's: somebody sleeps for it, or is about to. */
static bool is_waited_for(const pthread_mutex_t *mutex) {
    return __atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED) == 2;
}

/* One holds the lock until the other one has come for it. */
static void come_for_it(void *context, uint32_t item, unsigned worker) {
    atomic_uint *step = context;
    (void)worker;
    if (item == 0) {
        (void)pthread_mutex_lock(&contended);
        atomic_store(step, 1);
        while (atomic_load(step) < 2) {
        }
        const uint64_t until_ns = now_ns() + HELD_NS;
        while (!is_waited_for(&contended) && now_ns() < until_ns) {
        }
        (void)pthread_mutex_unlock(&contended);
        return;
    }
    while (atomic_load(step) < 1) {
    }
    atomic_store(step, 2);
    (void)pthread_mutex_lock(&contended);
    (void)pthread_mutex_unlock(&contended);
}

static int contend(void) {
    atomic_uint step = 0;
    ml_workers_run(workers, come_for_it, &step, WORKERS);
    return DONE;
}

static int do_abort(void) {
    abort();
}

static const struct {
    const char *name;
    int (*run)(void);
} exercises[] = {
    {"grow_heap", grow_heap},
    {"grow_block", grow_block},
    {"free_block", free_block},
    {"large_table", large_table},
    {"give_back", give_back},
    {"sort", sort},
    {"ask_time", ask_time},
    {"fstat", ask_fstat},
    {"hang_up", hang_up},
    {"share_out", share_out},
    {"contend", contend},
    {"abort", do_abort},
};

int main(int argc, char **argv) {
    if (argc != 3) {
        return UNKNOWN;
    }
    const struct ml_sandbox_options options = {
        .level = ML_SANDBOX_AUTO,
        .left_out_line = (uint32_t)strtoul(argv[1], NULL, 10),
        .make_threads = make_workers};
    if (strcmp(argv[2], "life") == 0) {
        _exit((int)ml_process_run(&options, WORKERS));
    }
    for (size_t i = 0; i < sizeof(exercises) / sizeof(exercises[0]); i++) {
        if (strcmp(exercises[i].name, argv[2]) == 0) {
            struct ml_sandbox_report report;
            if (ml_sandbox_enter(&options, &report) != ML_OK || workers == NULL) {
                return FAILED;
            }
            _exit(exercises[i].run());
        }
    }
    return UNKNOWN;
}
