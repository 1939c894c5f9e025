#include "client/patch/inlined.h"

#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/entry/dispatch.h"
#include "client/state/sys.h"

enum {
    TABLE_WORDS = 4, /* of the table's first functions */
    /* More than an allocator's own functions, as the compiler may have made variants of them:
     * Chromium has 28 loads where it is called by its functions alone, and 3,458 where not. */
    LOADS_MANY = 100,
    LOOKED_AT_BYTES = 32 << 20, /* of the code, which may be 260 MiB: some 30 ms */
    WINDOW_BYTES = 1 << 20
};

/* In a part of the executable that is loaded, and can be read. */
static bool is_loaded(const struct ml_object_file *object, uintptr_t address, size_t count_bytes) {
    const ElfW(Ehdr) *header = (const void *)object->file;
    const ElfW(Phdr) *segments = (const void *)(object->file + header->e_phoff);
    for (uint32_t i = 0; i < header->e_phnum; i++) {
        const uintptr_t start = object->base + segments[i].p_vaddr;
        if (segments[i].p_type == PT_LOAD && (segments[i].p_flags & PF_R) != 0 &&
            address >= start && address - start < segments[i].p_memsz &&
            count_bytes <= segments[i].p_memsz - (address - start)) {
            return true;
        }
    }
    return false;
}

static const struct ml_families_code *
code_at(const struct ml_object_file *object, uint64_t address, size_t count_bytes) {
    for (uint32_t i = 0; i < object->code_count; i++) {
        const struct ml_families_code *code = &object->code[i];
        if (address >= code->address && address - code->address < code->count_bytes &&
            count_bytes <= code->count_bytes - (address - code->address)) {
            return code;
        }
    }
    return NULL;
}

/* The variable that its malloc loads first; 0: there is no such function. */
static uint64_t variable_of(const struct ml_object_file *object, struct ml_families *families) {
    for (uint32_t i = 0; i < families->count; i++) {
        const struct ml_families_function *one = &families->functions[i];
        const struct ml_families_code *code = code_at(object, one->address, one->size_bytes);
        if (code != NULL && ml_families_takes(families, one) && strcmp(one->name, "malloc") == 0) {
            return ml_dispatch_variable(
                code->bytes + (one->address - code->address), one->size_bytes, one->address
            );
        }
    }
    return 0;
}

/* The loader has put in addresses: no code of the program has run. */
static bool leads_to_functions(const struct ml_object_file *object, uint64_t variable) {
    uintptr_t table = 0;
    uintptr_t words[TABLE_WORDS];
    bool all = variable % sizeof(table) == 0 && is_loaded(object, variable, sizeof(table));
    if (all) {
        memcpy(&table, (const void *)variable, sizeof(table));
        all = table % sizeof(table) == 0 && is_loaded(object, table, sizeof(words));
    }
    if (all) {
        memcpy(words, (const void *)table, sizeof(words));
    }
    for (size_t i = 0; all && i < TABLE_WORDS; i++) {
        all = code_at(object, words[i], 1) != NULL;
    }
    return all;
}

/* The file's pages are let go behind each window: the program's resident memory stays as it is. */
static size_t loads_in(const struct ml_families_code *code, uint64_t variable, size_t most) {
    enum { PAGE_BYTES = 4096 };
    size_t count = 0;
    size_t rest = code->count_bytes < LOOKED_AT_BYTES ? code->count_bytes : LOOKED_AT_BYTES;
    for (size_t at = 0; at < rest && count < most; at += WINDOW_BYTES) {
        const size_t bytes = rest - at < WINDOW_BYTES ? rest - at : WINDOW_BYTES;
        const uintptr_t page = (uintptr_t)(code->bytes + at) & ~(uintptr_t)(PAGE_BYTES - 1);
        count +=
            ml_dispatch_loads(code->bytes + at, bytes, code->address + at, variable, most - count);
        (void)ml_sys3(SYS_madvise, (long)page, (long)bytes, MADV_DONTNEED);
    }
    return count;
}

bool ml_inlined_is(const struct ml_object_file *object, struct ml_families *families) {
    const uint64_t variable = variable_of(object, families);
    size_t count = 0;
    if (variable == 0 || !leads_to_functions(object, variable)) {
        return false;
    }
    for (uint32_t i = 0; i < object->code_count; i++) {
        count += loads_in(&object->code[i], variable, LOADS_MANY - count);
    }
    return count >= LOADS_MANY;
}
