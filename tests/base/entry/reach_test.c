/* Whose callers may know what it leaves alone. */
#include "base/entry/reach.h"

#include "tests/base/entry/bytes.h"
#include "tests/suite.h"

static bool reaches(const char *code, size_t bytes) {
    const struct ml_entry_function function = {
        .code = (const uint8_t *)code,
        .code_bytes = bytes,
        .address = ADDRESS,
        .text = (const uint8_t *)code,
        .text_bytes = bytes,
        .text_address = ADDRESS};
    return ml_entry_reaches_out(&function);
}

START_TEST(what_calls_nothing_is_known_to_its_callers) {
    ck_assert(!reaches(CODE("\xc3")));
    ck_assert(!reaches(CODE("\x48\x8d\x04\x3f\xc3")));
    ck_assert(!reaches(CODE("\x48\x85\xff\x74\x01\xc3\x31\xc0\xc3"))); /* a branch within */
    ck_assert(!reaches(CODE("\xeb\xfe")));                             /* for ever */
    ck_assert(!reaches(CODE("\x0f\x05\xc3"))); /* what a system call touches is known */
}
END_TEST

START_TEST(a_call_by_an_address_reaches_out) {
    ck_assert(reaches(CODE("\xff\xd0\xc3")));
    ck_assert(reaches(CODE("\xff\x15\x00\x00\x00\x00\xc3")));
    ck_assert(reaches(CODE("\xff\x25\x00\x00\x00\x00"))); /* as of the procedure linkage */
    ck_assert(reaches(CODE("\xf3\x0f\x1e\xfa\xf2\xff\x25\x00\x00\x00\x00")));
}
END_TEST

START_TEST(a_switch_does_not) {
    ck_assert(!reaches(CODE("\xff\x24\xc5\x00\x00\x00\x00"))); /* jmp *table(,%rax,8) */
    /* movslq (%rdx,%rax,4), %rax; jmp *%rax. mov (%rdx,%rax,8), %rax; jmp *%rax. */
    ck_assert(!reaches(CODE("\x48\x63\x04\x82\xff\xe0")));
    ck_assert(!reaches(CODE("\x48\x8b\x04\xc2\xff\xe0")));
}
END_TEST

START_TEST(a_jump_by_a_functions_address_does) {
    /* mov 8(%rdx), %rax; jmp *%rax. jmp *8(%rdx). */
    ck_assert(reaches(CODE("\x48\x8b\x42\x08\xff\xe0")));
    ck_assert(reaches(CODE("\xff\x62\x08")));
}
END_TEST

START_TEST(calls_jumps_and_branches_are_followed) {
    ck_assert(reaches(CODE("\xe8\x01\x00\x00\x00\xc3\xff\xd0\xc3")));
    ck_assert(reaches(CODE("\xeb\x01\xc3\xff\xd0\xc3")));
    ck_assert(reaches(CODE("\x48\x85\xff\x74\x01\xc3\xff\xd0\xc3")));
    ck_assert(!reaches(CODE("\xe8\x01\x00\x00\x00\xc3\x90\xc3\xff\xd0"))); /* not behind an end */
    ck_assert(!reaches(CODE("\xe8\x00\x00\x00\x10\xc3"))); /* out of what can be read */
}
END_TEST

START_TEST(what_cannot_be_read_is_a_doubt) {
    const struct ml_entry_function function = {
        .code = (const uint8_t *)"\xff\xd0", .code_bytes = 2, .address = ADDRESS};
    ck_assert(!ml_entry_reaches_out(&function));
    ck_assert(!reaches(CODE("\x06\xff\xd0")));
    ck_assert(!reaches(CODE("\xff")));
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("reach");
    tcase_add_test(tcase, what_calls_nothing_is_known_to_its_callers);
    tcase_add_test(tcase, a_call_by_an_address_reaches_out);
    tcase_add_test(tcase, a_switch_does_not);
    tcase_add_test(tcase, a_jump_by_a_functions_address_does);
    tcase_add_test(tcase, calls_jumps_and_branches_are_followed);
    tcase_add_test(tcase, what_cannot_be_read_is_a_doubt);
    return run_suite("base/entry/reach", tcase);
}
