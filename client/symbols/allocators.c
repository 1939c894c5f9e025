#include "client/symbols/allocators.h"

#include <stddef.h>
#include <string.h>

#include "client/symbols/symbols.h"

/* Functions by which programs call these allocators other than malloc and operator new: jemalloc
 * with and without its prefixes, tcmalloc, mimalloc, Firefox's, Intel's, rpmalloc. */
static const char *const entry_points[] = {
    "mallocx",         "rallocx",           "dallocx",        "sdallocx",     "je_malloc",
    "je_calloc",       "je_realloc",        "je_mallocx",     "_rjem_malloc", "_rjem_mallocx",
    "tc_malloc",       "tc_calloc",         "tc_realloc",     "tc_memalign",  "tc_posix_memalign",
    "tc_new",          "tc_newarray",       "mi_malloc",      "mi_calloc",    "mi_zalloc",
    "mi_realloc",      "mi_malloc_aligned", "mi_heap_malloc", "mi_new",       "moz_arena_malloc",
    "scalable_malloc", "rpmalloc",
};

static const char *file_of(const char *path) {
    const char *slash = path != NULL ? strrchr(path, '/') : NULL;
    return slash != NULL ? slash + 1 : (path != NULL ? path : "");
}

static void find_entry_point(struct ml_allocators *allocators) {
    for (size_t i = 0; i < sizeof(entry_points) / sizeof(entry_points[0]); i++) {
        const struct ml_symbol_owner owner = ml_symbol_first(entry_points[i]);
        if (owner.path != NULL && !owner.is_ours &&
            (owner.is_program || ml_symbol_is_wanted(entry_points[i], &owner))) {
            allocators->entry_point = entry_points[i];
            allocators->entry_point_of = owner.is_program ? "" : file_of(owner.path);
            return;
        }
    }
}

struct ml_allocators ml_allocators_find(void) {
    struct ml_allocators allocators = {.owner = "", .entry_point = "", .entry_point_of = ""};
    const struct ml_symbol_owner first = ml_symbol_first("malloc");
    allocators.in_front = first.path != NULL && !first.is_ours;
    allocators.in_program = allocators.in_front && first.is_program;
    if (!allocators.in_program) {
        allocators.owner =
            file_of(allocators.in_front ? first.path : ml_symbol_next("malloc").path);
    }
    find_entry_point(&allocators);
    return allocators;
}
