#include "mojom_like_idl/idlc/checker.h"

#include <check.h>

#include "mojom_like_idl/idlc/parser.h"
#include "tests/suite.h"

static struct pool pool;
static struct source source;

static void set_up(void) {
    pool = (struct pool){0};
}

static void tear_down(void) {
    pool_fini(&pool);
}

static struct contract *check(const char *text) {
    source = (struct source
    ){.pool = &pool, .name = "x.mojom", .text = pool_print(&pool, "module m;\n%s", text)};
    struct contract *contract = parser_read(&source);
    ck_assert_msg(contract != NULL, "%s", source.error);
    checker_run(&source, contract);
    return contract;
}

START_TEST(sizes_on_the_wire_are_upper_bounds) {
    const struct contract *contract = check(
        "struct S { string<10> a; array<uint16, 3> b; map<uint8, bool, 300> c; handle<pipe>? d; };"
    );
    ck_assert(!source.failed);
    const struct record *record = &contract->declarations->record;
    ck_assert_uint_eq(record->body_bytes_max, 1 + (5 + 10) + (1 + 3 * 3) + (3 + 300 * 3) + 1);
    ck_assert_uint_eq(record->handles_max, 1);
}
END_TEST

START_TEST(a_limit_may_be_a_const) {
    const struct contract *contract = check("const uint16 kN = 7; struct S { string<kN> a; };");
    ck_assert(!source.failed);
    ck_assert_uint_eq(contract->declarations->next->record.fields->type->limit, 7);
}
END_TEST

