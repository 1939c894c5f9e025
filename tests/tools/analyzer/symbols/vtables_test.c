#include "tools/analyzer/symbols/vtables.h"

#include <check.h>
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/suite.h"

static const char *const classes[] = {
    "Plain", "shop::Cart<Plain*>", "(anonymous namespace)::Hidden", "Left"};

enum { CLASSES = sizeof(classes) / sizeof(classes[0]), SPOILT_ROUNDS = 400, SPOILT_BYTES = 40 };

/* The library, whole and stripped of its symbol table. */
static const char *const libraries[] = {"vtables_plugin.so", "vtables_plugin_stripped.so"};

static const char *path_of(const char *name) {
    static char path[256];
    (void)snprintf(path, sizeof(path), "./%s", name);
    if (access(path, R_OK) != 0) {
        (void)snprintf(path, sizeof(path), "out/%s", name);
    }
    return path;
}

/* The ELF addresses that objects of each class begin with. */
static void first_words(const char *path, uint64_t out_words[CLASSES]) {
    void *handle = dlopen(path, RTLD_NOW);
    ck_assert_msg(handle != NULL, "%s", dlerror());
    void *(*make)(size_t) = NULL;
    struct link_map *map = NULL;
    *(void **)&make = dlsym(handle, "vtables_make");
    ck_assert(make != NULL && dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0);
    for (size_t i = 0; i < CLASSES; i++) {
        const uint64_t *object = make(i);
        out_words[i] = *object - map->l_addr;
    }
}

struct opened {
    Dwfl *dwfl;
    struct ml_vtables vtables;
};

static struct opened open_file(const char *path, int fd) {
    static const Dwfl_Callbacks callbacks = {
        .find_elf = dwfl_build_id_find_elf,
        .find_debuginfo = dwfl_standard_find_debuginfo,
        .section_address = dwfl_offline_section_address};
    struct opened opened = {.dwfl = dwfl_begin(&callbacks)};
    Dwfl_Module *module = dwfl_report_offline(opened.dwfl, "module", path, fd);
    (void)dwfl_report_end(opened.dwfl, NULL, NULL);
    if (module != NULL) {
        ck_assert(ml_vtables_load(&opened.vtables, module, true));
    }
    return opened;
}

static void close_file(struct opened *opened) {
    ml_vtables_fini(&opened->vtables);
    dwfl_end(opened->dwfl);
}

START_TEST(each_class_is_found_by_what_its_objects_begin_with) {
    const char *path = path_of(libraries[_i]);
    uint64_t words[CLASSES];
    first_words(path, words);
    struct opened opened = open_file(path, -1);
    for (size_t i = 0; i < CLASSES; i++) {
        char *name = ml_vtables_find(&opened.vtables, words[i]);
        ck_assert_msg(name != NULL, "%s", classes[i]);
        ck_assert_str_eq(name, classes[i]);
        free(name);
        if (i + 1 < CLASSES) { /* in front of its functions: its information; the last has more */
            ck_assert_ptr_null(ml_vtables_find(&opened.vtables, words[i] - 8));
        }
        ck_assert_ptr_null(ml_vtables_find(&opened.vtables, words[i] + 1));
    }
    ck_assert_ptr_null(ml_vtables_find(&opened.vtables, 0));
    ck_assert_ptr_null(ml_vtables_find(&opened.vtables, UINT64_MAX));
    ck_assert_ptr_null(ml_vtables_find(&opened.vtables, UINT64_MAX - 7));
    close_file(&opened);
}
END_TEST

/* Somebody else's file may hold anything. */
START_TEST(a_spoilt_file_is_read_without_harm) {
    const char *path = path_of(libraries[_i]);
    uint64_t words[CLASSES];
    first_words(path, words);
    FILE *file = fopen(path, "rb");
    ck_assert(file != NULL && fseek(file, 0, SEEK_END) == 0);
    const size_t bytes = (size_t)ftell(file);
    rewind(file);
    uint8_t *whole = malloc(bytes);
    uint8_t *spoilt = malloc(bytes);
    ck_assert(whole != NULL && spoilt != NULL && fread(whole, 1, bytes, file) == bytes);
    (void)fclose(file);
    srandom(20261127);
    for (int round = 0; round < SPOILT_ROUNDS; round++) {
        memcpy(spoilt, whole, bytes);
        for (int i = 0; i < SPOILT_BYTES; i++) {
            spoilt[sizeof(Elf64_Ehdr) + (size_t)random() % (bytes - sizeof(Elf64_Ehdr))] =
                (uint8_t)random();
        }
        const size_t kept = round % 4 == 0 ? (size_t)random() % bytes : bytes;
        const int fd = memfd_create("spoilt", MFD_CLOEXEC);
        ck_assert(fd >= 0 && write(fd, spoilt, kept) == (ssize_t)kept);
        struct opened opened = open_file("spoilt", fd); /* which closes it */
        for (size_t i = 0; i < CLASSES; i++) {
            free(ml_vtables_find(&opened.vtables, words[i]));
        }
        for (uint64_t address = 0; opened.vtables.elf != NULL && address < bytes; address += 8) {
            free(ml_vtables_find(&opened.vtables, address));
        }
        close_file(&opened);
    }
    free(spoilt);
    free(whole);
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("vtables");
    tcase_set_timeout(cases, 120);
    tcase_add_loop_test(cases, each_class_is_found_by_what_its_objects_begin_with, 0, 2);
    tcase_add_loop_test(cases, a_spoilt_file_is_read_without_harm, 0, 2);
    return run_suite("tools/vtables", cases);
}
