#include "ipc/trace/columns.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "tests/suite.h"

struct row {
    uint64_t wide;
    uint32_t id;
    uint16_t middle;
    uint8_t narrow;
};

static const struct ml_column columns[] = {
    ML_COLUMN(2, struct row, id, true),
    ML_COLUMN(3, struct row, wide, false),
    ML_COLUMN(4, struct row, middle, true),
    ML_COLUMN(5, struct row, narrow, false),
};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

static uint8_t bytes[4096];

static size_t encode(const struct row *rows, size_t count) {
    pb_ostream_t stream = pb_ostream_from_buffer(bytes, sizeof bytes);

    ck_assert(ml_columns_encode(&stream, columns, COLUMNS, rows, sizeof rows[0], count));
    return stream.bytes_written;
}

static bool decode(size_t count_bytes, struct row *out_rows, size_t count) {
    pb_istream_t stream = pb_istream_from_buffer(bytes, count_bytes);

    memset(out_rows, 0, count * sizeof out_rows[0]);
    return ml_columns_decode(&stream, columns, COLUMNS, out_rows, sizeof out_rows[0], count);
}

static const struct row sample[4] = {
    {.wide = 1, .id = 5, .middle = 65535, .narrow = 255},
    {.wide = UINT64_MAX, .id = UINT32_MAX, .middle = 0, .narrow = 0},
    {.wide = 0, .id = 0, .middle = 7, .narrow = 1},
    {.wide = 42, .id = 6, .middle = 7, .narrow = 2},
};

START_TEST(rows_come_back) {
    struct row rows[4];
    size_t count_bytes = encode(sample, 4);
    pb_istream_t stream = pb_istream_from_buffer(bytes, count_bytes);
    size_t count = 0;

    ck_assert(ml_columns_peek_count(&stream, &count));
    ck_assert_uint_eq(count, 4);
    ck_assert_uint_eq(stream.bytes_left, count_bytes);
    ck_assert(decode(count_bytes, rows, 4));
    for (size_t i = 0; i < 4; i++) {
        ck_assert(
            rows[i].wide == sample[i].wide && rows[i].id == sample[i].id &&
            rows[i].middle == sample[i].middle && rows[i].narrow == sample[i].narrow
        );
    }
}
END_TEST

START_TEST(columns_of_zeros_take_no_bytes_but_the_first) {
    const struct row zeros[100] = {{0}};
    struct row rows[100];
    size_t count_bytes = encode(zeros, 100);

    ck_assert_uint_le(count_bytes, 104);
    ck_assert_uint_ge(count_bytes, 100);
    ck_assert(decode(count_bytes, rows, 100));
}
END_TEST

START_TEST(another_number_of_values_than_rows_is_refused) {
    struct row rows[5];
    size_t count_bytes = encode(sample, 4);

    ck_assert(!decode(count_bytes, rows, 5));
    ck_assert(!decode(count_bytes, rows, 3));
}
END_TEST

START_TEST(a_piece_cut_anywhere_is_refused) {
    struct row rows[4];
    size_t count_bytes = encode(sample, 4);

    for (size_t cut = 0; cut < count_bytes; cut++) {
        size_t whole_columns = 0;
        /* A cut between columns leaves a shorter piece that is whole. */
        if (decode(cut, rows, 4)) {
            whole_columns++;
            ck_assert_uint_eq(rows[3].id, 6);
        }
        ck_assert_uint_le(whole_columns, 1);
    }
    ck_assert(!decode(0, rows, 4));
}
END_TEST

START_TEST(a_value_that_its_member_cannot_hold_is_refused) {
    struct row rows[1];
    const struct row one = {.id = 1, .narrow = 200};
    size_t count_bytes = encode(&one, 1);

    ck_assert(decode(count_bytes, rows, 1));
    ck_assert_uint_eq(bytes[count_bytes - 2], 200);
    bytes[count_bytes - 1] = 2; /* 200 becomes 72 + 256 */
    ck_assert(!decode(count_bytes, rows, 1));
}
END_TEST

START_TEST(counts_beyond_the_limit_are_refused) {
    const uint8_t none[] = {8, 0};
    const uint8_t many[] = {8, 0x81, 0x40}; /* ML_COLUMNS_ROWS_MAX + 1 */
    const uint8_t other[] = {16, 1};
    pb_istream_t stream = pb_istream_from_buffer(none, sizeof none);
    size_t count = 0;

    ck_assert(!ml_columns_peek_count(&stream, &count));
    stream = pb_istream_from_buffer(many, sizeof many);
    ck_assert(!ml_columns_peek_count(&stream, &count));
    stream = pb_istream_from_buffer(other, sizeof other);
    ck_assert(!ml_columns_peek_count(&stream, &count));
    stream = pb_istream_from_buffer(other, 0);
    ck_assert(!ml_columns_peek_count(&stream, &count));
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("all");

    tcase_add_test(tests, rows_come_back);
    tcase_add_test(tests, columns_of_zeros_take_no_bytes_but_the_first);
    tcase_add_test(tests, another_number_of_values_than_rows_is_refused);
    tcase_add_test(tests, a_piece_cut_anywhere_is_refused);
    tcase_add_test(tests, a_value_that_its_member_cannot_hold_is_refused);
    tcase_add_test(tests, counts_beyond_the_limit_are_refused);
    return run_suite("ipc/columns", tests);
}
