#include "client/unwind/bound.h"

#include <check.h>
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/unwind/objects.h"
#include "tests/suite.h"

enum { PAGE = 4096 };

static void *opened(const char *name, int how) {
    char path[64];
    (void)snprintf(path, sizeof(path), "./bound_plugin%s.so", name);
    if (access(path, R_OK) != 0) {
        (void)snprintf(path, sizeof(path), "out/bound_plugin%s.so", name);
    }
    void *handle = dlopen(path, how);
    ck_assert_msg(handle != NULL, "%s", dlerror());
    return handle;
}

static const struct link_map *map_of(void *handle) {
    struct link_map *map = NULL;
    ck_assert_int_eq(dlinfo(handle, RTLD_DI_LINKMAP, &map), 0);
    return map;
}

static enum ml_bound look(const struct ml_bound_family *family, void *handle) {
    const struct link_map *map = map_of(handle);
    struct ml_object object;
    ck_assert(ml_object_find((uintptr_t)map->l_ld, &object));
    return ml_bound_look(family, map->l_addr, map->l_ld, object.start, object.end);
}

static const struct link_map *last_at_start(void) {
    const struct link_map *map = _r_debug.r_map;
    while (map->l_next != NULL) {
        map = map->l_next;
    }
    return map;
}

/* Libc's functions are another allocator's: this process has no memlog before them. */
static struct ml_bound_family libc_is_other(void) {
    struct ml_bound_family family;
    ml_bound_family_find(&family, _r_debug.r_map, last_at_start());
    return family;
}

/* They are memlog's. */
static struct ml_bound_family libc_is_ours(void) {
    const struct ml_bound_family other = libc_is_other();
    struct ml_bound_family family = {.others_count = 0};
    for (uint32_t i = 0; i < ML_BOUND_NAMES && i < other.others_count; i++) {
        family.own[i] = other.others[i];
    }
    return family;
}

typedef void *take_fn(size_t);

static void *take(void *handle) {
    take_fn *function = NULL;
    void *address = dlsym(handle, "ml_bound_take");
    memcpy(&function, &address, sizeof(function));
    return function(100);
}

START_TEST(the_family_is_what_the_objects_of_the_start_define) {
    static const char *const names[] = {"malloc", "calloc", "realloc", "free", "posix_memalign"};
    const struct ml_bound_family family = libc_is_other();
    ck_assert_uint_ge(family.others_count, 9);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const uintptr_t wanted = (uintptr_t)dlsym(RTLD_DEFAULT, names[i]);
        bool found = false;
        for (uint32_t k = 0; k < family.others_count; k++) {
            found = found || family.others[k] == wanted;
        }
        ck_assert_msg(found, "%s", names[i]);
    }
    for (uint32_t i = 0; i < ML_BOUND_NAMES; i++) {
        ck_assert_uint_eq(family.own[i], 0);
    }
}
END_TEST

START_TEST(a_slot_that_holds_another_allocators_function_is_proof) {
    const struct ml_bound_family family = libc_is_other();
    ck_assert_int_eq(look(&family, opened("", RTLD_NOW)), ML_BOUND_PAST);
}
END_TEST

START_TEST(a_slot_that_is_not_bound_says_nothing_until_it_is_called) {
    const struct ml_bound_family family = libc_is_other();
    void *handle = opened("", RTLD_LAZY);
    ck_assert_int_eq(look(&family, handle), ML_BOUND_OPEN);
    free(take(handle));
    ck_assert_int_eq(look(&family, handle), ML_BOUND_PAST);
}
END_TEST

START_TEST(what_comes_to_memlog_is_settled) {
    const struct ml_bound_family family = libc_is_ours();
    ck_assert_int_eq(look(&family, opened("", RTLD_NOW)), ML_BOUND_SETTLED);
}
END_TEST

START_TEST(one_call_that_came_to_memlog_settles_an_object_that_binds_lazily) {
    const struct ml_bound_family family = libc_is_ours();
    void *handle = opened("", RTLD_LAZY);
    ck_assert_int_eq(look(&family, handle), ML_BOUND_OPEN);
    free(take(handle));
    ck_assert_int_eq(look(&family, handle), ML_BOUND_SETTLED);
}
END_TEST

START_TEST(an_object_that_asks_for_no_allocator_is_settled) {
    const struct ml_bound_family family = libc_is_other();
    ck_assert_int_eq(look(&family, opened("_none", RTLD_NOW)), ML_BOUND_SETTLED);
}
END_TEST

START_TEST(a_pointer_among_data_is_a_slot_too) {
    const struct ml_bound_family family = libc_is_other();
    ck_assert_int_eq(look(&family, opened("_data", RTLD_LAZY)), ML_BOUND_PAST);
}
END_TEST

START_TEST(an_allocator_of_its_own_is_proof_where_it_is_what_it_calls) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    const struct ml_bound_family family = libc_is_ours();
    ck_assert_int_eq(look(&family, opened("_own", RTLD_NOW | RTLD_DEEPBIND)), ML_BOUND_PAST);
