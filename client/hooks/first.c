/* The start of a preloaded client where another library's constructor would come before ours. Room:
 * client (libmemlog.so alone). Context: while the loader relocates libmemlog.so, with one thread.
 *
 * One rule: loaders run one library's constructor first of all, the last one that asks for it.
 * Before 2.34 glibc's libpthread.so.0 asks, and ours would come last, behind those of all
 * libraries. So there the client begins before any constructor, in a resolver of an indirect
 * function: the last of our own relocations. Everything but the executable is relocated by then. */
#include <link.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/hooks/preload.h"
#include "client/symbols/loaded.h"
#include "client/symbols/symbols.h"
#include "client/unwind/objects.h"

enum { ARGUMENTS_MAX = 1 << 26 /* what an exec takes is less */ };

static bool asks_to_be_first(const ElfW(Dyn) * dynamic) {
    for (; dynamic->d_tag != DT_NULL; dynamic++) {
        if (dynamic->d_tag == DT_FLAGS_1) {
            return (dynamic->d_un.d_val & DF_1_INITFIRST) != 0;
        }
    }
    return false;
}

/* Whether the last one that asks is not ours. */
static bool another_is_first(void) {
    bool another = false;
    for (const struct link_map *map = ml_loaded_first(); map != NULL; map = map->l_next) {
        if (map->l_ld != NULL && asks_to_be_first(map->l_ld)) {
            another = !ml_symbol_is_ours(map->l_ld);
        }
    }
    return another;
}

/* What the kernel put on the first thread's stack: how many arguments, these, NULL, the
 * environment. libc does not know its own environment yet. */
static void begin_before_all(void) {
    uintptr_t *const words = (uintptr_t *)ml_loaded_stack_end();
    if (words == NULL || words[0] > ARGUMENTS_MAX || words[words[0] + 1] != 0) {
        return;
    }
    ml_object_begin(ml_symbol_next("_dl_find_object").address);
    ml_preload_begin((char **)(words + 1), (char **)(words + words[0] + 2));
}

static void nothing(void) {
}

/* Run by the loader; what it answers is never of use. */
static __attribute__((used)) void (*resolve(void))(void) {
    if (another_is_first()) {
        begin_before_all();
    }
    return nothing;
}

static void resolved(void) __attribute__((ifunc("resolve")));

/* A call is what makes the linker put the relocation behind all others. */
__attribute__((constructor)) static void have_it_resolved(void) {
    resolved();
}
