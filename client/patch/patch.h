/* Allocators whose functions memlog does not stand in front of by their names: inside the
 * executable, and functions that jemalloc, tcmalloc and mimalloc have beside libc's. Their entries
 * are hooked. Room: client (private). Context: the constructor: one thread, the process is
 * connected, and no code of the program has run.
 *
 * One rule: a family of functions is hooked whole, or not at all. The reason why not is told, and
 * the program stays as it was. */
#ifndef MEMLOG_CLIENT_PATCH_PATCH_H
#define MEMLOG_CLIENT_PATCH_PATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/wire/staging.h"

struct ml_patch_report {
    uint32_t functions; /* hooked */
    bool is_inlined;    /* the executable's are called past their entries, too */
    char refused[ML_ENTRIES_REFUSED_BYTES]; /* "free: a call is among its first bytes"; "": none */
};

/* `further` has prefixes that people gave: NAME=PREFIX,... (base/entry/allocator_family.h). */
void ml_patch_all(const char *further, struct ml_patch_report *out_report);

/* How a function is called without its hook: for who calls it from a hook of its own. Any other
 * address is its own answer. */
void *ml_patch_unhooked(void *function);

#endif
