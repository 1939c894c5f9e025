/* Memory for code within reach of a program's code. */
#include "client/patch/near.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/suite.h"

enum { BYTES = 10000, SPAN = 1 << 20 };

static const uint64_t reach = (uint64_t)1 << 31;

static uint8_t *map_somewhere(size_t bytes) {
    void *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ck_assert_ptr_ne(at, MAP_FAILED);
    return at;
}

static void is_within_reach(const uint8_t *found, const uint8_t *low, const uint8_t *high) {
    const uintptr_t first = found < low ? (uintptr_t)found : (uintptr_t)low;
    const uintptr_t last = found + BYTES > high ? (uintptr_t)(found + BYTES) : (uintptr_t)high;
    ck_assert_uint_lt(last - first, reach);
}

START_TEST(what_is_reserved_lies_within_reach_and_beside_everything_else) {
    uint8_t *code = map_somewhere(SPAN);
    uint8_t *first = ml_near_reserve((uintptr_t)code, (uintptr_t)code + SPAN, BYTES);
    uint8_t *second = ml_near_reserve((uintptr_t)code, (uintptr_t)code + SPAN, BYTES);
    ck_assert_ptr_nonnull(first);
    ck_assert_ptr_nonnull(second);
    ck_assert_ptr_ne(first, second);
    is_within_reach(first, code, code + SPAN);
    is_within_reach(second, code, code + SPAN);
    /* The code itself is still there. */
    ck_assert_int_eq(mprotect(code, SPAN, PROT_READ), 0);
    ck_assert_int_eq(code[0], 0);
    ml_near_release(first, BYTES);
    ml_near_release(second, BYTES);
}
END_TEST

/* As without -pie: hardly anything is below. */
START_TEST(a_program_low_in_memory_has_room) {
    uint8_t *found = ml_near_reserve(0x400000, 0x400000 + SPAN, BYTES);
    ck_assert_ptr_nonnull(found);
    is_within_reach(found, (uint8_t *)0x400000, (uint8_t *)0x400000 + SPAN);
    ml_near_release(found, BYTES);
}
END_TEST

START_TEST(where_nothing_is_free_within_reach_there_is_none) {
    const size_t all = (size_t)5 << 30;
    const uintptr_t middle = (uintptr_t)map_somewhere(all) + all / 2;
    ck_assert_ptr_null(ml_near_reserve(middle, middle + SPAN, BYTES));
}
END_TEST

START_TEST(what_was_filled_runs_and_cannot_be_written) {
    static const uint8_t answers_42[] = {0xb8, 42, 0, 0, 0, 0xc3};
    uint8_t *code = map_somewhere(SPAN);
    uint8_t *found = ml_near_reserve((uintptr_t)code, (uintptr_t)code + SPAN, sizeof answers_42);
    ck_assert_ptr_nonnull(found);
    ck_assert(ml_near_fill(found, answers_42, sizeof answers_42));
    ck_assert_int_eq(((int (*)(void))(uintptr_t)found)(), 42);
    const pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        (void)signal(SIGSEGV, SIG_DFL); /* a sanitizer's handler would exit */
        *(volatile uint8_t *)found = 0;
        _exit(0);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    ml_near_release(found, sizeof answers_42);
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("near");
    tcase_add_test(cases, what_is_reserved_lies_within_reach_and_beside_everything_else);
    tcase_add_test(cases, a_program_low_in_memory_has_room);
    tcase_add_test(cases, where_nothing_is_free_within_reach_there_is_none);
    tcase_add_test(cases, what_was_filled_runs_and_cannot_be_written);
    return run_suite("client/patch/near", cases);
}
