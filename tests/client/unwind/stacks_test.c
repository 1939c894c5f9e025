#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>

#include <check.h>

#include "tests/client/unwind/oracle.h"
#include "tests/client/unwind/tree.h"
#include "tests/suite.h"

enum {
    SETS_PURE = 0xf,
    SETS_ALL = 0x1f,
    SET_CXX = 1 << 3,
    FIBERS = 4,
    FIBER_BYTES = 256 * 1024,
    GUARD_BYTES = 4096,
    THREADS = 4,
    SIGNALS = 1500
};

static void probe(void *context) {
    ml_oracle_probe(context);
    __asm__ volatile("" ::: "memory");
}

static struct ml_unwind_tree tree_make(struct ml_oracle *oracle, uint64_t seed, uint32_t depth) {
    return (struct ml_unwind_tree){
        .random = seed * UINT64_C(0x9e3779b97f4a7c15) | 1,
        .depth_max = depth,
        .calls_left = 500,
        .probe = probe,
        .context = oracle,
    };
}

static void assert_right(const struct ml_oracle *oracle) {
    ck_assert_uint_gt(oracle->events, 0);
    ck_assert_uint_eq(oracle->wrong, 0);
    ck_assert_uint_eq(oracle->wrong_nodes, 0);
    ck_assert_uint_eq(oracle->wrong_memo, 0);
    ck_assert_uint_eq(oracle->wrong_library, 0);
}

/* ---- depth ---- */

static long
deep_even(struct ml_oracle *oracle, struct ml_unwind_tree *tree, uint32_t depth, uint32_t every);

/* The two call each other or themselves, as chance has it: no two levels of the stack need agree.
 */
__attribute__((noinline)) static long
deep_odd(struct ml_oracle *oracle, struct ml_unwind_tree *tree, uint32_t depth, uint32_t every) {
    volatile char room[40];
    room[0] = 1;
    if (depth == 0) {
        return 0;
    }
    if (depth % every == 0) {
        ml_oracle_probe(oracle);
    }
    long result = ml_tree_random(tree) % 2 == 0 ? deep_even(oracle, tree, depth - 1, every)
                                                : deep_odd(oracle, tree, depth - 1, every);
    if (depth % every == 0) {
        ml_oracle_probe(oracle);
    }
    return result + room[0];
}

__attribute__((noinline)) static long
deep_even(struct ml_oracle *oracle, struct ml_unwind_tree *tree, uint32_t depth, uint32_t every) {
    if (depth == 0) {
        return 0;
    }
    if (depth % every == 1) {
        ml_oracle_probe(oracle);
    }
    long result = deep_odd(oracle, tree, depth - 1, every);
    if (depth % every == 1) {
        ml_oracle_probe(oracle);
    }
    return result + 1;
}

START_TEST(cuts_deep_stacks_at_the_same_places_with_and_without_cache) {
    struct ml_oracle *oracle = ml_oracle_new(NULL, 50);
    struct ml_unwind_tree tree = tree_make(oracle, 7, 0);
    (void)deep_odd(oracle, &tree, 700, 1);
    (void)deep_odd(oracle, &tree, 3000, 11);
    (void)deep_odd(oracle, &tree, 1200, 3);
    assert_right(oracle);
    ck_assert_uint_gt(oracle->cut, 500);
    ck_assert_uint_eq(oracle->broken, 0);
    ck_assert_uint_le(oracle->deepest, ML_UNWIND_FRAMES_MAX);
    ml_oracle_free(oracle);
}
END_TEST

__attribute__((noinline)) static char megabytes(struct ml_oracle *oracle, uint32_t times) {
    char *memory = alloca(2 * 1024 * 1024);
    memory[times] = 0;
    __asm__ volatile("" ::"r"(memory) : "memory");
    ml_oracle_probe(oracle);
    if (times > 0) {
        memory[times] = megabytes(oracle, times - 1);
    }
    ml_oracle_probe(oracle);
    return memory[times];
}

START_TEST(walks_over_frames_of_megabytes) {
    struct ml_oracle *oracle = ml_oracle_new(NULL, 1);
    for (int i = 0; i < 3; i++) {
        ml_oracle_probe(oracle);
        (void)megabytes(oracle, 2);
    }
    assert_right(oracle);
    ck_assert_uint_eq(oracle->broken, 0);
    ck_assert_uint_eq(oracle->thread->ranges.current, 0); /* all one stack, and the own one */
    ml_oracle_free(oracle);
}
END_TEST

/* ---- signals ---- */

static struct ml_oracle *handler_oracle;
static volatile sig_atomic_t handled;

__attribute__((noinline)) static void handler_deeper(int level) {
    if (level > 0) {
        handler_deeper(level - 1);
    }
    ml_oracle_probe(handler_oracle);
    __asm__ volatile("" ::: "memory");
}

/* One shot, wound again by the handler: however slow the oracle, the program itself goes on. */
static void arm_timer(void) {
    struct itimerval timer = {.it_value = {.tv_usec = 150 + handled % 200}};
    (void)setitimer(ITIMER_REAL, &timer, NULL);
}

