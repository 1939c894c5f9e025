/* Plans that are carried out: functions.S, each patched with a stub that counts, run before, with
 * and after the patch. What is refused: tests/base/entry/plan_test.c and
 * tests/base/entry/body_test.c. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <check.h>

#include "base/entry/plan.h"
#include "tests/suite.h"

typedef long function_fn(long one, long other);

struct row {
    function_fn *function;
    uint64_t size;
    const char *name;
};

/* Of functions.S, and of the linker's for its sections. */
extern const struct row __start_patched_table[] __attribute__((visibility("hidden")));
extern const struct row __stop_patched_table[] __attribute__((visibility("hidden")));
extern uint8_t __start_patched[] __attribute__((visibility("hidden")));
extern uint8_t __stop_patched[] __attribute__((visibility("hidden")));
extern uint64_t patched_word[3] __attribute__((visibility("hidden")));

static const long inputs[][2] = {
    {0, 0}, {1, 1}, {5, 77}, {77, 5}, {-1, 1}, {1, -1}, {-77, -5}, {100, 1}, {3, 4}, {1 << 20, 9}};

enum { INPUTS = sizeof inputs / sizeof inputs[0], STUB_BYTES = 12, TRAMPOLINE_AT = 64 };

/* Code that runs, and behind it the counter that it raises. */
static uint8_t *pool;
static uint64_t *counter;
static size_t page_bytes;

/* Within reach of the functions. */
static void make_pool(void) {
    page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    for (uintptr_t at = (uintptr_t)__stop_patched / page_bytes * page_bytes; pool == NULL;
         at += 64 * page_bytes) {
        void *made = mmap(
            (void *)at,
            2 * page_bytes,
            PROT_READ | PROT_WRITE,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
            -1,
            0
        );
        pool = made == MAP_FAILED ? NULL : made;
    }
    counter = (uint64_t *)(void *)(pool + page_bytes);
}

static void write_code(uint8_t *to, const uint8_t *bytes, size_t count) {
    const uintptr_t page = (uintptr_t)to / page_bytes * page_bytes;
    const size_t length = (uintptr_t)to + count - page;
    ck_assert_int_eq(mprotect((void *)page, length, PROT_READ | PROT_WRITE), 0);
    memcpy(to, bytes, count);
    ck_assert_int_eq(mprotect((void *)page, length, PROT_READ | PROT_EXEC), 0);
}

/* incq counter(%rip), jmp trampoline */
static void write_stub(const struct ml_entry_plan *plan) {
    uint8_t code[TRAMPOLINE_AT + ML_ENTRY_TRAMPOLINE_MAX] = {0x48, 0xff, 0x05};
    const int32_t to_counter = (int32_t)((uint8_t *)counter - (pool + 7));
    const int32_t to_trampoline = TRAMPOLINE_AT - STUB_BYTES;
    memcpy(code + 3, &to_counter, sizeof to_counter);
    code[7] = 0xe9;
    memcpy(code + 8, &to_trampoline, sizeof to_trampoline);
    memcpy(code + TRAMPOLINE_AT, plan->trampoline, plan->trampoline_bytes);
    write_code(pool, code, sizeof code);
}

static struct ml_entry_function function_of(const struct row *row) {
    const uint8_t *code = (const uint8_t *)(uintptr_t)row->function;
    return (struct ml_entry_function
    ){.code = code,
      .code_bytes = (size_t)(__stop_patched - code),
      .address = (uintptr_t)code,
      .size = row->size,
      .text = __start_patched,
      .text_bytes = (size_t)(__stop_patched - __start_patched),
      .text_address = (uintptr_t)__start_patched,
      .may_push_calls = true};
}

static struct ml_entry_plan plan_of(const struct row *row) {
    const struct ml_entry_function function = function_of(row);
    struct ml_entry_plan plan;
    const enum ml_entry_refusal refusal =
        ml_entry_plan(&function, (uintptr_t)pool, (uintptr_t)pool + TRAMPOLINE_AT, &plan);
    ck_assert_msg(refusal == ML_ENTRY_PLANNED, "%s: %s", row->name, ml_entry_refusal_text(refusal));
    return plan;
}

static uint8_t *code_at(uint64_t address) {
    return __start_patched + (address - (uintptr_t)__start_patched);
}

