#include "mojom_like_idl/idlc/lexer.h"
#include "tests/suite.h"

#include <string.h>

#include <check.h>

static struct pool pool;
static struct source source;

static void set_up(void) {
    pool = (struct pool){0};
}

static void tear_down(void) {
    pool_fini(&pool);
}

static struct words cut(const char *text) {
    source = (struct source){.pool = &pool, .name = "x.mojom", .text = text};
    return lexer_cut(&source);
}

START_TEST(words_know_their_kind_and_place) {
    const struct words words = cut("struct A_1 {\n\t\"b c\" 0x1F 7=>=\n}");
    static const struct {
        enum token_kind kind;
        const char *text;
        int line;
        int column;
    } expected[] = {
        {TOKEN_NAME, "struct", 1, 1},
        {TOKEN_NAME, "A_1", 1, 8},
        {TOKEN_SIGN, "{", 1, 12},
        {TOKEN_STRING, "b c", 2, 2},
        {TOKEN_INTEGER, "0x1F", 2, 8},
        {TOKEN_INTEGER, "7", 2, 13},
        {TOKEN_SIGN, "=>", 2, 14},
        {TOKEN_SIGN, "=", 2, 16},
        {TOKEN_SIGN, "}", 3, 1},
    };
    ck_assert(!source.failed);
    ck_assert_int_eq(words.token_count, 10);
    for (int i = 0; i < 9; i++) {
        ck_assert_int_eq(words.tokens[i].kind, expected[i].kind);
        ck_assert_str_eq(words.tokens[i].text, expected[i].text);
        ck_assert_int_eq(words.tokens[i].place.line, expected[i].line);
        ck_assert_int_eq(words.tokens[i].place.column, expected[i].column);
    }
    ck_assert_int_eq(words.tokens[9].kind, TOKEN_END);
    ck_assert_uint_eq(words.tokens[4].number, 31);
}
END_TEST

START_TEST(comments_are_kept_by_line) {
    const struct words words = cut("// one \n//two\nx  //   three\n//");
    ck_assert_int_eq(words.token_count, 2);
    ck_assert_int_eq(words.comment_count, 4);
    ck_assert_str_eq(words.comments[0].text, "one");
    ck_assert(!words.comments[0].follows_code);
    ck_assert_str_eq(words.comments[1].text, "two");
    ck_assert_int_eq(words.comments[2].line, 3);
    ck_assert(words.comments[2].follows_code);
    ck_assert_str_eq(words.comments[2].text, "  three");
    ck_assert_str_eq(words.comments[3].text, "");
}
END_TEST

START_TEST(the_highest_number_is_read) {
    const struct words words = cut("18446744073709551615 0xffffffffffffffff");
    ck_assert_uint_eq(words.tokens[0].number, UINT64_MAX);
    ck_assert_uint_eq(words.tokens[1].number, UINT64_MAX);
}
END_TEST

START_TEST(bad_words_are_named_with_their_place) {
    static const struct {
        const char *text;
        const char *error;
    } cases[] = {
        {"a\n  #", "x.mojom:2:3: error: unexpected character '#'"},
        {"\x01", "x.mojom:1:1: error: unexpected byte 0x01"},
        {"\xc3\xa4", "x.mojom:1:1: error: unexpected byte 0xc3"},
        {"12ab", "x.mojom:1:3: error: expected a digit, found 'a'"},
        {"0x", "x.mojom:1:3: error: expected a digit, found ''"},
        {"0xg", "x.mojom:1:3: error: expected a digit, found 'g'"},
        {"18446744073709551616", "x.mojom:1:1: error: expected a number below 2^64"},
        {"\"abc", "x.mojom:1:1: error: expected '\"' before the end of the line"},
        {"\"abc\n\"", "x.mojom:1:1: error: expected '\"' before the end of the line"},
        {"\"a\\\"", "x.mojom:1:3: error: expected a string without '\\'"},
        {"/ /", "x.mojom:1:1: error: unexpected character '/'"},
        {"/* */", "x.mojom:1:1: error: unexpected character '/'"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        (void)cut(cases[i].text);
        ck_assert(source.failed);
        ck_assert_str_eq(source.error, cases[i].error);
    }
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("lexer");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, words_know_their_kind_and_place);
    tcase_add_test(tcase, comments_are_kept_by_line);
    tcase_add_test(tcase, the_highest_number_is_read);
    tcase_add_test(tcase, bad_words_are_named_with_their_place);
    return run_suite("lexer", tcase);
}
