#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <check.h>

#include "client/unwind/modules.h"
#include "tests/client/unwind/oracle.h"
#include "tests/client/unwind/plugin.h"
#include "tests/suite.h"

static struct ml_oracle *oracle;

static void probe(void *context) {
    (void)context;
    ml_oracle_probe(oracle);
    __asm__ volatile("" ::: "memory");
}

struct plugin {
    void *handle;
    ml_plugin_run_fn *run;
};

/* A plugin stands beside the test's own program. */
static struct plugin plugin_open(const char *name) {
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 64);
    ck_assert_int_gt(length, 0);
    path[length] = '\0';
    char *file = strrchr(path, '/') + 1;
    (void)snprintf(file, sizeof path - (size_t)(file - path), "%s", name);
    struct plugin plugin = {.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL)};
    ck_assert_msg(plugin.handle != NULL, "%s", dlerror());
    void *symbol = dlsym(plugin.handle, "ml_plugin_run");
    memcpy(&plugin.run, &symbol, sizeof symbol);
    return plugin;
}

static uint32_t gone_count;
static uint32_t gone_last;

static void module_gone(void *context, uint32_t module_id) {
    (void)context;
    gone_count++;
    gone_last = module_id;
}

static void plugin_close(struct plugin *plugin) {
    ml_unwind_unload_begin(oracle->process);
    ck_assert_int_eq(dlclose(plugin->handle), 0);
    ml_unwind_unload_end(oracle->process, module_gone, NULL);
}

/* Run it twice at one place of the stack, so that its frames are cached, and give its module id. */
__attribute__((noinline)) static uint32_t plugin_use(const struct plugin *plugin) {
    for (int i = 0; i < 2; i++) {
        (void)plugin->run(probe, NULL, 3);
    }
    /* frames: probe, the plugin, ... */
    return ml_unwind_module(oracle->thread, oracle->thread->count - 2);
}

static void assert_right(void) {
    ck_assert_uint_gt(oracle->events, 0);
    ck_assert_uint_eq(
        oracle->wrong + oracle->wrong_nodes + oracle->wrong_memo + oracle->wrong_library, 0
    );
    ck_assert_uint_eq(oracle->broken, 0);
}

START_TEST(another_library_at_the_same_address_is_walked_by_its_own_tables) {
    oracle = ml_oracle_new(NULL, 1);
    for (int round = 0; round < 20; round++) {
        struct plugin a = plugin_open("unwind_plugin_a.so");
        ml_plugin_run_fn *place = a.run;
        uint32_t id_a = plugin_use(&a);
        plugin_close(&a);
        struct plugin b = plugin_open("unwind_plugin_b.so");
        ck_assert_msg(b.run == place, "the loader put b elsewhere: this tests nothing");
        uint32_t id_b = plugin_use(&b);
        plugin_close(&b);
        ck_assert_uint_ne(id_a, 0);
        ck_assert_uint_ne(id_b, 0);
        ck_assert_uint_ne(id_a, id_b);
    }
    assert_right();
}
END_TEST

START_TEST(without_word_of_the_dlclose_the_same_would_go_wrong) {
    oracle = ml_oracle_new(NULL, 0);
    oracle->quiet = true;
    struct plugin a = plugin_open("unwind_plugin_a.so");
    ml_plugin_run_fn *place = a.run;
    (void)plugin_use(&a);
    ck_assert_int_eq(dlclose(a.handle), 0);
    struct plugin b = plugin_open("unwind_plugin_b.so");
    ck_assert_msg(b.run == place, "the loader put b elsewhere: this tests nothing");
    (void)plugin_use(&b);
    ck_assert_uint_gt(oracle->wrong, 0); /* so the test above has teeth */
}
END_TEST

START_TEST(a_library_that_comes_back_is_another_module) {
    oracle = ml_oracle_new(NULL, 0);
    struct plugin a = plugin_open("unwind_plugin_a.so");
    uint32_t first = plugin_use(&a);
    ck_assert_uint_eq(plugin_use(&a), first);
    gone_count = 0;
    plugin_close(&a);
    ck_assert_uint_eq(gone_count, 1);
    ck_assert_uint_eq(gone_last, first);
    a = plugin_open("unwind_plugin_a.so");
    ck_assert_uint_ne(plugin_use(&a), first);
    plugin_close(&a);
    assert_right();
}
END_TEST

