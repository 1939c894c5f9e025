#include "ipc/trace/heap_name.h"

#include <check.h>
#include <string.h>

#include "tests/suite.h"

static void check_name(uint32_t heap, const char *name, const char *wanted) {
    struct ml_trace_heap_name found;

    ml_trace_heap_name(heap, name, strlen(name), &found);
    ck_assert_uint_eq(found.count_bytes, strlen(wanted));
    ck_assert_mem_eq(found.bytes, wanted, found.count_bytes);
}

START_TEST(mallocs_has_perfettos_name) {
    check_name(0, "", "libc.malloc");
    check_name(0, "pool", "libc.malloc");
}
END_TEST

START_TEST(a_programs_own_keeps_its_name) {
    check_name(1, "pool", "pool");
    check_name(1, "libc.malloc2", "libc.malloc2");
    check_name(1, "com.android.ar", "com.android.ar");
}
END_TEST

START_TEST(a_name_that_means_another_heap_is_told_apart) {
    check_name(2, "libc.malloc", "[libc.malloc, as reported]");
    check_name(2, "malloc", "[malloc, as reported]");
    check_name(2, "com.android.art", "[com.android.art, as reported]");
}
END_TEST

START_TEST(one_without_a_name_has_its_number) {
    check_name(65535, "", "heap 65535");
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("all");

    tcase_add_test(tests, mallocs_has_perfettos_name);
    tcase_add_test(tests, a_programs_own_keeps_its_name);
    tcase_add_test(tests, a_name_that_means_another_heap_is_told_apart);
    tcase_add_test(tests, one_without_a_name_has_its_number);
    return run_suite("ipc/trace/heap_name", tests);
}
