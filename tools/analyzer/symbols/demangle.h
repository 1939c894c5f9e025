/* Linkage names as a person writes them: C++ (Itanium), Rust (legacy and v0) by libiberty. Room:
 * tools. Context: any thread.
 *
 * One rule: what is no mangled name comes back as it is. */
#ifndef MEMLOG_TOOLS_ANALYZER_SYMBOLS_DEMANGLE_H
#define MEMLOG_TOOLS_ANALYZER_SYMBOLS_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

/* How much of the name is the function's own: without what a compiler appends to copies that it
 * makes of it (.constprop.0, .isra.0, .part.0, .cold, .lto_priv.0, .llvm.123). */
size_t ml_function_name_bytes(const char *linkage);

/* Whether it has the form of a mangled name. */
bool ml_is_mangled(const char *linkage);

/* The readable name, in new memory for free(); NULL only without memory. */
char *ml_demangle(const char *linkage);

#endif
