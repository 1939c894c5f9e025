#include "client/unwind/objects.h"

#include <check.h>
#include <dlfcn.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/suite.h"

static const char *plugin_path(void) {
    return access("./symbols_plugin.so", R_OK) == 0 ? "./symbols_plugin.so"
                                                    : "out/symbols_plugin.so";
}

/* Some code of each object of this process. */
static uintptr_t code_of(const char *name) {
    return (uintptr_t)dlsym(RTLD_DEFAULT, name);
}

static void assert_same(uintptr_t pc) {
    struct dl_find_object theirs;
    struct ml_object ours = {0};
    ck_assert_int_eq(_dl_find_object((void *)pc, &theirs), 0);
    ck_assert(ml_object_find(pc, &ours));
    ck_assert_uint_eq(ours.start, (uintptr_t)theirs.dlfo_map_start);
    ck_assert_uint_eq(ours.end, (uintptr_t)theirs.dlfo_map_end);
    ck_assert_uint_eq(ours.eh_frame_hdr, (uintptr_t)theirs.dlfo_eh_frame);
    ck_assert_ptr_eq(ours.map, theirs.dlfo_link_map);
}

static void assert_same_everywhere(void) {
    assert_same((uintptr_t)&assert_same);
    assert_same(code_of("malloc"));
    assert_same(getauxval(AT_SYSINFO_EHDR) + 64);
    assert_same(code_of("_dl_find_object"));
}

START_TEST(this_loader_is_asked) {
    ck_assert(ml_object_by_loader());
    assert_same_everywhere();
}
END_TEST

START_TEST(an_older_loaders_list_tells_the_same) {
    struct ml_object found;
    ml_object_use_list();
    ck_assert(!ml_object_by_loader());
    assert_same_everywhere();
    ck_assert(!ml_object_find((uintptr_t)&found, &found));
    ck_assert(!ml_object_find(16, &found));
    ck_assert(!ml_object_find(UINTPTR_MAX, &found));
}
END_TEST

START_TEST(what_comes_and_goes_is_followed_by_the_list) {
    ml_object_use_list();
    for (int round = 0; round < 4; round++) {
        struct ml_object found;
        void *handle = dlopen(plugin_path(), RTLD_NOW);
        ck_assert_msg(handle != NULL, "%s", dlerror());
        const struct link_map *map = NULL;
        ck_assert_int_eq(dlinfo(handle, RTLD_DI_LINKMAP, (void *)&map), 0);
        const uintptr_t inside = map->l_addr + 16;
        assert_same(inside);
        assert_same_everywhere();
        dlclose(handle);
        if (round != 1) {
            ck_assert(!ml_object_find(inside, &found));
        }
        assert_same_everywhere();
    }
}
END_TEST

/* Where it was, [start, end). */
static struct ml_object come_and_go(void) {
    struct ml_object found = {0};
    void *handle = dlopen(plugin_path(), RTLD_NOW);
    ck_assert_msg(handle != NULL, "%s", dlerror());
    const struct link_map *map = NULL;
    ck_assert_int_eq(dlinfo(handle, RTLD_DI_LINKMAP, (void *)&map), 0);
    assert_same(map->l_addr + 16);
    ck_assert(ml_object_find(map->l_addr + 16, &found));
    dlclose(handle);
    return found;
}

START_TEST(as_many_come_and_go_as_ever) {
    struct ml_object found;
    ml_object_use_list();
    for (int round = 0; round < ML_OBJECTS_MAX + 100; round++) {
        const uintptr_t inside = come_and_go().start + 16;
        ck_assert(!ml_object_find(inside, &found));
    }
    assert_same_everywhere();
}
END_TEST

/* Nobody looks where the last one was, and the next one is never there. */
START_TEST(as_many_come_and_go_as_ever_each_at_another_place) {
    ml_object_use_list();
    for (int round = 0; round < ML_OBJECTS_MAX + 100; round++) {
        const struct ml_object was = come_and_go();
        const size_t bytes = was.end - was.start;
        void *hole = mmap(
            (void *)was.start,
            bytes,
            PROT_NONE,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
            -1,
            0
        );
        ck_assert_ptr_eq(hole, (void *)was.start);
    }
    assert_same_everywhere();
}
END_TEST

static void *open_plugin(struct link_map **out_map) {
    void *handle = dlopen(plugin_path(), RTLD_NOW);
    ck_assert_msg(handle != NULL, "%s", dlerror());
    ck_assert_int_eq(dlinfo(handle, RTLD_DI_LINKMAP, (void *)out_map), 0);
    return handle;
}

/* What another thread's dlclose leaves of a description, and what comes after it: the old one says
 * all that it said but for its name, and the same object is loaded again at the same place. */
START_TEST(a_description_that_the_list_does_not_lead_to_is_not_taken) {
    struct ml_object found;
    struct link_map *map = NULL;
    ml_object_use_list();
    void *handle = open_plugin(&map);
    const uintptr_t inside = map->l_addr + 16;
    assert_same(inside);
    struct link_map again = *map;
    ck_assert_ptr_nonnull(map->l_prev);
    map->l_prev->l_next = &again;
    if (map->l_next != NULL) {
        map->l_next->l_prev = &again;
    }
    const bool is_found = ml_object_find(inside, &found);
    map->l_prev->l_next = map;
    if (map->l_next != NULL) {
        map->l_next->l_prev = map;
    }
    ck_assert(is_found);
    ck_assert_ptr_eq(found.map, &again);
    ck_assert(!ml_object_is_loaded(&found));
    assert_same(inside);
    ck_assert(ml_object_find(inside, &found));
    ck_assert(ml_object_is_loaded(&found));
    dlclose(handle);
    ck_assert(!ml_object_is_loaded(&found));
}
END_TEST

/* In the middle of another thread's dlclose. */
START_TEST(what_is_loaded_is_found_while_another_object_goes) {
    struct ml_object found;
    struct link_map *map = NULL;
    ml_object_use_list();
    void *handle = open_plugin(&map);
    _r_debug.r_state = RT_DELETE;
    const bool is_found = ml_object_find(map->l_addr + 16, &found);
    _r_debug.r_state = RT_CONSISTENT;
    ck_assert(is_found);
    ck_assert_ptr_eq(found.map, map);
    dlclose(handle);
}
END_TEST

/* The one in front of an object has gone, which the object does not say yet: the loader writes one
 * link after the other. */
START_TEST(a_list_that_is_just_written_is_read_to_its_end) {
    struct ml_object found;
    struct link_map *map = NULL;
    ml_object_use_list();
    void *handle = open_plugin(&map);
    struct link_map *before = map->l_prev;
    struct link_map gone = {.l_next = map, .l_prev = before};
    map->l_prev = &gone;
    const bool is_found = ml_object_find(map->l_addr + 16, &found);
    map->l_prev = before;
    ck_assert(is_found);
    dlclose(handle);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("objects");
    tcase_add_test(tcase, this_loader_is_asked);
    tcase_add_test(tcase, an_older_loaders_list_tells_the_same);
    tcase_add_test(tcase, what_comes_and_goes_is_followed_by_the_list);
    tcase_add_test(tcase, as_many_come_and_go_as_ever);
    tcase_add_test(tcase, as_many_come_and_go_as_ever_each_at_another_place);
    tcase_add_test(tcase, a_description_that_the_list_does_not_lead_to_is_not_taken);
    tcase_add_test(tcase, what_is_loaded_is_found_while_another_object_goes);
    tcase_add_test(tcase, a_list_that_is_just_written_is_read_to_its_end);
    return run_suite("client/objects", tcase);
}
