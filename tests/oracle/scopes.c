/* Opens scopes of its own, and keeps the books: `scopes STEPS SEED [own|given]`. Threads call each
 * other's functions at random, open scopes in some of them, allocate, and give back; by plain
 * calls, by MEMLOG_SCOPE, left by longjmp; then a forked child of a thread with open scopes does
 * the same. With `own` the work is done on stacks of coroutines that are suspended in their scopes
 * and go on in turn; with `given` their scopes go on in another function. Each process prints its
 * pid, and of each way a line of LIVE_BYTES LIVE_BLOCKS TOTAL_BYTES TOTAL_BLOCKS WAY. A way is what
 * stands between a thread's first function and the allocation: functions, and scopes in braces. */
#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define MEMLOG_WEAK
#include "client/memlog.h"

#define PATH __attribute__((noinline, visibility("default")))

enum { THREADS = 3, HELD = 300, WAYS_MAX = 20000, WAY_BYTES = 120, DEPTH = 3, COROUTINES = 4 };

struct way {
    char text[WAY_BYTES];
    uint64_t live_bytes, live_blocks, total_bytes, total_blocks;
};

struct block {
    void *memory;
    uint64_t bytes;
    struct way *way; /* NULL: there is none */
};

struct worker {
    pthread_t thread;
    uint64_t state;
    char way[WAY_BYTES];
    size_t way_bytes;
    struct block held[HELD];
};

static struct worker workers[THREADS + 1];
static struct way ways[WAYS_MAX];
static size_t ways_count;
static uint64_t steps;
static pthread_mutex_t books = PTHREAD_MUTEX_INITIALIZER;
static const char *const names[] = {"parse", "row of a table", "reply"};

static uint64_t pick(struct worker *worker, uint64_t below) {
    worker->state ^= worker->state << 13;
    worker->state ^= worker->state >> 7;
    worker->state ^= worker->state << 17;
    return (worker->state >> 20) % below;
}

/* Returns what back() takes. */
static size_t on(struct worker *worker, const char *before, const char *step, const char *behind) {
    const size_t length = worker->way_bytes;
    const int more = snprintf(
        worker->way + length,
        WAY_BYTES - length,
        "%s%s%s%s",
        length != 0 ? ">" : "",
        before,
        step,
        behind
    );
    worker->way_bytes += (size_t)more;
    if (worker->way_bytes >= WAY_BYTES) {
        abort();
    }
    return length;
}

static void back(struct worker *worker, size_t length) {
    worker->way[length] = '\0';
    worker->way_bytes = length;
}

static struct way *way_of(const char *text) {
    for (size_t i = 0; i < ways_count; i++) {
        if (strcmp(ways[i].text, text) == 0) {
            return &ways[i];
        }
    }
    if (ways_count == WAYS_MAX) {
        abort();
    }
    memcpy(ways[ways_count].text, text, strlen(text) + 1);
    return &ways[ways_count++];
}

static void give_back(struct block *block) {
    if (block->way != NULL) {
        free(block->memory);
        block->way->live_bytes -= block->bytes;
        block->way->live_blocks--;
        block->way = NULL;
    }
}

PATH void take(struct worker *worker);
PATH void one(struct worker *worker, unsigned depth);
PATH void two(struct worker *worker, unsigned depth);
PATH void three(struct worker *worker, unsigned depth);
PATH void four(struct worker *worker, unsigned depth);

PATH void take(struct worker *worker) {
    struct block *block = &worker->held[pick(worker, HELD)];
    const size_t length = on(worker, "", "take", "");
    (void)pthread_mutex_lock(&books);
    give_back(block);
    block->bytes = 1 + pick(worker, 200);
    block->memory = malloc(block->bytes);
    block->way = way_of(worker->way);
    block->way->live_bytes += block->bytes;
    block->way->live_blocks++;
    block->way->total_bytes += block->bytes;
    block->way->total_blocks++;
    (void)pthread_mutex_unlock(&books);
    back(worker, length);
}

