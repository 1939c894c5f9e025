/* Linkage names as people write them, by libiberty: C++ (Itanium), Rust (legacy and v0). Room:
 * tools. Context: any thread.
 *
 * One rule: a name that is not mangled does not change. */
#ifndef MEMLOG_TOOLS_ANALYZER_SYMBOLS_DEMANGLE_H
#define MEMLOG_TOOLS_ANALYZER_SYMBOLS_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

/* The length of a name without the suffix that a compiler gives to a copy of the function
 * (.constprop.0, .isra.0, .part.0, .cold, .lto_priv.0, .llvm.123). */
size_t ml_function_name_bytes(const char *linkage);

/* Whether it has the form of a mangled name. */
bool ml_is_mangled(const char *linkage);

/* The readable name, in new memory for free(); NULL only without memory. */
char *ml_demangle(const char *linkage);

#endif