static void run(const struct row *row, long *out_results) {
    memset(patched_word, 0, sizeof patched_word);
    patched_word[0] = 77;
    for (size_t i = 0; i < INPUTS; i++) {
        out_results[i] = row->function(inputs[i][0], inputs[i][1]);
    }
}

/* A function that calls itself answers how often it was called. */
static uint64_t calls_of(const struct row *row, const long *results) {
    uint64_t calls = INPUTS;
    if (strcmp(row->name, "calls_itself") == 0) {
        calls = 0;
        for (size_t i = 0; i < INPUTS; i++) {
            calls += (uint64_t)results[i];
        }
    }
    return calls;
}

static void patch_and_run(const struct row *row) {
    long bare[INPUTS];
    long patched[INPUTS];
    uint64_t words[3];
    run(row, bare);
    memcpy(words, patched_word, sizeof words);

    const struct ml_entry_plan plan = plan_of(row);
    ck_assert_mem_eq(plan.old, code_at(plan.at), sizeof plan.old);
    write_stub(&plan);
    write_code(code_at(plan.at), plan.jump, sizeof plan.jump);
    *counter = 0;
    run(row, patched);
    ck_assert_msg(memcmp(bare, patched, sizeof bare) == 0, "%s: other results", row->name);
    ck_assert_msg(memcmp(words, patched_word, sizeof words) == 0, "%s: other data", row->name);
    ck_assert_msg(
        *counter == calls_of(row, bare), "%s: %lu calls seen", row->name, (unsigned long)*counter
    );

    /* It is known again, and the old bytes put it back. */
    const struct ml_entry_function function = function_of(row);
    struct ml_entry_plan again;
    ck_assert_int_eq(
        ml_entry_plan(&function, (uintptr_t)pool, (uintptr_t)pool + TRAMPOLINE_AT, &again),
        ML_ENTRY_PATCHED_ALREADY
    );
    write_code(code_at(plan.at), plan.old, sizeof plan.old);
    run(row, patched);
    ck_assert_msg(memcmp(bare, patched, sizeof bare) == 0, "%s: not put back", row->name);
}

START_TEST(every_function_does_the_same_with_and_without_its_patch) {
    make_pool();
    size_t count = 0;
    for (const struct row *row = __start_patched_table; row != __stop_patched_table; row++) {
        patch_and_run(row);
        count++;
    }
    ck_assert_uint_gt(count, 40);
}
END_TEST

/* Without its size and what is around it, the same functions have the same plans. */
START_TEST(a_size_that_is_not_known_changes_no_plan) {
    make_pool();
    for (const struct row *row = __start_patched_table; row != __stop_patched_table; row++) {
        struct ml_entry_function function = function_of(row);
        struct ml_entry_plan plan = {.at = 0};
        function.code_bytes = row->size < 16 ? 16 : row->size;
        function.size = 0;
        function.text = NULL;
        const struct ml_entry_plan known = plan_of(row);
        ck_assert_msg(
            ml_entry_plan(&function, (uintptr_t)pool, (uintptr_t)pool + TRAMPOLINE_AT, &plan) ==
                ML_ENTRY_PLANNED,
            "%s",
            row->name
        );
        ck_assert_mem_eq(&plan, &known, sizeof plan);
    }
}
END_TEST

static const struct row *row_named(const char *name) {
    for (const struct row *row = __start_patched_table; row != __stop_patched_table; row++) {
        if (strcmp(row->name, name) == 0) {
            return row;
        }
    }
    ck_abort_msg("no function %s", name);
    return NULL;
}

START_TEST(endbr64_stays_at_the_entry) {
    make_pool();
    const struct row *row = row_named("keeps_endbr64");
    ck_assert_uint_eq(plan_of(row).at, (uintptr_t)row->function + 4);
    row = row_named("frame_pointer");
    ck_assert_uint_eq(plan_of(row).at, (uintptr_t)row->function);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("patched");
    tcase_add_test(tcase, every_function_does_the_same_with_and_without_its_patch);
    tcase_add_test(tcase, a_size_that_is_not_known_changes_no_plan);
    tcase_add_test(tcase, endbr64_stays_at_the_entry);
    return run_suite("base/entry/patched", tcase);
}
