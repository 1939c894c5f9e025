/* Each reason for a refusal that lies in the function's body, and what is near it and no reason. */
#include "base/entry/body.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/entry/plan.h"
#include "tests/base/entry/bytes.h"
#include "tests/suite.h"

START_TEST(branches_into_the_patched_bytes_are_found_in_the_whole_body) {
    /* jne to 1, 2, 4: into. To 5 and on: not. */
    ck_assert_int_eq(plan_whole(CODE(PROLOGUE "\x75\xfa\xc3")), ML_ENTRY_BRANCH_INTO);
    ck_assert_int_eq(plan_whole(CODE(PROLOGUE "\x75\xfb\xc3")), ML_ENTRY_BRANCH_INTO);
    ck_assert_int_eq(plan_whole(CODE(PROLOGUE "\x75\xfd\xc3")), ML_ENTRY_BRANCH_INTO);
    ck_assert_int_eq(plan_whole(CODE(PROLOGUE "\x75\xfe\xc3")), ML_ENTRY_PLANNED);
    /* In the long form, by jmp, loop and call; behind an end as well. */
    ck_assert_int_eq(
        plan_whole(CODE(PROLOGUE "\x0f\x85\xf6\xff\xff\xff\xc3")), ML_ENTRY_BRANCH_INTO
    );
    ck_assert_int_eq(plan_whole(CODE(PROLOGUE "\xe9\xf7\xff\xff\xff")), ML_ENTRY_BRANCH_INTO);
    ck_assert_int_eq(plan_whole(CODE(PROLOGUE "\xe2\xfb\xc3")), ML_ENTRY_BRANCH_INTO);
    ck_assert_int_eq(plan_whole(CODE(PROLOGUE "\xe8\xf7\xff\xff\xff\xc3")), ML_ENTRY_BRANCH_INTO);
    ck_assert_int_eq(plan_whole(CODE(PROLOGUE "\xc3\x75\xf9\xc3")), ML_ENTRY_BRANCH_INTO);
    /* From the moved bytes: forward, and back. */
    ck_assert_int_eq(plan_whole(CODE("\x75\x01\x55\x53\x50\xc3")), ML_ENTRY_BRANCH_INTO);
    ck_assert_int_eq(plan_whole(CODE("\x55\x53\x75\xfd\x50\xc3")), ML_ENTRY_BRANCH_INTO);
    /* Behind endbr64 it is the bytes behind it. */
    ck_assert_int_eq(
        plan_whole(CODE("\xf3\x0f\x1e\xfa" PROLOGUE "\x75\xfa\xc3")), ML_ENTRY_BRANCH_INTO
    );
    ck_assert_int_eq(
        plan_whole(CODE("\xf3\x0f\x1e\xfa" PROLOGUE "\x75\xfe\xc3")), ML_ENTRY_PLANNED
    );
}
END_TEST

START_TEST(data_in_the_body_hides_no_branch) {
    /* From what is not known on, jne into the patched bytes is seen at any offset: as part of a
     * longer instruction (mov $..,%eax), too. */
    ck_assert_int_eq(
        plan_whole(CODE(PROLOGUE "\x06\xb8\x75\xf8\x00\x00\xc3")), ML_ENTRY_BRANCH_INTO
    );
    ck_assert_int_eq(
        plan_whole(CODE(PROLOGUE "\x06\xb8\xeb\xf8\x00\x00\xc3")), ML_ENTRY_BRANCH_INTO
    );
    ck_assert_int_eq(
        plan_whole(CODE(PROLOGUE "\x06\xb8\xe3\xf8\x00\x00\xc3")), ML_ENTRY_BRANCH_INTO
    );
    ck_assert_int_eq(plan_whole(CODE(PROLOGUE "\x90\xb8\x75\xf8\x00\x00\xc3")), ML_ENTRY_PLANNED);
    /* In its long form at any offset anyway: here it is a constant's. */
    ck_assert_int_eq(
        plan_whole(CODE(PROLOGUE "\x48\xb8\xe9\xf5\xff\xff\xff\x00\x00\x00\xc3")),
        ML_ENTRY_BRANCH_INTO
    );
    ck_assert_int_eq(
        plan_whole(CODE(PROLOGUE "\x48\xb8\x0f\x84\xf4\xff\xff\xff\x00\x00\xc3")),
        ML_ENTRY_BRANCH_INTO
    );
}
END_TEST

/* .text with the function at 256, and a part of it aside at 0. */
static enum ml_entry_refusal plan_with_aside(const char *aside, size_t bytes) {
    static const char body[] = PROLOGUE "\x0f\x84\xf5\xfe\xff\xff\xc3"; /* je aside */
    uint8_t text[512];
    memset(text, 0xcc, sizeof text);
    memcpy(text, aside, bytes);
    memcpy(text + 256, body, sizeof body - 1);
    const struct ml_entry_function function = {
        .code = text + 256,
        .code_bytes = 256,
        .address = ADDRESS + 256,
        .size = sizeof body - 1,
        .text = text,
        .text_bytes = sizeof text,
        .text_address = ADDRESS};
    struct ml_entry_plan plan;
    return ml_entry_plan(&function, STUB, TRAMPOLINE, &plan);
}