START_TEST(a_dlclose_that_unmaps_nothing_takes_no_module) {
    oracle = ml_oracle_new(NULL, 0);
    struct plugin a = plugin_open("unwind_plugin_a.so");
    struct plugin again = plugin_open("unwind_plugin_a.so");
    uint32_t first = plugin_use(&a);
    gone_count = 0;
    plugin_close(&again);
    ck_assert_uint_eq(gone_count, 0);
    ck_assert_uint_eq(plugin_use(&a), first);
    plugin_close(&a);
    ck_assert_uint_eq(gone_count, 1);
}
END_TEST

START_TEST(code_without_tables_is_walked_by_frame_pointer) {
    oracle = ml_oracle_new(NULL, 1);
    struct plugin c = plugin_open("unwind_plugin_c.so");
    for (long depth = 0; depth < 20; depth++) {
        (void)c.run(probe, NULL, depth);
    }
    assert_right();
    ck_assert_uint_ge(oracle->deepest, 20);
    plugin_close(&c);
}
END_TEST

/* push %rbp; mov %rsp,%rbp; sub $16,%rsp; xchg %rdi,%rsi; call *%rsi; leave; ret: f(context, probe)
 */
static const uint8_t generated[] = {
    0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10, 0xff, 0xd6, 0xc9, 0xc3};

START_TEST(generated_code_is_walked_by_frame_pointer_and_has_no_module) {
    oracle = ml_oracle_new(NULL, 0);
    void *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(code != MAP_FAILED);
    memcpy(code, generated, sizeof generated);
    ck_assert_int_eq(mprotect(code, 4096, PROT_READ | PROT_EXEC), 0);
    void (*run)(void *context, ml_plugin_probe *callee);
    memcpy(&run, &code, sizeof code);
    for (int i = 0; i < 10; i++) {
        run(NULL, probe);
    }
    assert_right();
    uint32_t frame = oracle->thread->count - 2;
    ck_assert_uint_eq(ml_unwind_module(oracle->thread, frame), 0);
    ck_assert_uint_eq(ml_unwind_address(oracle->thread, frame), (uintptr_t)code + 9);
    ck_assert_uint_ne(ml_unwind_module(oracle->thread, frame - 1), 0);
}
END_TEST

/* A frame pointer that leads nowhere, in code without tables. */
START_TEST(a_bad_frame_pointer_ends_in_a_broken_stack) {
    oracle = ml_oracle_new(NULL, 0);
    struct ml_module_seen deaf = {0};
    uintptr_t words[8] = {0};
    void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const uintptr_t bad[] = {
        1,
        8,
        (uintptr_t)&words[0] + 1,
        (uintptr_t)&words[0] - 4096 * 64,
        0x7fffffffffff8,
        UINTPTR_MAX - 7,
        UINTPTR_MAX - 15,
        (uintptr_t)1 << 47,
        (uintptr_t)code};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct ml_unwind_entry entry = {
            .pc = (uintptr_t)code + 64, .sp = (uintptr_t)&words[1], .fp = bad[i]};
        struct ml_unwind_result result = ml_unwind(oracle->process, oracle->thread, &entry, &deaf);
        ck_assert_uint_eq(result.flags & ML_UNWIND_BROKEN, ML_UNWIND_BROKEN);
        ck_assert_uint_eq(result.count, 2);
        ck_assert_int_eq(ml_unwind_kind(oracle->thread, 0), ML_FRAME_BROKEN);
        ck_assert(ml_oracle_thread_holds(oracle->thread));
    }
    struct ml_unwind_entry end = {.pc = (uintptr_t)code + 64, .sp = (uintptr_t)&words[1], .fp = 0};
    ck_assert_uint_eq(ml_unwind(oracle->process, oracle->thread, &end, &deaf).flags, 0);
}
END_TEST

START_TEST(images_tell_path_and_build_id) {
    struct ml_image image;
    ck_assert(ml_image_find((uintptr_t)&plugin_open, &image));
    ck_assert_str_eq(image.path, "");
    ck_assert_uint_le(image.start, (uintptr_t)&plugin_open);
    ck_assert_uint_gt(image.end, (uintptr_t)&plugin_open);
    ck_assert_uint_ne(image.cfi.header, 0);
    ck_assert(ml_image_find((uintptr_t)dlsym(RTLD_DEFAULT, "gnu_get_libc_version"), &image));
    ck_assert_ptr_nonnull(strstr(image.path, "libc.so.6"));
    ck_assert_uint_eq(image.build_id_bytes, 20);
    ck_assert(ml_image_find(getauxval(AT_SYSINFO_EHDR) + 64, &image));
    ck_assert_str_eq(image.path, "[vdso]");
    ck_assert(!ml_image_find((uintptr_t)&image, &image));
    ck_assert(!ml_image_find(16, &image));
}
END_TEST

