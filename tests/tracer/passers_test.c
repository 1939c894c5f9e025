/* Threads on their way into a hook are found by their instruction pointers alone; those inside one
 * by the client's table, if their stacks agree. This test is the parent of a process whose only
 * thread stands where each test wants it. */
#include "tracer/passers.h"

#include <setjmp.h>
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
#include "tracer/process/memory.h"

enum {
    TRIES = 20000,
    PAUSE_US = 500,
    HERE = 1,
    HANDLED = 2,
    DEEP_BYTES = 200000,
    FAR_BYTES = 300000,
    ALTERNATE_BYTES = 65536
};

/* Stands for the code of a hook: a thread that enters stays. The second calls what it gets. */
void passers_spin(atomic_int *state);
void passers_hook(void (*next)(void), atomic_int *state);
extern const char passers_spin_end[];
__asm__(".text\n"
        ".globl passers_spin, passers_hook, passers_spin_end\n"
        ".hidden passers_spin, passers_hook, passers_spin_end\n"
        "passers_spin:\n"
        "movl $1, (%rdi)\n"
        "1: jmp 1b\n"
        "passers_hook:\n"
        "sub $8, %rsp\n"
        "call *%rdi\n"
        "add $8, %rsp\n"
        "ret\n"
        "passers_spin_end:\n");

/* Stands for a real function that a hook calls, and stays where the kernel would have it: behind
 * its frame is its return address. */
void passers_call(void (*unused)(void), atomic_int *state);
__asm__(".text\n"
        ".globl passers_call\n"
        ".hidden passers_call\n"
        "passers_call:\n"
        "sub $88, %rsp\n"
        "movl $1, (%rsi)\n"
        "1: jmp 1b\n");

static atomic_int *state; /* shared with the child */
static pid_t child;
static struct ml_attach_block *block;
static struct ml_passers seen;

/* The table, as a client has it; each process has its own. */
enum { ROWS = 4, ROW = 2 };
struct row {
    uint64_t other;
    uint32_t phase;
    uint64_t frame;
};
static uintptr_t pointers[ROWS];
static struct row rows[ROWS];

static uintptr_t own_pointer(void) {
    uintptr_t pointer;
    __asm__("movq %%fs:0, %0" : "=r"(pointer));
    return pointer;
}

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
      .bytes = (uintptr_t)passers_spin_end - (uintptr_t)passers_spin,
      .threads = {
          .pointers = (uintptr_t)pointers,
          .rows = (uintptr_t)rows,
          .count = ROWS,
          .row_bytes = sizeof(rows[0]),
          .phase_at = offsetof(struct row, phase),
          .frame_at = offsetof(struct row, frame)}};
    seen = (struct ml_passers){.is_outside = {0}};
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

