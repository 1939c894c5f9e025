#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/wire/reader.h"
#include "ipc/wire/writer.h"
#include "tests/suite.h"

START_TEST(rejects_short_input_and_leaves_reader_unmoved) {
    const uint8_t bytes[7] = {1, 2, 3, 4, 5, 6, 7};
    struct ml_reader r = ml_reader_over(bytes, 0);
    uint8_t u8 = 99;
    ck_assert_int_eq(ml_reader_u8(&r, &u8), ML_PEER_SHORT);
    r = ml_reader_over(bytes, 1);
    uint16_t u16 = 99;
    ck_assert_int_eq(ml_reader_u16(&r, &u16), ML_PEER_SHORT);
    r = ml_reader_over(bytes, 3);
    uint32_t u32 = 99;
    ck_assert_int_eq(ml_reader_u32(&r, &u32), ML_PEER_SHORT);
    r = ml_reader_over(bytes, 7);
    uint64_t u64 = 99;
    ck_assert_int_eq(ml_reader_u64(&r, &u64), ML_PEER_SHORT);
    const uint8_t *at = NULL;
    ck_assert_int_eq(ml_reader_bytes(&r, 8, &at), ML_PEER_SHORT);
    ck_assert_ptr_eq(r.pos, bytes);
    ck_assert_uint_eq(u8 + u16 + u32 + u64, 4 * 99);
    ck_assert_ptr_null(at);
}
END_TEST

START_TEST(fixed_numbers_are_little_endian) {
    const uint8_t bytes[15] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    struct ml_reader r = ml_reader_over(bytes, sizeof(bytes));
    uint8_t u8 = 0;
    uint16_t u16 = 0;
    uint32_t u32 = 0;
    uint64_t u64 = 0;
    ck_assert_int_eq(ml_reader_u8(&r, &u8), ML_OK);
    ck_assert_int_eq(ml_reader_u16(&r, &u16), ML_OK);
    ck_assert_int_eq(ml_reader_u32(&r, &u32), ML_OK);
    ck_assert_int_eq(ml_reader_finish(&r), ML_PEER_TRAILING);
    ck_assert_int_eq(ml_reader_u64(&r, &u64), ML_OK);
    ck_assert_int_eq(ml_reader_finish(&r), ML_OK);
    ck_assert_uint_eq(u8, 1);
    ck_assert_uint_eq(u16, 0x0302);
    ck_assert_uint_eq(u32, 0x07060504);
    ck_assert_uint_eq(u64, UINT64_C(0x0f0e0d0c0b0a0908));
}
END_TEST

START_TEST(varints_of_every_length_come_back) {
    for (unsigned shift = 0; shift < 64; shift++) {
        const uint64_t values[] = {
            (uint64_t)1 << shift, ((uint64_t)1 << shift) - 1, UINT64_MAX >> shift};
        for (size_t i = 0; i < 3; i++) {
            uint8_t bytes[2 * ML_VARINT_MAX_BYTES];
            struct ml_writer w = ml_writer_into(bytes, sizeof(bytes));
            ml_writer_varint(&w, values[i]);
            struct ml_reader r = ml_reader_over(bytes, ml_writer_count(&w));
            uint64_t value = 0;
            ck_assert_int_eq(ml_reader_varint(&r, &value), ML_OK);
            ck_assert_uint_eq(value, values[i]);
            ck_assert_int_eq(ml_reader_finish(&r), ML_OK);
        }
    }
}
END_TEST

START_TEST(a_varint_has_one_form_and_64_bits) {
    const uint8_t padded[] = {0x81, 0x00};
    const uint8_t wide[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02};
    const uint8_t endless[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
    const uint8_t cut[] = {0xff, 0xff};
    uint64_t value = 99;
    struct ml_reader r = ml_reader_over(padded, sizeof(padded));
    ck_assert_int_eq(ml_reader_varint(&r, &value), ML_PEER_FORM);
    ck_assert_ptr_eq(r.pos, padded);
    r = ml_reader_over(wide, sizeof(wide));
    ck_assert_int_eq(ml_reader_varint(&r, &value), ML_PEER_RANGE);
    r = ml_reader_over(endless, sizeof(endless));
    ck_assert_int_eq(ml_reader_varint(&r, &value), ML_PEER_RANGE);
    r = ml_reader_over(cut, sizeof(cut));
    ck_assert_int_eq(ml_reader_varint(&r, &value), ML_PEER_SHORT);
    ck_assert_ptr_eq(r.pos, cut);
    ck_assert_uint_eq(value, 99);
}
END_TEST

START_TEST(a_blob_is_bounded_by_its_limit_and_its_bytes) {
    const uint8_t bytes[] = {3, 'a', 'b', 'c'};
    const uint8_t *blob = NULL;
    size_t count = 0;
    struct ml_reader r = ml_reader_over(bytes, sizeof(bytes));
    ck_assert_int_eq(ml_reader_blob(&r, 2, &blob, &count), ML_PEER_LIMIT);
    ck_assert_ptr_eq(r.pos, bytes);
    r = ml_reader_over(bytes, 3);
    ck_assert_int_eq(ml_reader_blob(&r, 3, &blob, &count), ML_PEER_SHORT);
    ck_assert_ptr_eq(r.pos, bytes);
    ck_assert_ptr_null(blob);
    r = ml_reader_over(bytes, sizeof(bytes));
    ck_assert_int_eq(ml_reader_blob(&r, 3, &blob, &count), ML_OK);
    ck_assert_uint_eq(count, 3);
    ck_assert_mem_eq(blob, "abc", 3);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("reader");
    tcase_add_test(tcase, rejects_short_input_and_leaves_reader_unmoved);
    tcase_add_test(tcase, fixed_numbers_are_little_endian);
    tcase_add_test(tcase, varints_of_every_length_come_back);
    tcase_add_test(tcase, a_varint_has_one_form_and_64_bits);
    tcase_add_test(tcase, a_blob_is_bounded_by_its_limit_and_its_bytes);
    return run_suite("ipc/reader", tcase);
}