START_TEST(a_part_of_the_function_elsewhere_is_looked_at) {
    ck_assert_int_eq(plan_with_aside(CODE("\xe9\x07\x01\x00\x00")), ML_ENTRY_PLANNED); /* to 12 */
    ck_assert_int_eq(plan_with_aside(CODE("\xe9\xfc\x00\x00\x00")), ML_ENTRY_BRANCH_INTO); /* 1 */
    ck_assert_int_eq(plan_with_aside(CODE("\xe9\xff\x00\x00\x00")), ML_ENTRY_BRANCH_INTO); /* 4 */
    ck_assert_int_eq(
        plan_with_aside(CODE("\x55\xc3\x0f\x84\xfa\x00\x00\x00")), ML_ENTRY_BRANCH_INTO
    );
    /* Another function that calls this one again is nothing of its own. */
    ck_assert_int_eq(plan_with_aside(CODE("\xe9\xfb\x00\x00\x00")), ML_ENTRY_PLANNED);
}
END_TEST

START_TEST(branches_back_to_the_entry_are_no_calls_of_it) {
    ck_assert_int_eq(plan_whole(CODE(PROLOGUE "\x75\xf9\xc3")), ML_ENTRY_BRANCH_BACK);
    ck_assert_int_eq(plan_whole(CODE(PROLOGUE "\xe9\xf6\xff\xff\xff")), ML_ENTRY_BRANCH_BACK);
    ck_assert_int_eq(plan_whole(CODE(PROLOGUE "\xe8\xf6\xff\xff\xff\xc3")), ML_ENTRY_PLANNED);
    /* To endbr64, and to what is behind it. */
    ck_assert_int_eq(
        plan_whole(CODE("\xf3\x0f\x1e\xfa" PROLOGUE "\x75\xf5\xc3")), ML_ENTRY_BRANCH_BACK
    );
    ck_assert_int_eq(
        plan_whole(CODE("\xf3\x0f\x1e\xfa" PROLOGUE "\x75\xf9\xc3")), ML_ENTRY_BRANCH_BACK
    );
}
END_TEST

START_TEST(a_switch_may_lead_anywhere_in_its_function) {
    ck_assert_int_eq(plan_whole(CODE(PROLOGUE "\xff\x24\xc5\x00\x00\x00\x00")), ML_ENTRY_SWITCH);
    ck_assert_int_eq(
        plan_whole(CODE(PROLOGUE "\x48\x63\x04\x8a\x48\x01\xd0\xff\xe0")), ML_ENTRY_SWITCH
    );
    ck_assert_int_eq(plan_whole(CODE(PROLOGUE "\x48\x63\x04\x8a\xc3")), ML_ENTRY_PLANNED);
    ck_assert_int_eq(plan_whole(CODE(PROLOGUE "\xff\xe0")), ML_ENTRY_PLANNED); /* a last call */
    ck_assert_int_eq(plan_whole(CODE(PROLOGUE "\xff\x60\x08")), ML_ENTRY_PLANNED);
}
END_TEST

START_TEST(what_cannot_be_looked_at_is_not_patched) {
    ck_assert_int_eq(plan_sized(CODE(PROLOGUE "\xc3"), 7), ML_ENTRY_LARGE);
    ck_assert_int_eq(plan_sized(CODE(PROLOGUE "\xc3"), UINT64_MAX), ML_ENTRY_LARGE);
    const size_t bytes = ML_ENTRY_BODY_BYTES_MAX + 1;
    uint8_t *code = malloc(bytes);
    memset(code, 0x90, bytes);
    struct ml_entry_function function = {
        .code = code, .code_bytes = bytes, .address = ADDRESS, .size = bytes};
    struct ml_entry_plan plan;
    ck_assert_int_eq(ml_entry_plan(&function, STUB, TRAMPOLINE, &plan), ML_ENTRY_LARGE);
    function.size--;
    ck_assert_int_eq(ml_entry_plan(&function, STUB, TRAMPOLINE, &plan), ML_ENTRY_PLANNED);
    /* More places outside than are looked at. */
    for (size_t i = 0; i < ML_ENTRY_BODY_ASIDES_MAX + 1; i++) {
        const int32_t distance = (int32_t)(0x10000 + (i % 2) * 0x10000);
        code[16 + 6 * i] = 0x0f;
        code[17 + 6 * i] = 0x84;
        memcpy(code + 18 + 6 * i, &distance, sizeof distance);
    }
    function.size = 16 + 6 * (ML_ENTRY_BODY_ASIDES_MAX + 1);
    ck_assert_int_eq(ml_entry_plan(&function, STUB, TRAMPOLINE, &plan), ML_ENTRY_PLANNED);
    function.text = code;
    function.text_bytes = bytes;
    function.text_address = ADDRESS;
    ck_assert_int_eq(ml_entry_plan(&function, STUB, TRAMPOLINE, &plan), ML_ENTRY_LARGE);
    free(code);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("body");
    tcase_add_test(tcase, branches_into_the_patched_bytes_are_found_in_the_whole_body);
    tcase_add_test(tcase, data_in_the_body_hides_no_branch);
    tcase_add_test(tcase, a_part_of_the_function_elsewhere_is_looked_at);
    tcase_add_test(tcase, branches_back_to_the_entry_are_no_calls_of_it);
    tcase_add_test(tcase, a_switch_may_lead_anywhere_in_its_function);
    tcase_add_test(tcase, what_cannot_be_looked_at_is_not_patched);
    return run_suite("base/entry/body", tcase);
}
