#include "base/entry/allocator_family.h"

#include <stdio.h>
#include <string.h>

#include <check.h>

#include "tests/suite.h"

static bool is_function(
    const char *name,
    const struct ml_allocator_families *given,
    struct ml_allocator_function *out_function
) {
    return ml_allocator_function_of(name, strlen(name), given, out_function);
}

START_TEST(names_are_found_behind_their_prefixes) {
    static const struct {
        const char *name;
        int family;
        int prefix_bytes;
        int act;
    } cases[] = {
        {"malloc", ML_ALLOCATOR_FAMILY_PLAIN, 0, ML_ALLOCATOR_ALLOCATE},
        {"__libc_malloc", ML_ALLOCATOR_FAMILY_PLAIN, 7, ML_ALLOCATOR_ALLOCATE},
        {"__libc_cfree", ML_ALLOCATOR_FAMILY_PLAIN, 7, ML_ALLOCATOR_RELEASE},
        {"__posix_memalign", ML_ALLOCATOR_FAMILY_PLAIN, 0, ML_ALLOCATOR_ALLOCATE},
        {"_ZdlPvm", ML_ALLOCATOR_FAMILY_PLAIN, 0, ML_ALLOCATOR_RELEASE},
        {"moz_arena_free", ML_ALLOCATOR_FAMILY_PLAIN, 0, ML_ALLOCATOR_RELEASE},
        {"je_malloc", ML_ALLOCATOR_FAMILY_JEMALLOC, 3, ML_ALLOCATOR_ALLOCATE},
        {"je_xallocx", ML_ALLOCATOR_FAMILY_JEMALLOC, 3, ML_ALLOCATOR_RESIZE_IN_PLACE},
        {"_rjem_sdallocx", ML_ALLOCATOR_FAMILY_RUST_JEMALLOC, 6, ML_ALLOCATOR_RELEASE},
        {"mi_heap_reallocn", ML_ALLOCATOR_FAMILY_MIMALLOC, 3, ML_ALLOCATOR_RESIZE},
        {"mi_new", ML_ALLOCATOR_FAMILY_MIMALLOC, 3, ML_ALLOCATOR_ALLOCATE},
        {"tc_deletearray_aligned_nothrow", ML_ALLOCATOR_FAMILY_TCMALLOC, 3, ML_ALLOCATOR_RELEASE},
        {"tc_new", ML_ALLOCATOR_FAMILY_TCMALLOC, 3, ML_ALLOCATOR_ALLOCATE},
        {"jemalloc_realloc", ML_ALLOCATOR_FAMILY_LONG_JEMALLOC, 9, ML_ALLOCATOR_RESIZE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ml_allocator_function function;
        ck_assert_msg(is_function(cases[i].name, NULL, &function), "%s", cases[i].name);
        ck_assert_msg(function.family == cases[i].family, "%s", cases[i].name);
        ck_assert_msg(function.prefix_bytes == cases[i].prefix_bytes, "%s", cases[i].name);
        ck_assert_msg(function.call.act == cases[i].act, "%s", cases[i].name);
    }
}
END_TEST

START_TEST(what_programs_call_their_own_functions_is_one_allocators_alone) {
    static const char *const others[] = {
        "new",
        "zalloc",
        "free_size",
        "delete",
        "je_new",
        "je_strdup",
        "mi_delete",
        "tc_heap_malloc",
        "tc_zalloc",
        "_rjem_zalloc",
        "je__Znwm",
        "mi__ZdlPv",
        "je_",
        "mi_heap_destroy",
        "pool_strdup",
        "my_malloc",
        "",
        "jemalloc_free_dirty_pages"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct ml_allocator_function function;
        ck_assert_msg(!is_function(others[i], NULL, &function), "%s", others[i]);
    }
    char long_name[200];
    struct ml_allocator_function function;
    memset(long_name, 'm', sizeof long_name);
    ck_assert(!ml_allocator_function_of(long_name, sizeof long_name, NULL, &function));
}
END_TEST

static enum ml_allocator_list_refusal
read_list(const char *text, struct ml_allocator_families *out_families) {
    return ml_allocator_families_read(text, strlen(text), out_families);
}

START_TEST(families_that_people_give_are_found_too) {
    struct ml_allocator_families given;
    struct ml_allocator_function function;
    ck_assert_int_eq(read_list("mine=my_,other-one=xx", &given), ML_ALLOCATOR_LIST_READ);
    ck_assert_uint_eq(given.count, 2);
    ck_assert(is_function("my_malloc", &given, &function));
    ck_assert_uint_eq(function.family, ML_ALLOCATOR_FAMILIES_BUILT_IN);
    ck_assert_uint_eq(function.prefix_bytes, 3);
    ck_assert(is_function("xxrealloc", &given, &function));
    ck_assert_uint_eq(function.family, ML_ALLOCATOR_FAMILIES_BUILT_IN + 1);
    ck_assert(!is_function("my_new", &given, &function)); /* mimalloc's and tcmalloc's alone */
    ck_assert(!is_function("my__Znwm", &given, &function));
    ck_assert(is_function("malloc", &given, &function));
    ck_assert_uint_eq(function.family, ML_ALLOCATOR_FAMILY_PLAIN);
    ck_assert_str_eq(ml_allocator_family_name(6, &given), "mine");
    ck_assert_str_eq(ml_allocator_family_prefix(7, &given), "xx");
    ck_assert_str_eq(ml_allocator_family_name(8, &given), "");
    ck_assert_str_eq(ml_allocator_family_prefix(8, &given), "");
    ck_assert_str_eq(ml_allocator_family_name(6, NULL), "");
    ck_assert_str_eq(ml_allocator_family_prefix(6, NULL), "");
    ck_assert_str_eq(ml_allocator_family_name(ML_ALLOCATOR_FAMILY_MIMALLOC, NULL), "mimalloc");
    ck_assert_str_eq(ml_allocator_family_prefix(ML_ALLOCATOR_FAMILY_PLAIN, NULL), "");
    ck_assert_int_eq(read_list("", &given), ML_ALLOCATOR_LIST_READ);
    ck_assert_uint_eq(given.count, 0);
}
END_TEST

START_TEST(a_list_that_is_none_is_refused_with_its_reason) {
    static const struct {
        const char *text;
        int refusal;
    } cases[] = {
        {"mine", ML_ALLOCATOR_LIST_NO_EQUALS},
        {",", ML_ALLOCATOR_LIST_NO_EQUALS},
        {"mine=my_,", ML_ALLOCATOR_LIST_NO_EQUALS},
        {"mine=my_,,other=o_", ML_ALLOCATOR_LIST_NO_EQUALS},
        {"=my_", ML_ALLOCATOR_LIST_NO_NAME},
        {"mine=", ML_ALLOCATOR_LIST_NO_PREFIX},
        {"mine=,other=o_", ML_ALLOCATOR_LIST_NO_PREFIX},
        {"abcdefghijklmnopqrstuvwx=my_", ML_ALLOCATOR_LIST_LONG},
        {"mine=abcdefghijklmnopqrstuvwx", ML_ALLOCATOR_LIST_LONG},
        {"mi ne=my_", ML_ALLOCATOR_LIST_CHARACTER},
        {"mine=my-", ML_ALLOCATOR_LIST_CHARACTER},
        {"mine=my=", ML_ALLOCATOR_LIST_CHARACTER},
        {"mine=m\xc3\xbc_", ML_ALLOCATOR_LIST_CHARACTER},
        {"a=a_,b=b_,c=c_,d=d_,e=e_,f=f_,g=g_,h=h_,i=i_", ML_ALLOCATOR_LIST_MANY},
        {"mine=my_,mine=o_", ML_ALLOCATOR_LIST_TWICE},
        {"mine=my_,other=my_", ML_ALLOCATOR_LIST_TWICE},
        {"mimalloc=my_", ML_ALLOCATOR_LIST_TWICE},
        {"mine=mi_", ML_ALLOCATOR_LIST_TWICE},
        {"mine=__libc_", ML_ALLOCATOR_LIST_TWICE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ml_allocator_families given;
        ck_assert_msg(
            (int)read_list(cases[i].text, &given) == cases[i].refusal, "%s", cases[i].text
        );
        ck_assert_uint_eq(given.count, 0);
    }
    struct ml_allocator_families given;
    ck_assert_int_eq(
        read_list("abcdefghijklmnopqrstuvw=abcdefghijklmnopqrstuvw", &given), ML_ALLOCATOR_LIST_READ
    );
    ck_assert_int_eq(
        read_list("a=a_,b=b_,c=c_,d=d_,e=e_,f=f_,g=g_,h=h_", &given), ML_ALLOCATOR_LIST_READ
    );
    ck_assert_uint_eq(given.count, ML_ALLOCATOR_FAMILIES_GIVEN_MAX);
    /* The length counts, no null. */
    ck_assert_int_eq(ml_allocator_families_read("a=a_,b", 4, &given), ML_ALLOCATOR_LIST_READ);
    ck_assert_str_eq(given.prefixes[0], "a_");
}
END_TEST

START_TEST(a_list_grows_by_what_is_good_and_fits) {
    char list[24] = "";
    ck_assert_int_eq(ml_allocator_families_add(list, sizeof list, "a=a_"), ML_ALLOCATOR_LIST_READ);
    ck_assert_str_eq(list, "a=a_");
    ck_assert_int_eq(ml_allocator_families_add(list, sizeof list, "a=b_"), ML_ALLOCATOR_LIST_TWICE);
    ck_assert_str_eq(list, "a=a_");
    ck_assert_int_eq(
        ml_allocator_families_add(list, sizeof list, "b=b_,c=c_"), ML_ALLOCATOR_LIST_READ
    );
    ck_assert_str_eq(list, "a=a_,b=b_,c=c_");
    ck_assert_int_eq(
        ml_allocator_families_add(list, sizeof list, "d=defghi_"), ML_ALLOCATOR_LIST_FULL
    );
    ck_assert_str_eq(list, "a=a_,b=b_,c=c_");
    ck_assert_int_eq(
        ml_allocator_families_add(list, sizeof list, "d=defgh_"), ML_ALLOCATOR_LIST_READ
    );
    ck_assert_uint_eq(strlen(list), sizeof list - 1);
    ck_assert_int_eq(ml_allocator_families_add(list, sizeof list, ""), ML_ALLOCATOR_LIST_FULL);
}
END_TEST

START_TEST(each_reason_has_a_text_of_its_own) {
    for (int i = 0; i < ML_ALLOCATOR_LIST_REFUSAL_COUNT; i++) {
        const char *text = ml_allocator_list_refusal_text((enum ml_allocator_list_refusal)i);
        ck_assert_uint_gt(strlen(text), 10);
        for (int k = 0; k < i; k++) {
            ck_assert_str_ne(
                text, ml_allocator_list_refusal_text((enum ml_allocator_list_refusal)k)
            );
        }
    }
    char number[4];
    (void)snprintf(number, sizeof number, "%d", ML_ALLOCATOR_PREFIX_MAX - 1);
    ck_assert_ptr_nonnull(strstr(ml_allocator_list_refusal_text(ML_ALLOCATOR_LIST_LONG), number));
    (void)snprintf(number, sizeof number, "%d", ML_ALLOCATOR_FAMILIES_GIVEN_MAX);
    ck_assert_ptr_nonnull(strstr(ml_allocator_list_refusal_text(ML_ALLOCATOR_LIST_MANY), number));
    ck_assert_str_eq(
        ml_allocator_list_refusal_text(ML_ALLOCATOR_LIST_REFUSAL_COUNT), "an unknown reason"
    );
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("allocator_family");
    tcase_add_test(tcase, names_are_found_behind_their_prefixes);
    tcase_add_test(tcase, what_programs_call_their_own_functions_is_one_allocators_alone);
    tcase_add_test(tcase, families_that_people_give_are_found_too);
    tcase_add_test(tcase, a_list_that_is_none_is_refused_with_its_reason);
    tcase_add_test(tcase, a_list_grows_by_what_is_good_and_fits);
    tcase_add_test(tcase, each_reason_has_a_text_of_its_own);
    return run_suite("base/entry/allocator_family", tcase);
}