static void on_signal(int signal_number) {
    (void)signal_number;
    handler_deeper(2);
    if (++handled < SIGNALS) {
        arm_timer();
    }
}

static void take_signals(int flags) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags | SA_RESTART};
    sigemptyset(&action.sa_mask);
    ck_assert_int_eq(sigaction(SIGALRM, &action, NULL), 0);
    arm_timer();
}

/* Leaf code without a frame, and with one half built. */
__attribute__((noinline)) static uint64_t leaf(uint64_t value) {
    for (int i = 0; i < 200; i++) {
        value = value * UINT64_C(6364136223846793005) + 1442695040888963407U;
    }
    return value;
}

static void run_under_signals(struct ml_oracle *oracle, uint32_t sets) {
    uint64_t value = 1;
    struct timespec now;
    ml_tree_use(sets);
    for (uint64_t seed = 1; handled < SIGNALS; seed++) {
        struct ml_unwind_tree tree = tree_make(oracle, seed, 20);
        (void)ml_tree_descend(&tree, 0);
        for (int i = 0; i < 200; i++) {
            value = leaf(value);
            clock_gettime(CLOCK_MONOTONIC, &now); /* the vdso: interrupted there too */
        }
    }
    ck_assert_uint_ne(value, 0);
}

START_TEST(walks_out_of_signal_handlers_through_whatever_they_interrupted) {
    struct ml_oracle *oracle = ml_oracle_new(NULL, 0);
    handler_oracle = ml_oracle_new(oracle->process, 7);
    take_signals(0);
    run_under_signals(oracle, SETS_PURE);
    assert_right(oracle);
    assert_right(handler_oracle);
    ck_assert_uint_eq(handler_oracle->full, handler_oracle->events);
    ck_assert_uint_eq(handler_oracle->broken, 0);
}
END_TEST

static void *guarded(size_t bytes) {
    char *memory = mmap(
        NULL, bytes + 2 * GUARD_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0
    );
    ck_assert(memory != MAP_FAILED);
    ck_assert_int_eq(mprotect(memory + GUARD_BYTES, bytes, PROT_READ | PROT_WRITE), 0);
    return memory + GUARD_BYTES;
}

START_TEST(walks_from_an_alternate_signal_stack_onto_the_own_one) {
    struct ml_oracle *oracle = ml_oracle_new(NULL, 0);
    handler_oracle = ml_oracle_new(oracle->process, 7);
    stack_t stack = {.ss_sp = guarded(FIBER_BYTES), .ss_size = FIBER_BYTES};
    ck_assert_int_eq(sigaltstack(&stack, NULL), 0);
    take_signals(SA_ONSTACK);
    run_under_signals(oracle, SETS_ALL);
    assert_right(oracle);
    assert_right(handler_oracle);
    ck_assert_uint_eq(handler_oracle->broken, 0);
}
END_TEST

static sigjmp_buf out_of_handler;

static void jump_from_signal(int signal_number) {
    (void)signal_number;
    siglongjmp(out_of_handler, 1);
}

START_TEST(survives_a_jump_out_of_a_walk) {
    struct ml_oracle *oracle = ml_oracle_new(NULL, 0);
    struct sigaction action = {.sa_handler = jump_from_signal, .sa_flags = SA_NODEFER};
    sigemptyset(&action.sa_mask);
    ck_assert_int_eq(sigaction(SIGALRM, &action, NULL), 0);
    ml_tree_use(SETS_ALL & ~SET_CXX); /* a jump over a handler loses its exception */
    for (volatile uint64_t round = 1; round < 100; round++) {
        struct ml_unwind_tree tree = tree_make(oracle, round, 15);
        if (sigsetjmp(out_of_handler, 1) == 0) {
            struct itimerval timer = {.it_value = {.tv_usec = 50 + (long)(round % 300)}};
            if (setitimer(ITIMER_REAL, &timer, NULL) != 0) {
                abort(); /* not ck_assert: the jump would leave Check's lock taken */
            }
            for (;;) {
                tree.calls_left = 50;
                (void)ml_tree_descend(&tree, 0);
            }
        }
        oracle->wrong = 0; /* the comparison itself was jumped out of */
        oracle->wrong_nodes = 0;
        oracle->wrong_memo = 0;
        memset(oracle->bare_thread, 0, sizeof *oracle->bare_thread);
        tree.calls_left = 50;
        (void)ml_tree_descend(&tree, 0);
        ck_assert_uint_eq(oracle->wrong + oracle->wrong_nodes + oracle->wrong_memo, 0);
    }
}
END_TEST

/* ---- other stacks ---- */

struct fiber {
    ucontext_t context;
    void *stack;
    size_t bytes;
    struct ml_unwind_tree tree;
    bool done;
};

static struct fiber fibers[FIBERS];
static ucontext_t fiber_home;
static uint32_t fiber_running;
static struct ml_oracle *fiber_oracle;

static void probe_and_yield(void *context) {
    struct fiber *fiber = context;
    ml_oracle_probe(fiber_oracle);
    if (ml_tree_random(&fiber->tree) % 4 == 0) {
        ck_assert_int_eq(swapcontext(&fiber->context, &fiber_home), 0);
        ml_oracle_probe(fiber_oracle);
    }
}

