/* The functions of a file by its DWARF: the function at an address, those inlined there, and the
 * source lines. Room: tools. Context: one thread.
 *
 * One rule: a compilation unit is walked once, when the first of its addresses is asked for. A
 * look-up in it is two binary searches and a descent into one function. */
#ifndef MEMLOG_TOOLS_ANALYZER_SYMBOLS_DWARF_FUNCTIONS_H
#define MEMLOG_TOOLS_ANALYZER_SYMBOLS_DWARF_FUNCTIONS_H

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/analyzer/symbols/dwarf_names.h"

/* A piece of code of a unit, or of a function. */
struct ml_dwarf_range {
    uint64_t start, end;
    uint32_t unit;   /* the unit's number */
    Dwarf_Off entry; /* of a function: its DIE */
};

struct ml_dwarf_ranges {
    struct ml_dwarf_range *ranges;
    size_t count, capacity;
};

struct ml_dwarf_unit {
    Dwarf_Die die;
    Dwarf_Die body; /* once walked: `die`, or its counterpart in the file of -gsplit-dwarf */
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
    bool is_split;                 /* some of it is in other files, which may change */
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