START_TEST(program_headers_far_behind_are_found) {
    struct ml_image image;
    oracle = ml_oracle_new(NULL, 0);
    struct plugin plugin = plugin_open("unwind_plugin_moved.so");
    ck_assert(ml_image_find((uintptr_t)plugin.run, &image));
    ck_assert_uint_ne(image.cfi.header, 0);
    ck_assert_uint_ne(image.build_id_bytes, 0);
    (void)plugin_use(&plugin);
    plugin_close(&plugin);
    assert_right();
}
END_TEST

static atomic_bool stop;

static void *opener(void *context) {
    (void)context;
    while (!atomic_load(&stop)) {
        struct plugin a = plugin_open("unwind_plugin_c.so");
        plugin_close(&a);
    }
    return NULL;
}

START_TEST(threads_walk_while_another_opens_and_closes_libraries) {
    pthread_t thread;
    oracle = ml_oracle_new(NULL, 0); /* libunwind would take the loader's lock */
    ck_assert_int_eq(pthread_create(&thread, NULL, opener, NULL), 0);
    for (int round = 0; round < 300; round++) {
        struct plugin a = plugin_open(round % 2 == 0 ? "unwind_plugin_a.so" : "unwind_plugin_b.so");
        for (int i = 0; i < 20; i++) {
            (void)plugin_use(&a);
        }
        plugin_close(&a);
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    assert_right();
}
END_TEST

static bool open_in_loader;

static void probe_while_loading(void *context) {
    probe(context);
    open_in_loader = ml_unwind_checker_may_open(oracle->thread);
}

START_TEST(the_checker_is_not_opened_inside_the_loader) {
    char address[32];
    oracle = ml_oracle_new(NULL, 0);
    probe(NULL);
    ck_assert(ml_unwind_checker_may_open(oracle->thread));
    (void)snprintf(address, sizeof address, "%lx", (unsigned long)(uintptr_t)probe_while_loading);
    ck_assert_int_eq(setenv(ML_PLUGIN_VARIABLE, address, 1), 0);
    open_in_loader = true;
    struct plugin c = plugin_open("unwind_plugin_c.so");
    ck_assert(!open_in_loader);
    plugin_close(&c);
    assert_right();
    ml_unwind_thread_clear(oracle->thread);
    ck_assert(!ml_unwind_checker_may_open(oracle->thread));
}
END_TEST

/* The loader's own word on where a module's code is, in addresses and in the file. */
static int assert_code(struct dl_phdr_info *info, size_t bytes, void *checked) {
    struct ml_image image;
    (void)bytes;
    for (uint32_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type == PT_LOAD && (header->p_flags & PF_X) != 0) {
            ck_assert(ml_image_find(info->dlpi_addr + header->p_vaddr, &image));
            ck_assert_uint_eq(image.code_address, header->p_vaddr);
            ck_assert_uint_eq(image.code_offset, header->p_offset);
            *(int *)checked += 1;
            return 0;
        }
    }
    return 0;
}

START_TEST(images_tell_where_their_code_is) {
    int checked = 0;
    ck_assert_int_eq(dl_iterate_phdr(assert_code, &checked), 0);
    ck_assert_int_ge(checked, 3); /* the program, libc, the loader ... */
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("modules");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, another_library_at_the_same_address_is_walked_by_its_own_tables);
    tcase_add_test(tcase, without_word_of_the_dlclose_the_same_would_go_wrong);
    tcase_add_test(tcase, a_library_that_comes_back_is_another_module);
    tcase_add_test(tcase, a_dlclose_that_unmaps_nothing_takes_no_module);
    tcase_add_test(tcase, code_without_tables_is_walked_by_frame_pointer);
    tcase_add_test(tcase, generated_code_is_walked_by_frame_pointer_and_has_no_module);
    tcase_add_test(tcase, a_bad_frame_pointer_ends_in_a_broken_stack);
    tcase_add_test(tcase, images_tell_path_and_build_id);
    tcase_add_test(tcase, images_tell_where_their_code_is);
    tcase_add_test(tcase, program_headers_far_behind_are_found);
    tcase_add_test(tcase, the_checker_is_not_opened_inside_the_loader);
    tcase_add_test(tcase, threads_walk_while_another_opens_and_closes_libraries);
    return run_suite("client/modules and the unwinder", tcase);
}
