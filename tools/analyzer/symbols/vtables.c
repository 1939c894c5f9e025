#include "tools/analyzer/symbols/vtables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/analyzer/model/memory.h"
#include "tools/analyzer/symbols/demangle.h"

enum {
    WORD_BYTES = 8,
    HEADER_BYTES =
        2 * WORD_BYTES, /* offset to the top and type information, in front of functions */
    NAME_MAX_BYTES = 4096
};

static const char vtable_prefix[] = "_ZTV";
static const char python_metatype[] = "PyType_Type"; /* python_types.h */
static const char info_prefix[] = "_ZTI";
static const char abi_prefix[] = "_ZTVN10__cxxabiv1"; /* the classes of type information itself */

static bool begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

/* ---- loading */

static int by_start(const void *left, const void *right) {
    const struct ml_vtable_symbol *a = left;
    const struct ml_vtable_symbol *b = right;

    if (a->start != b->start) {
        return (a->start > b->start) - (a->start < b->start);
    }
    return strcmp(a->name, b->name);
}

static int by_address(const void *left, const void *right) {
    const struct ml_vtable_relocation *a = left;
    const struct ml_vtable_relocation *b = right;

    return (a->address > b->address) - (a->address < b->address);
}

static bool load_symbols(struct ml_vtables *vtables, Dwfl_Module *module, uint64_t bias) {
    const int count = dwfl_module_getsymtab(module);

    for (int i = 1; i < count; i++) {
        GElf_Sym symbol;
        GElf_Addr address = 0;
        const char *name = dwfl_module_getsym_info(module, i, &symbol, &address, NULL, NULL, NULL);
        if (!name || symbol.st_shndx == SHN_UNDEF || GELF_ST_TYPE(symbol.st_info) != STT_OBJECT) {
            continue;
        }
        if (strcmp(name, python_metatype) == 0) {
            vtables->python_metatype = address - bias;
        }
        if (!begins(name, vtable_prefix)) {
            continue;
        }
        if (!ML_GROW(vtables->symbols, vtables->symbols_capacity, vtables->symbols_count + 1)) {
            return false;
        }
        vtables->symbols[vtables->symbols_count++] = (struct ml_vtable_symbol
        ){.start = address - bias, .end = address - bias + symbol.st_size, .name = name};
    }
    ML_SORT(vtables->symbols, vtables->symbols_count, by_start);
    return true;
}

/* Whether it is a word that becomes an address: relative to the file's begin, or of a symbol. */
static bool is_address(uint16_t machine, uint64_t type, bool *out_symbolic) {
    *out_symbolic = (machine == EM_X86_64 && type == R_X86_64_64) ||
                    (machine == EM_AARCH64 && type == R_AARCH64_ABS64);
    return *out_symbolic || (machine == EM_X86_64 && type == R_X86_64_RELATIVE) ||
           (machine == EM_AARCH64 && type == R_AARCH64_RELATIVE);
}

static bool add_relocation(
    struct ml_vtables *vtables,
    const GElf_Ehdr *file,
    const GElf_Shdr *section,
    const GElf_Rela *one
) {
    struct ml_vtable_relocation relocation = {
        .address = one->r_offset, .value = (uint64_t)one->r_addend};
    bool is_symbolic = false;

    if (!is_address(file->e_machine, GELF_R_TYPE(one->r_info), &is_symbolic)) {
        return true;
    }
    if (is_symbolic) {
        Elf_Scn *table = elf_getscn(vtables->elf, section->sh_link);
        Elf_Data *data = table ? elf_getdata(table, NULL) : NULL;
        GElf_Shdr header;
        GElf_Sym symbol;
        if (!data || !gelf_getshdr(table, &header) ||
            !gelf_getsym(data, (int)GELF_R_SYM(one->r_info), &symbol)) {
            return true;
        }
        relocation.name = elf_strptr(vtables->elf, header.sh_link, symbol.st_name);
        relocation.value += symbol.st_value;
    }
    if (!ML_GROW(
            vtables->relocations, vtables->relocations_capacity, vtables->relocations_count + 1
        )) {
        return false;
    }
    vtables->relocations[vtables->relocations_count++] = relocation;
    return true;
}

/* Of relocations in the packed form (RELR) the value stands in its place. */
static bool load_relocations(struct ml_vtables *vtables) {
    Elf_Scn *section = NULL;
    GElf_Ehdr file;

    if (!gelf_getehdr(vtables->elf, &file)) {
        return true;
    }
    while ((section = elf_nextscn(vtables->elf, section)) != NULL) {
        GElf_Shdr header;
        Elf_Data *data = NULL;
        if (!gelf_getshdr(section, &header) || header.sh_type != SHT_RELA ||
            (header.sh_flags & SHF_ALLOC) == 0 || header.sh_entsize == 0) {
            continue;
        }
        data = elf_getdata(section, NULL);
        for (size_t i = 0; data && i < header.sh_size / header.sh_entsize; i++) {
            GElf_Rela one;
            if (!gelf_getrela(data, (int)i, &one)) {
                break;
            }
            if (!add_relocation(vtables, &file, &header, &one)) {
                return false;
            }
        }
    }
    ML_SORT(vtables->relocations, vtables->relocations_count, by_address);
    return true;
}

