#include "client/unwind/bound.h"

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "client/symbols/symbols.h"
#include "client/unwind/arch.h"
#include "client/unwind/foreign.h"
#include "client/unwind/objects.h"

enum {
    ENTRIES_MAX = 256, /* of a dynamic section; linkers write some 30 */
    NAME_BYTES = 16,   /* a row, not a pointer: a pointer is a relocation in every process */
    PAGES_KEPT = 64    /* 512 bytes of stack; symbols and slots come in no order of theirs */
};

/* operator new and delete are not among them: they come down to these, or to a function of an
 * allocator that has these too. */
static const char names[ML_BOUND_NAMES][NAME_BYTES] = {
    "malloc",
    "calloc",
    "realloc",
    "free",
    "memalign",
    "aligned_alloc",
    "posix_memalign",
    "valloc",
    "pvalloc",
    "reallocarray",
};

void ml_bound_family_add(struct ml_bound_family *family, uintptr_t other) {
    if (family->others_count == ML_BOUND_OTHERS_MAX) {
        return;
    }
    family->lowest = family->others_count == 0 || other < family->lowest ? other : family->lowest;
    family->highest = other > family->highest ? other : family->highest;
    family->others[family->others_count++] = other;
}

/* Whoever stands in front of memlog is none of the others: all calls reach it, and that is told
 * elsewhere (client/symbols/allocators.h). */
static void
add_functions_of(struct ml_bound_family *family, const struct link_map *map, bool is_ours) {
    for (uint32_t i = 0; i < ML_BOUND_NAMES; i++) {
        const uintptr_t address = ml_symbol_function_in(map->l_addr, map->l_ld, names[i]);
        if (is_ours) {
            family->own[i] = address;
        } else if (address != 0) {
            ml_bound_family_add(family, address);
        }
    }
}

void ml_bound_family_find(
    struct ml_bound_family *out_family, const struct link_map *first, const struct link_map *last
) {
    struct ml_foreign foreign = {0};
    bool is_behind = false;
    *out_family = (struct ml_bound_family){.others_count = 0};
    const struct link_map *map = first;
    for (uint32_t i = 0; i < ML_OBJECTS_MAX && map != NULL; i++) {
        struct ml_object object;
        if (!ml_foreign_readable(&foreign, map, sizeof(*map))) {
            return;
        }
        /* The loader's own word that this is what it says: the program may have written there. */
        const bool is_ours = ml_symbol_is_ours(map->l_ld);
        is_behind = is_behind || is_ours;
        if (is_behind && ml_object_find((uintptr_t)map->l_ld, &object) && object.map == map) {
            add_functions_of(out_family, map, is_ours);
        }
        map = map == last ? NULL : map->l_next;
    }
}

/* One object, as its dynamic section tells it. */
struct look {
    const struct ml_bound_family *family;
    uintptr_t base, start, end;
    const ElfW(Sym) * symbols;
    const char *strings;
    const ElfW(Rela) * tables[2]; /* of the procedure linkage, and of data */
    uint64_t bytes[2];
    uint64_t relative_count;             /* of those of data, which have no names, come first */
    struct ml_foreign pages[PAGES_KEPT]; /* by a page's number: what has been asked for already */
    bool is_begun;                       /* a slot holds an address beyond the object */
    bool has_open;                       /* a slot of the procedure linkage is still to be bound */
    bool comes_here;                     /* a slot holds a function of memlog's */
};

static bool can_read(struct look *look, const void *at, size_t bytes) {
    struct ml_foreign *page = &look->pages[(uintptr_t)at / ML_ARCH_PAGE_BYTES % PAGES_KEPT];
    return ml_foreign_readable(page, at, bytes);
}

/* Sanitizers have no say in what other objects hold. */
#define FOREIGN __attribute__((no_sanitize("address", "thread", "undefined")))

FOREIGN static bool read_dynamic(struct look *look, const ElfW(Dyn) * dynamic) {
    bool has_addends = true;
    for (uint32_t i = 0; i < ENTRIES_MAX; i++) {
        if (!can_read(look, &dynamic[i], sizeof(dynamic[i]))) {
            return false;
        }
        const uint64_t value = dynamic[i].d_un.d_val;
        /* glibc has put addresses into it, but for objects whose section it may not write. */
        const void *address = (const void *)(value < look->base ? look->base + value : value);
        switch (dynamic[i].d_tag) {
        case DT_NULL:
            return has_addends;
        case DT_SYMTAB:
            look->symbols = address;
            break;
        case DT_STRTAB:
            look->strings = address;
            break;
        case DT_JMPREL:
            look->tables[0] = address;
            break;
        case DT_PLTRELSZ:
            look->bytes[0] = value;
            break;
        case DT_PLTREL:
            has_addends = value == DT_RELA;
            break;
        case DT_RELA:
            look->tables[1] = address;
            break;
        case DT_RELASZ:
            look->bytes[1] = value;
            break;
        case DT_RELACOUNT:
            look->relative_count = value;
            break;
        default:
            break;
        }
    }
    return false;
}

