#include "mojom_like_idl/idlc/parser.h"
#include "tests/suite.h"

#include <check.h>

static struct pool pool;
static struct source source;

static void set_up(void) {
    pool = (struct pool){0};
}

static void tear_down(void) {
    pool_fini(&pool);
}

static struct contract *parse(const char *text) {
    source = (struct source){.pool = &pool, .name = "x.mojom", .text = text};
    return parser_read(&source);
}

START_TEST(comments_find_what_they_are_about) {
    const struct contract *contract = parse("// The module.\n"
                                            "module a.b;\n"
                                            "\n"
                                            "// Far from anything.\n"
                                            "\n"
                                            "// A struct\n"
                                            "// of one.\n"
                                            "struct S {\n"
                                            "  uint8 x;  // behind\n"
                                            "  // above\n"
                                            "  uint8 y;\n"
                                            "  uint8 z; uint8 zz;\n"
                                            "};\n");
    ck_assert_ptr_nonnull(contract);
    ck_assert_str_eq(contract->module, "a_b");
    ck_assert_str_eq(contract->remark.above, "The module.");
    const struct declaration *s = contract->declarations;
    ck_assert_str_eq(s->remark.above, "A struct\nof one.");
    const struct field *x = s->record.fields;
    ck_assert_str_eq(x->remark.behind, "behind");
    ck_assert_ptr_null(x->remark.above);
    ck_assert_str_eq(x->next->remark.above, "above");
    ck_assert_ptr_null(x->next->remark.behind);
    ck_assert_ptr_null(x->next->next->remark.above);
}
END_TEST

START_TEST(a_parameter_does_not_repeat_its_methods_comment) {
    const struct contract *contract = parse("module m;\n"
                                            "interface I {\n"
                                            "  // Do.\n"
                                            "  Do@1(uint8 x,\n"
                                            "       // the other\n"
                                            "       uint8 y);\n"
                                            "};\n");
    ck_assert_ptr_nonnull(contract);
    const struct method *method = contract->declarations->methods;
    ck_assert_str_eq(method->remark.above, "Do.");
    ck_assert_ptr_null(method->request.fields->remark.above);
    ck_assert_str_eq(method->request.fields->next->remark.above, "the other");
}
END_TEST

START_TEST(enum_values_count_on) {
    const struct contract *contract = parse("module m; enum E { kA, kB, kC = -5, kD };");
    ck_assert_ptr_nonnull(contract);
    const struct enum_value *value = contract->declarations->values;
    static const int64_t numbers[] = {0, 1, -5, -4};
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(value->number, numbers[i]);
        value = value->next;
    }
    ck_assert_ptr_null(value);
}
END_TEST