START_TEST(what_has_no_meaning_is_refused_with_its_place) {
    static const struct {
        const char *text; /* from line 2 on */
        const char *error;
    } cases[] = {
        {"struct S { string<0> a; };", "2:19: error: expected a limit between 1 and 16777216"},
        {"struct S { string<16777217> a; };",
         "2:19: error: expected a limit between 1 and 16777216"},
        {"struct S { array<uint8, kN> a; };\nconst uint8 kN = 1;",
         "2:25: error: expected a limit, and 'kN' is no whole const declared above"},
        {"const string kN = \"x\"; struct S { string<kN> a; };",
         "2:42: error: expected a limit, and 'kN' is no whole const declared above"},
        {"const int8 kN = -1; struct S { string<kN> a; };",
         "2:39: error: expected a limit, and 'kN' is no whole const declared above"},
        {"struct S { T a; };\nstruct T { uint8 a; };",
         "2:12: error: expected a type, and 'T' is not declared above"},
        {"struct S { S? a; };", "2:12: error: expected a type, and 'S' is not declared above"},
        {"struct S { uint a; };", "2:12: error: expected a type, and 'uint' is not declared above"},
        {"interface I { M@1(); };\nstruct S { I a; };",
         "3:12: error: expected a type, found the interface 'I'"},
        {"const bool kB = true; struct S { kB a; };",
         "2:34: error: expected a type, found the const 'kB'"},
        {"struct S { array<string<4>?, 2> a; };",
         "2:18: error: expected an element that is not nullable; put it into a struct of its own"},
        {"struct S { map<bool, uint8, 2> a; };",
         "2:16: error: expected a whole number, an enum or a string as a map's key"},
        {"struct T { uint8 a; }; struct S { map<T, uint8, 2> a; };",
         "2:39: error: expected a whole number, an enum or a string as a map's key"},
        {"struct S { };", "2:8: error: expected a field in struct 'S'"},
        {"union S { };", "2:7: error: expected a member in union 'S'"},
        {"enum S { };", "2:6: error: expected a value in enum 'S'"},
        {"interface S { };", "2:11: error: expected a method in interface 'S'"},
        {"struct s { uint8 a; };", "2:8: error: expected a struct named LikeThis, found 's'"},
        {"const uint8 X = 1;", "2:13: error: expected a const named kLikeThis, found 'X'"},
        {"enum E { kA }; struct E { uint8 a; };",
         "2:23: error: expected a name of its own, and 'E' is taken in line 2"},
        {"struct S { uint8 aB; };",
         "2:18: error: expected a name_like_this that is no word of C, found 'aB'"},
        {"struct S { uint8 int; };",
         "2:18: error: expected a name_like_this that is no word of C, found 'int'"},
        {"struct S { uint8 a;\nuint8 a; };",
         "3:7: error: expected a name of its own, and 'a' is taken in line 2"},
        {"struct S { uint8? a;\nbool has_a; };",
         "3:6: error: expected a name of its own, and 'has_a' is taken in line 2"},
        {"enum E { A };", "2:10: error: expected a value named kLikeThis, found 'A'"},
        {"enum E { kA, kA };",
         "2:14: error: expected a name and a number of its own, and line 2 has 'kA' = 0"},
        {"enum E { kA = 3,\nkB = 3 };",
         "3:1: error: expected a name and a number of its own, and line 2 has 'kA' = 3"},
        {"enum E { kA = 2147483647, kB };",
         "2:27: error: expected a number that fits 32 bits with a sign"},
        {"union U { uint8 a@0; };", "2:17: error: expected a number from 1 to 2^31 - 1 behind '@'"},
        {"union U { uint8 a@2; uint8 b@2; };",
         "2:28: error: expected a number above 2, the one in line 2"},
        {"union U { uint8? a@2; };",
         "2:11: error: expected an element that is not nullable; put it into a struct of its own"},
        {"union U { uint8 tag@2; };",
         "2:17: error: expected another name: 'tag' tells the members apart"},
        {"union U { [MinVersion=1] uint8 a@2; };",
         "2:12: error: expected no MinVersion: a union has no order"},
        {"struct S { [MinVersion=1] uint8 a; };",
         "2:27: error: expected '?' after the type of 'a', which older senders leave out"},
        {"struct S { [MinVersion=0] uint8? a; };",
         "2:13: error: expected a version from 1 to 2^32 - 2"},
        {"struct S { [MinVersion=2] uint8? a; uint8 b; };",
         "2:43: error: expected 'b' above the fields of version 2: later versions only add at the "
         "end"},
        {"struct S { [Unsealed] handle<pipe> a; };",
         "2:13: error: expected [Unsealed] before a handle<memfd> only"},
        {"interface I { m@1(); };", "2:15: error: expected a method NamedLikeThis, found 'm'"},
        {"interface I { M@0(); };", "2:17: error: expected a number from 1 to 2^31 - 1"},
        {"interface I { M@1();\nN@1(); };",
         "3:3: error: expected a number above 1, the one in line 2"},
        {"interface I { M@1(array<handle<pipe>, 17> a); };",
         "2:15: error: expected at most 16 handles in a message of 'M', found 17"},
        {"interface I { M@1(array<bytes<65536>, 65536> a); };",
         "2:15: error: expected limits that keep a message of 'M' within 1073741824 bytes, found "
         "4295294982"},
        {"struct A { array<bytes<16777216>, 16777216> a; };\n"
         "struct B { array<A, 16777216> a; }; interface I { M@1(B b); };",
         "3:51: error: expected limits that keep a message of 'M' within 1073741824 bytes, found "
         "18446744073709551615"},
        {"const uint8 kA = 256;", "2:18: error: expected a number that uint8 can hold"},
        {"const uint8 kA = -1;", "2:18: error: expected a number that uint8 can hold"},
        {"const int8 kA = -129;", "2:17: error: expected a number that int8 can hold"},
        {"const int64 kA = 9223372036854775808;",
         "2:18: error: expected a number that int64 can hold"},
        {"const uint8 kA = \"x\";", "2:18: error: expected a number that uint8 can hold"},
        {"const bool kA = 1;", "2:17: error: expected 'true' or 'false'"},
        {"const string kA = 1;", "2:19: error: expected a string"},
        {"const float kA = 1;", "2:7: error: expected a whole number, a bool or a string"},
        {"const uint8? kA = 1;", "2:7: error: expected a const that is not nullable"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        (void)check(cases[i].text);
        ck_assert_msg(source.failed, "no error in: %s", cases[i].text);
        ck_assert_str_eq(source.error, pool_print(&pool, "x.mojom:%s", cases[i].error));
    }
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("checker");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, sizes_on_the_wire_are_upper_bounds);
    tcase_add_test(tcase, a_limit_may_be_a_const);
    tcase_add_test(tcase, what_has_no_meaning_is_refused_with_its_place);
    return run_suite("checker", tcase);
}
