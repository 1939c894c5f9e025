/* Allocators inside an executable, by the names in its symbol tables. Room: tools. Context: one
 * thread.
 *
 * One rule: a name is a hint, and told as one: the file has that function. What is stripped is not
 * found. */
#ifndef MEMLOG_TOOLS_ANALYZER_SYMBOLS_ELF_ALLOCATORS_H
#define MEMLOG_TOOLS_ANALYZER_SYMBOLS_ELF_ALLOCATORS_H

#include <stdbool.h>

#include "tools/analyzer/model/profile.h"

struct ml_elf_allocator {
    const char *name;     /* "jemalloc", "Go's heap" */
    const char *function; /* by which it was known */
};

/* The first one that the file has, whether it is exported or not; its build id must be the one that
 * is given. False: none, another file, or none that can be read. */
bool ml_elf_allocator_find(
    const char *path, struct ml_profile_text build_id, struct ml_elf_allocator *out_allocator
);

/* Look into the executables of all processes of which nothing is known to go unseen, as far as they
 * lie here, and say so of those that have one. */
void ml_elf_allocators_look(struct ml_profile *profile);

#endif
