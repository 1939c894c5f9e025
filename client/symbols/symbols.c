#include "client/symbols/loaded.h"
#include "client/symbols/symbols.h"

#include <elf.h>
#include <stdint.h>
#include <string.h>

enum {
    VERSION_HIDDEN = 0x8000, /* of an entry of DT_VERSYM: not the default version of its name */
    BLOOM_WORD_BITS = 64,
};

/* Ours; in a program that the client is linked into, the program's. */
#pragma weak _DYNAMIC

#if ML_ATTACHED
/* The list is always known. */
static int memlog_needs_a_dynamically_linked_program(
    int (*look)(struct dl_phdr_info *, size_t, void *), void *context
) {
    (void)look;
    (void)context;
    return 0;
}
#else
/* By its version: libc.a has no versions, so the linker refuses a static program, which would have
 * no allocator, and names the function that needs it. */
__asm__(".symver dl_iterate_phdr, dl_iterate_phdr@GLIBC_2.2.5");

static __attribute__((noinline)) int memlog_needs_a_dynamically_linked_program(
    int (*look)(struct dl_phdr_info *, size_t, void *), void *context
) {
    return dl_iterate_phdr(look, context);
}
#endif

/* Relocations with names. */
struct relocations {
    const ElfW(Rela) * list;
    size_t bytes;
    size_t first; /* those in front of it have no names */
};

/* One object's tables. */
struct tables {
    uintptr_t base;
    const ElfW(Sym) * symbols;
    const char *strings;
    const ElfW(Half) * versions; /* NULL: names have none */
    const uint32_t *gnu_hash;
    const uint32_t *old_hash;
    struct relocations linkage, data; /* of the procedure linkage, and of data */
    bool wants_data; /* names are looked for among variables, else among functions */
};

/* glibc puts real addresses into dynamic sections, other loaders (and the vDSO) leave offsets. */
static const void *address_of(uintptr_t base, ElfW(Addr) value) {
    return (const void *)(value < base ? base + value : value);
}

static struct tables tables_of(uintptr_t base, const ElfW(Dyn) * dynamic) {
    struct tables tables = {.base = base};
    for (const ElfW(Dyn) *entry = dynamic; entry->d_tag != DT_NULL; entry++) {
        const void *value = address_of(base, entry->d_un.d_ptr);
        switch (entry->d_tag) {
        case DT_SYMTAB:
            tables.symbols = value;
            break;
        case DT_STRTAB:
            tables.strings = value;
            break;
        case DT_VERSYM:
            tables.versions = value;
            break;
        case DT_GNU_HASH:
            tables.gnu_hash = value;
            break;
        case DT_HASH:
            tables.old_hash = value;
            break;
        case DT_JMPREL:
            tables.linkage.list = value;
            break;
        case DT_PLTRELSZ:
            tables.linkage.bytes = entry->d_un.d_val;
            break;
        case DT_RELA:
            tables.data.list = value;
            break;
        case DT_RELASZ:
            tables.data.bytes = entry->d_un.d_val;
            break;
        case DT_RELACOUNT:
            tables.data.first = entry->d_un.d_val;
            break;
        default:
            break;
        }
    }
    return tables;
}

/* Those of the objects that are there at the start, by where they stand in the loader's list. */
enum { KEPT_MAX = 64 };
static struct {
    const ElfW(Dyn) * dynamic;
    struct tables tables;
} kept[KEPT_MAX];
static bool keeps;

void ml_symbols_keep(bool on) {
    keeps = on;
}

/* Of object number `index`. */
static struct tables tables_at(uint32_t index, uintptr_t base, const ElfW(Dyn) * dynamic) {
    if (!keeps || index >= KEPT_MAX) {
        return tables_of(base, dynamic);
    }
    if (kept[index].dynamic != dynamic) {
        kept[index].tables = tables_of(base, dynamic);
        kept[index].dynamic = dynamic;
    }
    return kept[index].tables;
}

static bool is_wanted_type(const struct tables *tables, unsigned type) {
    return tables->wants_data ? type == STT_OBJECT
                              : type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE;
}

/* Whether symbol number `index` is a definition of that name to which an unversioned reference
 * binds. */
static bool defines(const struct tables *tables, uint32_t index, const char *name) {
    const ElfW(Sym) *symbol = &tables->symbols[index];
    return symbol->st_shndx != SHN_UNDEF && symbol->st_value != 0 &&
           ELF64_ST_BIND(symbol->st_info) != STB_LOCAL &&
           is_wanted_type(tables, ELF64_ST_TYPE(symbol->st_info)) &&
           (tables->versions == NULL || (tables->versions[index] & VERSION_HIDDEN) == 0) &&
           strcmp(tables->strings + symbol->st_name, name) == 0;
}

static uint32_t gnu_hash_of(const char *name) {
    uint32_t hash = 5381;
    for (const unsigned char *c = (const unsigned char *)name; *c != 0; c++) {
        hash = hash * 33 + *c;
    }
    return hash;
}