/* After "module m; " (10 columns) unless the text says otherwise. */
START_TEST(what_was_expected_is_named_with_its_place) {
    static const struct {
        const char *text;
        const char *error;
    } cases[] = {
        {"", "1:1: error: expected 'module' and its name, found the end of the file"},
        {"struct S {};", "1:1: error: expected 'module' and its name, found 'struct'"},
        {"module ;", "1:8: error: expected the module's name, found ';'"},
        {"module a.;", "1:10: error: expected a name after '.', found ';'"},
        {"module a", "1:9: error: expected ';' after the module's name, found the end of the file"},
        {"module m; import",
         "1:11: error: expected 'const', 'enum', 'struct', 'union' or 'interface', found 'import'"},
        {"module m; struct {", "1:18: error: expected a name, found '{'"},
        {"module m; struct S;", "1:19: error: expected '{' before the fields, found ';'"},
        {"module m; union S;", "1:18: error: expected '{' before the members, found ';'"},
        {"module m; struct S { uint8 }", "1:28: error: expected a field name, found '}'"},
        {"module m; struct S { 5 }", "1:22: error: expected a type, found '5'"},
        {"module m;\nstruct S {\n  uint8 x\n}",
         "4:1: error: expected ';' after the field, found '}'"},
        {"module m; struct S { uint8 x; }",
         "1:32: error: expected ';' after '}', found the end of the file"},
        {"module m; struct S { string x; };",
         "1:29: error: expected '<' and a limit: string<BYTES>, found 'x'"},
        {"module m; struct S { bytes x; };",
         "1:28: error: expected '<' and a limit: bytes<BYTES>, found 'x'"},
        {"module m; struct S { string<> x; };",
         "1:29: error: expected a limit (a number or a const), found '>'"},
        {"module m; struct S { array<uint8> x; };",
         "1:33: error: expected ',' and a limit: array<TYPE, COUNT>, found '>'"},
        {"module m; struct S { array x; };",
         "1:28: error: expected '<' and an element and a limit: array<TYPE, COUNT>, found 'x'"},
        {"module m; struct S { map<uint8, uint8> x; };",
         "1:38: error: expected ',' and a limit: map<KEY, VALUE, COUNT>, found '>'"},
        {"module m; struct S { map<uint8> x; };",
         "1:31: error: expected ',' and a value: map<KEY, VALUE, COUNT>, found '>'"},
        {"module m; struct S { array<array<array<array<array<array<array<array<uint8,",
         "1:70: error: expected at most 8 types within each other"},
        {"module m; struct S { array<uint8, 3 x; };",
         "1:37: error: expected '>' after the limit, found 'x'"},
        {"module m; struct S { handle x; };",
         "1:29: error: expected '<' and a kind: handle<pipe>, found 'x'"},
        {"module m; struct S { handle<door> x; };",
         "1:29: error: expected 'pipe', 'memfd', 'file' or 'socket', found 'door'"},
        {"module m; struct S { [Old] uint8 x; };",
         "1:23: error: expected 'MinVersion' or 'Unsealed', found 'Old'"},
        {"module m; struct S { [MinVersion 1] uint8 x; };",
         "1:34: error: expected '=' after MinVersion, found '1'"},
        {"module m; struct S { [MinVersion=x] uint8 x; };",
         "1:34: error: expected a version, found 'x'"},
        {"module m; struct S { [Unsealed uint8 x; };",
         "1:32: error: expected ']' after the attributes, found 'uint8'"},
        {"module m; union U { uint8 x; };",
         "1:28: error: expected '@' and the member's number: TYPE NAME@NUMBER, found ';'"},
        {"module m; union U { uint8 x@y; };",
         "1:29: error: expected the member's number, found 'y'"},
        {"module m; enum E { 3 };", "1:20: error: expected a value's name, found '3'"},
        {"module m; enum E { kA = };", "1:25: error: expected a number, found '}'"},
        {"module m; enum E { kA kB };",
         "1:23: error: expected ',' or '}' after the value, found 'kB'"},
        {"module m; enum E { kA = 2147483648 };",
         "1:25: error: expected a number that fits 32 bits with a sign"},
        {"module m; const uint8 kX;",
         "1:25: error: expected '=' and the value of the const, found ';'"},
        {"module m; const uint8 kX = y;",
         "1:28: error: expected a number, a string, 'true' or 'false', found 'y'"},
        {"module m; const uint8 kX = 3 4;", "1:30: error: expected ';' after the const, found '4'"},
        {"module m; interface I { A(); };",
         "1:26: error: expected '@' and the method's number: NAME@NUMBER(...), found '('"},
        {"module m; interface I { A@1; };",
         "1:28: error: expected '(' before the parameters, found ';'"},
        {"module m; interface I { A@1(uint8 x;); };",
         "1:36: error: expected ')' or ',' after a parameter, found ';'"},
        {"module m; interface I { A@1() = (); };",
         "1:31: error: expected ';' or '=>' after the parameters, found '='"},
        {"module m; interface I { A@1()",
         "1:30: error: expected ';' or '=>' after the parameters, found the end of the file"},
        {"module m; interface I { \"A\" };", "1:25: error: expected a method's name, found \"A\""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert_ptr_null(parse(cases[i].text));
        ck_assert_str_eq(source.error, pool_print(&pool, "x.mojom:%s", cases[i].error));
    }
}
END_TEST

/* Cut anywhere, a contract is refused or whole, and never crashes the compiler. */
START_TEST(every_beginning_of_a_contract_is_refused_or_whole) {
    static const char text[] =
        "module a.b; const uint8 kA = 1; enum E { kB = 2, }; struct S { [MinVersion=1] "
        "array<map<string<8>, bytes<2>, kA>, 9>? x; }; union U { [Unsealed] handle<memfd> y@1; }; "
        "interface I { M@1(uint8 x, S y) => (U z); };";
    for (size_t count = 0; count < sizeof(text); count++) {
        const struct contract *contract = parse(pool_copy(&pool, text, count));
        ck_assert_int_eq(contract == NULL, source.failed);
    }
    ck_assert(!source.failed);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("parser");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, comments_find_what_they_are_about);
    tcase_add_test(tcase, a_parameter_does_not_repeat_its_methods_comment);
    tcase_add_test(tcase, enum_values_count_on);
    tcase_add_test(tcase, what_was_expected_is_named_with_its_place);
    tcase_add_test(tcase, every_beginning_of_a_contract_is_refused_or_whole);
    return run_suite("parser", tcase);
}
