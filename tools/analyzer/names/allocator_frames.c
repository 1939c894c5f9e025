#include "tools/analyzer/names/allocator_frames.h"

#include <stddef.h>
#include <string.h>

/* Names of allocating functions, then prefixes of such names. They are of the standard libraries of
 * C++ and Rust, of glib, of common wrappers, and of the allocators that large programs bring
 * along. */
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
    "xmallocz",
    "xcalloc",
    "xrealloc",
    "xstrdup",
    "xstrndup",
    "xmemdup",
    "g_strdup",
    "g_strndup",
    "g_memdup",
    "g_memdup2",
    /* PostgreSQL */
    "pstrdup",
    "pnstrdup",
    "pg_strdup",
    /* perl */
    "Perl_Slab_Alloc",
    "Perl_more_sv",
    "Perl_more_bodies",
    "Perl_savepv",
    "Perl_savepvn",
    "Perl_savesharedpv",
    "Perl_savesharedpvn",
    /* CPython */
    "PyType_GenericAlloc",
    "_PyType_AllocNoTrack",
    "_PyObject_New",
    "_PyObject_NewVar",
    "_PyObject_GC_New",
    "_PyObject_GC_NewVar",
    "_PyObject_GC_Malloc",
    /* redis, SQLite, git, node */
    "zmalloc",
    "zmalloc_usable",
    "zcalloc",
    "zcalloc_usable",
    "zrealloc",
    "zrealloc_usable",
    "zstrdup",
    "ztrymalloc",
    "ztrymalloc_usable",
    "ztrycalloc",
    "ztrycalloc_usable",
    "ztryrealloc",
    "ztryrealloc_usable",
    "pcache1Alloc",
    "do_xmalloc",
    "uv__malloc",
    "uv__calloc",
    "uv__realloc",
    "uv__strdup",
    /* obstacks */
    "_obstack_begin",
    "_obstack_begin_1",
    "_obstack_newchunk",
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
    /* PostgreSQL */
    "palloc",
    "repalloc",
    "MemoryContextAlloc",
    "MemoryContextStrdup",
    "AllocSetAlloc",
    "AllocSetRealloc",
    "AllocSetContextCreate",
    "pg_malloc",
    "pg_realloc",
    /* perl */
    "Perl_safesys",
    /* CPython */
    "PyMem_",
    "_PyMem_",
    "PyObject_Malloc",
    "PyObject_Calloc",
    "PyObject_Realloc",
    "_PyObject_Malloc",
    "_PyObject_Calloc",
    "_PyObject_Realloc",
    /* SQLite */
    "sqlite3_malloc",
    "sqlite3_realloc",
    "sqlite3Malloc",
    "sqlite3Realloc",
    "sqlite3MemMalloc",
    "sqlite3MemRealloc",
    "sqlite3DbMalloc",
    "sqlite3DbRealloc",
    "sqlite3DbStrDup",
    "sqlite3DbStrNDup",
    /* GCC, node, V8, ICU, OpenSSL */
    "ggc_internal_",
    "ggc_alloc",
    "ggc_realloc",
    "node::Malloc",
    "node::Calloc",
    "node::Realloc",
    "node::Unchecked",
    "v8::base::Malloc",
    "v8::base::Calloc",
    "v8::internal::AllocWithRetry",
    "uprv_malloc",
    "uprv_calloc",
    "uprv_realloc",
    "CRYPTO_malloc",
    "CRYPTO_zalloc",
    "CRYPTO_realloc",
    "CRYPTO_strdup",
    "CRYPTO_memdup",
};

/* A class's own allocating function, whatever the class. */
static const char member_new[] = "::operator new";

/* The length of `word` if the name begins with it, else 0. Most names differ in the first letter,
 * so that is compared first. */
static size_t begins(const char *function, const char *word) {
    const size_t length = function[0] == word[0] ? strlen(word) : 0;

    return length > 0 && strncmp(function, word, length) == 0 ? length : 0;
}

bool ml_is_allocator_frame(const char *function) {
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const size_t length = begins(function, names[i]);
        if (length > 0 && (function[length] == '\0' || function[length] == '(')) {
            return true;
        }
    }
    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++) {
        if (begins(function, beginnings[i]) > 0) {
            return true;
        }
    }
    return strstr(function, member_new) != NULL;
}
