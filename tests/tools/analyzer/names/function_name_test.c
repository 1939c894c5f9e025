#include "base/printable.h"
#include "tests/suite.h"
#include "tools/analyzer/names/function_name.h"
#include "tools/analyzer/names/plumbing.h"

#include <stdlib.h>

#include <check.h>

static void fits(const char *name, size_t columns, const char *expected) {
    char out[1024];

    ml_function_name_fit(name, columns, out, sizeof out);
    ck_assert_str_eq(out, expected);
    ck_assert_uint_le(ml_printable_columns(out), columns);
}

START_TEST(a_name_that_fits_stays) {
    fits("malloc", 6, "malloc");
    fits("std::vector<int>::push_back(int&&)", 60, "std::vector<int>::push_back(int&&)");
}
END_TEST

START_TEST(template_arguments_and_return_type_go_first) {
    fits("int& std::vector<int, std::allocator<int> >::at(long)", 30, "std::vector<...>::at(long)");
    fits("f<a<b<c>>>(int)", 12, "f<...>(int)");
}
END_TEST

START_TEST(then_parameters) {
    fits("shop::Shelf::put(shop::Box const&, int) const", 30, "shop::Shelf::put(...) const");
    fits("shop::Shelf::put()", 18, "shop::Shelf::put()");
}
END_TEST

START_TEST(a_file_loses_its_middle_alone) {
    char out[64];

    ml_file_name_fit("my shop/a(1)/box.cc:7", 40, out, sizeof out);
    ck_assert_str_eq(out, "my shop/a(1)/box.cc:7");
    ml_file_name_fit("my shop/a(1)/box.cc:7", 16, out, sizeof out);
    ck_assert_str_eq(out, "my s.../box.cc:7");
}
END_TEST

START_TEST(then_the_middle) {
    fits("a_function_with_a_very_long_name", 16, "a_fu...long_name");
    fits("\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc", 5, "...\xc3\xb6\xc3\xbc");
}
END_TEST

START_TEST(operators_keep_their_signs) {
    fits("std::ostream& operator<<(std::ostream&, shop::Box const&)", 30, "operator<<(...)");
    fits("operator new(unsigned long)", 20, "operator new(...)");
    fits(
        "int* v8::(anonymous namespace)::make(int, long)",
        36,
        "v8::(anonymous namespace)::make(...)"
    );
    fits("shop::Box::operator()(int, long) const", 34, "shop::Box::operator()(...) const");
}
END_TEST

static void is_brief(const char *name, const char *expected) {
    char out[1024];

    ml_function_name_brief(name, out, sizeof out);
    ck_assert_str_eq(out, expected);
}

START_TEST(a_brief_name_is_the_function_and_what_it_stands_in) {
    is_brief("malloc", "malloc");
    is_brief("main", "main");
    is_brief("void shop::Box<int>::put(int) const", "Box<...>::put");
    is_brief("v8::internal::BackingStore::Allocate(v8::Isolate*)", "BackingStore::Allocate");
    is_brief("shop::(anonymous namespace)::hidden(int)", "(anonymous namespace)::hidden");
    is_brief("operator new(unsigned long)", "operator new");
    is_brief("core::fmt::write", "fmt::write");
    is_brief("SessionCache::get[abi:cxx11](int)", "SessionCache::get");
    is_brief("main::{lambda()#1}::operator()() const", "main::{lambda}");
    is_brief("f[abi:a]g[abi:b]", "fg");
    is_brief("f[abi:", "f[abi:");
    is_brief("shop::Box::operator()(int) const", "Box::operator()");
    is_brief("", "");
}
END_TEST

START_TEST(plumbing_is_what_asks_for_nothing_itself) {
    static const char *const plumbing[] = {
        "operator new(unsigned long)",
        "std::vector<int, std::allocator<int> >::push_back(int&&)",
        "int& std::__invoke_impl<int&, main()::<lambda()> >(std::__invoke_other, <lambda()>&&)",
        "start_thread",
        "core::ops::function::FnOnce::call_once",
        "g_malloc0"};
    static const char *const askers[] = {
        "main",
        "stdlib_loader",
        "shop::standard::fill(std::vector<int>&)",
        "std_thing::make",
        "void shop::Box<std::string>::put(std::string)",
        ""};

    for (size_t i = 0; i < sizeof plumbing / sizeof plumbing[0]; i++) {
        ck_assert_msg(ml_is_plumbing(plumbing[i]), "%s", plumbing[i]);
    }
    for (size_t i = 0; i < sizeof askers / sizeof askers[0]; i++) {
        ck_assert_msg(!ml_is_plumbing(askers[i]), "%s", askers[i]);
    }
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("all");

    tcase_add_test(tests, a_name_that_fits_stays);
    tcase_add_test(tests, template_arguments_and_return_type_go_first);
    tcase_add_test(tests, then_parameters);
    tcase_add_test(tests, then_the_middle);
    tcase_add_test(tests, a_file_loses_its_middle_alone);
    tcase_add_test(tests, a_brief_name_is_the_function_and_what_it_stands_in);
    tcase_add_test(tests, plumbing_is_what_asks_for_nothing_itself);
    tcase_add_test(tests, operators_keep_their_signs);
    return run_suite("tools/function_name", tests);
}
