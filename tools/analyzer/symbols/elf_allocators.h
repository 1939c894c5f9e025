/* Allocators inside an executable, by the names in its symbol tables. Room: tools. Context: one
 * thread.
 *
 * One rule: a name is a hint, and shown as one: the file has that function. A stripped allocator is
 * not found. */
#ifndef MEMLOG_TOOLS_ANALYZER_SYMBOLS_ELF_ALLOCATORS_H
#define MEMLOG_TOOLS_ANALYZER_SYMBOLS_ELF_ALLOCATORS_H

#include <stdbool.h>

#include "tools/analyzer/model/profile.h"

struct ml_elf_allocator {
    const char *name;     /* "jemalloc", "Go's heap" */
    const char *function; /* that the file has */
    bool may_be_hooked; /* the client hooks its functions at their entries, if they can be moved */
};

/* The first allocator of the file, exported or not. The file must have that build id. False: it has
 * none, is another file, or cannot be read. */
bool ml_elf_allocator_find(
    const char *path, struct ml_profile_text build_id, struct ml_elf_allocator *out_allocator
);

/* Note allocators in the executables that are on this machine, for all processes without known
 * unseen memory. */
void ml_elf_allocators_look(struct ml_profile *profile);

#endif
