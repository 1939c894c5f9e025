/* Threads on their way into a hook are found by their instruction pointers alone. This test is the
 * parent of a process whose only thread stands where each test wants it. */
#include "tracer/passers.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <check.h>

#include "tests/suite.h"
#include "tracer/memory.h"

enum { TRIES = 20000, PAUSE_US = 500, HERE = 1, HANDLED = 2, DEEP_BYTES = 200000 };

/* Stands for the code of a hook: a thread that enters stays. */
void passers_spin(atomic_int *state);
extern const char passers_spin_end[];
__asm__(".text\n"
        ".globl passers_spin, passers_spin_end\n"
        ".hidden passers_spin, passers_spin_end\n"
        "passers_spin:\n"
        "movl $1, (%rdi)\n"
        "1: jmp 1b\n"
        "passers_spin_end:\n");

static atomic_int *state; /* shared with the child */
static pid_t child;
static struct ml_attach_block *block;

static void pause_a_little(void) {
    const struct timespec pause = {.tv_nsec = PAUSE_US * 1000L};
    (void)nanosleep(&pause, NULL);
}

static void wait_for(int wanted) {
    for (int i = 0; i < TRIES && atomic_load(state) != wanted; i++) {
        pause_a_little();
    }
    ck_assert_int_eq(atomic_load(state), wanted);
}

static void setup(void) {
    state = mmap(NULL, sizeof(*state), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(state, MAP_FAILED);
    block = aligned_alloc(4096, sizeof(*block));
    ck_assert_ptr_nonnull(block);
    *block = (struct ml_attach_block
    ){.address = (uintptr_t)passers_spin,
      .bytes = (uintptr_t)passers_spin_end - (uintptr_t)passers_spin};
    child = -1;
}

static void teardown(void) {
    if (child > 0) {
        (void)kill(child, SIGKILL);
        (void)waitpid(child, NULL, 0);
    }
    (void)munmap(state, sizeof(*state));
    free(block);
}

static void enter_hook(void) {
    passers_spin(state);
}

/* As deep as a handler may reasonably be. */
static void handle(int signal) {
    volatile char deep[DEEP_BYTES];
    (void)signal;
    deep[0] = 0;
    atomic_store(state, HANDLED);
    for (;;) {
        deep[DEEP_BYTES - 1] = deep[0];
        (void)pause();
    }
}

static void stay_outside(void) {
    atomic_store(state, HERE);
    for (;;) {
        (void)pause();
    }
}

static void start(void (*body)(void)) {
    child = fork();
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)signal(SIGUSR1, handle);
        body();
        _exit(0);
    }
    ck_assert_int_gt(child, 0);
    wait_for(HERE);
}

static bool are_there(void) {
    struct ml_error_message error = {.text = ""};
    struct ml_threads threads;
    ml_threads_init(&threads, child);
    const int memory_fd = ml_memory_open(child, &error);
    ck_assert_msg(memory_fd >= 0, "%s", error.text);
    ck_assert_msg(ml_threads_stop_all(&threads, &error), "%s", error.text);
    const bool found = ml_passers_are_there(&threads, memory_fd, block);
    ml_threads_let_go(&threads);
    (void)close(memory_fd);
    return found;
}

START_TEST(a_thread_in_a_hook_is_one) {
    start(enter_hook);
    ck_assert(are_there());
}
END_TEST

START_TEST(a_thread_in_a_stub_is_one) {
    block->bytes = 0;
    block->functions[1].stub = (uintptr_t)passers_spin;
    block->functions_count = 2;
    start(enter_hook);
    ck_assert(are_there());
    block->functions_count = 1;
    ck_assert(!are_there());
}
END_TEST

START_TEST(a_thread_that_comes_back_to_a_hook_from_a_handler_is_one) {
    start(enter_hook);
    (void)kill(child, SIGUSR1);
    wait_for(HANDLED);
    ck_assert(are_there());
}
END_TEST

START_TEST(a_thread_elsewhere_is_none) {
    start(stay_outside);
    ck_assert(!are_there());
    (void)kill(child, SIGUSR1);
    wait_for(HANDLED);
    ck_assert(!are_there());
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("passers");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_thread_in_a_hook_is_one);
    tcase_add_test(tests, a_thread_in_a_stub_is_one);
    tcase_add_test(tests, a_thread_that_comes_back_to_a_hook_from_a_handler_is_one);
    tcase_add_test(tests, a_thread_elsewhere_is_none);
    return run_suite("tracer/passers", tests);
}
