#include "mojom_like_idl/runtime/pack_reader.h"
#include "tests/suite.h"

#include <math.h>
#include <string.h>

#include <check.h>

/* One item as bytes, and what reading it as the type of its table answers. */
struct item_case {
    const char *bytes;
    size_t count_bytes;
    enum ml_status status;
    int64_t value;
};

#define ITEM(literal, status, value)                                                               \
    { literal, sizeof(literal) - 1, status, value }

/* Nothing moved, nothing written, unless it is ML_OK and all was read. */
static void
expect_reader(const struct ml_reader *r, const struct item_case *c, enum ml_status status) {
    ck_assert_msg(
        status == c->status,
        "%s, expected %s, first byte 0x%02x",
        ml_status_name(status),
        ml_status_name(c->status),
        (unsigned char)c->bytes[0]
    );
    ck_assert_uint_eq(ml_reader_left(r), status == ML_OK ? 0 : c->count_bytes);
}

START_TEST(whole_numbers_have_one_form) {
    static const struct item_case cases[] = {
        ITEM("\x00", ML_OK, 0),
        ITEM("\x7f", ML_OK, 127),
        ITEM("\xcc\x80", ML_OK, 128),
        ITEM("\xcc\xff", ML_OK, 255),
        ITEM("\xcd\x01\x00", ML_OK, 256),
        ITEM("\xce\x00\x01\x00\x00", ML_OK, 65536),
        ITEM("\xcf\x00\x00\x00\x01\x00\x00\x00\x00", ML_OK, INT64_C(1) << 32),
        ITEM("\xff", ML_OK, -1),
        ITEM("\xe0", ML_OK, -32),
        ITEM("\xd0\xdf", ML_OK, -33),
        ITEM("\xd0\x80", ML_OK, -128),
        ITEM("\xd1\xff\x7f", ML_OK, -129),
        ITEM("\xd1\x80\x00", ML_OK, -32768),
        ITEM("\xd2\xff\xff\x7f\xff", ML_OK, -32769),
        ITEM("\xd3\xff\xff\xff\xff\x7f\xff\xff\xff", ML_OK, -2147483649),
        ITEM("\xd3\x80\x00\x00\x00\x00\x00\x00\x00", ML_OK, INT64_MIN),
        ITEM("\xcc\x7f", ML_PEER_FORM, 0),
        ITEM("\xcd\x00\xff", ML_PEER_FORM, 0),
        ITEM("\xce\x00\x00\xff\xff", ML_PEER_FORM, 0),
        ITEM("\xcf\x00\x00\x00\x00\xff\xff\xff\xff", ML_PEER_FORM, 0),
        ITEM("\xd0\xe0", ML_PEER_FORM, 0),
        ITEM("\xd0\x05", ML_PEER_FORM, 0),
        ITEM("\xd1\xff\x80", ML_PEER_FORM, 0),
        ITEM("\xd2\xff\xff\x80\x00", ML_PEER_FORM, 0),
        ITEM("\xd3\xff\xff\xff\xff\x80\x00\x00\x00", ML_PEER_FORM, 0),
        ITEM("\xd3\x00\x00\x00\x00\x00\x00\x00\x05", ML_PEER_FORM, 0),
        ITEM("", ML_PEER_SHORT, 0),
        ITEM("\xcc", ML_PEER_SHORT, 0),
        ITEM("\xcd\x01", ML_PEER_SHORT, 0),
        ITEM("\xcf\x01\x01\x01\x01\x01\x01\x01", ML_PEER_SHORT, 0),
        ITEM("\xc0", ML_PEER_TYPE, 0),
        ITEM("\xc1", ML_PEER_TYPE, 0),
        ITEM("\xc2", ML_PEER_TYPE, 0),
        ITEM("\xca\x00\x00\x00\x00", ML_PEER_TYPE, 0),
        ITEM("\xa1x", ML_PEER_TYPE, 0),
        ITEM("\x90", ML_PEER_TYPE, 0),
        ITEM("\xcf\x80\x00\x00\x00\x00\x00\x00\x00", ML_PEER_RANGE, 0),
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ml_reader r = ml_reader_over(cases[i].bytes, cases[i].count_bytes);
        int64_t value = 99;
        expect_reader(&r, &cases[i], ml_pack_reader_int(&r, &value));
        ck_assert_int_eq(value, cases[i].status == ML_OK ? cases[i].value : 99);
    }
}
END_TEST

