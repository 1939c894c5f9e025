#include "tools/analyzer/names/type_name.h"

#include <stdio.h>
#include <string.h>

#include "tests/suite.h"

/* "WORD TYPE" of a frame. */
static const char *told(const char *function, const char *linkage, bool inlines_are_known) {
    static const char *const words[] = {"stop", "on", "allocated", "constructed"};
    static char said[ML_TYPE_NAME_BYTES + 32];
    char name[ML_TYPE_NAME_BYTES] = "";
    const struct ml_type_frame frame = {
        .function = function, .linkage = linkage, .inlines_are_known = inlines_are_known};
    const enum ml_type_word word = ml_type_of_frame(&frame, name);

    snprintf(said, sizeof said, "%s%s%s", words[word], name[0] ? " " : "", name);
    return said;
}

struct row {
    const char *function, *said;
};

static void check_rows(const struct row *rows, size_t count, bool inlines_are_known) {
    for (size_t i = 0; i < count; i++) {
        ck_assert_str_eq(told(rows[i].function, rows[i].function, inlines_are_known), rows[i].said);
    }
}

#define CHECK_ROWS(rows, inlines_are_known)                                                        \
    check_rows(rows, sizeof(rows) / sizeof((rows)[0]), inlines_are_known)

START_TEST(an_allocators_element_is_the_type) {
    const struct row rows[] = {
        {"std::__new_allocator<Plain>::allocate(unsigned long, void const*)", "allocated Plain"},
        {"__gnu_cxx::new_allocator<shop::Box<int, 3> >::allocate(unsigned long, void const*)",
         "allocated shop::Box<int, 3>"},
        {"std::allocator_traits<std::allocator<(anonymous namespace)::Fish> "
         ">::allocate(std::allocator<(anonymous namespace)::Fish>&, unsigned long)",
         "allocated (anonymous namespace)::Fish"},
        {"std::__1::allocator<Foo>::allocate[abi:v160006](unsigned long)", "allocated Foo"},
        {"std::__allocated_ptr<std::allocator<Foo> > "
         "std::__allocate_guarded<std::allocator<Foo> >(std::allocator<Foo>&)",
         "allocated Foo"},
        {"void* llvm::BumpPtrAllocatorImpl<>::Allocate<clang::Decl>(unsigned long)",
         "allocated clang::Decl"},
        {"std::__new_allocator<std::_Sp_counted_ptr_inplace<Leaf, std::allocator<void>, "
         "(__gnu_cxx::_Lock_policy)2> >::allocate(unsigned long, void const*)",
         "allocated Leaf"},
        {"std::__new_allocator<std::__cxx11::basic_string<char, std::char_traits<char>, "
         "std::allocator<char> > >::allocate(unsigned long, void const*)",
         "allocated std::string"},
        {"std::__detail::_Hashtable_alloc<std::allocator<std::__detail::_Hash_node<int, false> > "
         ">::_M_allocate_node<int>(int&&)",
         "allocated std::__detail::_Hash_node<int, false>"},
        {"std::__new_allocator<bool (*)(int)>::allocate(unsigned long, void const*)",
         "allocated bool (*)(int)"},
        {"std::__new_allocator<Op<&(Foo::operator<(Foo const&))> >::allocate(unsigned long)",
         "allocated Op<&(Foo::operator<(Foo const&))>"}};

    CHECK_ROWS(rows, false);
}
END_TEST

START_TEST(what_knows_no_type_hands_on) {
    const struct row rows[] = {
        {"malloc", "on"},
        {"operator new(unsigned long)", "on"},
        {"operator new[](unsigned long, std::nothrow_t const&)", "on"},
        {"__rustc::__rust_alloc", "on"},
        {"alloc::alloc::exchange_malloc", "on"},
        {"alloc::raw_vec::RawVecInner<A>::finish_grow", "on"},
        {"<alloc::alloc::Global as core::alloc::Allocator>::allocate", "on"},
        {"std::pmr::memory_resource::allocate(unsigned long, unsigned long)", "on"}};

    CHECK_ROWS(rows, false);
}
END_TEST

START_TEST(other_functions_say_nothing_and_nobody_further_out_is_asked) {
    const struct row rows[] = {
        {"main", "stop"},
        {"", "stop"},
        {"Pool::get(unsigned long)", "stop"},
        {"Foo::operator new(unsigned long)", "stop"}, /* a derived class's, too */
        {"std::__new_allocator<Plain>::deallocate(Plain*, unsigned long)", "stop"},
        {"std::vector<bool, std::allocator<bool> >::reserve(unsigned long)", "stop"},
        {"std::__new_allocator<Plain>::allocate(unsigned long, void const*) [merged]", "stop"},
        {"alloc::raw_vec::RawVec<T,A>::allocate_in", "stop"}, /* the generic's own name */
        {"git::git()", "stop"},                               /* a function of a namespace */
        {"a<b<c", "stop"},
        {">>::x<", "stop"},
        {"::", "stop"}};

    CHECK_ROWS(rows, true);
}
END_TEST

