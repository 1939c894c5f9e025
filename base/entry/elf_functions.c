#include "base/entry/elf_functions.h"

#include <elf.h>
#include <string.h>

/* The file, and what of it is code. */
struct reading {
    const uint8_t *file;
    size_t bytes;
    Elf64_Ehdr header;
    Elf64_Phdr code[ML_ELF_SEGMENTS_MAX];
    uint32_t code_count;
    bool has_load;
    uint64_t lowest_load;
};

/* A copy of what stands at `offset`, which may be anywhere and of any alignment. */
static bool copy_from(const struct reading *reading, uint64_t offset, void *out, size_t bytes) {
    if (bytes > reading->bytes || offset > reading->bytes - bytes) {
        return false;
    }
    memcpy(out, reading->file + offset, bytes);
    return true;
}

/* Are `count` rows of `row_bytes` at `offset`? */
static bool
holds(const struct reading *reading, uint64_t offset, uint64_t count, size_t row_bytes) {
    return offset <= reading->bytes && count <= (reading->bytes - offset) / row_bytes;
}

static bool is_ours(const Elf64_Ehdr *header) {
    return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
           header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_ident[EI_DATA] == ELFDATA2LSB &&
           header->e_machine == EM_X86_64 &&
           (header->e_type == ET_EXEC || header->e_type == ET_DYN) &&
           header->e_phentsize == sizeof(Elf64_Phdr);
}

static enum ml_elf_verdict begin(struct reading *out, const uint8_t *file, size_t file_bytes) {
    *out = (struct reading){.file = file, .bytes = file_bytes};
    if (!copy_from(out, 0, &out->header, sizeof out->header) || !is_ours(&out->header)) {
        return ML_ELF_OTHER;
    }
    const Elf64_Ehdr *header = &out->header;
    if (!holds(out, header->e_phoff, header->e_phnum, sizeof(Elf64_Phdr))) {
        return ML_ELF_BROKEN;
    }
    for (uint32_t i = 0; i < header->e_phnum; i++) {
        Elf64_Phdr segment;
        if (!copy_from(out, header->e_phoff + i * sizeof segment, &segment, sizeof segment)) {
            return ML_ELF_BROKEN;
        }
        if (segment.p_type != PT_LOAD) {
            continue;
        }
        if (!out->has_load || segment.p_vaddr < out->lowest_load) {
            out->lowest_load = segment.p_vaddr;
        }
        out->has_load = true;
        if ((segment.p_flags & PF_X) != 0 && out->code_count < ML_ELF_SEGMENTS_MAX) {
            out->code[out->code_count++] = segment;
        }
    }
    return ML_ELF_READ;
}

enum ml_elf_verdict
ml_elf_lowest_load(const uint8_t *file, size_t file_bytes, uint64_t *out_address) {
    struct reading reading;
    const enum ml_elf_verdict verdict = begin(&reading, file, file_bytes);
    *out_address = reading.lowest_load;
    return verdict == ML_ELF_READ && !reading.has_load ? ML_ELF_BROKEN : verdict;
}

uint32_t ml_elf_code_find(
    const uint8_t *file, size_t file_bytes, struct ml_elf_code out_code[ML_ELF_SEGMENTS_MAX]
) {
    struct reading reading;
    uint32_t count = 0;
    if (begin(&reading, file, file_bytes) != ML_ELF_READ) {
        return 0;
    }
    for (uint32_t i = 0; i < reading.code_count; i++) {
        const Elf64_Phdr *segment = &reading.code[i];
        if ((segment->p_flags & PF_W) == 0 && segment->p_offset < file_bytes) {
            const uint64_t there = file_bytes - segment->p_offset;
            out_code[count++] = (struct ml_elf_code
            ){.address = segment->p_vaddr,
              .offset = segment->p_offset,
              .count_bytes = segment->p_filesz < there ? segment->p_filesz : there};
        }
    }
    return count;
}

/* The executable segment that holds an address. A separate file of debug information has its
 * segments' bytes elsewhere, so that it is the memory's size that counts. */
static const Elf64_Phdr *segment_of(const struct reading *reading, uint64_t address) {
    for (uint32_t i = 0; i < reading->code_count; i++) {
        if (address - reading->code[i].p_vaddr < reading->code[i].p_memsz) {
            return &reading->code[i];
        }
    }
    return NULL;
}

