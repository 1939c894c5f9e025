/* Whose functions an object's calls of the allocator come to, as its relocation slots say. Room:
 * client (private). Context: any thread, inside malloc, inside signal handlers; lock-free, a system
 * call for each page that is looked at (foreign.h).
 *
 * One rule: a slot is proof, and nothing else is. A slot that holds a function of another allocator
 * says that the object's calls go there; one that is still to be bound (lazy binding) says that
 * nobody has called yet. What is read is the loader's and the program's: it may be anything, and is
 * asked for first. */
#ifndef MEMLOG_CLIENT_UNWIND_BOUND_H
#define MEMLOG_CLIENT_UNWIND_BOUND_H

#include <link.h>
#include <stdint.h>

#include "ipc/wire/ml_status.h"

enum {
    ML_BOUND_NAMES = 10,               /* malloc, free, ... */
    ML_BOUND_OTHERS_MAX = 32,          /* their definitions in other objects; libc alone has 9 */
    ML_BOUND_RELOCATIONS_MAX = 1 << 20 /* of one object that are looked at; libLLVM has 200,000 */
};

/* The allocator's functions at the start of the program. */
struct ml_bound_family {
    uintptr_t own[ML_BOUND_NAMES]; /* memlog's; 0: it has none of that name */
    uintptr_t others[ML_BOUND_OTHERS_MAX];
    uint32_t others_count;
    uintptr_t lowest, highest; /* of the others */
};

/* Of the objects that were there at the start, from the first to the last of them. */
void ml_bound_family_find(
    struct ml_bound_family *out_family, const struct link_map *first, const struct link_map *last
);

/* For tests: a family of one's own. */
void ml_bound_family_add(struct ml_bound_family *family, uintptr_t other);

enum ml_bound {
    ML_BOUND_OPEN,    /* slots are still to be bound, or it could not be read: look again */
    ML_BOUND_SETTLED, /* its calls come to memlog, or it has none: nothing will change */
    ML_BOUND_PAST     /* calls go to another allocator's function, or to one of its own */
};

/* The object with that dynamic section, which lies in [start, end), `base` off where it was linked
 * for. */
ML_NODISCARD enum ml_bound ml_bound_look(
    const struct ml_bound_family *family,
    uintptr_t base,
    const ElfW(Dyn) * dynamic,
    uintptr_t start,
    uintptr_t end
);

#endif
