/* Debian's allocators as files: each member that they export is known with its family and can be
 * patched, and no function is left out by an oversight. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <check.h>

#include "base/entry/allocator_family.h"
#include "base/entry/elf_functions.h"
#include "base/entry/plan.h"
#include "base/entry/reach.h"
#include "tests/suite.h"

struct survey {
    const uint8_t *file;
    size_t file_bytes;
    bool is_nothing_else; /* than an allocator */
    size_t members;
    size_t refused; /* of those that are not needed */
};

/* They have to do with blocks, and allocate, release or resize none; or they are what
 * allocator_call.h says. */
static const char *const others[] = {
    "malloc_usable_size",
    "malloc_size",
    "malloc_good_size",
    "malloc_stats",
    "nallocx",
    "sallocx",
    "mallctl",
    "MallocExtension",
    "MallocHook",
    "TCMalloc",
    "tc_malloc_size",
    "tc_malloc_stats",
    "tc_mallopt",
    "tc_mallinfo",
    "tc_nallocx",
    "tc_query_new_mode",
    "tc_set_new_mode",
    "mi_malloc_size",
    "mi_malloc_good_size",
    "mi_malloc_usable_size",
    "mi_heap_new",
    "mi_heap_try_new",
    "mi_heap_delete",
    "mi_theap_delete",
    "mi_pprof_profiler_",
    "mi_subproc_new",
    "mi_subproc_delete",
    "mi_register_deferred_free",
    "mi_aligned_offset_recalloc",
    "mi_recalloc_aligned_at",
    "mi_heap_recalloc_aligned",
    "mi_heap_rezalloc_aligned_at",
    "mi_heap_realloc_aligned_at",
    "mi_heap_calloc_aligned_at",
    "mi_reallocarr",
    /* mimalloc's names that other systems have, aliases of members */
    "reallocarr",
    "_aligned_malloc",
    "vfree",
};

static bool is_other(const char *name) {
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (strncmp(name, others[i], strlen(others[i])) == 0) {
            return true;
        }
    }
    return strncmp(name, "_Z", 2) == 0 && name[2] != 'n' && name[2] != 'd';
}

static bool sounds_like_one(const char *name) {
    return strstr(name, "alloc") != NULL || strstr(name, "free") != NULL ||
           strstr(name, "memalign") != NULL || strstr(name, "new") != NULL ||
           strstr(name, "delete") != NULL || strstr(name, "_Zn") != NULL ||
           strstr(name, "_Zd") != NULL;
}

static bool note(void *context, const struct ml_elf_function *found) {
    struct survey *survey = context;
    struct ml_allocator_function member;
    struct ml_entry_plan plan;
    if (!ml_allocator_function_of(found->name, found->name_bytes, NULL, &member)) {
        ck_assert_msg(
            !survey->is_nothing_else || !sounds_like_one(found->name) || is_other(found->name),
            "%s is no member",
            found->name
        );
        return true;
    }
    const uint64_t text_address = found->address - found->offset;
    const struct ml_entry_function function = {
        .code = survey->file + found->offset,
        .code_bytes = found->behind_bytes,
        .address = found->address,
        .size = found->size,
        .text = survey->file + found->offset,
        .text_bytes = found->behind_bytes,
        .text_address = found->address};
    const enum ml_entry_refusal refusal =
        ml_entry_plan(&function, text_address + (1 << 28), text_address + (1 << 28) + 64, &plan);
    survey->members++;
    const struct ml_entry_function in_file = {
        .code = function.code,
        .code_bytes = function.code_bytes,
        .address = function.address,
        .size = function.size,
        .text = survey->file,
        .text_bytes = survey->file_bytes,
        .text_address = text_address};
    ck_assert_msg(
        !member.call.is_needed || ml_entry_reaches_out(&in_file), "%s reaches nobody", found->name
    );
    if (refusal != ML_ENTRY_PLANNED) {
        survey->refused++;
        ck_assert_msg(
            !member.call.is_needed, "%s: %s", found->name, ml_entry_refusal_text(refusal)
        );
    }
    return true;
}

static struct survey survey_of(const char *path, bool is_nothing_else) {
    struct stat status;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_msg(fd >= 0 && fstat(fd, &status) == 0, "no %s: tools/dev/setup test", path);
    const size_t bytes = (size_t)status.st_size;
    struct survey survey = {
        .file = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0),
        .file_bytes = bytes,
        .is_nothing_else = is_nothing_else};
    ck_assert_ptr_ne(survey.file, MAP_FAILED);
    (void)close(fd);
    ck_assert_int_eq(ml_elf_functions_each(survey.file, bytes, note, &survey), ML_ELF_READ);
    (void)munmap((void *)(uintptr_t)survey.file, bytes);
    return survey;
}

#define FOLDER "/usr/lib/x86_64-linux-gnu/"

START_TEST(every_function_of_an_allocator_is_known_and_can_be_patched) {
    static const struct {
        const char *path;
        const char *newer; /* where that is not there: its next version, or NULL */
        bool is_nothing_else;
        size_t members; /* at least */
        size_t refused; /* at most, of those that pass on what they are asked for */
    } cases[] = {
        {FOLDER "libjemalloc.so.2", NULL, true, 33, 0},
        {FOLDER "libtcmalloc_minimal.so.4", NULL, true, 70, 0},
        {FOLDER "libmimalloc.so.2.0", FOLDER "libmimalloc.so.3", true, 100, 5},
        {FOLDER "libc.so.6", NULL, false, 10, 0},
        {"/usr/lib/chromium/chromium", NULL, false, 35, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const bool is_newer = cases[i].newer != NULL && access(cases[i].path, F_OK) != 0;
        const char *path = is_newer ? cases[i].newer : cases[i].path;
        const struct survey survey = survey_of(path, cases[i].is_nothing_else);
        ck_assert_msg(
            survey.members >= cases[i].members && survey.refused <= cases[i].refused,
            "%s: %zu members, %zu refused",
            path,
            survey.members,
            survey.refused
        );
    }
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("allocators");
    tcase_set_timeout(tcase, 60); /* Chromium is large */
    tcase_add_test(tcase, every_function_of_an_allocator_is_known_and_can_be_patched);
    return run_suite("base/entry/allocators", tcase);
}