static void handle_elsewhere(int signal) {
    (void)signal;
    atomic_store(state, HANDLED);
    for (;;) {
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
    const bool found = ml_passers_are_there(&seen, &threads, memory_fd, block);
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

/* ---- by a call that the hook has made */

static void call_from_hook(void) {
    passers_hook((void (*)(void))(uintptr_t)passers_call, state);
}

static void call_from_elsewhere(void) {
    passers_call(NULL, state);
}

static void hook_is_of(enum ml_attach_hook hook) {
    block->functions[0] = (struct ml_attach_function
    ){.entry = (uintptr_t)passers_call, .stub = (uintptr_t)block, .hook = (uint32_t)hook};
    block->functions_count = 1;
}

START_TEST(a_thread_in_a_call_that_a_hook_has_made_is_one) {
    static const enum ml_attach_hook hooks[] = {
        ML_ATTACH_PRCTL, ML_ATTACH_FORK, ML_ATTACH_EXECVE, ML_ATTACH_EXECVEAT, ML_ATTACH_FEXECVE};
    start(call_from_hook);
    ck_assert(!are_there());
    for (size_t i = 0; i < sizeof(hooks) / sizeof(hooks[0]); i++) {
        hook_is_of(hooks[i]);
        ck_assert_msg(are_there(), "hook %d", (int)hooks[i]);
    }
    (void)kill(child, SIGUSR1);
    wait_for(HANDLED);
    ck_assert_msg(are_there(), "interrupted by a handler");
}
END_TEST

/* Who sleeps in a call by `syscall` may do so for good, above words that a hook has left. */
START_TEST(a_call_that_may_last_is_known_by_its_return_address_alone) {
    start(call_from_hook);
    hook_is_of(ML_ATTACH_SYSCALL);
    ck_assert(!are_there());
    teardown();
    setup();
    hook_is_of(ML_ATTACH_PRCTL);
    start(call_from_elsewhere);
    ck_assert(!are_there());
}
END_TEST

/* ---- by the table */

static void be_in_hook(uintptr_t frame) {
    pointers[ROW] = own_pointer();
    rows[ROW] = (struct row){.phase = 1, .frame = frame};
}

/* The hook that is called here has this frame. */
#define HOOK_FRAME(words) ((uintptr_t)(words))

static void hook_that_works(void) {
    volatile uint64_t outer[2] = {0, 0};
    be_in_hook(HOOK_FRAME(outer));
    passers_hook(stay_outside, state);
    outer[1] = outer[0];
}

static sigjmp_buf behind;

static void leave(void) {
    siglongjmp(behind, 1);
}

/* The frame lies further in than where the thread stays. */
static __attribute__((noinline)) void hook_deep_inside(void) {
    volatile char deep[DEEP_BYTES];
    deep[0] = 0;
    be_in_hook((uintptr_t)deep + sizeof(deep) / 2);
    passers_hook(leave, state);
    deep[1] = deep[0];
}

static void hook_that_was_left(void) {
    if (sigsetjmp(behind, 1) == 0) {
        hook_deep_inside();
    }
    stay_outside();
}

/* It stays further in than the frame, and nothing there leads back to the hook. */
static void hook_left_and_passed(void) {
    volatile uint64_t outer[2] = {0, 0};
    be_in_hook(HOOK_FRAME(outer));
    stay_outside();
    outer[1] = outer[0];
}

static void hook_too_far_to_look(void) {
    volatile char deep[FAR_BYTES];
    deep[0] = 0;
    be_in_hook((uintptr_t)deep + sizeof(deep));
    stay_outside();
    deep[1] = deep[0];
}

static void hook_on_another_stack(void) {
    be_in_hook((uintptr_t)&rows[1]);
    stay_outside();
}

static void hook_of_a_thread_that_has_ended(void) {
    be_in_hook((uintptr_t)&rows[1]);
    pointers[ROW] += 4096;
    stay_outside();
}

static __attribute__((noinline)) void hook_deep_inside_and_stays(void) {
    volatile char deep[DEEP_BYTES];
    deep[0] = 0;
    be_in_hook((uintptr_t)deep);
    passers_hook(stay_outside, state);
    deep[1] = deep[0];
}

/* The handler's stack lies further out than the hook's frame, in the same mapping. */
static void hook_behind_a_handler(void) {
    char alternate[ALTERNATE_BYTES];
    const stack_t stack = {.ss_sp = alternate, .ss_size = sizeof(alternate)};
    struct sigaction action = {.sa_handler = handle_elsewhere, .sa_flags = SA_ONSTACK};
    (void)sigaltstack(&stack, NULL);
    (void)sigaction(SIGUSR2, &action, NULL);
    hook_deep_inside_and_stays();
}

START_TEST(a_thread_that_a_hook_has_called_on_is_inside) {
    start(hook_that_works);
    ck_assert(are_there());
    ck_assert(are_there());
}
END_TEST

START_TEST(a_hook_that_was_left_holds_nobody) {
    start(hook_that_was_left);
    ck_assert(!are_there());
}
END_TEST

START_TEST(a_hook_that_was_left_holds_nobody_further_in_either) {
    start(hook_left_and_passed);
    ck_assert(!are_there());
}
END_TEST

START_TEST(what_cannot_be_told_counts_as_inside) {
    start(hook_too_far_to_look);
    ck_assert(are_there());
    teardown();
    setup();
    start(hook_on_another_stack);
    ck_assert(are_there());
}
END_TEST

START_TEST(a_handler_on_a_stack_further_out_comes_back) {
    start(hook_behind_a_handler);
    ck_assert(are_there());
    (void)kill(child, SIGUSR2);
    wait_for(HANDLED);
    ck_assert(are_there());
}
END_TEST

START_TEST(a_thread_that_has_ended_is_not_inside) {
    start(hook_of_a_thread_that_has_ended);
    ck_assert(!are_there());
}
END_TEST

START_TEST(who_was_seen_outside_stays_there) {
    start(hook_on_another_stack);
    seen.is_outside[ROW] = 1;
    ck_assert(!are_there());
}
END_TEST

START_TEST(a_table_that_cannot_be_is_not_believed) {
    start(stay_outside);
    ck_assert(!are_there());
    block->threads.count = ML_ATTACH_THREADS_MAX + 1;
    ck_assert(are_there());
    block->threads.count = ROWS;
    block->threads.row_bytes = 0;
    ck_assert(are_there());
    block->threads.row_bytes = sizeof(rows[0]);
    block->threads.frame_at = UINT32_MAX;
    ck_assert(are_there());
    block->threads.frame_at = offsetof(struct row, frame);
    block->threads.pointers = 1;
    ck_assert(are_there());
    block->threads.count = 0; /* no thread has come to a hook yet */
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
    tcase_add_test(tests, a_thread_in_a_call_that_a_hook_has_made_is_one);
    tcase_add_test(tests, a_call_that_may_last_is_known_by_its_return_address_alone);
    tcase_add_test(tests, a_thread_that_a_hook_has_called_on_is_inside);
    tcase_add_test(tests, a_hook_that_was_left_holds_nobody);
    tcase_add_test(tests, a_hook_that_was_left_holds_nobody_further_in_either);
    tcase_add_test(tests, what_cannot_be_told_counts_as_inside);
    tcase_add_test(tests, a_handler_on_a_stack_further_out_comes_back);
    tcase_add_test(tests, a_thread_that_has_ended_is_not_inside);
    tcase_add_test(tests, who_was_seen_outside_stays_there);
    tcase_add_test(tests, a_table_that_cannot_be_is_not_believed);
    return run_suite("tracer/passers", tests);
}
