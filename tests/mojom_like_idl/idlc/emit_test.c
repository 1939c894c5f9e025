#include "mojom_like_idl/idlc/emit.h"

#include <string.h>

#include <check.h>

#include "tests/mojom_like_idl/compile.h"
#include "tests/suite.h"

static struct pool pool;

static void set_up(void) {
    pool = (struct pool){0};
}

static void tear_down(void) {
    pool_fini(&pool);
}

/* `ninja -C out regen_golden` writes them anew. */
START_TEST(the_golden_contract_gives_the_golden_output) {
    const char *text = read_text(&pool, GOLDEN_NAME);
    const char *header = read_text(&pool, GOLDEN_HEADER);
    const char *tables = read_text(&pool, GOLDEN_TABLES);
    ck_assert_msg(text != NULL && header != NULL && tables != NULL, "run in the root of the tree");
    const struct compiled compiled = compile(&pool, GOLDEN_NAME, text);
    ck_assert_ptr_null(compiled.error);
    ck_assert_msg(strcmp(compiled.header, header) == 0, "%s differs", GOLDEN_HEADER);
    ck_assert_msg(strcmp(compiled.tables, tables) == 0, "%s differs", GOLDEN_TABLES);
}
END_TEST

START_TEST(an_output_names_its_input_and_forbids_editing) {
    const struct compiled compiled = compile(&pool, "a/b.mojom", "module m;");
    ck_assert_ptr_null(compiled.error);
    const char *banner = "/* Generated from a/b.mojom by idlc " IDLC_VERSION
                         ". Do not edit: change the .mojom and build. */\n";
    ck_assert_int_eq(strncmp(compiled.header, banner, strlen(banner)), 0);
    ck_assert_int_eq(strncmp(compiled.tables, banner, strlen(banner)), 0);
}
END_TEST

START_TEST(two_names_that_become_one_in_c_are_refused) {
    static const struct {
        const char *text;
        const char *error;
    } cases[] = {
        {"module m;\nstruct FooBar { uint8 a; };\nstruct Foo_Bar { uint8 a; };",
         "x:3:8: error: expected a struct named LikeThis, found 'Foo_Bar'"},
        {"module m;\nstruct DoRequest { uint8 a; };\ninterface I {\n  Do@1();\n};",
         "x:4:3: error: expected another name: in C it becomes 'm_do_request', as in line 2"},
        {"module m;\ninterface I {\n  Do@1();\n};\ninterface J {\n  Do@1();\n};",
         "x:6:3: error: expected another name: in C it becomes 'm_do_request', as in line 3"},
        {"module m;\nenum Colour { kRed };\nconst uint8 kColourRed = 1;",
         "x:3:13: error: expected another name: in C it becomes 'M_COLOUR_RED', as in line 2"},
        {"module m;\nstruct S { array<uint8, 2> a; };\nstruct Uint8Array { uint8 a; };",
         "x:3:8: error: expected another name: in C it becomes 'm_uint8_array', as in line 2"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct compiled compiled = compile(&pool, "x", cases[i].text);
        ck_assert_ptr_nonnull(compiled.error);
        ck_assert_str_eq(compiled.error, cases[i].error);
    }
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("emit");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, the_golden_contract_gives_the_golden_output);
    tcase_add_test(tcase, an_output_names_its_input_and_forbids_editing);
    tcase_add_test(tcase, two_names_that_become_one_in_c_are_refused);
    return run_suite("emit", tcase);
}