static void fiber_main(void) {
    struct fiber *fiber = &fibers[fiber_running];
    for (int i = 0; i < 10; i++) {
        fiber->tree.calls_left = 300;
        (void)ml_tree_descend(&fiber->tree, 0);
    }
    fiber->done = true;
    swapcontext(&fiber->context, &fiber_home);
}

static void fiber_make(struct fiber *fiber, uint64_t seed, size_t bytes) {
    fiber->bytes = bytes;
    fiber->stack = guarded(bytes);
    fiber->done = false;
    fiber->tree = tree_make(fiber_oracle, seed, 12);
    fiber->tree.probe = probe_and_yield;
    fiber->tree.context = fiber;
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = fiber->stack;
    fiber->context.uc_stack.ss_size = bytes;
    fiber->context.uc_link = NULL;
    makecontext(&fiber->context, fiber_main, 0);
}

static void fibers_run(uint64_t seed, size_t bytes) {
    uint32_t left = FIBERS;
    for (uint32_t i = 0; i < FIBERS; i++) {
        fiber_make(&fibers[i], seed + i, bytes);
    }
    for (uint32_t turn = 0; left > 0; turn++) {
        fiber_running = turn % FIBERS;
        if (fibers[fiber_running].done) {
            continue;
        }
        ck_assert_int_eq(swapcontext(&fiber_home, &fibers[fiber_running].context), 0);
        left -= fibers[fiber_running].done;
        if (turn % 3 == 0) {
            ml_oracle_probe(fiber_oracle);
        }
    }
    for (uint32_t i = 0; i < FIBERS; i++) {
        munmap((char *)fibers[i].stack - GUARD_BYTES, fibers[i].bytes + 2 * GUARD_BYTES);
    }
}

START_TEST(walks_fibers_whose_stacks_come_and_go) {
    fiber_oracle = ml_oracle_new(NULL, 20);
    ml_tree_use(SETS_ALL & ~SET_CXX); /* C++ keeps its exceptions by thread, not by fiber */
    for (uint64_t round = 1; round < 12; round++) {
        fibers_run(round * 100, FIBER_BYTES - round * 8192);
    }
    assert_right(fiber_oracle);
    ck_assert_uint_eq(fiber_oracle->broken, 0);
}
END_TEST

/* ---- threads ---- */

static void *thread_main(void *context) {
    struct ml_oracle *oracle = context;
    for (uint64_t seed = 1; oracle->events < 15000; seed++) {
        struct ml_unwind_tree tree = tree_make(oracle, seed * 31 + (uintptr_t)oracle % 977, 25);
        (void)ml_tree_descend(&tree, 0);
    }
    return NULL;
}

START_TEST(threads_share_recipes_while_others_close_libraries) {
    struct ml_oracle *first = ml_oracle_new(NULL, 200);
    struct ml_oracle *oracles[THREADS];
    pthread_t threads[THREADS];
    ml_tree_use(SETS_ALL);
    for (uint32_t i = 0; i < THREADS; i++) {
        oracles[i] = ml_oracle_new(first->process, 200);
        ck_assert_int_eq(pthread_create(&threads[i], NULL, thread_main, oracles[i]), 0);
    }
    for (int i = 0; i < 300; i++) {
        struct timespec pause = {.tv_nsec = 1000000};
        ml_unwind_unload_begin(first->process);
        ml_unwind_unload_end(first->process, NULL, NULL);
        nanosleep(&pause, NULL);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_right(oracles[i]);
        ck_assert_uint_eq(oracles[i]->broken, 0);
    }
}
END_TEST

START_TEST(a_new_thread_in_the_place_of_an_old_one_starts_anew) {
    struct ml_oracle *oracle = ml_oracle_new(NULL, 200);
    ml_tree_use(SETS_PURE);
    for (int i = 0; i < 50; i++) {
        pthread_t thread;
        oracle->events = 15000 - 200;
        ck_assert_int_eq(pthread_create(&thread, NULL, thread_main, oracle), 0);
        pthread_join(thread, NULL);
        ml_unwind_thread_clear(oracle->thread);
        ml_unwind_thread_clear(oracle->bare_thread);
    }
    assert_right(oracle);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("stacks");
    tcase_set_timeout(tcase, 200);
    tcase_add_test(tcase, cuts_deep_stacks_at_the_same_places_with_and_without_cache);
    tcase_add_test(tcase, walks_over_frames_of_megabytes);
    tcase_add_test(tcase, walks_out_of_signal_handlers_through_whatever_they_interrupted);
    tcase_add_test(tcase, walks_from_an_alternate_signal_stack_onto_the_own_one);
    tcase_add_test(tcase, survives_a_jump_out_of_a_walk);
    tcase_add_test(tcase, walks_fibers_whose_stacks_come_and_go);
    tcase_add_test(tcase, threads_share_recipes_while_others_close_libraries);
    tcase_add_test(tcase, a_new_thread_in_the_place_of_an_old_one_starts_anew);
    return run_suite("client/unwind, stacks", tcase);
}
