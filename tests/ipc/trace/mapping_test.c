#include "ipc/trace/mapping.h"

#include <check.h>

#include "tests/suite.h"

/* Perfetto's symbolizer: what it adds to an address before it asks the file for it. `align` is that
 * of the file's segment. */
static uint64_t
correction(const struct ml_trace_mapping *mapping, uint64_t code_address, uint64_t align) {
    const uint64_t offset = mapping->exact_offset - mapping->start_offset;
    const uint64_t real = code_address / align * align - offset / align * align;

    return real > mapping->load_bias ? real - mapping->load_bias : 0;
}

enum { START = 0x7f0000000000, END = 0x7f0000800000 };

static struct ml_trace_mapping at(uint64_t code_address, uint64_t code_offset, int64_t bias) {
    const struct ml_trace_module module = {
        .start = START,
        .end = END,
        .bias = bias,
        .code_address = code_address,
        .code_offset = code_offset,
    };

    return ml_trace_mapping_of(&module);
}

START_TEST(addresses_stay_whatever_the_linker_has_chosen) {
    static const struct {
        uint64_t address, offset, align;
    } linked[] = {
        {0x1000, 0x1000, 0x1000},       /* GNU ld */
        {0x2450, 0x1450, 0x1000},       /* lld: each segment a page further than in the file */
        {0x401000, 0x1000, 0x1000},     /* not position-independent */
        {0x1000, 0x3000, 0x1000},       /* later in the file than in memory */
        {0x200000, 0x200000, 0x200000}, /* large pages */
        {0x201040, 0x1040, 0x200000},
        {0, 0, 0x1000},
    };

    for (size_t i = 0; i < sizeof linked / sizeof linked[0]; i++) {
        const struct ml_trace_mapping mapping = at(linked[i].address, linked[i].offset, START);
        ck_assert_uint_eq(correction(&mapping, linked[i].address, linked[i].align), 0);
        ck_assert_int_ge((int64_t)mapping.load_bias, 0);
        /* It begins where the file has it. */
        ck_assert_uint_eq(
            mapping.start - START + mapping.start_offset, mapping.exact_offset + mapping.load_bias
        );
        ck_assert_uint_eq(mapping.end, END);
    }
}
END_TEST

/* The test above sees what went wrong before. */
START_TEST(without_them_addresses_are_moved) {
    const struct ml_trace_mapping nothing = {.start = START, .end = END};

    ck_assert_uint_eq(correction(&nothing, 0x1000, 0x1000), 0x1000);
}
END_TEST

START_TEST(code_outside_of_the_image_leaves_its_start) {
    ck_assert_uint_eq(at(END - START, 0x1000, START).start, START);
    ck_assert_uint_eq(at(0x1000, 0x1000, 0).start, START);
}
END_TEST

START_TEST(a_place_that_does_not_fit_its_address_is_not_lowered_below_the_file) {
    ck_assert_uint_eq(at(0x1800, 0x10, START).exact_offset, 0x10);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("all");

    tcase_add_test(tests, addresses_stay_whatever_the_linker_has_chosen);
    tcase_add_test(tests, without_them_addresses_are_moved);
    tcase_add_test(tests, code_outside_of_the_image_leaves_its_start);
    tcase_add_test(tests, a_place_that_does_not_fit_its_address_is_not_lowered_below_the_file);
    return run_suite("ipc/trace/mapping", tests);
}