START_TEST(numbers_below_zero_are_not_unsigned) {
    static const struct item_case cases[] = {
        ITEM("\xcf\xff\xff\xff\xff\xff\xff\xff\xff", ML_OK, -1),
        ITEM("\xff", ML_PEER_RANGE, 0),
        ITEM("\xd0\x80", ML_PEER_RANGE, 0),
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ml_reader r = ml_reader_over(cases[i].bytes, cases[i].count_bytes);
        uint64_t value = 99;
        expect_reader(&r, &cases[i], ml_pack_reader_uint(&r, &value));
        ck_assert_uint_eq(value, cases[i].status == ML_OK ? (uint64_t)cases[i].value : 99);
    }
}
END_TEST

START_TEST(truths_are_two_bytes_of_256) {
    for (unsigned first = 0; first < 256; first++) {
        const uint8_t byte = (uint8_t)first;
        struct ml_reader r = ml_reader_over(&byte, 1);
        bool value = first == 0xc2;
        const enum ml_status status = ml_pack_reader_bool(&r, &value);
        ck_assert_int_eq(status, first == 0xc2 || first == 0xc3 ? ML_OK : ML_PEER_TYPE);
        ck_assert(value == (first == 0xc3));
    }
    struct ml_reader r = ml_reader_over("", 0);
    bool value = true;
    ck_assert_int_eq(ml_pack_reader_bool(&r, &value), ML_PEER_SHORT);
    ck_assert_int_eq(ml_pack_reader_nil(&r, &value), ML_PEER_SHORT);
}
END_TEST

START_TEST(a_nil_is_skipped_and_nothing_else) {
    struct ml_reader r = ml_reader_over("\xc0\xc2", 2);
    bool was_nil = false;
    ck_assert_int_eq(ml_pack_reader_nil(&r, &was_nil), ML_OK);
    ck_assert(was_nil);
    ck_assert_int_eq(ml_pack_reader_nil(&r, &was_nil), ML_OK);
    ck_assert(!was_nil);
    ck_assert_uint_eq(ml_reader_left(&r), 1);
}
END_TEST

START_TEST(fractions_keep_their_width_and_are_numbers) {
    float narrow = 0;
    double wide = 0;
    struct ml_reader r =
        ml_reader_over("\xca\x3f\xc0\x00\x00\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00", 14);
    ck_assert_int_eq(ml_pack_reader_double(&r, &wide), ML_PEER_TYPE);
    ck_assert_int_eq(ml_pack_reader_float(&r, &narrow), ML_OK);
    ck_assert_int_eq(ml_pack_reader_float(&r, &narrow), ML_PEER_TYPE);
    ck_assert_int_eq(ml_pack_reader_double(&r, &wide), ML_OK);
    ck_assert(narrow == 1.5F && wide == 1.5);
    r = ml_reader_over("\xca\x7f\xc0\x00\x00", 5);
    ck_assert_int_eq(ml_pack_reader_float(&r, &narrow), ML_PEER_FORM);
    r = ml_reader_over("\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00", 9);
    ck_assert_int_eq(ml_pack_reader_double(&r, &wide), ML_PEER_FORM);
    r = ml_reader_over("\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00", 9);
    ck_assert_int_eq(ml_pack_reader_double(&r, &wide), ML_OK);
    ck_assert(isinf(wide));
    r = ml_reader_over("\xcb\x7f\xf0", 3);
    ck_assert_int_eq(ml_pack_reader_double(&r, &wide), ML_PEER_SHORT);
    ck_assert_uint_eq(ml_reader_left(&r), 3);
}
END_TEST