/* The name at `at` of a table of strings; its length, 0 if it is empty, too long, or runs out. */
static size_t name_bytes_at(const struct reading *reading, const Elf64_Shdr *strings, uint32_t at) {
    if (at >= strings->sh_size) {
        return 0;
    }
    const char *name = (const char *)reading->file + strings->sh_offset + at;
    const uint64_t there = strings->sh_size - at;
    const size_t most = there < ML_ELF_NAME_MAX + 1 ? (size_t)there : ML_ELF_NAME_MAX + 1;
    for (size_t i = 0; i < most; i++) {
        if (name[i] == 0) {
            return i;
        }
    }
    return 0;
}

static bool is_function(const Elf64_Sym *symbol) {
    const uint8_t type = ELF64_ST_TYPE(symbol->st_info);
    return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol->st_shndx != SHN_UNDEF &&
           symbol->st_shndx != SHN_ABS;
}

/* One table of symbols. False: the visitor has had enough. */
static bool tell_table(
    const struct reading *reading,
    const Elf64_Shdr *symbols,
    const Elf64_Shdr *strings,
    ml_elf_function_fn *visit,
    void *context
) {
    const uint64_t count = symbols->sh_size / sizeof(Elf64_Sym);
    for (uint64_t i = 0; i < count; i++) {
        Elf64_Sym symbol;
        if (!copy_from(reading, symbols->sh_offset + i * sizeof symbol, &symbol, sizeof symbol) ||
            !is_function(&symbol)) {
            continue;
        }
        const Elf64_Phdr *segment = segment_of(reading, symbol.st_value);
        const size_t name_bytes = name_bytes_at(reading, strings, symbol.st_name);
        if (segment == NULL || name_bytes == 0) {
            continue;
        }
        const uint64_t inside = symbol.st_value - segment->p_vaddr;
        const struct ml_elf_function function = {
            .name = (const char *)reading->file + strings->sh_offset + symbol.st_name,
            .name_bytes = name_bytes,
            .address = symbol.st_value,
            .size = symbol.st_size,
            .offset = segment->p_offset + inside,
            .behind_bytes = segment->p_memsz - inside,
            .is_dynamic = symbols->sh_type == SHT_DYNSYM,
            .is_indirect = ELF64_ST_TYPE(symbol.st_info) == STT_GNU_IFUNC,
        };
        if (!visit(context, &function)) {
            return false;
        }
    }
    return true;
}

static bool copy_section(const struct reading *reading, uint32_t number, Elf64_Shdr *out) {
    return number < reading->header.e_shnum &&
           copy_from(reading, reading->header.e_shoff + number * sizeof *out, out, sizeof *out);
}

/* The first table of a kind, with its strings, if both lie in the file. A file has one of each. */
static bool find_table(
    const struct reading *reading, uint32_t type, Elf64_Shdr *out_symbols, Elf64_Shdr *out_strings
) {
    for (uint32_t i = 0; i < reading->header.e_shnum; i++) {
        if (!copy_section(reading, i, out_symbols)) {
            return false;
        }
        if (out_symbols->sh_type == type) {
            return out_symbols->sh_entsize == sizeof(Elf64_Sym) &&
                   holds(reading, out_symbols->sh_offset, out_symbols->sh_size, 1) &&
                   copy_section(reading, out_symbols->sh_link, out_strings) &&
                   out_strings->sh_type == SHT_STRTAB &&
                   holds(reading, out_strings->sh_offset, out_strings->sh_size, 1);
        }
    }
    return false;
}

enum ml_elf_verdict ml_elf_functions_each(
    const uint8_t *file, size_t file_bytes, ml_elf_function_fn *visit, void *context
) {
    static const uint32_t types[] = {SHT_DYNSYM, SHT_SYMTAB};
    struct reading reading;
    const enum ml_elf_verdict verdict = begin(&reading, file, file_bytes);
    if (verdict != ML_ELF_READ) {
        return verdict;
    }
    const Elf64_Ehdr *header = &reading.header;
    if (header->e_shnum != 0 &&
        (header->e_shentsize != sizeof(Elf64_Shdr) ||
         !holds(&reading, header->e_shoff, header->e_shnum, sizeof(Elf64_Shdr)))) {
        return ML_ELF_BROKEN;
    }
    bool is_any = false;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        Elf64_Shdr symbols;
        Elf64_Shdr strings;
        if (find_table(&reading, types[i], &symbols, &strings)) {
            is_any = true;
            if (!tell_table(&reading, &symbols, &strings, visit, context)) {
                break;
            }
        }
    }
    return is_any ? ML_ELF_READ : ML_ELF_NO_SYMBOLS;
}
