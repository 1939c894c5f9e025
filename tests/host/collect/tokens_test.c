#include "host/collect/tokens.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <check.h>

#include "tests/suite.h"

#define TOKEN "0123456789abcdefABCDEF-_"

static struct ml_tokens tokens;
static struct ml_error_message error;

START_TEST(a_line_is_a_team_a_right_and_a_token) {
    const char *text =
        "# no line\n\nred write " TOKEN "\n  blue\tread  " TOKEN "1\nred admin " TOKEN "2";

    ck_assert_int_eq(ml_tokens_parse(text, &tokens, &error), ML_OK);
    ck_assert_uint_eq(tokens.count, 3);
    ck_assert_str_eq(ml_tokens_find(&tokens, TOKEN)->team, "red");
    ck_assert_int_eq(ml_tokens_find(&tokens, "Bearer " TOKEN "1")->right, ML_RIGHT_READ);
    ck_assert_str_eq(ml_tokens_find(&tokens, "bearer " TOKEN "1")->team, "blue");
    ck_assert_ptr_null(ml_tokens_find(&tokens, NULL));
    ck_assert_ptr_null(ml_tokens_find(&tokens, ""));
    ck_assert_ptr_null(ml_tokens_find(&tokens, "Bearer "));
    ck_assert_ptr_null(ml_tokens_find(&tokens, "Bearer " TOKEN "3"));
    ck_assert_ptr_null(ml_tokens_find(&tokens, "0123456789abcdefABCDEF-"));
    ml_tokens_fini(&tokens);
}
END_TEST

/* Whatever is longer than a token is none, also where it begins as one. */
START_TEST(a_word_longer_than_any_token_is_none) {
    char longest[ML_TOKEN_BYTES] = "";
    char text[ML_TOKEN_BYTES + 16];
    char longer[2 * ML_TOKEN_BYTES];

    memset(longest, 'x', sizeof longest - 1);
    (void)snprintf(text, sizeof text, "red write %s\n", longest);
    ck_assert_int_eq(ml_tokens_parse(text, &tokens, &error), ML_OK);
    ck_assert_ptr_nonnull(ml_tokens_find(&tokens, longest));
    (void)snprintf(longer, sizeof longer, "%sx", longest);
    ck_assert_ptr_null(ml_tokens_find(&tokens, longer));
    ml_tokens_fini(&tokens);
}
END_TEST

START_TEST(a_wrong_line_is_named) {
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"red write\n", "line 1: a line is"},
        {"\nred write " TOKEN " x\n", "line 2: a line is"},
        {"Red write " TOKEN "\n", "line 1: a team is"},
        {"../x write " TOKEN "\n", "line 1: a team is"},
        {"red own " TOKEN "\n", "line 1: a right is"},
        {"red read short\n", "line 1: a token has"},
        {"red read 0123456789abcdef\"\n", "line 1: a token has"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        error.text[0] = '\0';
        ck_assert_int_eq(ml_tokens_parse(cases[i].text, &tokens, &error), ML_PEER_FORM);
        ck_assert_msg(strstr(error.text, cases[i].said) != NULL, "%s", error.text);
        ck_assert_ptr_null(tokens.list);
    }
}
END_TEST

START_TEST(an_admin_reads_and_does_not_send) {
    ck_assert(ml_right_includes(ML_RIGHT_ADMIN, ML_RIGHT_READ));
    ck_assert(!ml_right_includes(ML_RIGHT_ADMIN, ML_RIGHT_WRITE));
    ck_assert(!ml_right_includes(ML_RIGHT_WRITE, ML_RIGHT_READ));
    ck_assert(!ml_right_includes(ML_RIGHT_READ, ML_RIGHT_WRITE));
    ck_assert(!ml_right_includes(ML_RIGHT_READ, ML_RIGHT_ADMIN));
}
END_TEST

START_TEST(new_tokens_are_for_their_user_alone_and_stay) {
    char folder[] = "/tmp/memlog-tokens.XXXXXX";
    char path[64];
    char token[ML_TOKEN_BYTES];
    struct stat facts;

    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/tokens", folder);
    ck_assert_int_eq(ml_tokens_make(path, &error), ML_OK);
    ck_assert(stat(path, &facts) == 0 && (facts.st_mode & 0777) == 0600);
    ck_assert_int_eq(ml_tokens_read(path, &tokens, &error), ML_OK);
    ck_assert_uint_eq(tokens.count, 2);
    ck_assert_str_ne(tokens.list[0].token, tokens.list[1].token);
    (void)snprintf(token, sizeof token, "%s", tokens.list[0].token);
    ml_tokens_fini(&tokens);
    ck_assert_int_eq(ml_tokens_make(path, &error), ML_OK);
    ck_assert_int_eq(ml_tokens_read(path, &tokens, &error), ML_OK);
    ck_assert_str_eq(tokens.list[0].token, token);
    ml_tokens_fini(&tokens);
    ck_assert_int_eq(chmod(path, 0640), 0);
    ck_assert_int_eq(ml_tokens_read(path, &tokens, &error), ML_ENV_REFUSED);
    (void)unlink(path);
    (void)rmdir(folder);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("tokens");
    tcase_add_test(tests, a_line_is_a_team_a_right_and_a_token);
    tcase_add_test(tests, a_word_longer_than_any_token_is_none);
    tcase_add_test(tests, a_wrong_line_is_named);
    tcase_add_test(tests, an_admin_reads_and_does_not_send);
    tcase_add_test(tests, new_tokens_are_for_their_user_alone_and_stay);
    return run_suite("tokens", tests);
}
