/* Each reason for a refusal that lies in the first bytes, and what is near it and no reason. What
 * is planned is carried out in tests/base/entry/patched_test.c. */
#include "base/entry/plan.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "tests/base/entry/bytes.h"
#include "tests/suite.h"

START_TEST(a_jump_to_the_stub_is_a_patch) {
    ck_assert_int_eq(plan_whole(CODE("\xe9\xfb\xff\x0f\x00")), ML_ENTRY_PATCHED_ALREADY);
    ck_assert_int_eq(
        plan_whole(CODE("\xf3\x0f\x1e\xfa\xe9\xf7\xff\x0f\x00")), ML_ENTRY_PATCHED_ALREADY
    );
    ck_assert_int_eq(plan_whole(CODE("\xe9\xfc\xff\x0f\x00")), ML_ENTRY_PLANNED); /* elsewhere */
}
END_TEST

START_TEST(code_that_ends_is_not_moved) {
    ck_assert_int_eq(plan_sized(CODE(""), 0), ML_ENTRY_NOT_READABLE);
    ck_assert_int_eq(plan_sized(CODE("\x55\x48\x89\xe5"), 100), ML_ENTRY_NOT_READABLE);
    ck_assert_int_eq(plan_sized(CODE("\xf3\x0f\x1e\xfa"), 100), ML_ENTRY_NOT_READABLE);
    ck_assert_int_eq(plan_sized(CODE("\x55\x48\x8b\x05\x00"), 100), ML_ENTRY_NOT_READABLE);
}
END_TEST

START_TEST(a_short_function_needs_padding_up_to_the_next) {
    ck_assert_int_eq(plan_whole(CODE("\xc3\x55\x53\x50\x51")), ML_ENTRY_SHORT);
    ck_assert_int_eq(plan_sized(CODE("\x89\xf8\xc3\x55\x53\x50\x51"), 3), ML_ENTRY_SHORT);
    /* 13 bytes to the next multiple of 16, all padding; with one thing in it; with an end. */
    ck_assert_int_eq(plan_sized(CODE("\x89\xf8\xc3" NOPS_11 "\x90\x90"), 3), ML_ENTRY_PLANNED);
    ck_assert_int_eq(plan_sized(CODE("\x89\xf8\xc3" NOPS_11 "\x90\x55"), 3), ML_ENTRY_SHORT);
    ck_assert_int_eq(plan_sized(CODE("\x89\xf8\xc3" NOPS_11 "\x90"), 3), ML_ENTRY_SHORT);
    /* A nop across the multiple of 16 is the next function's. */
    ck_assert_int_eq(plan_sized(CODE("\x89\xf8\xc3" NOPS_11 "\x90\x66\x90"), 3), ML_ENTRY_SHORT);
    /* Too little of it: the next function begins within the jump. */
    struct ml_entry_plan plan;
    ck_assert_int_eq(
        plan_at(CODE("\x89\xf8\xc3\x90\x55\x53\x50"), 3, ADDRESS + 12, &plan), ML_ENTRY_SHORT
    );
    ck_assert_int_eq(
        plan_at(CODE("\x89\xf8\xc3\x90\x90\x55\x53"), 3, ADDRESS + 11, &plan), ML_ENTRY_PLANNED
    );
    ck_assert_uint_eq(plan.moved_bytes, 3);
    ck_assert_uint_eq(plan.trampoline_bytes, 3); /* it has an end of its own: no way back */
    /* Padding behind what does not end is code. */
    ck_assert_int_eq(plan_sized(CODE("\x89\xf8" NOPS_11 "\x90\x90\x90"), 2), ML_ENTRY_RUNS_OUT);
}
END_TEST

START_TEST(a_function_that_runs_on_into_the_next_is_left_alone) {
    ck_assert_int_eq(plan_sized(CODE("\x31\xc0\x48\x89\xe5\xc3"), 2), ML_ENTRY_RUNS_OUT);
    ck_assert_int_eq(plan_sized(CODE("\x31\xc0\x48\x89\xe5\xc3"), 4), ML_ENTRY_RUNS_OUT);
    ck_assert_int_eq(plan_sized(CODE("\x31\xc0\x48\x89\xe5\xc3"), 5), ML_ENTRY_PLANNED);
    /* What stands behind it is not its own, whatever it is. */
    ck_assert_int_eq(plan_sized(CODE("\x31\xc0\xcc\xcc\xcc\xcc"), 2), ML_ENTRY_RUNS_OUT);
    ck_assert_int_eq(
        plan_sized(CODE("\xf3\x0f\x1e\xfa\x48\x89\xe5\x90\x90"), 4), ML_ENTRY_RUNS_OUT
    );
    ck_assert_int_eq(
        plan_sized(CODE("\xf3\x0f\x1e\xfa\x48\x89\xe5\x90\x90"), 2), ML_ENTRY_RUNS_OUT
    );
}
END_TEST