/* Take blocks, here or further in. */
static void go_on(struct worker *worker, unsigned depth) {
    static void (*const further[])(struct worker *, unsigned) = {one, two, three, four};
    for (uint64_t times = pick(worker, 3); times > 0; times--) {
        take(worker);
    }
    if (depth < DEPTH) {
        further[pick(worker, 4)](worker, depth + 1);
        take(worker);
    }
    __asm__ volatile(""); /* no tail call */
}

/* A scope in half of its calls. */
PATH void one(struct worker *worker, unsigned depth) {
    const size_t length = on(worker, "", "one", "");
    if (pick(worker, 2) != 0) {
        const char *name = names[pick(worker, 3)];
        memlog_scope_begin(name);
        const size_t inner = on(worker, "{", name, "}");
        go_on(worker, depth);
        back(worker, inner);
        memlog_scope_end();
    }
    go_on(worker, depth);
    back(worker, length);
}

/* Two, one in the other, which end with their blocks. */
PATH void two(struct worker *worker, unsigned depth) {
    const size_t length = on(worker, "", "two", "");
    {
        MEMLOG_SCOPE("outer");
        const size_t inner = on(worker, "{", "outer", "}");
        MEMLOG_SCOPE("inner");
        (void)on(worker, "{", "inner", "}");
        go_on(worker, depth);
        back(worker, inner);
    }
    take(worker);
    back(worker, length);
}

/* Those that a longjmp leaves open. */
PATH void three(struct worker *worker, unsigned depth) {
    const size_t length = on(worker, "", "three", "");
    const uint32_t before = memlog_scope_begin("tried");
    const size_t inner = on(worker, "{", "tried", "}");
    jmp_buf out;
    if (setjmp(out) == 0) {
        memlog_scope_begin("given up");
        memlog_scope_begin("deep");
        (void)on(worker, "{", "given up", "}");
        (void)on(worker, "{", "deep", "}");
        go_on(worker, depth);
        longjmp(out, 1);
    }
    memlog_scope_leave(before);
    back(worker, inner);
    take(worker);
    back(worker, length);
}

/* None, with a large frame. */
PATH void four(struct worker *worker, unsigned depth) {
    volatile char large[5000];
    large[depth] = 1;
    const size_t length = on(worker, "", "four", "");
    go_on(worker, depth);
    back(worker, length);
    large[0] = large[depth];
}

static void *work(void *argument) {
    struct worker *worker = argument;
    for (uint64_t step = 0; step < steps; step++) {
        one(worker, 1);
        three(worker, 1);
    }
    return NULL;
}

/* ---- coroutines */

static struct coroutine {
    ucontext_t context;
    struct worker worker;
    struct memlog_scopes scopes;
    char way[WAY_BYTES];
    int is_over;
    _Alignas(16) char stack[256 * 1024];
} coroutines[COROUTINES];
static ucontext_t scheduler;
static int has_own_stack;
static struct coroutine *running;

/* What is open goes with it. */
static void suspend(struct coroutine *self) {
    memlog_scopes_take(0, &self->scopes);
    if (swapcontext(&self->context, &scheduler) != 0) {
        abort();
    }
    if (has_own_stack) {
        (void)memlog_scopes_give(&self->scopes, 1);
    }
}

PATH void nap(struct coroutine *self, unsigned depth);
PATH void nap(struct coroutine *self, unsigned depth) {
    struct worker *worker = &self->worker;
    const size_t length = on(worker, "", "nap", "");
    MEMLOG_SCOPE(names[depth % 3]);
    (void)on(worker, "{", names[depth % 3], "}");
    take(worker);
    suspend(self);
    take(worker);
    if (depth < DEPTH) {
        nap(self, depth + 1);
        suspend(self);
        one(worker, DEPTH);
    }
    back(worker, length);
}

static void begin(void) {
    struct coroutine *self = running;
    for (uint64_t step = 0; step < steps; step++) {
        nap(self, 1);
    }
    self->is_over = 1;
    suspend(self);
}

static void make(struct coroutine *self) {
    if (getcontext(&self->context) != 0) {
        abort();
    }
    self->context.uc_stack.ss_sp = self->stack;
    self->context.uc_stack.ss_size = sizeof(self->stack);
    makecontext(&self->context, begin, 0);
}

