#include "tools/analyzer/symbols/elf_symbols.h"

#include <stdlib.h>
#include <string.h>

#include "tools/analyzer/model/memory.h"
#include "tools/analyzer/model/search.h"
#include "tools/analyzer/progress/progress.h"
#include "tools/analyzer/symbols/demangle.h"

/* How far a symbol without a size may reach: hand-written assembly, not a hole between sections. */
enum { UNSIZED_MAX_BYTES = 64 * 1024 };

/* Of names for one address: global before weak before local, few leading underscores before many.
 */
static uint8_t rank_of(const GElf_Sym *symbol, const char *name) {
    uint8_t underscores = (uint8_t)strspn(name, "_");
    uint8_t binding = 2;

    if (GELF_ST_BIND(symbol->st_info) == STB_GLOBAL) {
        binding = 0;
    } else if (GELF_ST_BIND(symbol->st_info) == STB_WEAK) {
        binding = 1;
    }
    return (uint8_t)(binding * 64 + (underscores < 63 ? underscores : 63));
}

static bool is_function(const GElf_Sym *symbol, const char *name) {
    int type = GELF_ST_TYPE(symbol->st_info);

    if (!name || name[0] == '\0' || symbol->st_shndx == SHN_UNDEF) {
        return false;
    }
    return type == STT_FUNC || type == STT_GNU_IFUNC ||
           (type == STT_NOTYPE && GELF_ST_BIND(symbol->st_info) == STB_GLOBAL &&
            symbol->st_shndx != SHN_ABS); /* a number, no address */
}

static int order_symbols(const void *left, const void *right) {
    const struct ml_elf_symbol *a = left;
    const struct ml_elf_symbol *b = right;

    if (a->start != b->start) {
        return (a->start > b->start) - (a->start < b->start);
    }
    if (a->rank != b->rank) {
        return (a->rank > b->rank) - (a->rank < b->rank);
    }
    return strcmp(a->name, b->name);
}

/* Whether a linker or compiler made one of two functions. Aliases are usual in C; in C++ and Rust
 * names that read the same are one function's (a constructor's variants). */
static bool are_merged(const struct ml_elf_symbol *a, const struct ml_elf_symbol *b) {
    char *names[2] = {NULL, NULL};
    bool differ = false;

    if (a->end != b->end || a->end == a->start || !ml_is_mangled(a->name) ||
        !ml_is_mangled(b->name) || strcmp(a->name, b->name) == 0) {
        return false;
    }
    names[0] = ml_demangle(a->name);
    names[1] = ml_demangle(b->name);
    differ = names[0] && names[1] && strcmp(names[0], names[1]) != 0;
    free(names[0]);
    free(names[1]);
    return differ;
}

/* One symbol an address, unsized ones reaching to the next. */
static void symbols_finish(struct ml_elf_symbols *symbols) {
    size_t kept = 0;

    if (symbols->count == 0) {
        return;
    }
    qsort(symbols->symbols, symbols->count, sizeof symbols->symbols[0], order_symbols);
    for (size_t i = 1; i < symbols->count; i++) {
        struct ml_elf_symbol *last = &symbols->symbols[kept];
        const struct ml_elf_symbol *one = &symbols->symbols[i];
        if (one->start != last->start) {
            symbols->symbols[++kept] = *one;
            continue;
        }
        last->is_merged = last->is_merged || are_merged(last, one);
        if (one->end > last->end) {
            last->end = one->end;
        }
    }
    symbols->count = kept + 1;
    for (size_t i = 0; i < symbols->count; i++) {
        struct ml_elf_symbol *one = &symbols->symbols[i];
        if (one->end == one->start) {
            one->end = one->start + UNSIZED_MAX_BYTES;
            if (i + 1 < symbols->count && symbols->symbols[i + 1].start < one->end) {
                one->end = symbols->symbols[i + 1].start;
            }
        }
    }
}

bool ml_elf_symbols_load(struct ml_elf_symbols *symbols, Dwfl_Module *module) {
    int count = dwfl_module_getsymtab(module);

    for (int i = 1; i < count; i++) {
        GElf_Sym symbol;
        GElf_Addr address = 0;
        const char *name = dwfl_module_getsym_info(module, i, &symbol, &address, NULL, NULL, NULL);

        ml_progress_still();
        if (!is_function(&symbol, name)) {
            continue;
        }
        if (!ML_GROW(symbols->symbols, symbols->capacity, symbols->count + 1)) {
            return false;
        }
        symbols->symbols[symbols->count++] = (struct ml_elf_symbol){
            .start = address,
            .end = address + symbol.st_size,
            .name = name,
            .rank = rank_of(&symbol, name),
        };
    }
    symbols_finish(symbols);
    return true;
}

void ml_elf_symbols_fini(struct ml_elf_symbols *symbols) {
    free(symbols->symbols);
    *symbols = (struct ml_elf_symbols){0};
}

const struct ml_elf_symbol *
ml_elf_symbols_find(const struct ml_elf_symbols *symbols, uint64_t address) {
    size_t begun = ml_keys_until(ML_KEYS(symbols->symbols, symbols->count, start), address);

    /* A symbol may lie within another one (a label inside a function): search outwards a little. */
    for (size_t back = 0; back < 8 && back < begun; back++) {
        const struct ml_elf_symbol *one = &symbols->symbols[begun - 1 - back];
        if (address < one->end) {
            return one;
        }
    }
    return NULL;
}
