#include "mojom_like_idl/idlc/names.h"
#include "tests/suite.h"

#include <check.h>

static struct pool pool;

static void set_up(void) {
    pool = (struct pool){0};
}

static void tear_down(void) {
    pool_fini(&pool);
}

START_TEST(words_are_parted_where_a_reader_parts_them) {
    static const char *const cases[][2] = {
        {"Totals", "totals"},
        {"ClientInfo", "client_info"},
        {"kNativeWithThreadNames", "native_with_thread_names"},
        {"HTTPServer", "http_server"},
        {"Utf8Text", "utf8_text"},
        {"ABTest", "ab_test"},
        {"kA", "a"},
        {"X", "x"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert_str_eq(names_snake(&pool, cases[i][0]), cases[i][1]);
    }
    ck_assert_str_eq(names_upper(&pool, "client_info"), "CLIENT_INFO");
}
END_TEST

START_TEST(each_kind_of_name_has_one_spelling) {
    static const struct {
        const char *name;
        bool is_camel;
        bool is_constant;
        bool is_snake;
    } cases[] = {
        {"LikeThis", true, false, false},
        {"kLikeThis", false, true, false},
        {"like_this2", false, false, true},
        {"k", false, false, true},
        {"kx", false, false, true},
        {"Like_This", false, false, false},
        {"_like", false, false, false},
        {"2like", false, false, false},
        {"likeThis", false, false, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert_int_eq(names_is_camel(cases[i].name), cases[i].is_camel);
        ck_assert_int_eq(names_is_constant(cases[i].name), cases[i].is_constant);
        ck_assert_int_eq(names_is_snake(cases[i].name), cases[i].is_snake);
    }
    ck_assert(names_is_reserved("struct"));
    ck_assert(!names_is_reserved("structure"));
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("names");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, words_are_parted_where_a_reader_parts_them);
    tcase_add_test(tcase, each_kind_of_name_has_one_spelling);
    return run_suite("names", tcase);
}