/* 0, which is no symbol: not there. */
static uint32_t find_by_gnu_hash(const struct tables *tables, const char *name, uint32_t hash) {
    const uint32_t buckets_count = tables->gnu_hash[0];
    const uint32_t first = tables->gnu_hash[1];
    const uint32_t bloom_words = tables->gnu_hash[2];
    const uint32_t bloom_shift = tables->gnu_hash[3];
    const uint64_t *bloom = (const uint64_t *)(const void *)&tables->gnu_hash[4];
    const uint32_t *buckets = (const uint32_t *)(const void *)(bloom + bloom_words);
    const uint32_t *chains = buckets + buckets_count;
    const uint64_t word = bloom[hash / BLOOM_WORD_BITS & (bloom_words - 1)];
    if ((word >> hash % BLOOM_WORD_BITS & word >> (hash >> bloom_shift) % BLOOM_WORD_BITS & 1) ==
        0) {
        return 0;
    }
    uint32_t index = buckets[hash % buckets_count];
    if (index < first) {
        return 0;
    }
    for (;; index++) {
        const uint32_t other = chains[index - first];
        if ((other | 1) == (hash | 1) && defines(tables, index, name)) {
            return index;
        }
        if ((other & 1) != 0) {
            return 0; /* the chain's end */
        }
    }
}

/* Of System V: an object that was linked with --hash-style=sysv. All of it is looked through: these
 * are few names in small libraries. */
static uint32_t find_by_old_hash(const struct tables *tables, const char *name) {
    const uint32_t symbols_count = tables->old_hash[1];
    for (uint32_t index = 1; index < symbols_count; index++) {
        if (defines(tables, index, name)) {
            return index;
        }
    }
    return 0;
}

/* 0: none. */
static uint32_t find_in(const struct tables *tables, const char *name, uint32_t hash) {
    if (tables->symbols == NULL || tables->strings == NULL) {
        return 0;
    }
    return tables->gnu_hash != NULL   ? find_by_gnu_hash(tables, name, hash)
           : tables->old_hash != NULL ? find_by_old_hash(tables, name)
                                      : 0;
}

static void *address_in(const struct tables *tables, const char *name, uint32_t hash) {
    const uint32_t index = find_in(tables, name, hash);
    if (index == 0) {
        return NULL;
    }
    const ElfW(Sym) *symbol = &tables->symbols[index];
    void *address = (void *)(tables->base + symbol->st_value);
    if (ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC) {
        return ((void *(*)(void))address)();
    }
    return address;
}

void *ml_symbol_in(uintptr_t base, const ElfW(Dyn) * dynamic, const char *name) {
    const struct tables tables = tables_of(base, dynamic);
    return address_in(&tables, name, gnu_hash_of(name));
}

/* ---- what is loaded at the start */

struct next_search {
    const char *name;
    uint32_t hash;
    uint32_t at; /* the number of the object that comes next */
    bool behind; /* this object has been passed */
    struct ml_loaded_symbol found;
};

/* True: that was it. */
static bool look_behind(
    struct next_search *search, uintptr_t base, const ElfW(Dyn) * dynamic, const char *path
) {
    const uint32_t index = search->at++;
    if (!search->behind) {
        search->behind = dynamic == &_DYNAMIC[0];
        return false;
    }
    const struct tables tables = tables_at(index, base, dynamic);
    search->found.address = address_in(&tables, search->name, search->hash);
    search->found.path = path;
    return search->found.address != NULL;
}

static const ElfW(Dyn) * dynamic_of(const struct dl_phdr_info *object) {
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type == PT_DYNAMIC) {
            return (const void *)(object->dlpi_addr + segment->p_vaddr);
        }
    }
    return NULL;
}

static int look_behind_object(struct dl_phdr_info *object, size_t bytes, void *context) {
    (void)bytes;
    const ElfW(Dyn) *dynamic = dynamic_of(object);
    return dynamic != NULL && look_behind(context, object->dlpi_addr, dynamic, object->dlpi_name);
}

struct ml_loaded_symbol ml_symbol_next(const char *name) {
    struct next_search search = {.name = name, .hash = gnu_hash_of(name)};
    bool done = false;
    if (ml_loaded() == NULL) {
        (void)memlog_needs_a_dynamically_linked_program(look_behind_object, &search);
        return search.found;
    }
    for (const struct link_map *map = ml_loaded_first(); map != NULL && !done; map = map->l_next) {
        done = look_behind(&search, map->l_addr, map->l_ld, map->l_name);
    }
    return search.found;
}

void ml_symbol_next_function(void *out_function, const char *name) {
    *(void **)out_function = ml_symbol_next(name).address;
}