START_TEST(an_instruction_that_is_not_known_is_not_moved) {
    ck_assert_int_eq(plan_whole(CODE("\x06" NOPS_11 NOPS_11)), ML_ENTRY_UNKNOWN_INSTRUCTION);
    ck_assert_int_eq(plan_whole(CODE("\x55\x06" NOPS_11 NOPS_11)), ML_ENTRY_UNKNOWN_INSTRUCTION);
    ck_assert_int_eq(plan_whole(CODE(PROLOGUE "\x06" NOPS_11)), ML_ENTRY_PLANNED); /* behind */
}
END_TEST

START_TEST(calls_and_loops_are_not_moved) {
    ck_assert_int_eq(plan_whole(CODE("\xe8\x00\x00\x00\x00\xc3")), ML_ENTRY_CALL);
    ck_assert_int_eq(plan_whole(CODE("\x55\xff\x15\x00\x00\x00\x00\xc3")), ML_ENTRY_CALL);
    ck_assert_int_eq(plan_whole(CODE("\x55\x53\xff\xd0\x90\xc3")), ML_ENTRY_CALL);
    ck_assert_int_eq(plan_whole(CODE(PROLOGUE "\xe8\x00\x00\x00\x00\xc3")), ML_ENTRY_PLANNED);
    ck_assert_int_eq(plan_whole(CODE("\x55\xe2\x10\x53\x53\xc3")), ML_ENTRY_LOOP);
    ck_assert_int_eq(plan_whole(CODE("\x55\xe3\x10\x53\x53\xc3")), ML_ENTRY_LOOP);
    ck_assert_int_eq(plan_whole(CODE("\xc7\xf8\x00\x00\x00\x00\xc3")), ML_ENTRY_LOOP);
}
END_TEST

static enum ml_entry_refusal plan_pushing(const char *code, size_t bytes) {
    const struct ml_entry_function function = {
        .code = (const uint8_t *)code,
        .code_bytes = bytes,
        .address = ADDRESS,
        .size = bytes,
        .may_push_calls = true};
    struct ml_entry_plan plan;
    return ml_entry_plan(&function, STUB, TRAMPOLINE, &plan);
}

START_TEST(calls_are_pushed_where_that_is_asked_for) {
    ck_assert_int_eq(plan_pushing(CODE("\xe8\x00\x00\x00\x00\xc3")), ML_ENTRY_PLANNED);
    ck_assert_int_eq(plan_pushing(CODE("\x55\xff\x15\x00\x00\x00\x00\xc3")), ML_ENTRY_PLANNED);
    /* By a register; into what is written over; to where the trampoline does not reach. */
    ck_assert_int_eq(plan_pushing(CODE("\x55\x53\xff\xd0\x90\xc3")), ML_ENTRY_CALL);
    ck_assert_int_eq(plan_pushing(CODE("\x55\xff\x50\x08\x90\xc3")), ML_ENTRY_CALL);
    ck_assert_int_eq(plan_pushing(CODE("\x55\xe8\xfc\xff\xff\xff\xc3")), ML_ENTRY_BRANCH_INTO);
    ck_assert_int_eq(plan_pushing(CODE("\x55\xe8\x10\x00\x00\x80\xc3")), ML_ENTRY_TARGET_FAR);
}
END_TEST

START_TEST(a_breakpoint_is_not_moved) {
    ck_assert_int_eq(plan_whole(CODE("\xcc\x48\x89\xe5\x53\xc3")), ML_ENTRY_BREAKPOINT);
    ck_assert_int_eq(plan_whole(CODE("\x55\xcc\x89\xe5\x53\xc3")), ML_ENTRY_BREAKPOINT);
    ck_assert_int_eq(plan_whole(CODE("\xf3\x0f\x1e\xfa\xcc\x48\x89\xe5\x53")), ML_ENTRY_BREAKPOINT);
    ck_assert_int_eq(plan_whole(CODE(PROLOGUE "\xcc\xc3")), ML_ENTRY_PLANNED);
}
END_TEST

