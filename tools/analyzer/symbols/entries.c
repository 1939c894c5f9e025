#include "tools/analyzer/symbols/entries.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/entry/elf_functions.h"
#include "base/input_file.h"

/* As the kernel loads a program that may lie anywhere: above what it may be linked for, so that
 * there is room below it. Where, does not matter to a plan, as code there is relative. */
#define BASE (UINT64_C(1) << 40)

/* As far below the program as client/patch/near.c looks first. */
enum { ROOM_BELOW_BYTES = 1 << 20 };

/* errno is set where it cannot be. */
static bool map_file(struct ml_entries *entries, const char *path) {
    struct stat about;
    const int fd = ml_input_regular(path);
    if (fd < 0) {
        return false;
    }
    entries->file = MAP_FAILED;
    if (fstat(fd, &about) == 0) {
        entries->file_bytes = (size_t)about.st_size;
        entries->file = mmap(NULL, entries->file_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    const int error = errno;
    (void)close(fd);
    errno = error;
    return entries->file != MAP_FAILED;
}

static bool note_table(void *context, const struct ml_elf_function *function) {
    bool *is_stripped = context;
    *is_stripped = function->is_dynamic;
    return *is_stripped;
}

static void find_code(struct ml_entries *entries) {
    struct ml_elf_code code[ML_ELF_SEGMENTS_MAX];
    const uint32_t count = ml_elf_code_find(entries->file, entries->file_bytes, code);
    struct ml_families *families = &entries->families;
    for (uint32_t i = 0; i < count && i < ML_FAMILIES_CODE_MAX; i++) {
        entries->code[i] = (struct ml_families_code
        ){.bytes = (const uint8_t *)entries->file + code[i].offset,
          .count_bytes = (size_t)code[i].count_bytes,
          .address = BASE + code[i].address};
        families->code_count = i + 1;
    }
    families->code = entries->code;
}

enum ml_entries_trouble ml_entries_open(
    struct ml_entries *out_entries, const char *path, const struct ml_allocator_families *given
) {
    struct ml_families *families = &out_entries->families;
    uint64_t lowest = 0;
    memset(out_entries, 0, sizeof *out_entries);
    if (!map_file(out_entries, path)) {
        /* An empty file cannot be mapped. */
        return errno == EINVAL ? ML_ENTRIES_NO_PROGRAM : ML_ENTRIES_UNREADABLE;
    }
    if (ml_elf_lowest_load(out_entries->file, out_entries->file_bytes, &lowest) != ML_ELF_READ) {
        ml_entries_close(out_entries);
        return ML_ENTRIES_NO_PROGRAM;
    }
    families->file = out_entries->file;
    families->file_bytes = out_entries->file_bytes;
    families->base = BASE;
    families->given = *given;
    families->may_push_calls = true; /* but where the program runs with a shadow stack */
    families->may_keep = true;
    find_code(out_entries);
    out_entries->is_stripped = true;
    (void)ml_elf_functions_each(
        families->file, families->file_bytes, note_table, &out_entries->is_stripped
    );
    if (ml_families_find(families)) {
        (void)ml_families_plan(families, BASE + lowest - ROOM_BELOW_BYTES);
    }
    return ML_ENTRIES_READ;
}

void ml_entries_close(struct ml_entries *entries) {
    (void)munmap(entries->file, entries->file_bytes);
    entries->file = NULL;
}

bool ml_entries_has(struct ml_entries *entries, uint32_t family) {
    struct ml_families *families = &entries->families;
    for (uint32_t i = 0; i < families->count; i++) {
        if (ml_families_of(families, &families->functions[i]) == &families->families[family]) {
            return true;
        }
    }
    return false;
}

enum ml_entries_fate ml_entries_fate_of(const struct ml_entries *entries, uint32_t family) {
    const struct ml_families *families = &entries->families;
    if (families->has_sanitizer) {
        return ML_ENTRIES_SANITIZED;
    }
    if (families->has_too_many) {
        return ML_ENTRIES_MANY;
    }
    if (families->families[family].is_wanted) {
        return ML_ENTRIES_HOOKED;
    }
    return families->families[family].refused != NULL ? ML_ENTRIES_REFUSED : ML_ENTRIES_PARTIAL;
}

void ml_entries_name(
    struct ml_entries *entries, uint32_t family, char out_name[ML_ENTRIES_TEXT_BYTES]
) {
    struct ml_families *families = &entries->families;
    bool is_named[ML_FAMILIES_MAX] = {false};
    size_t used = 0;
    out_name[0] = '\0';
    for (uint32_t i = 0; i < families->count; i++) {
        const struct ml_families_function *one = &families->functions[i];
        if (ml_families_of(families, one) == &families->families[family] &&
            !is_named[one->family] && used < ML_ENTRIES_TEXT_BYTES) {
            is_named[one->family] = true;
            used += (size_t)snprintf(
                out_name + used,
                ML_ENTRIES_TEXT_BYTES - used,
                "%s%s",
                used > 0 ? ", " : "",
                ml_allocator_family_name(one->family, &families->given)
            );
        }
    }
}

static const char *lack_of(const struct ml_allocator_family *family) {
    if ((family->acts & 1U << ML_ALLOCATOR_ALLOCATE) == 0) {
        return "it has no function that allocates";
    }
    if ((family->acts & 1U << ML_ALLOCATOR_RELEASE) == 0) {
        return "it has no function that releases";
    }
    return "it has not all of malloc, free, calloc and realloc";
}

void ml_entries_reason(
    const struct ml_entries *entries, uint32_t family, char out_reason[ML_ENTRIES_TEXT_BYTES]
) {
    const struct ml_allocator_family *one = &entries->families.families[family];
    const char *reason = "";
    const char *function = "";
    switch (ml_entries_fate_of(entries, family)) {
    case ML_ENTRIES_HOOKED:
        break;
    case ML_ENTRIES_REFUSED:
        function = one->refused->name;
        reason = ml_entry_refusal_text(one->refused->refusal);
        break;
    case ML_ENTRIES_PARTIAL:
        reason = lack_of(one);
        break;
    case ML_ENTRIES_MANY:
        reason = "it has more functions than memlog has room for";
        break;
    case ML_ENTRIES_SANITIZED:
        reason = "a sanitizer's run-time is in the executable";
        break;
    }
    (void)snprintf(
        out_reason,
        ML_ENTRIES_TEXT_BYTES,
        "%s%s%s",
        function,
        function[0] != '\0' ? ": " : "",
        reason
    );
}

bool ml_entries_is_missed(const struct ml_entries *entries, uint32_t family) {
    const struct ml_allocator_family *one = &entries->families.families[family];
    const enum ml_entries_fate fate = ml_entries_fate_of(entries, family);
    return fate != ML_ENTRIES_HOOKED &&
           (fate != ML_ENTRIES_PARTIAL || one->is_prefixed || one->basic != 0);
}
