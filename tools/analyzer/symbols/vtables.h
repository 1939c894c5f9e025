/* Classes by the address that an object's first word has: what lies there is the class's vtable, by
 * the symbol tables or, where those are stripped, by its type information (RTTI). Room: tools.
 * Context: one thread; libelf reads what may come from anybody.
 *
 * One rule: what is not known to be a vtable is none. The Itanium C++ ABI's form is held up to it:
 * an object's own vtable has the offset 0 to the object's begin and its class's type information in
 * front. */
#ifndef MEMLOG_TOOLS_ANALYZER_SYMBOLS_VTABLES_H
#define MEMLOG_TOOLS_ANALYZER_SYMBOLS_VTABLES_H

#include <elfutils/libdwfl.h>
#include <gelf.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A vtable's symbol. Addresses of the ELF file. */
struct ml_vtable_symbol {
    uint64_t start, end;
    const char *name; /* linkage; lives as long as the module */
};

/* A word that the loader fills in. */
struct ml_vtable_relocation {
    uint64_t address, value;
    const char *name; /* of the symbol that it is the address of; NULL: none */
};

/* Empty: all zero. */
struct ml_vtables {
    bool are_loaded;
    Elf *elf; /* the module's own file; NULL: it is not here, but its symbols may be */
    const char *bytes;
    size_t bytes_count;
    struct ml_vtable_symbol *symbols; /* by start */
    size_t symbols_count, symbols_capacity;
    struct ml_vtable_relocation *relocations; /* by address */
    size_t relocations_count, relocations_capacity;
    uint64_t python_metatype; /* the address of PyType_Type; 0: it is not in this file */
};

/* Load them once. `has_contents`: it is the module's own file, not one of debug information alone.
 * False: no memory. */
bool ml_vtables_load(struct ml_vtables *vtables, Dwfl_Module *module, bool has_contents);
void ml_vtables_fini(struct ml_vtables *vtables);

/* The class of objects whose first word is that ELF address, as people write it, in new memory for
 * free(). NULL: it is no class's. */
char *ml_vtables_find(const struct ml_vtables *vtables, uint64_t address);

/* A word of the file as the loader leaves it, but for the file's base. False: there is none. */
bool ml_vtables_word(
    const struct ml_vtables *vtables, uint64_t address, struct ml_vtable_relocation *out_word
);

/* The file's bytes from that ELF address to the end of its segment. NULL: there are none. */
const char *
ml_vtables_bytes(const struct ml_vtables *vtables, uint64_t address, uint64_t *out_count);

#endif
