/* The functions of an ELF file by its symbol tables. Room: tools. Context: one thread.
 *
 * One rule: a symbol answers for its own bytes only; one without a size for what lies before the
 * next. */
#ifndef MEMLOG_TOOLS_ANALYZER_SYMBOLS_ELF_SYMBOLS_H
#define MEMLOG_TOOLS_ANALYZER_SYMBOLS_ELF_SYMBOLS_H

#include <elfutils/libdwfl.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ml_elf_symbol {
    uint64_t start, end;
    const char *name; /* the file's, lives with it */
    uint8_t rank;     /* of several at one address the lowest is shown */
    bool is_merged;   /* functions of other names are the same code: nobody can tell which ran */
};

/* Empty: all zero. Sorted by start. */
struct ml_elf_symbols {
    struct ml_elf_symbol *symbols;
    size_t count, capacity;
};

/* Take all functions of the module, addresses as libdwfl gives them. False: no memory. */
bool ml_elf_symbols_load(struct ml_elf_symbols *symbols, Dwfl_Module *module);
void ml_elf_symbols_fini(struct ml_elf_symbols *symbols);

/* The function there; NULL: none. */
const struct ml_elf_symbol *
ml_elf_symbols_find(const struct ml_elf_symbols *symbols, uint64_t address);

#endif
