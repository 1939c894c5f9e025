#include "client/symbols/symbols.h"

#include <check.h>
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include "tests/suite.h"

/* Names of one version and of several, default ones last and first, indirect functions, data's
 * neighbours, and some that nobody has. */
static const char *const names[] = {
    "malloc",     "free",           "calloc",       "realloc",   "reallocarray", "posix_memalign",
    "free_sized", "pvalloc",        "close",        "closefrom", "execve",       "execvpe",
    "fexecve",    "execveat",       "posix_spawn",  "system",    "popen",        "wait4",
    "waitid",     "_exit",          "prctl",        "syscall",   "clone",        "_Fork",
    "dlclose",    "realpath",       "regexec",      "memcpy",    "strlen",       "time",
    "nftw",       "fmemopen",       "posix_spawnp", "glob",      "_Znwm",        "no_such_function",
    "environ",    "pthread_create", "fork",         "quick_exit"};

enum { NAMES_COUNT = sizeof(names) / sizeof(names[0]) };

static void *plugin(void) {
    void *handle = dlopen(
        access("./symbols_plugin.so", R_OK) == 0 ? "./symbols_plugin.so" : "out/symbols_plugin.so",
        RTLD_NOW
    );
    ck_assert_msg(handle != NULL, "%s", dlerror());
    return handle;
}

/* Functions alone: of data the client asks for none. */
static bool is_data(const char *name) {
    return name[0] == 'e' && name[1] == 'n';
}

START_TEST(the_next_definition_is_the_one_that_dlsym_finds) {
    const char *name = names[_i];
#if defined(__SANITIZE_ADDRESS__)
    if (strcmp(name, "time") == 0) {
        return; /* its run-time answers dlsym with another one than libc's resolver gives */
    }
#endif
    const struct ml_loaded_symbol found = ml_symbol_next(name);
    ck_assert_ptr_null(dlerror());
    void *expected = is_data(name) ? NULL : dlsym(RTLD_NEXT, name);
    ck_assert_msg(found.address == expected, "%s: %p, not %p", name, found.address, expected);
    if (expected != NULL) {
        Dl_info where;
        ck_assert_int_ne(dladdr(expected, &where), 0);
        ck_assert_str_eq(found.path, where.dli_fname);
    }
}
END_TEST

START_TEST(what_the_program_has_to_hear_of_libdl_stays) {
    ck_assert_ptr_null(dlopen("/no/such/library.so", RTLD_NOW));
    ck_assert_ptr_null(ml_symbol_next("no_such_function").address);
    ck_assert_ptr_nonnull(ml_symbol_next("malloc").address);
    ck_assert_ptr_null(ml_symbol_of_library("libno.so", "malloc").address);
    const char *text = dlerror();
    ck_assert_ptr_nonnull(text);
    ck_assert_ptr_nonnull(strstr(text, "/no/such/library.so"));
}
END_TEST

START_TEST(a_library_without_the_newer_hash_table_is_read_too) {
    void *handle = plugin();
    struct link_map *map = NULL;
    ck_assert_int_eq(dlinfo(handle, RTLD_DI_LINKMAP, &map), 0);
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        ck_assert_int_ne(entry->d_tag, DT_GNU_HASH);
    }
    static const char *const own[] = {"ml_symbols_plugin_plain", "ml_symbols_plugin_indirect"};
    for (int i = 0; i < 2; i++) {
        void *address = ml_symbol_in(map->l_addr, map->l_ld, own[i]);
        ck_assert_ptr_nonnull(address);
        ck_assert_ptr_eq(address, dlsym(handle, own[i]));
        ck_assert_int_eq(((int (*)(void))address)(), 7 + i);
    }
    ck_assert_ptr_null(ml_symbol_in(map->l_addr, map->l_ld, "chosen"));
    ck_assert_ptr_null(ml_symbol_in(map->l_addr, map->l_ld, "malloc"));
}
END_TEST

START_TEST(a_library_that_came_later_is_found_by_its_files_name) {
    ck_assert_ptr_null(ml_symbol_of_library("symbols_plugin.so", "ml_symbols_plugin_plain").address
    );
    void *handle = plugin();
    const struct ml_loaded_symbol found =
        ml_symbol_of_library("symbols_plugin.so", "ml_symbols_plugin_plain");
    ck_assert_ptr_eq(found.address, dlsym(handle, "ml_symbols_plugin_plain"));
    ck_assert_ptr_null(ml_symbol_of_library("plugin.so", "ml_symbols_plugin_plain").address);
    ck_assert_ptr_null(ml_symbol_next("ml_symbols_plugin_none").address);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("symbols");
    tcase_add_loop_test(
        tcase, the_next_definition_is_the_one_that_dlsym_finds, 0, (int)NAMES_COUNT
    );
    tcase_add_test(tcase, what_the_program_has_to_hear_of_libdl_stays);
    tcase_add_test(tcase, a_library_without_the_newer_hash_table_is_read_too);
    tcase_add_test(tcase, a_library_that_came_later_is_found_by_its_files_name);
    return run_suite("client/symbols", tcase);
}
