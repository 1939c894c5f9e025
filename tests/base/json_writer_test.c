#include "base/json_writer.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/utf8.h"
#include "tests/suite.h"

static char *json_of(const char *bytes, size_t count, bool in_html) {
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *out = open_memstream(&text, &text_bytes);
    struct ml_json json = ml_json_over(out);
    json.in_html = in_html;
    ml_json_text(&json, bytes, count);
    ck_assert_int_eq(fclose(out), 0);
    return text;
}

START_TEST(strings_become_json_whatever_bytes_they_hold) {
    static const struct {
        const char *bytes;
        const char *json;
    } cases[] = {
        {"plain", "\"plain\""},
        {"a\"b\\c", "\"a\\\"b\\\\c\""},
        {"tab\tnew\n", "\"tab\\tnew\\n\""},
        {"\xc3\xa4", "\"\xc3\xa4\""},
        {"\xc3", "\"\\ufffd\""},
        {"\xff\xfe", "\"\\ufffd\\ufffd\""},
        {"\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""},
        {"\xc0\xaf", "\"\\ufffd\\ufffd\""},
        {"\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\""},
        {"\x1b[2J\x7f", "\"\\u001b[2J\\u007f\""},
        {"\xc2\x9b"
         "2J",
         "\"\\u009b2J\""},
        {"\xe2\x80\xae", "\"\\u202e\""},
        {"\xf3\xa0\x80\x81", "\"\\udb40\\udc01\""},
        {"</script>", "\"</script>\""},
        {"", "\"\""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *text = json_of(cases[i].bytes, strlen(cases[i].bytes), false);
        ck_assert_str_eq(text, cases[i].json);
        free(text);
    }
}
END_TEST

START_TEST(nothing_within_html_ends_the_script) {
    char *text = json_of("</script>\xe2\x80\xa8", 12, true);
    ck_assert_str_eq(text, "\"\\u003c/script>\\u2028\"");
    free(text);
}
END_TEST

/* Whatever comes in: what goes out is UTF-8 without controls. */
START_TEST(no_bytes_at_all_break_it) {
    unsigned state = 1;
    for (int round = 0; round < 20000; round++) {
        char bytes[24];
        for (size_t i = 0; i < sizeof(bytes); i++) {
            state = state * 1103515245u + 12345u;
            bytes[i] = (char)(state >> 16);
        }
        char *text = json_of(bytes, (size_t)round % 25, false);
        const size_t count = strlen(text);
        bool is_clean = true; /* one assertion a text: each costs a system call */
        for (size_t pos = 0, step = 1; pos < count && is_clean; pos += step) {
            step = ml_utf8_length(text + pos, count - pos);
            is_clean = step > 0 && (unsigned char)text[pos] >= ' ';
        }
        ck_assert_msg(is_clean, "%s", text);
        free(text);
    }
}
END_TEST

/* A text is written in runs of plain bytes: it says the same as its characters one by one. */
START_TEST(a_text_is_what_its_characters_are) {
    static const char some[] = "abc </\\\"\n\x7f~\x1f\xc3\xa4\xe2\x80\xae\xff";
    unsigned state = 1;
    for (int round = 0; round < 4000; round++) {
        char bytes[24];
        char expected[sizeof(bytes) * 6 + 3] = "\"";
        const bool in_html = round % 2 == 0;
        const size_t count = (size_t)round % (sizeof(bytes) + 1);
        for (size_t i = 0; i < count; i++) {
            state = state * 1103515245u + 12345u;
            bytes[i] = some[(state >> 16) % (sizeof(some) - 1)];
        }
        for (size_t at = 0, length = 0; at<count; at += length> 0 ? length : 1) {
            length = ml_utf8_length(bytes + at, count - at);
            char *one = json_of(bytes + at, length > 0 ? length : 1, in_html);
            one[strlen(one) - 1] = '\0';
            strcat(expected, one + 1);
            free(one);
        }
        char *text = json_of(bytes, count, in_html);
        ck_assert_str_eq(text, strcat(expected, "\""));
        free(text);
    }
}
END_TEST

START_TEST(numbers_have_all_their_digits) {
    static const uint64_t numbers[] = {0, 9, 10, 99, 100, UINT32_MAX, UINT64_MAX - 1};
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *out = open_memstream(&text, &text_bytes);
    struct ml_json json = ml_json_over(out);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        ml_json_number(&json, numbers[i]);
    }
    ck_assert_int_eq(fclose(out), 0);
    ck_assert_str_eq(text, "0,9,10,99,100,4294967295,18446744073709551614");
    free(text);
}
END_TEST

/* Commas between values and nowhere else, however they are nested. */
START_TEST(values_are_separated_and_members_have_their_names) {
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *out = open_memstream(&text, &text_bytes);
    struct ml_json json = ml_json_over(out);
    ml_json_open(&json, '{');
    ml_json_string_member(&json, "text", "a\"b");
    ml_json_number_member(&json, "most", UINT64_MAX);
    ml_json_key(&json, "list");
    ml_json_open(&json, '[');
    ml_json_integer(&json, INT64_MIN);
    ml_json_line(&json);
    ml_json_null(&json);
    ml_json_open(&json, '[');
    ml_json_close(&json, ']');
    ml_json_open(&json, '{');
    ml_json_close(&json, '}');
    ml_json_bool(&json, false);
    ml_json_close(&json, ']');
    ml_json_line(&json);
    ml_json_bool_member(&json, "last", true);
    ml_json_close(&json, '}');
    ml_json_line(&json);
    ml_json_number(&json, 7);
    ck_assert_int_eq(fclose(out), 0);
    ck_assert_str_eq(
        text,
        "{\"text\":\"a\\\"b\",\"most\":18446744073709551615,\"list\":[-9223372036854775808,\n"
        "null,[],{},false],\n\"last\":true},\n7"
    );
    free(text);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("json_writer");
    tcase_add_test(tcase, strings_become_json_whatever_bytes_they_hold);
    tcase_add_test(tcase, nothing_within_html_ends_the_script);
    tcase_add_test(tcase, no_bytes_at_all_break_it);
    tcase_add_test(tcase, a_text_is_what_its_characters_are);
    tcase_add_test(tcase, numbers_have_all_their_digits);
    tcase_add_test(tcase, values_are_separated_and_members_have_their_names);
    return run_suite("base/json_writer", tcase);
}