static enum ml_entry_refusal
plan_far(const char *code, size_t bytes, uint64_t stub, uint64_t trampoline) {
    const struct ml_entry_function function = {
        .code = (const uint8_t *)code,
        .code_bytes = bytes,
        .address = (uint64_t)1 << 40,
        .size = bytes};
    struct ml_entry_plan plan;
    return ml_entry_plan(&function, stub, trampoline, &plan);
}

START_TEST(distances_end_at_2_gib) {
    const uint64_t address = (uint64_t)1 << 40;
    const uint64_t reach = (uint64_t)1 << 31;
    ck_assert_int_eq(
        plan_far(CODE(PROLOGUE "\xc3"), address + 5 + reach - 1, address), ML_ENTRY_PLANNED
    );
    ck_assert_int_eq(
        plan_far(CODE(PROLOGUE "\xc3"), address + 5 + reach, address), ML_ENTRY_STUB_FAR
    );
    ck_assert_int_eq(
        plan_far(CODE(PROLOGUE "\xc3"), address + 5 - reach, address), ML_ENTRY_PLANNED
    );
    ck_assert_int_eq(
        plan_far(CODE(PROLOGUE "\xc3"), address + 4 - reach, address), ML_ENTRY_STUB_FAR
    );
    ck_assert_int_eq(plan_far(CODE(PROLOGUE "\xc3"), 0, address), ML_ENTRY_STUB_FAR);
    /* The way back, an operand, a branch. */
    ck_assert_int_eq(
        plan_far(CODE(PROLOGUE "\xc3"), address, address + reach - 5), ML_ENTRY_PLANNED
    );
    ck_assert_int_eq(
        plan_far(CODE(PROLOGUE "\xc3"), address, address + reach), ML_ENTRY_TARGET_FAR
    );
    ck_assert_int_eq(
        plan_far(CODE("\x48\x8b\x05\x00\x00\x00\xf0\xc3"), address, address + reach - 100),
        ML_ENTRY_TARGET_FAR
    );
    ck_assert_int_eq(
        plan_far(CODE("\x0f\x84\x00\x00\x00\xf0\xc3"), address, address + reach - 100),
        ML_ENTRY_TARGET_FAR
    );
    ck_assert_int_eq(
        plan_far(CODE("\xe9\x00\x00\x00\xf0"), address, address + reach - 100), ML_ENTRY_TARGET_FAR
    );
}
END_TEST

START_TEST(a_plan_knows_what_it_covers) {
    const struct ml_entry_plan plan = {.at = 1000};
    ck_assert(!ml_entry_plan_covers(&plan, 999));
    ck_assert(!ml_entry_plan_covers(&plan, 1000));
    ck_assert(ml_entry_plan_covers(&plan, 1001));
    ck_assert(ml_entry_plan_covers(&plan, 1004));
    ck_assert(!ml_entry_plan_covers(&plan, 1005));
}
END_TEST

START_TEST(each_reason_has_a_text_of_its_own) {
    for (int i = 0; i < ML_ENTRY_REFUSAL_COUNT; i++) {
        const char *text = ml_entry_refusal_text((enum ml_entry_refusal)i);
        ck_assert_uint_gt(strlen(text), 10);
        ck_assert_uint_lt(strlen(text), ML_ENTRY_REFUSAL_TEXT_MAX);
        for (int k = 0; k < i; k++) {
            ck_assert_str_ne(text, ml_entry_refusal_text((enum ml_entry_refusal)k));
        }
    }
    ck_assert_str_eq(ml_entry_refusal_text(ML_ENTRY_REFUSAL_COUNT), "an unknown reason");
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("plan");
    tcase_add_test(tcase, a_jump_to_the_stub_is_a_patch);
    tcase_add_test(tcase, code_that_ends_is_not_moved);
    tcase_add_test(tcase, a_short_function_needs_padding_up_to_the_next);
    tcase_add_test(tcase, a_function_that_runs_on_into_the_next_is_left_alone);
    tcase_add_test(tcase, an_instruction_that_is_not_known_is_not_moved);
    tcase_add_test(tcase, calls_and_loops_are_not_moved);
    tcase_add_test(tcase, calls_are_pushed_where_that_is_asked_for);
    tcase_add_test(tcase, a_breakpoint_is_not_moved);
    tcase_add_test(tcase, distances_end_at_2_gib);
    tcase_add_test(tcase, a_plan_knows_what_it_covers);
    tcase_add_test(tcase, each_reason_has_a_text_of_its_own);
    return run_suite("base/entry/plan", tcase);
}
