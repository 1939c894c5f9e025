/* Which loads are found, and which bytes are none. What is told of them: tests/e2e/inside_test.py.
 */
#include "base/entry/dispatch.h"

#include <check.h>

#include "tests/suite.h"

enum { AT = 0x10000 };

static uint64_t variable_of(const char *code, size_t bytes) {
    return ml_dispatch_variable((const uint8_t *)code, bytes, AT);
}
#define VARIABLE(literal) variable_of((literal), sizeof(literal) - 1)

START_TEST(the_first_load_says_where_the_variable_lies) {
    /* push %rbp; mov 0x1000(%rip),%rsi */
    ck_assert_uint_eq(VARIABLE("\x55\x48\x8b\x35\x00\x10\x00\x00"), AT + 8 + 0x1000);
    /* mov -8(%rip),%r9 */
    ck_assert_uint_eq(VARIABLE("\x4c\x8b\x0d\xf8\xff\xff\xff"), AT - 1);
}
END_TEST

START_TEST(what_is_no_such_load_says_nothing) {
    ck_assert_uint_eq(VARIABLE(""), 0);
    ck_assert_uint_eq(VARIABLE("\x48\x8b\x05\x00\x00\x00"), 0);     /* cut */
    ck_assert_uint_eq(VARIABLE("\x8b\x05\x00\x10\x00\x00\x90"), 0); /* 32 bits */
    ck_assert_uint_eq(VARIABLE("\x48\x8d\x05\x00\x10\x00\x00"), 0); /* lea */
    ck_assert_uint_eq(VARIABLE("\x48\x8b\x80\x00\x10\x00\x00"), 0); /* of rax */
}
END_TEST

START_TEST(loads_of_that_variable_alone_are_counted) {
    /* rax and r12 from one, rbx from another */
    const uint8_t code[] = {0x48, 0x8b, 0x05, 0x14, 0,    0,    0,    0x4c, 0x8b, 0x25, 0x0d,
                            0,    0,    0,    0x48, 0x8b, 0x1d, 0x07, 0,    0,    0};
    ck_assert_uint_eq(ml_dispatch_loads(code, sizeof(code), AT, AT + 27, 10), 2);
    ck_assert_uint_eq(ml_dispatch_loads(code, sizeof(code), AT, AT + 27, 1), 1);
    ck_assert_uint_eq(ml_dispatch_loads(code, sizeof(code), AT, AT + 28, 10), 1);
    ck_assert_uint_eq(ml_dispatch_loads(code, 13, AT, AT + 27, 10), 1);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("dispatch");
    tcase_add_test(tcase, the_first_load_says_where_the_variable_lies);
    tcase_add_test(tcase, what_is_no_such_load_says_nothing);
    tcase_add_test(tcase, loads_of_that_variable_alone_are_counted);
    return run_suite("base/entry/dispatch", tcase);
}