START_TEST(lengths_have_one_form_and_a_limit) {
    static const struct {
        const char *bytes;
        size_t count_bytes;
        enum ml_status str;
        enum ml_status bin;
    } cases[] = {
        {"\xa0", 1, ML_OK, ML_PEER_TYPE},
        {"\xa2xy", 3, ML_OK, ML_PEER_TYPE},
        {"\xa3xyz", 4, ML_PEER_LIMIT, ML_PEER_TYPE},
        {"\xa2x", 2, ML_PEER_SHORT, ML_PEER_TYPE},
        {"\xd9\x02xy", 4, ML_PEER_FORM, ML_PEER_TYPE},
        {"\xda\x00\x02xy", 5, ML_PEER_FORM, ML_PEER_TYPE},
        {"\xdb\x00\x00\x00\x02xy", 7, ML_PEER_FORM, ML_PEER_TYPE},
        {"\xdb\xff\xff\xff\xff", 5, ML_PEER_LIMIT, ML_PEER_TYPE},
        {"\xd9", 1, ML_PEER_SHORT, ML_PEER_TYPE},
        {"\xc4\x00", 2, ML_PEER_TYPE, ML_OK},
        {"\xc4\x02xy", 4, ML_PEER_TYPE, ML_OK},
        {"\xc4\x03xyz", 5, ML_PEER_TYPE, ML_PEER_LIMIT},
        {"\xc5\x00\x02xy", 5, ML_PEER_TYPE, ML_PEER_FORM},
        {"\xc6\x00\x00\x00\x02xy", 7, ML_PEER_TYPE, ML_PEER_FORM},
        {"\xc6\xff\xff\xff\xff", 5, ML_PEER_TYPE, ML_PEER_LIMIT},
        {"\xc4\x02x", 3, ML_PEER_TYPE, ML_PEER_SHORT},
        {"\xc7\x00\x01", 3, ML_PEER_TYPE, ML_PEER_TYPE},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const uint8_t *bytes = NULL;
        uint32_t count_bytes = 99;
        struct ml_reader r = ml_reader_over(cases[i].bytes, cases[i].count_bytes);
        ck_assert_int_eq(ml_pack_reader_str(&r, 2, &bytes, &count_bytes), cases[i].str);
        ck_assert_uint_eq(ml_reader_left(&r), cases[i].str == ML_OK ? 0 : cases[i].count_bytes);
        r = ml_reader_over(cases[i].bytes, cases[i].count_bytes);
        ck_assert_int_eq(ml_pack_reader_bin(&r, 2, &bytes, &count_bytes), cases[i].bin);
        ck_assert_uint_eq(ml_reader_left(&r), cases[i].bin == ML_OK ? 0 : cases[i].count_bytes);
    }
}
END_TEST

START_TEST(a_count_is_no_more_than_the_bytes_that_follow) {
    static const struct {
        const char *bytes;
        size_t count_bytes;
        enum ml_status array;
        enum ml_status map;
    } cases[] = {
        {"\x92\x01\x02", 3, ML_OK, ML_PEER_TYPE},
        {"\x92\x01", 2, ML_PEER_SHORT, ML_PEER_TYPE},
        {"\x81\x01\x02", 3, ML_PEER_TYPE, ML_OK},
        {"\x82\x01\x02\x03", 4, ML_PEER_TYPE, ML_PEER_SHORT},
        {"\xdc\x00\x0f", 3, ML_PEER_FORM, ML_PEER_TYPE},
        {"\xdc\x00\x10", 3, ML_PEER_SHORT, ML_PEER_TYPE},
        {"\xdd\x00\x00\xff\xff", 5, ML_PEER_FORM, ML_PEER_TYPE},
        {"\xdd\xff\xff\xff\xff", 5, ML_PEER_SHORT, ML_PEER_TYPE},
        {"\xde\x00\x0f", 3, ML_PEER_TYPE, ML_PEER_FORM},
        {"\xde\x00\x10", 3, ML_PEER_TYPE, ML_PEER_SHORT},
        {"\xdf\xff\xff\xff\xff", 5, ML_PEER_TYPE, ML_PEER_SHORT},
        {"", 0, ML_PEER_SHORT, ML_PEER_SHORT},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint32_t count = 99;
        struct ml_reader r = ml_reader_over(cases[i].bytes, cases[i].count_bytes);
        ck_assert_int_eq(ml_pack_reader_array(&r, &count), cases[i].array);
        ck_assert_int_eq(
            ml_pack_reader_map(&r, &count), cases[i].array == ML_OK ? ML_PEER_TYPE : cases[i].map
        );
    }
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("pack_reader");
    tcase_add_test(tcase, whole_numbers_have_one_form);
    tcase_add_test(tcase, numbers_below_zero_are_not_unsigned);
    tcase_add_test(tcase, truths_are_two_bytes_of_256);
    tcase_add_test(tcase, a_nil_is_skipped_and_nothing_else);
    tcase_add_test(tcase, fractions_keep_their_width_and_are_numbers);
    tcase_add_test(tcase, lengths_have_one_form_and_a_limit);
    tcase_add_test(tcase, a_count_is_no_more_than_the_bytes_that_follow);
    return run_suite("pack_reader", tcase);
}
