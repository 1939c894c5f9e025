#include "tools/plumbing.h"

#include <stddef.h>
#include <string.h>

/* Whole names of allocating functions, and beginnings: of the standard libraries of C++ and Rust,
 * glib, and the wrappers that most programs have. */
static const char *const names[] = {
    "malloc",
    "calloc",
    "realloc",
    "strdup",
    "__strdup",
    "strndup",
    "__strndup",
    "asprintf",
    "vasprintf",
    "xmalloc",
    "xcalloc",
    "xrealloc",
    "xstrdup",
    "g_strdup",
    "g_strndup",
    "g_memdup",
    "g_memdup2",
};
static const char *const beginnings[] = {
    "operator new",
    "std::",
    "void std::",
    "void* std::",
    "__gnu_cxx::",
    "g_malloc",
    "g_try_malloc",
    "g_realloc",
    "g_slice_",
    "alloc::alloc::",
    "alloc::raw_vec::",
    "<alloc::",
    "__rust_alloc",
    "__rdl_alloc",
    "__rust_realloc",
    "__rdl_realloc",
};

bool ml_is_plumbing(const char *function) {
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(function, names[i]) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++) {
        if (strncmp(function, beginnings[i], strlen(beginnings[i])) == 0) {
            return true;
        }
    }
    return false;
}