/* What a slot that holds an address within the object itself stands for. */
enum own_slot {
    SLOT_OPEN,     /* where the loader is asked for whose function it is */
    SLOT_BOUND,    /* a function of the object's own */
    SLOT_ALLOCATOR /* one of its own allocator: its calls stay within */
};

FOREIGN static enum own_slot own_slot_of(struct look *look, uint64_t index, uintptr_t value) {
    const ElfW(Sym) *symbol = look->symbols + index;
    if (look->symbols == NULL || look->strings == NULL ||
        !can_read(look, symbol, sizeof(*symbol)) || symbol->st_shndx == SHN_UNDEF ||
        look->base + symbol->st_value != value) {
        return SLOT_OPEN;
    }
    const char *name = look->strings + symbol->st_name;
    if (!can_read(look, name, NAME_BYTES)) {
        return SLOT_BOUND;
    }
    for (uint32_t i = 0; i < ML_BOUND_NAMES; i++) {
        if (strncmp(name, names[i], NAME_BYTES) == 0) {
            return SLOT_ALLOCATOR;
        }
    }
    return SLOT_BOUND;
}

static bool is_other(const struct ml_bound_family *family, uintptr_t value) {
    if (value < family->lowest || value > family->highest) {
        return false;
    }
    for (uint32_t i = 0; i < family->others_count; i++) {
        if (family->others[i] == value) {
            return true;
        }
    }
    return false;
}

static bool is_ours(const struct ml_bound_family *family, uintptr_t value) {
    for (uint32_t i = 0; i < ML_BOUND_NAMES; i++) {
        if (family->own[i] == value) {
            return true;
        }
    }
    return false;
}

/* True: that slot is proof. */
FOREIGN static bool look_at_slot(struct look *look, const ElfW(Rela) * relocation) {
    const uint64_t type = ELF64_R_TYPE(relocation->r_info);
    const uint64_t index = ELF64_R_SYM(relocation->r_info);
    const uintptr_t at = look->base + relocation->r_offset;
    if (index == 0 ||
        (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT && type != R_X86_64_64) ||
        at < look->start || at >= look->end ||
        !can_read(look, (const void *)at, sizeof(uintptr_t))) {
        return false;
    }
    uintptr_t value = 0;
    memcpy(&value, (const void *)at, sizeof(value));
    if (is_other(look->family, value)) {
        return true;
    }
    if (value >= look->start && value < look->end) {
        const enum own_slot own =
            type == R_X86_64_64 ? SLOT_BOUND : own_slot_of(look, index, value);
        if (own == SLOT_ALLOCATOR) {
            return true;
        }
        look->has_open = look->has_open || (own == SLOT_OPEN && type == R_X86_64_JUMP_SLOT);
    } else if (value < look->end - look->start) {
        /* As it lies in the file: the loader has not come to it yet, or nobody has that name. */
        look->has_open = look->has_open || type == R_X86_64_JUMP_SLOT;
    } else {
        look->is_begun = true;
        look->comes_here = look->comes_here || is_ours(look->family, value);
    }
    return false;
}

FOREIGN static enum ml_bound look_at_table(struct look *look, uint32_t which, uint64_t first) {
    const ElfW(Rela) *table = look->tables[which];
    const uint64_t count = table != NULL ? look->bytes[which] / sizeof(*table) : 0;
    const uint64_t behind = first + ML_BOUND_RELOCATIONS_MAX / 2;
    for (uint64_t i = first; i < count; i++) {
        if (i >= behind || !can_read(look, &table[i], sizeof(*table))) {
            return ML_BOUND_OPEN;
        }
        if (look_at_slot(look, &table[i])) {
            return ML_BOUND_PAST;
        }
    }
    return ML_BOUND_SETTLED;
}

enum ml_bound ml_bound_look(
    const struct ml_bound_family *family,
    uintptr_t base,
    const ElfW(Dyn) * dynamic,
    uintptr_t start,
    uintptr_t end
) {
    struct look look = {.family = family, .base = base, .start = start, .end = end};
    if (end <= start || !read_dynamic(&look, dynamic)) {
        return ML_BOUND_OPEN;
    }
    const enum ml_bound linkage = look_at_table(&look, 0, 0);
    const enum ml_bound data =
        linkage == ML_BOUND_PAST ? linkage : look_at_table(&look, 1, look.relative_count);
    if (data == ML_BOUND_PAST) {
        return ML_BOUND_PAST;
    }
    const bool is_whole = linkage == ML_BOUND_SETTLED && data == ML_BOUND_SETTLED;
    const bool is_bound = look.is_begun && !look.has_open;
    return is_whole && (is_bound || look.comes_here) ? ML_BOUND_SETTLED : ML_BOUND_OPEN;
}
