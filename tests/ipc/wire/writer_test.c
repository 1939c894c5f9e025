#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite.h"

#include "ipc/wire/writer.h"

START_TEST(writes_little_endian_and_counts) {
    uint8_t bytes[32];
    struct ml_writer w = ml_writer_into(bytes, sizeof(bytes));
    ml_writer_u8(&w, 1);
    ml_writer_u32(&w, 0x05040302);
    ml_writer_u64(&w, UINT64_C(0x0d0c0b0a09080706));
    ml_writer_varint(&w, 300);
    ml_writer_zigzag(&w, -1);
    ml_writer_blob(&w, "xy", 2);
    static const uint8_t expected[] = {
        1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 0xac, 2, 1, 2, 'x', 'y'};
    ck_assert(!w.overflow);
    ck_assert_uint_eq(ml_writer_count(&w), sizeof(expected));
    ck_assert_mem_eq(bytes, expected, sizeof(expected));
}
END_TEST

START_TEST(never_writes_behind_its_end) {
    uint8_t bytes[8];
    memset(bytes, 0xee, sizeof(bytes));
    struct ml_writer w = ml_writer_into(bytes, 3);
    ml_writer_u32(&w, 0);
    ck_assert(w.overflow);
    ck_assert_uint_eq(ml_writer_count(&w), 0);
    w = ml_writer_into(bytes, 3);
    ml_writer_blob(&w, "abc", 3);
    ck_assert(w.overflow);
    ck_assert_uint_eq(ml_writer_count(&w), 0);
    ck_assert_uint_eq(bytes[3], 0xee);
}
END_TEST

START_TEST(small_magnitudes_become_small_numbers) {
    ck_assert_uint_eq(ml_zigzag(0), 0);
    ck_assert_uint_eq(ml_zigzag(-1), 1);
    ck_assert_uint_eq(ml_zigzag(1), 2);
    ck_assert_uint_eq(ml_zigzag(INT64_MAX), UINT64_MAX - 1);
    ck_assert_uint_eq(ml_zigzag(INT64_MIN), UINT64_MAX);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("writer");
    tcase_add_test(tcase, writes_little_endian_and_counts);
    tcase_add_test(tcase, never_writes_behind_its_end);
    tcase_add_test(tcase, small_magnitudes_become_small_numbers);
    return run_suite("ipc/writer", tcase);
}