START_TEST(what_also_constructs_is_believed_where_inlined_frames_are_known) {
    static const char counted[] =
        "std::__shared_count<(__gnu_cxx::_Lock_policy)2>::__shared_count<Leaf, "
        "std::allocator<void>>(Leaf*&, std::_Sp_alloc_shared_tag<std::allocator<void> >)";
    static const char *const functions[] = {
        "std::_MakeUniq<Leaf>::__single_object std::make_unique<Leaf, int>(int&&)",
        "std::shared_ptr<Leaf> std::make_shared<Leaf>()",
        counted,
        "void std::vector<Leaf, std::allocator<Leaf> >::_M_realloc_insert<Leaf>(Leaf&&)"};

    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        ck_assert_str_eq(told(functions[i], "", true), "allocated Leaf");
        ck_assert_str_eq(told(functions[i], "", false), "stop");
    }
}
END_TEST

START_TEST(numbers_and_pointers_construct_nothing) {
    const struct row rows[] = {
        {"void std::vector<int, std::allocator<int> >::_M_realloc_insert<int>(int&&)",
         "allocated int"},
        {"std::vector<Foo*, std::allocator<Foo*> >::reserve(unsigned long)", "allocated Foo*"},
        {"std::__cxx11::basic_string<wchar_t, std::char_traits<wchar_t>, std::allocator<wchar_t> "
         ">::reserve(unsigned long)",
         "allocated wchar_t"},
        {"std::string::_Rep::_S_create(unsigned long, unsigned long, std::allocator<char> const&)",
         "on"},
        {"std::string::reserve(unsigned long)", "allocated char"},
        {"std::__cxx11::list<int, std::allocator<int> >::push_back(int const&)",
         "allocated std::_List_node<int>"}};

    CHECK_ROWS(rows, false);
}
END_TEST

START_TEST(a_constructors_blocks_are_parts_of_its_object) {
    ck_assert_str_eq(
        told("shop::Shelf::Shelf(int)", "_ZN4shop5ShelfC2Ei", false), "constructed shop::Shelf"
    );
    ck_assert_str_eq(
        told("Box<int>::Box<char>(char)", "_ZN3BoxIiEC1IcEET_", false), "constructed Box<int>"
    );
    ck_assert_str_eq(told("git::git(int)", "_ZN3git3gitEi", false), "stop");
    ck_assert_str_eq(told("Shelf::~Shelf()", "_ZN5ShelfD2Ev", false), "stop");
}
END_TEST

START_TEST(rusts_newer_names_have_types) {
    const struct row rows[] = {
        {"<alloc::raw_vec::RawVec<stall::Fish>>::grow_one", "allocated stall::Fish"},
        {"<alloc::boxed::Box<stall::Fish>>::new", "allocated stall::Fish"},
        {"<alloc::sync::Arc<stall::Fish>>::new", "allocated stall::Fish"},
        {"<alloc::vec::Vec<u64>>::with_capacity", "allocated u64"},
        {"<alloc::vec::Vec<u64> as core::iter::FromIterator<u64>>::from_iter", "stop"}};

    CHECK_ROWS(rows, false);
}
END_TEST

START_TEST(a_long_name_is_cut_and_says_so) {
    char function[4 * ML_TYPE_NAME_BYTES];
    const char *said = NULL;

    memset(function, 'x', sizeof function);
    memcpy(function, "std::allocator<", 15);
    memcpy(function + sizeof function - 40, ">::allocate(unsigned long)", 27);
    said = told(function, "", false);
    ck_assert_uint_eq(strlen(said), strlen("allocated ") + ML_TYPE_NAME_BYTES - 1);
    ck_assert_str_eq(said + strlen(said) - 4, "x...");
}
END_TEST

START_TEST(any_cut_of_a_name_is_read_within_its_bounds) {
    static const char function[] =
        "void std::vector<A<b, (c)1, d[2]>, std::allocator<e> >::operator()<f<g> >(h<i>) [merged]";
    char cut[sizeof function];

    for (size_t from = 0; from < sizeof function; from++) {
        for (size_t to = from; to < sizeof function; to++) {
            memcpy(cut, function + from, to - from);
            cut[to - from] = '\0';
            ck_assert_ptr_nonnull(told(cut, cut, true));
        }
    }
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("type_name");
    tcase_add_test(tests, an_allocators_element_is_the_type);
    tcase_add_test(tests, what_knows_no_type_hands_on);
    tcase_add_test(tests, other_functions_say_nothing_and_nobody_further_out_is_asked);
    tcase_add_test(tests, what_also_constructs_is_believed_where_inlined_frames_are_known);
    tcase_add_test(tests, numbers_and_pointers_construct_nothing);
    tcase_add_test(tests, a_constructors_blocks_are_parts_of_its_object);
    tcase_add_test(tests, rusts_newer_names_have_types);
    tcase_add_test(tests, a_long_name_is_cut_and_says_so);
    tcase_add_test(tests, any_cut_of_a_name_is_read_within_its_bounds);
    return run_suite("tools/type_name", tests);
}
