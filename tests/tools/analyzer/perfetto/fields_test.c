#include "tools/analyzer/perfetto/fields.h"

#include <string.h>

#include <check.h>

#include "tests/suite.h"

static struct ml_pb_buffer buffer;

static void end(void) {
    ml_pb_buffer_fini(&buffer);
}

static struct ml_pb_span text_of(const char *text) {
    return (struct ml_pb_span){.bytes = (const uint8_t *)text, .count = strlen(text)};
}

START_TEST(what_is_put_is_read_field_by_field) {
    struct ml_pb_field field;

    ml_pb_put_number(&buffer, 1, UINT64_MAX);
    ml_pb_put_bytes(&buffer, 28012, text_of("abc"));
    struct ml_pb_span rest = ml_pb_span_of(&buffer);
    ck_assert(ml_pb_next(&rest, &field));
    ck_assert(field.is_number && !field.is_bytes);
    ck_assert_uint_eq(field.tag, 1);
    ck_assert_uint_eq(field.number, UINT64_MAX);
    ck_assert(ml_pb_next(&rest, &field));
    ck_assert(field.is_bytes && !field.is_number);
    ck_assert_uint_eq(field.tag, 28012);
    ck_assert_uint_eq(field.inside.count, 3);
    ck_assert_mem_eq(field.inside.bytes, "abc", 3);
    ck_assert_ptr_eq(field.whole.bytes + field.whole.count, buffer.bytes + buffer.count);
    ck_assert(!ml_pb_next(&rest, &field));
}
END_TEST

START_TEST(fields_of_fixed_size_go_on_whole) {
    static const uint8_t bytes[] = {0x0d, 1, 2, 3, 4, 0x11, 1, 2, 3, 4, 5, 6, 7, 8, 0x18, 9};
    struct ml_pb_span rest = {.bytes = bytes, .count = sizeof bytes};
    struct ml_pb_field field;

    while (ml_pb_next(&rest, &field)) {
        ml_pb_put_fields(&buffer, field.whole);
    }
    ck_assert_uint_eq(buffer.count, sizeof bytes);
    ck_assert_mem_eq(buffer.bytes, bytes, sizeof bytes);
    ck_assert_uint_eq(ml_pb_number(ml_pb_span_of(&buffer), 3), 9);
    ck_assert_uint_eq(ml_pb_number(ml_pb_span_of(&buffer), 1), 0);
}
END_TEST

START_TEST(of_two_fields_with_one_tag_the_last_counts) {
    ml_pb_put_number(&buffer, 7, 1);
    ml_pb_put_bytes(&buffer, 8, text_of("a"));
    ml_pb_put_number(&buffer, 7, 2);
    ml_pb_put_bytes(&buffer, 8, text_of("bc"));
    ck_assert_uint_eq(ml_pb_number(ml_pb_span_of(&buffer), 7), 2);
    ck_assert_uint_eq(ml_pb_bytes(ml_pb_span_of(&buffer), 8).count, 2);
}
END_TEST

/* No byte behind the message is read: it is a copy that ends with it. */
START_TEST(a_message_that_is_cut_ends_at_every_byte) {
    ml_pb_put_number(&buffer, 5, 1U << 30);
    ml_pb_put_bytes(&buffer, 6, text_of("something"));
    for (size_t count = 0; count < buffer.count; count++) {
        uint8_t *copy = malloc(count + 1);
        struct ml_pb_span rest = {.bytes = copy, .count = count};
        struct ml_pb_field field;
        size_t read = 0;

        ck_assert_ptr_nonnull(copy);
        memcpy(copy, buffer.bytes, count);
        while (ml_pb_next(&rest, &field)) {
            read += field.whole.count;
        }
        ck_assert(read == 0 || read == 6);
        free(copy);
    }
}
END_TEST

START_TEST(a_length_beyond_the_message_is_no_field) {
    static const uint8_t bytes[] = {0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1};
    struct ml_pb_span rest = {.bytes = bytes, .count = sizeof bytes};
    struct ml_pb_field field;

    ck_assert(!ml_pb_next(&rest, &field));
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("all");

    tcase_add_checked_fixture(tests, NULL, end);
    tcase_add_test(tests, what_is_put_is_read_field_by_field);
    tcase_add_test(tests, fields_of_fixed_size_go_on_whole);
    tcase_add_test(tests, of_two_fields_with_one_tag_the_last_counts);
    tcase_add_test(tests, a_message_that_is_cut_ends_at_every_byte);
    tcase_add_test(tests, a_length_beyond_the_message_is_no_field);
    return run_suite("tools/perfetto/fields", tests);
}
