/* Names of functions without a linkage name: DWARF's own name behind those of its scopes. A lambda
 * is only "operator()" without them. Room: tools. Context: one thread.
 *
 * One rule: entries are added in the unit's order, so that a binary search finds them. */
#ifndef MEMLOG_TOOLS_ANALYZER_SYMBOLS_DWARF_NAMES_H
#define MEMLOG_TOOLS_ANALYZER_SYMBOLS_DWARF_NAMES_H

#include <elfutils/libdw.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/analyzer/model/memory.h"

/* A namespace, class or function that others stand in. */
struct ml_dwarf_scope {
    const char *name;
    uint32_t parent; /* 0: the unit */
};

struct ml_dwarf_named {
    Dwarf_Off entry;
    uint32_t scope;
    const char *text; /* NULL: not put together yet */
};

/* Of one unit. Empty: all zero. */
struct ml_dwarf_names {
    struct ml_dwarf_scope *scopes; /* number n at n - 1 */
    size_t scopes_count, scopes_capacity;
    struct ml_dwarf_named *named; /* sorted by entry */
    size_t named_count, named_capacity;
    struct ml_arena arena; /* the texts */
};

void ml_dwarf_names_fini(struct ml_dwarf_names *names);

/* The scope that a DIE within `parent` opens. It is `parent` itself when the DIE adds no name, or
 * without memory: then a name becomes shorter. */
uint32_t ml_dwarf_names_scope(struct ml_dwarf_names *names, uint32_t parent, Dwarf_Die *die);

/* Add a function within `scope` that may need it. Without memory it is left out. */
void ml_dwarf_names_add(struct ml_dwarf_names *names, uint32_t scope, Dwarf_Die *function);

/* The declaration of a function, its copy or an inlined one. Behind link time optimisation it may
 * be in another unit. */
Dwarf_Die ml_dwarf_names_declaration(const Dwarf_Die *function);

/* The name of a function by its declaration in the unit. NULL: there is only DWARF's own name.
 * Owner: `names`. */
const char *ml_dwarf_names_find(struct ml_dwarf_names *names, Dwarf_Die *declaration);

#endif
