#include "tools/analyzer/symbols/symbolizer.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <check.h>

#include "tests/tools/sample_places.h"
#include "tools/analyzer/symbols/demangle.h"

/* The same program as linkers make it. */
static const char *const programs[] = {
    "known_places",
    "known_places_fixed",
    "known_places_biased",
#ifdef WITH_STATIC
    "known_places_static",
    "known_places_static_pie",
#endif
};
enum { PROGRAMS = sizeof programs / sizeof programs[0] };
static size_t programs_used;
static struct sample_places places; /* of the last one used */

static void setup_once(void) {
    sample_places_find(&places, programs[programs_used++]);
}

static void teardown_once(void) {
    sample_places_clean(&places);
}

static struct ml_symbolizer *symbolizer;

static void setup(void) {
    symbolizer = ml_symbolizer_new(NULL);
    ck_assert_ptr_nonnull(symbolizer);
}

static void teardown(void) {
    ml_symbolizer_free(symbolizer);
}

static struct ml_symbol_file *
open_file(const char *path, const uint8_t *build_id, size_t build_id_bytes, const char **trouble) {
    struct ml_symbol_wanted wanted = {
        .path = path, .build_id = build_id, .build_id_bytes = build_id_bytes};

    return ml_symbolizer_open(symbolizer, &wanted, trouble);
}

static size_t find(const char *path, const char *name, struct ml_symbol *out_symbols) {
    const char *trouble = "unset";
    struct ml_symbol_file *file = open_file(path, places.build_id, places.build_id_bytes, &trouble);

    ck_assert_ptr_nonnull(file);
    ck_assert_ptr_null(trouble);
    return ml_symbol_file_find(file, sample_place(&places, name), out_symbols);
}

static void ends_with(const char *text, const char *end) {
    ck_assert_uint_ge(strlen(text), strlen(end));
    ck_assert_str_eq(text + strlen(text) - strlen(end), end);
}

START_TEST(a_static_function_has_its_name_file_and_line) {
    struct ml_symbol found[ML_SYMBOL_INLINES_MAX];

    ck_assert_uint_eq(find(places.path, "static", found), 1);
    ck_assert_str_eq(found[0].function, "quiet_static");
    ends_with(found[0].file, "tests/tools/sample/known_places.c");
    ck_assert_uint_gt(found[0].line, 30);
    ck_assert(!found[0].inlined);
}
END_TEST

START_TEST(inlined_functions_come_innermost_first) {
    struct ml_symbol found[ML_SYMBOL_INLINES_MAX];

    ck_assert_uint_eq(find(places.path, "inlined", found), 3);
    ck_assert_str_eq(found[0].function, "inner_inlined");
    ck_assert_str_eq(found[1].function, "outer_inlined");
    ck_assert_str_eq(found[2].function, "loud_global");
    ck_assert(found[0].inlined && found[1].inlined && !found[2].inlined);
    ck_assert_uint_lt(found[0].line, found[1].line);
    ck_assert_uint_lt(found[1].line, found[2].line);
    ends_with(found[1].file, "tests/tools/sample/known_places.c");
}
END_TEST

START_TEST(a_copy_that_the_compiler_made_has_the_functions_name) {
    struct ml_symbol found[ML_SYMBOL_INLINES_MAX];
    size_t count = find(places.path, "copied", found);

    ck_assert_uint_ge(count, 1);
    ck_assert_str_eq(found[0].function, "copied_with");
}
END_TEST

START_TEST(cpp_names_are_readable) {
    struct ml_symbol found[ML_SYMBOL_INLINES_MAX];

    ck_assert_uint_eq(find(places.path, "method", found), 1);
    ck_assert_ptr_nonnull(
        strstr(found[0].function, "shop::Shelf::put(shop::Box<int> const&, int) const")
    );
    ck_assert_int_eq(strncmp(found[0].linkage, "_ZNK4shop5Shelf3put", 19), 0);
    ck_assert_uint_eq(find(places.path, "hidden", found), 1);
    ck_assert_ptr_nonnull(strstr(found[0].function, "hidden(int)"));
    ck_assert_uint_ge(find(places.path, "lambda", found), 1);
    ck_assert_ptr_nonnull(strstr(found[0].function, "lambda"));
}
END_TEST

START_TEST(a_stripped_file_has_names_from_its_debug_file) {
    struct ml_symbol found[ML_SYMBOL_INLINES_MAX];

    /* beside it, by .gnu_debuglink */
    ck_assert_uint_eq(find(places.linked_path, "inlined", found), 3);
    ck_assert_str_eq(found[0].function, "inner_inlined");
}
END_TEST

START_TEST(a_debug_file_is_found_by_build_id) {
    struct ml_symbol found[ML_SYMBOL_INLINES_MAX];
    struct ml_symbolizer_options options = {.search = {.debug_root = places.debug_root}};

    ml_symbolizer_free(symbolizer);
    symbolizer = ml_symbolizer_new(&options);
    ck_assert_uint_eq(find(places.stripped_path, "inlined", found), 3);
    ck_assert_str_eq(found[1].function, "outer_inlined");
    /* also when the program itself is gone */
    ck_assert_uint_eq(find("/nonexistent/program", "static", found), 1);
    ck_assert_str_eq(found[0].function, "quiet_static");
}
END_TEST