#endif
}
END_TEST

START_TEST(an_allocator_of_its_own_that_nobody_calls_is_none) {
    const struct ml_bound_family family = libc_is_ours();
    ck_assert_int_eq(look(&family, opened("_own", RTLD_NOW)), ML_BOUND_SETTLED);
}
END_TEST

/* ---- whoever writes there writes anything */

static uint64_t next_random(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 16;
}

START_TEST(a_dynamic_section_of_anything_is_read_without_harm) {
    static const int64_t tags[] = {
        DT_NULL,
        DT_SYMTAB,
        DT_STRTAB,
        DT_JMPREL,
        DT_PLTRELSZ,
        DT_PLTREL,
        DT_RELA,
        DT_RELASZ,
        DT_RELACOUNT};
    uint8_t *pages = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
    ck_assert_ptr_ne(pages, MAP_FAILED);
    ck_assert_int_eq(munmap(pages + 4 * PAGE, PAGE), 0); /* three pages, a hole, three pages */
    const struct ml_bound_family family = libc_is_other();
    uint64_t random = 1;
    for (uint32_t i = 0; i < 4 * PAGE / 8; i++) {
        ((uint64_t *)(void *)pages)[i] = next_random(&random) % (8 * PAGE);
    }
    int proofs = 0;
    for (int round = 0; round < 20000; round++) {
        /* At a page's end, before the hole: some have no end of their own. */
        const uint32_t count = 1 + (uint32_t)(next_random(&random) % 12);
        ElfW(Dyn) *dynamic = (ElfW(Dyn) *)(void *)(pages + 4 * PAGE) - count;
        for (uint32_t i = 0; i < count; i++) {
            dynamic[i].d_tag = tags[next_random(&random) % (sizeof(tags) / sizeof(tags[0]))];
            const uint64_t words[] = {
                0,
                DT_RELA,
                UINT64_MAX,
                UINT64_MAX / 24 * 24,
                (uintptr_t)pages + next_random(&random) % (8 * PAGE),
                next_random(&random) % (8 * PAGE),
                (uintptr_t)pages + 4 * PAGE - 8,
                UINT64_C(0x8000000000000000)};
            dynamic[i].d_un.d_val = words[next_random(&random) % 8];
        }
        const uintptr_t base = (uintptr_t)pages;
        proofs += ml_bound_look(&family, base, dynamic, base, base + 8 * PAGE) == ML_BOUND_PAST;
    }
    ck_assert_int_eq(proofs, 0);
    ck_assert_int_eq(
        ml_bound_look(&family, 0, (const ElfW(Dyn) *)16, 0, UINTPTR_MAX), ML_BOUND_OPEN
    );
    ck_assert_int_eq(
        ml_bound_look(&family, 0, (const ElfW(Dyn) *)(void *)(pages + 4 * PAGE), 1, 0),
        ML_BOUND_OPEN
    );
}
END_TEST

START_TEST(relocations_without_end_are_given_up) {
    const size_t bytes = (size_t)2 * ML_BOUND_RELOCATIONS_MAX * sizeof(ElfW(Rela));
    /* Zeros, of which the kernel keeps one page. */
    uint8_t *table = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, -1, 0);
    ck_assert_ptr_ne(table, MAP_FAILED);
    const ElfW(Dyn) dynamic[] = {
        {.d_tag = DT_RELA, .d_un = {.d_ptr = (uintptr_t)table}},
        {.d_tag = DT_RELASZ, .d_un = {.d_val = bytes}},
        {.d_tag = DT_NULL}};
    const struct ml_bound_family family = libc_is_other();
    ck_assert_int_eq(
        ml_bound_look(&family, 1, dynamic, (uintptr_t)table, (uintptr_t)table + bytes),
        ML_BOUND_OPEN
    );
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("bound");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, the_family_is_what_the_objects_of_the_start_define);
    tcase_add_test(tests, a_slot_that_holds_another_allocators_function_is_proof);
    tcase_add_test(tests, a_slot_that_is_not_bound_says_nothing_until_it_is_called);
    tcase_add_test(tests, what_comes_to_memlog_is_settled);
    tcase_add_test(tests, one_call_that_came_to_memlog_settles_an_object_that_binds_lazily);
    tcase_add_test(tests, an_object_that_asks_for_no_allocator_is_settled);
    tcase_add_test(tests, a_pointer_among_data_is_a_slot_too);
    tcase_add_test(tests, an_allocator_of_its_own_is_proof_where_it_is_what_it_calls);
    tcase_add_test(tests, an_allocator_of_its_own_that_nobody_calls_is_none);
    tcase_add_test(tests, a_dynamic_section_of_anything_is_read_without_harm);
    tcase_add_test(tests, relocations_without_end_are_given_up);
    return run_suite("bound", tests);
}
