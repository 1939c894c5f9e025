/* The functions of an ELF file by its symbol tables. Room: tools. Context: one thread.
 *
 * One rule: a symbol names its own bytes alone. One without a size reaches to the next symbol. */
#ifndef MEMLOG_TOOLS_ANALYZER_SYMBOLS_ELF_SYMBOLS_H
#define MEMLOG_TOOLS_ANALYZER_SYMBOLS_ELF_SYMBOLS_H

#include <elfutils/libdwfl.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ml_elf_symbol {
    uint64_t start, end;
    const char *name; /* lives as long as the file */
    uint8_t rank;     /* the lowest at an address is shown */
    bool is_merged;   /* functions of other names share the code */
};

/* Empty: all zero. Sorted by start. */
struct ml_elf_symbols {
    struct ml_elf_symbol *symbols;
    size_t count, capacity;
};

/* Load all functions of the module, with libdwfl's addresses. False: no memory. */
bool ml_elf_symbols_load(struct ml_elf_symbols *symbols, Dwfl_Module *module);
void ml_elf_symbols_fini(struct ml_elf_symbols *symbols);

/* The function there; NULL: none. */
const struct ml_elf_symbol *
ml_elf_symbols_find(const struct ml_elf_symbols *symbols, uint64_t address);

#endif