START_TEST(without_dwarf_the_symbol_table_gives_names) {
    struct ml_symbol found[ML_SYMBOL_INLINES_MAX];

    ck_assert_uint_eq(find(places.no_dwarf_path, "static", found), 1);
    ck_assert_str_eq(found[0].function, "quiet_static");
    ck_assert_str_eq(found[0].file, "");
    ck_assert_uint_eq(find(places.no_dwarf_path, "copied", found), 1);
    ck_assert_str_eq(found[0].function, "copied_with");
    ck_assert_uint_eq(find(places.no_dwarf_path, "method", found), 1);
    ck_assert_ptr_nonnull(strstr(found[0].function, "shop::Shelf::put("));
}
END_TEST

START_TEST(another_build_gives_no_names) {
    struct ml_symbol found[ML_SYMBOL_INLINES_MAX];
    const uint8_t other[20] = {1, 2, 3};
    const char *trouble = NULL;
    struct ml_symbol_file *file = open_file(places.path, other, sizeof other, &trouble);

    ck_assert_ptr_nonnull(trouble);
    ck_assert_uint_eq(ml_symbol_file_find(file, sample_place(&places, "static"), found), 0);
    file = open_file("/nonexistent", other, sizeof other, &trouble);
    ck_assert_ptr_nonnull(trouble);
    ck_assert_uint_eq(ml_symbol_file_find(file, 0x1000, found), 0);
    file = open_file("/dev/null", other, sizeof other, &trouble);
    ck_assert_ptr_nonnull(trouble);
    ck_assert_uint_eq(ml_symbol_file_find(file, 0x1000, found), 0);
}
END_TEST

START_TEST(addresses_outside_have_no_names) {
    struct ml_symbol found[ML_SYMBOL_INLINES_MAX];
    const char *trouble = NULL;
    struct ml_symbol_file *file =
        open_file(places.path, places.build_id, places.build_id_bytes, &trouble);

    ck_assert_uint_eq(ml_symbol_file_find(file, 0, found), 0);
    ck_assert_uint_eq(ml_symbol_file_find(file, UINT64_MAX, found), 0);
    ck_assert_uint_eq(ml_symbol_file_find(file, (uint64_t)1 << 40, found), 0);
}
END_TEST

START_TEST(a_damaged_elf_file_is_survived) {
    FILE *file = fopen(places.path, "rb");
    char path[PATH_MAX];
    static uint8_t bytes[1 << 20];
    size_t count = fread(bytes, 1, sizeof bytes, file);

    fclose(file);
    snprintf(path, sizeof path, "%.4000s/damaged", places.folder);
    for (size_t cut = 64; cut < count; cut += count / 40) {
        struct ml_symbol found[ML_SYMBOL_INLINES_MAX];
        const char *trouble = NULL;
        struct ml_symbol_file *opened = NULL;

        bytes[(cut * 7919) % count] ^= 0x55;
        file = fopen(path, "wb");
        ck_assert_uint_eq(fwrite(bytes, 1, cut % 3 ? count : cut, file), cut % 3 ? count : cut);
        fclose(file);
        opened = open_file(path, places.build_id, places.build_id_bytes, &trouble);
        ck_assert_ptr_nonnull(opened);
        (void)ml_symbol_file_find(opened, sample_place(&places, "inlined"), found);
    }
}
END_TEST

static void readable(const char *linkage, const char *expected) {
    char *name = ml_demangle(linkage);

    ck_assert_str_eq(name, expected);
    free(name);
}

START_TEST(names_of_c_cpp_and_rust_are_made_readable) {
    readable("malloc", "malloc");
    readable("leaf.constprop.0", "leaf");
    readable("leaf.isra.0.cold", "leaf");
    readable("leaf.part.3", "leaf");
    readable("leaf.cold", "leaf");
    readable("leaf.partial", "leaf.partial");
    readable("walk.lto_priv.0", "walk");
    readable("_ZN3foo3barEi", "foo::bar(int)");
    readable("_ZN3foo3barEi.constprop.0", "foo::bar(int)");
    readable("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write");
    readable("_RNvCs4fqI2P2rA04_7mycrate4main", "mycrate::main");
    readable("_Z", "_Z");
    readable("_Zgarbage", "_Zgarbage");
    readable("", "");
}
END_TEST

static TCase *cases_of(const char *program) {
    TCase *tests = tcase_create(program);

    tcase_add_unchecked_fixture(tests, setup_once, teardown_once);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_static_function_has_its_name_file_and_line);
    tcase_add_test(tests, inlined_functions_come_innermost_first);
    tcase_add_test(tests, a_copy_that_the_compiler_made_has_the_functions_name);
    tcase_add_test(tests, cpp_names_are_readable);
    tcase_add_test(tests, a_stripped_file_has_names_from_its_debug_file);
    tcase_add_test(tests, a_debug_file_is_found_by_build_id);
    tcase_add_test(tests, without_dwarf_the_symbol_table_gives_names);
    tcase_add_test(tests, another_build_gives_no_names);
    tcase_add_test(tests, addresses_outside_have_no_names);
    tcase_add_test(tests, a_damaged_elf_file_is_survived);
    return tests;
}

int main(void) {
    Suite *suite = suite_create("tools/symbolizer");
    TCase *names = tcase_create("names");
    SRunner *runner = srunner_create(suite);
    int failed = 0;

    for (size_t i = 0; i < PROGRAMS; i++) {
        suite_add_tcase(suite, cases_of(programs[i]));
    }
    tcase_add_test(names, names_of_c_cpp_and_rust_are_made_readable);
    suite_add_tcase(suite, names);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