bool ml_vtables_load(struct ml_vtables *vtables, Dwfl_Module *module, bool has_contents) {
    GElf_Addr bias = 0;
    Elf *elf = dwfl_module_getelf(module, &bias);

    vtables->are_loaded = true;
    if (!elf || !load_symbols(vtables, module, bias)) {
        return elf == NULL;
    }
    vtables->bytes = has_contents ? elf_rawfile(elf, &vtables->bytes_count) : NULL;
    if (!vtables->bytes) {
        return true;
    }
    vtables->elf = elf;
    return load_relocations(vtables);
}

void ml_vtables_fini(struct ml_vtables *vtables) {
    free(vtables->symbols);
    free(vtables->relocations);
    *vtables = (struct ml_vtables){.are_loaded = false};
}

/* ---- by symbols */

/* What stands behind the prefix of a linkage name's readable form, in new memory; NULL: it has
 * none. */
static char *readable_class(const char *linkage) {
    static const char *const prefixes[] = {"vtable for ", "typeinfo for "};
    char *text = ml_demangle(linkage);
    char *name = NULL;

    for (size_t i = 0; text && i < sizeof prefixes / sizeof prefixes[0]; i++) {
        if (begins(text, prefixes[i]) && text[strlen(prefixes[i])] != '\0') {
            name = strdup(text + strlen(prefixes[i]));
            break;
        }
    }
    free(text);
    return name;
}

static const struct ml_vtable_symbol *
symbol_at(const struct ml_vtables *vtables, uint64_t address) {
    size_t low = 0;
    size_t high = vtables->symbols_count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (vtables->symbols[middle].start <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == 0 || address % WORD_BYTES != 0 || address >= vtables->symbols[low - 1].end ||
        address - vtables->symbols[low - 1].start < HEADER_BYTES) {
        return NULL;
    }
    return &vtables->symbols[low - 1];
}

/* ---- by type information */

const char *
ml_vtables_bytes(const struct ml_vtables *vtables, uint64_t address, uint64_t *out_count) {
    size_t count = 0;

    if (elf_getphdrnum(vtables->elf, &count) != 0) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr header;
        if (!gelf_getphdr(vtables->elf, (int)i, &header) || header.p_type != PT_LOAD ||
            address < header.p_vaddr || address - header.p_vaddr >= header.p_filesz ||
            header.p_offset > vtables->bytes_count ||
            header.p_filesz > vtables->bytes_count - header.p_offset) {
            continue;
        }
        *out_count = header.p_filesz - (address - header.p_vaddr);
        return vtables->bytes + header.p_offset + (address - header.p_vaddr);
    }
    return NULL;
}

bool ml_vtables_word(
    const struct ml_vtables *vtables, uint64_t address, struct ml_vtable_relocation *out_word
) {
    size_t low = 0;
    size_t high = vtables->relocations_count;
    uint64_t count = 0;
    const char *bytes = ml_vtables_bytes(vtables, address, &count);

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (vtables->relocations[middle].address < address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low < vtables->relocations_count && vtables->relocations[low].address == address) {
        *out_word = vtables->relocations[low];
        return true;
    }
    *out_word = (struct ml_vtable_relocation){.address = address};
    if (!bytes || count < WORD_BYTES) {
        return false;
    }
    memcpy(&out_word->value, bytes, WORD_BYTES); /* files of this machine's byte order alone */
    return true;
}

/* The class by its type information: that of a class of the ABI's, with a name that reads as one.
 */
static char *class_of_info(const struct ml_vtables *vtables, uint64_t info) {
    struct ml_vtable_relocation kind;
    struct ml_vtable_relocation name;
    char linkage[NAME_MAX_BYTES + sizeof info_prefix];
    uint64_t count = 0;
    const char *text = NULL;

    if (info == 0 || info % WORD_BYTES != 0 || !ml_vtables_word(vtables, info, &kind) ||
        (kind.name ? !begins(kind.name, abi_prefix) : kind.value == 0) ||
        !ml_vtables_word(vtables, info + WORD_BYTES, &name) || name.value == 0) {
        return NULL;
    }
    text = ml_vtables_bytes(vtables, name.value, &count);
    if (text && count > 0 && text[0] == '*') { /* it is compared by its address */
        text++;
        count--;
    }
    if (!text || !memchr(text, '\0', count < NAME_MAX_BYTES ? (size_t)count : NAME_MAX_BYTES)) {
        return NULL;
    }
    snprintf(linkage, sizeof linkage, "%s%s", info_prefix, text);
    return readable_class(linkage);
}

static char *class_by_info(const struct ml_vtables *vtables, uint64_t address) {
    struct ml_vtable_relocation top;
    struct ml_vtable_relocation info;

    if (!vtables->elf || address < HEADER_BYTES || address % WORD_BYTES != 0 ||
        !ml_vtables_word(vtables, address - HEADER_BYTES, &top) || top.value != 0 || top.name ||
        !ml_vtables_word(vtables, address - WORD_BYTES, &info)) {
        return NULL;
    }
    if (info.name && begins(info.name, info_prefix)) {
        return readable_class(info.name);
    }
    return info.name ? NULL : class_of_info(vtables, info.value);
}

char *ml_vtables_find(const struct ml_vtables *vtables, uint64_t address) {
    const struct ml_vtable_symbol *symbol = symbol_at(vtables, address);

    return symbol ? readable_class(symbol->name) : class_by_info(vtables, address);
}
