#include "tools/analyzer/symbols/elf_allocators.h"

#include <elfutils/libdwelf.h>
#include <gelf.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/input_file.h"

enum {
    FILES_MAX = 64,           /* that are looked into for one dump */
    SYMBOLS_MAX = 4 * 1000000 /* of one file: some 100 ms; the largest browsers have half of it */
};

/* Allocators that programs are linked with, each with a function that it always has. */
static const struct ml_elf_allocator known[] = {
    {.name = "jemalloc", .function = "je_malloc", .may_be_hooked = true},
    {.name = "jemalloc", .function = "je_mallocx", .may_be_hooked = true},
    {.name = "jemalloc", .function = "_rjem_malloc", .may_be_hooked = true},
    {.name = "jemalloc", .function = "_rjem_mallocx", .may_be_hooked = true},
    {.name = "jemalloc", .function = "_rjem_je_malloc_default", .may_be_hooked = true},
    {.name = "jemalloc", .function = "je_malloc_default", .may_be_hooked = true},
    {.name = "tcmalloc", .function = "tc_malloc", .may_be_hooked = true},
    {.name = "mimalloc", .function = "mi_malloc", .may_be_hooked = true},
    {.name = "mimalloc", .function = "mi_heap_malloc", .may_be_hooked = true},
    {.name = "rpmalloc", .function = "rpmalloc"},
    {.name = "snmalloc", .function = "sn_malloc"},
    {.name = "Go's heap", .function = "runtime.mallocgc"},
};

/* A program that is linked with memlog records itself: then the names are memlog's. */
static const char own_function[] = "memlog_start";

static const struct ml_elf_allocator *known_of(const char *name) {
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(name, known[i].function) == 0) {
            return &known[i];
        }
    }
    return NULL;
}

/* A malloc of the file's own that is not exported: only the file calls it. */
static const struct ml_elf_allocator own_malloc = {
    .name = "an allocator of its own", .function = "malloc", .may_be_hooked = true};

/* In one table of symbols; *has_malloc: a malloc of its own stands there. False: memlog is linked
 * in.
 */
static bool look_at_table(
    Elf *elf,
    Elf_Scn *section,
    const GElf_Shdr *header,
    const struct ml_elf_allocator **found,
    bool *has_malloc
) {
    Elf_Data *data = elf_getdata(section, NULL);
    const size_t count = header->sh_entsize > 0 ? header->sh_size / header->sh_entsize : 0;

    for (size_t i = 0; data && i < count && i < SYMBOLS_MAX; i++) {
        GElf_Sym symbol;
        const char *name = NULL;

        if (!gelf_getsym(data, (int)i, &symbol) || symbol.st_shndx == SHN_UNDEF ||
            GELF_ST_TYPE(symbol.st_info) != STT_FUNC) {
            continue;
        }
        name = elf_strptr(elf, header->sh_link, symbol.st_name);
        if (!name) {
            continue;
        }
        if (strcmp(name, own_function) == 0) {
            return false;
        }
        *found = *found ? *found : known_of(name);
        *has_malloc = *has_malloc || strcmp(name, own_malloc.function) == 0;
    }
    return true;
}

static bool look_at_elf(Elf *elf, struct ml_elf_allocator *out_allocator) {
    const struct ml_elf_allocator *found = NULL;
    bool has_malloc = false;

    for (Elf_Scn *section = elf_nextscn(elf, NULL); section; section = elf_nextscn(elf, section)) {
        GElf_Shdr header;

        if (gelf_getshdr(section, &header) &&
            (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM) &&
            !look_at_table(elf, section, &header, &found, &has_malloc)) {
            return false;
        }
    }
    if (!found && has_malloc) {
        found = &own_malloc;
    }
    if (found) {
        *out_allocator = *found;
    }
    return found != NULL;
}

bool ml_elf_allocator_find(
    const char *path, struct ml_profile_text build_id, struct ml_elf_allocator *out_allocator
) {
    const int fd = ml_input_regular(path);
    Elf *elf = NULL;
    const void *id = NULL;
    ssize_t id_bytes = 0;
    bool found = false;

    (void)elf_version(EV_CURRENT);
    elf = fd >= 0 ? elf_begin(fd, ELF_C_READ_MMAP, NULL) : NULL;
    id_bytes = elf && elf_kind(elf) == ELF_K_ELF ? dwelf_elf_gnu_build_id(elf, &id) : 0;
    if (id_bytes > 0 && (size_t)id_bytes == build_id.count_bytes &&
        memcmp(id, build_id.bytes, build_id.count_bytes) == 0) {
        found = look_at_elf(elf, out_allocator);
    }
    (void)elf_end(elf);
    if (fd >= 0) {
        (void)close(fd);
    }
    return found;
}

/* A file that was looked into. */
struct seen {
    const char *path;
    struct ml_profile_text build_id;
    struct ml_elf_allocator allocator; /* name NULL: it has none */
};

static bool same_file(const struct seen *seen, const char *path, struct ml_profile_text build_id) {
    return strcmp(seen->path, path) == 0 && ml_profile_text_eq(seen->build_id, build_id);
}

static const struct ml_elf_allocator *allocator_of(
    struct seen seen[FILES_MAX], size_t *count, const char *path, struct ml_profile_text build_id
) {
    for (size_t i = 0; i < *count; i++) {
        if (same_file(&seen[i], path, build_id)) {
            return seen[i].allocator.name ? &seen[i].allocator : NULL;
        }
    }
    if (*count == FILES_MAX) {
        return NULL;
    }
    seen[*count] = (struct seen){.path = path, .build_id = build_id};
    (void)!ml_elf_allocator_find(path, build_id, &seen[*count].allocator);
    (*count)++;
    return seen[*count - 1].allocator.name ? &seen[*count - 1].allocator : NULL;
}

static void
say(struct ml_profile *profile,
    struct ml_profile_process *process,
    const struct ml_elf_allocator *allocator) {
    char text[256];
    const int count = snprintf(
        text,
        sizeof text,
        "the executable has an allocator of its own (%s: %s), which memlog does not see",
        allocator->name,
        allocator->function
    );
    char *copy = ml_arena_text(&profile->arena, text, (size_t)count);

    if (copy) {
        process->unseen = (struct ml_profile_text){.bytes = copy, .count_bytes = (size_t)count};
    }
}

void ml_elf_allocators_look(struct ml_profile *profile) {
    struct seen *seen = calloc(FILES_MAX, sizeof *seen);
    size_t count = 0;

    for (size_t i = 0; seen && i < profile->processes_count; i++) {
        struct ml_profile_process *process = &profile->processes[i];
        const struct ml_elf_allocator *allocator = NULL;

        if (process->unseen.count_bytes > 0 || process->exe_path.bytes[0] != '/') {
            continue;
        }
        for (size_t m = 0; m < process->modules_count && !allocator; m++) {
            const struct ml_profile_module *module = &process->modules[m];
            if (module->path.count_bytes == 0 && module->build_id.count_bytes > 0) {
                allocator = allocator_of(seen, &count, process->exe_path.bytes, module->build_id);
            }
        }
        /* What is hooked is seen; which of the names that are known here is not told. */
        if (allocator && !(allocator->may_be_hooked && process->hooked_functions > 0)) {
            say(profile, process, allocator);
        }
    }
    free(seen);
}