static void run_coroutines(void) {
    for (int i = 0; i < COROUTINES; i++) {
        coroutines[i].worker.state = (uint64_t)i + 1;
        make(&coroutines[i]);
    }
    for (int left = COROUTINES; left > 0;) {
        left = 0;
        for (int i = 0; i < COROUTINES; i++) {
            running = &coroutines[i];
            left += !running->is_over;
            if (!running->is_over && swapcontext(&scheduler, &running->context) != 0) {
                abort();
            }
        }
    }
}

/* Work without a stack of its own goes on in another function of another thread. */
PATH void resume(struct worker *worker, const struct memlog_scopes *scopes);
PATH void resume(struct worker *worker, const struct memlog_scopes *scopes) {
    const size_t length = on(worker, "", "resume", "");
    const uint32_t before = memlog_scopes_give(scopes, 0);
    const size_t inner = on(worker, "{", "request", "}");
    (void)on(worker, "{", "reply", "}");
    four(worker, DEPTH);
    memlog_scope_leave(before);
    back(worker, inner);
    take(worker);
    back(worker, length);
}

static struct memlog_scopes handed_over;

static void *resumes(void *argument) {
    for (uint64_t step = 0; step < steps; step++) {
        resume(argument, &handed_over);
    }
    return NULL;
}

PATH void request(struct worker *worker);
PATH void request(struct worker *worker) {
    const size_t length = on(worker, "", "request", "");
    const uint32_t before = memlog_scope_begin("request");
    memlog_scope_begin("reply");
    const size_t inner = on(worker, "{", "request", "}");
    (void)on(worker, "{", "reply", "}");
    take(worker);
    memlog_scopes_take(before, &handed_over);
    back(worker, inner);
    take(worker);
    back(worker, length);
}

/* ---- */

static void print(void) {
    printf("pid %d\n", (int)getpid());
    for (size_t i = 0; i < ways_count; i++) {
        printf(
            "%llu %llu %llu %llu %s\n",
            (unsigned long long)ways[i].live_bytes,
            (unsigned long long)ways[i].live_blocks,
            (unsigned long long)ways[i].total_bytes,
            (unsigned long long)ways[i].total_blocks,
            ways[i].text
        );
    }
    (void)fflush(stdout);
}

static void forget(struct worker *worker) {
    memset(ways, 0, sizeof(ways));
    ways_count = 0;
    memset(worker->held, 0, sizeof(worker->held));
}

/* The child has the parent's open scopes, and goes on in them. */
PATH void serve(struct worker *worker);
PATH void serve(struct worker *worker) {
    const size_t length = on(worker, "", "serve", "");
    MEMLOG_SCOPE("serve");
    (void)on(worker, "{", "serve", "}");
    take(worker);
    (void)fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        forget(worker);
        (void)work(worker);
        print();
        _exit(0);
    }
    (void)waitpid(child, NULL, 0);
    take(worker);
    back(worker, length);
}

static void run(uint64_t seed) {
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i].state = seed * 1000 + i + 1;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) {
            abort();
        }
    }
    for (unsigned i = 0; i < THREADS; i++) {
        (void)pthread_join(workers[i].thread, NULL);
    }
}

int main(int argc, char **argv) {
    static char output[1 << 16]; /* or its buffer is allocated in whichever scope is open */
    (void)setvbuf(stdout, output, _IOFBF, sizeof(output));
    steps = argc > 1 ? strtoull(argv[1], NULL, 10) : 100;
    const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    struct worker *first = &workers[THREADS];
    if (memlog_scope_begin == NULL) {
        return 0;
    }
    first->state = seed;
    if (argc > 3) {
        has_own_stack = strcmp(argv[3], "own") == 0;
    }
    if (has_own_stack) {
        run_coroutines();
    } else if (argc > 3) {
        request(first);
        if (pthread_create(&workers[0].thread, NULL, resumes, first) != 0) {
            abort();
        }
        (void)pthread_join(workers[0].thread, NULL);
    } else {
        run(seed);
        serve(first);
    }
    print();
    return 0;
}