bool ml_symbol_is_defined(const char *name) {
    const struct link_map *map = ml_loaded_first();
    const uint32_t hash = gnu_hash_of(name);
    for (uint32_t at = 0; map != NULL; map = map->l_next, at++) {
        const struct tables tables = tables_at(at, map->l_addr, map->l_ld);
        if (map->l_ld != &_DYNAMIC[0] && find_in(&tables, name, hash) != 0) {
            return true;
        }
    }
    return false;
}

/* ---- definitions and references */

struct ml_symbol_owner ml_symbol_first(const char *name) {
    const struct link_map *map = ml_loaded_first();
    const uint32_t hash = gnu_hash_of(name);
    for (uint32_t at = 0; map != NULL; map = map->l_next, at++) {
        const struct tables tables = tables_at(at, map->l_addr, map->l_ld);
        if (find_in(&tables, name, hash) != 0) {
            return (struct ml_symbol_owner
            ){.path = map->l_name != NULL ? map->l_name : "",
              .is_ours = map->l_ld == &_DYNAMIC[0],
              .is_program = at == 0,
              .where = map->l_ld};
        }
    }
    return (struct ml_symbol_owner){.path = NULL};
}

bool ml_symbol_is_ours(const ElfW(Dyn) * dynamic) {
    return dynamic == &_DYNAMIC[0];
}

uintptr_t ml_symbol_function_in(uintptr_t base, const ElfW(Dyn) * dynamic, const char *name) {
    const struct tables tables = tables_of(base, dynamic);
    const uint32_t index = find_in(&tables, name, gnu_hash_of(name));
    const ElfW(Sym) *symbol = index != 0 ? &tables.symbols[index] : NULL;
    return symbol != NULL && ELF64_ST_TYPE(symbol->st_info) != STT_GNU_IFUNC
               ? base + symbol->st_value
               : 0;
}

bool ml_symbol_is_linked(const char *path) {
    const struct link_map *program = ml_loaded_first();
    const char *slash = path != NULL ? strrchr(path, '/') : NULL;
    const char *file = slash != NULL ? slash + 1 : path;
    if (program == NULL || program->l_ld == NULL || file == NULL) {
        return false;
    }
    const struct tables tables = tables_of(program->l_addr, program->l_ld);
    for (const ElfW(Dyn) *entry = program->l_ld; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_NEEDED && tables.strings != NULL &&
            strcmp(tables.strings + entry->d_un.d_val, file) == 0) {
            return true;
        }
    }
    return false;
}

uintptr_t ml_symbol_data_in(uintptr_t base, const ElfW(Dyn) * dynamic, const char *name) {
    struct tables tables = tables_of(base, dynamic);
    tables.wants_data = true;
    const uint32_t index = find_in(&tables, name, gnu_hash_of(name));
    return index != 0 ? base + tables.symbols[index].st_value : 0;
}

static bool
names_one(const struct tables *tables, const struct relocations *relocations, const char *name) {
    const ElfW(Rela) *list = relocations->list;
    const size_t count = list != NULL ? relocations->bytes / sizeof(*list) : 0;
    for (size_t i = relocations->first; i < count; i++) {
        const uint64_t index = ELF64_R_SYM(list[i].r_info);
        if (index != 0 && tables->symbols[index].st_shndx == SHN_UNDEF &&
            strcmp(tables->strings + tables->symbols[index].st_name, name) == 0) {
            return true;
        }
    }
    return false;
}

bool ml_symbol_is_wanted(const char *name, const struct ml_symbol_owner *owner) {
    const struct link_map *map = ml_loaded_first();
    for (; map != NULL; map = map->l_next) {
        const struct tables tables = tables_of(map->l_addr, map->l_ld);
        if (map->l_ld == &_DYNAMIC[0] || (const void *)map->l_ld == owner->where ||
            tables.symbols == NULL || tables.strings == NULL) {
            continue;
        }
        if (names_one(&tables, &tables.linkage, name) || names_one(&tables, &tables.data, name)) {
            return true;
        }
    }
    return false;
}

/* ---- what comes later */

struct library_search {
    const char *file;
    const char *name;
    struct ml_loaded_symbol found;
};

static int look_into(struct dl_phdr_info *object, size_t bytes, void *context) {
    struct library_search *search = context;
    (void)bytes;
    const char *path = object->dlpi_name != NULL ? object->dlpi_name : "";
    const char *slash = strrchr(path, '/');
    const ElfW(Dyn) *dynamic = dynamic_of(object);
    if (dynamic == NULL || strcmp(slash != NULL ? slash + 1 : path, search->file) != 0) {
        return 0;
    }
    search->found.address = ml_symbol_in(object->dlpi_addr, dynamic, search->name);
    search->found.path = path;
    return search->found.address != NULL;
}

struct ml_loaded_symbol ml_symbol_of_library(const char *file, const char *name) {
    struct library_search search = {.file = file, .name = name};
    (void)memlog_needs_a_dynamically_linked_program(look_into, &search);
    return search.found;
}
