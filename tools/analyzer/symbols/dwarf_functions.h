/* The functions of a file by its DWARF: whose code lies at an address, what was inlined there, and
 * the source lines. Room: tools. Context: one thread.
 *
 * One rule: each compilation unit is walked once, when an address of its own is first asked for; by
 * itself a look-up is two binary searches and a descent into one function. */
#ifndef MEMLOG_TOOLS_ANALYZER_SYMBOLS_DWARF_FUNCTIONS_H
#define MEMLOG_TOOLS_ANALYZER_SYMBOLS_DWARF_FUNCTIONS_H

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/analyzer/symbols/dwarf_names.h"

/* Code of one thing: of a unit, or of a function of a unit. */
struct ml_dwarf_range {
    uint64_t start, end;
    uint32_t unit;   /* number of the unit */
    Dwarf_Off entry; /* of a function: its DIE */
};

struct ml_dwarf_ranges {
    struct ml_dwarf_range *ranges;
    size_t count, capacity;
};

struct ml_dwarf_unit {
    Dwarf_Die die;
    Dwarf_Die body; /* the same, or in the file that -gsplit-dwarf put it into; once walked */
    bool is_walked;
    struct ml_dwarf_ranges functions; /* sorted by start */
    struct ml_dwarf_names names;
};

/* Empty: all zero. */
struct ml_dwarf_functions {
    Dwarf *dwarf;  /* NULL: the file has none */
    uint64_t bias; /* DWARF address = libdwfl's address - bias */
    struct ml_dwarf_unit *units;
    size_t units_count, units_capacity;
    struct ml_dwarf_ranges ranges; /* of units, sorted by start */
    bool is_split;                 /* some of it is in other files, which may come and go */
};

/* One function at an address, as DWARF has it. NULL and 0: not known. */
struct ml_dwarf_frame {
    const char *name, *linkage;
    const char *file;
    int line;
    bool inlined;
};

/* Find the module's DWARF and its units; none is fine. False: no memory. */
bool ml_dwarf_functions_load(struct ml_dwarf_functions *functions, Dwfl_Module *module);
void ml_dwarf_functions_fini(struct ml_dwarf_functions *functions);

/* Frames at an address (libdwfl's), innermost first. 0: DWARF knows nothing there. */
size_t ml_dwarf_functions_find(
    struct ml_dwarf_functions *functions,
    uint64_t address,
    struct ml_dwarf_frame *out_frames,
    size_t capacity
);

#endif
