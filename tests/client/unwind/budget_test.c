#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <check.h>

#include "client/unwind/unwind.h"
#include "tests/suite.h"

enum { PAINT = 0xa5, PAINTED_BYTES = 256 * 1024, STACK_BUDGET_BYTES = 1024 };

static struct ml_unwind_process process;
static struct ml_unwind_thread thread;
static struct ml_unwind_result result;
static uint8_t *stack;
static size_t used_bytes; /* below the hook's frame */

__attribute__((noinline)) static void walk(void) {
    struct ml_unwind_entry entry = ml_unwind_entry_here();
    struct ml_module_seen deaf = {0};
    result = ml_unwind(&process, &thread, &entry, &deaf);
}

/* What libc writes there when a thread starts or ends is none of ours: newer ones (2.41) need 1.6
 * KB for that. So the stack is painted here, and looked at as soon as the walk is over; by loops
 * that call nobody. */
__attribute__((noinline)) static void hook(void) {
    enum { OWN_BYTES = 128 }; /* the red zone */
    uintptr_t here;
    __asm__ volatile("movq %%rsp, %0" : "=r"(here));
    for (volatile uint8_t *at = stack; (uintptr_t)at < here - OWN_BYTES; at++) {
        *at = PAINT;
    }
    walk();
    volatile uint8_t *lowest = stack;
    while ((uintptr_t)lowest < here && *lowest == PAINT) {
        lowest++;
    }
    used_bytes = here - (uintptr_t)lowest;
}

/* gcc finds this frame by an expression, so that everything there is has to run. */
__attribute__((noinline)) static void
aligned(long a, long b, long c, long d, long e, long f, long g, long h) {
    _Alignas(64) volatile long room[8] = {a, b, c, d, e, f, g, h};
    hook();
    room[0] = room[1];
}

static void *run(void *context) {
    aligned(1, 2, 3, 4, 5, 6, 7, 8);
    return context;
}

/* Of a thread's walk. */
static size_t stack_used(void) {
    pthread_t walker;
    pthread_attr_t attributes;
    stack = mmap(NULL, PAINTED_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(stack != MAP_FAILED);
    pthread_attr_init(&attributes);
    ck_assert_int_eq(pthread_attr_setstack(&attributes, stack, PAINTED_BYTES), 0);
    ck_assert_int_eq(pthread_create(&walker, &attributes, run, NULL), 0);
    pthread_join(walker, NULL);
    return used_bytes;
}

START_TEST(needs_less_than_a_kilobyte_of_stack) {
    size_t cold = stack_used();
    size_t warm = stack_used();
    ck_assert_uint_eq(result.flags & ML_UNWIND_BROKEN, 0);
    ck_assert_uint_gt(result.count, 3);
    ck_assert_msg(cold <= STACK_BUDGET_BYTES, "cold: %zu", cold);
    ck_assert_msg(warm <= STACK_BUDGET_BYTES, "warm: %zu", warm);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("budget");
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* their frames are larger */
    tcase_add_test(tcase, needs_less_than_a_kilobyte_of_stack);
#else
    (void)needs_less_than_a_kilobyte_of_stack;
#endif
    return run_suite("client/unwind, budget", tcase);
}
