/* Which names are functions of an allocator, and what their arguments mean. Room: base. Context:
 * any; pure.
 *
 * One rule: a name is known with its meaning or not at all. Every member has at most
 * ML_ALLOCATOR_ARGUMENTS_MAX integer arguments, returns at most one word, and is no variadic: hooks
 * pass a word of their own in the argument register behind.
 *
 * A family is what one allocator's functions have in common: a prefix. `malloc` is of the family
 * without one, `je_malloc` of jemalloc's. Operators new and delete are of the family without one.
 *
 * No members, though they allocate:
 * - what ends in another member: __rust_alloc, strdup of libc, moz_xmalloc. An executable's own
 *   strdup is one: Firefox's calls the body of its malloc, past the entry
 * - what returns two words: jemalloc's smallocx_*, tcmalloc's __size_returning_new
 * - mimalloc's function of six arguments, heap_recalloc_aligned_at
 * - mimalloc's reallocarr, whose block lies in memory, its expand, which changes nothing, and
 *   heap_destroy, which tells no block */
#ifndef MEMLOG_BASE_ENTRY_ALLOCATOR_CALL_H
#define MEMLOG_BASE_ENTRY_ALLOCATOR_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ml_allocator_act {
    ML_ALLOCATOR_ALLOCATE = 0,
    ML_ALLOCATOR_RELEASE,
    ML_ALLOCATOR_RESIZE,         /* returns the block, which may have moved; NULL: as it was */
    ML_ALLOCATOR_RESIZE_IN_PLACE /* returns the block's real size, resized or not */
};

enum {
    ML_ALLOCATOR_NONE = 0xff,       /* there is no such argument */
    ML_ALLOCATOR_ARGUMENTS_MAX = 5, /* of six registers */
    ML_ALLOCATOR_FAMILY_PLAIN = 0,  /* without a prefix; __libc_ counts as none */
    ML_ALLOCATOR_FAMILY_JEMALLOC = 1,
    ML_ALLOCATOR_FAMILY_RUST_JEMALLOC = 2,
    ML_ALLOCATOR_FAMILY_MIMALLOC = 3,
    ML_ALLOCATOR_FAMILY_TCMALLOC = 4,
    ML_ALLOCATOR_FAMILY_LONG_JEMALLOC = 5, /* jemalloc_ */
    ML_ALLOCATOR_FAMILIES_BUILT_IN = 6,
};

struct ml_allocator_call {
    uint8_t act;            /* enum ml_allocator_act */
    uint8_t size_argument;  /* 0-based, as all; bytes that are asked for; NONE */
    uint8_t count_argument; /* multiplied with size; NONE */
    uint8_t block_argument; /* the block that is released or resized; NONE */
    uint8_t out_argument;   /* where a block is stored (posix_memalign; its result 0 is success);
                               NONE: it is returned */
    uint8_t text_argument;  /* the text that the block is a copy of: its length and a null are the
                               size, size_argument the most characters that are copied; NONE */
    uint8_t arguments;      /* how many it has; 1..ML_ALLOCATOR_ARGUMENTS_MAX */
    bool is_needed;         /* a family whose function of this kind cannot be patched is left alone
                               as a whole: what releases or resizes. Not cfree and reallocarray,
                               which are or call another member */
    bool is_released_on_failure; /* a resize that returns NULL has released the block (reallocf) */
    uint8_t only_families;       /* bits, 1 << family: programs have functions of their own by this
                                    name, so that it counts in these families alone (zalloc, new);
                                    0: in any */
};

/* What a function without its prefix does: "malloc", "mallocx", "_ZdlPvm". False: no member. */
bool ml_allocator_call_of(const char *name, size_t name_bytes, struct ml_allocator_call *out_call);

#endif
