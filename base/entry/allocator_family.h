/* Families of allocators: the prefixes that their functions' names have, those that are built in
 * and those that people gave. Room: base. Context: any; pure.
 *
 * One rule: `malloc` is of the family without a prefix and its other names (__libc_malloc) are,
 * too; `je_malloc` is of jemalloc's. Operators new and delete are of the family without one. */
#ifndef MEMLOG_BASE_ENTRY_ALLOCATOR_FAMILY_H
#define MEMLOG_BASE_ENTRY_ALLOCATOR_FAMILY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/entry/allocator_call.h"

enum {
    ML_ALLOCATOR_FAMILIES_GIVEN_MAX = 8,
    ML_ALLOCATOR_FAMILY_NAME_MAX = 24,  /* bytes, with the null */
    ML_ALLOCATOR_PREFIX_MAX = 24,       /* likewise */
    ML_ALLOCATOR_LIST_TEXT_MAX = 56,    /* a refusal's text, with its null */
    ML_ALLOCATOR_FUNCTION_NAME_MAX = 64 /* no member's name is longer, prefix and all, without the
                                           null */
};

/* Further families, as people gave them. */
struct ml_allocator_families {
    uint32_t count;
    char names[ML_ALLOCATOR_FAMILIES_GIVEN_MAX][ML_ALLOCATOR_FAMILY_NAME_MAX];
    char prefixes[ML_ALLOCATOR_FAMILIES_GIVEN_MAX][ML_ALLOCATOR_PREFIX_MAX];
};

enum ml_allocator_list_refusal {
    ML_ALLOCATOR_LIST_READ = 0,
    ML_ALLOCATOR_LIST_NO_EQUALS, /* an entry is not NAME=PREFIX */
    ML_ALLOCATOR_LIST_NO_NAME,
    ML_ALLOCATOR_LIST_NO_PREFIX,
    ML_ALLOCATOR_LIST_LONG,      /* a name or prefix is too long */
    ML_ALLOCATOR_LIST_MANY,      /* more than ML_ALLOCATOR_FAMILIES_GIVEN_MAX */
    ML_ALLOCATOR_LIST_CHARACTER, /* names and prefixes are letters, digits and _, names also - and
                                    . */
    ML_ALLOCATOR_LIST_TWICE,     /* a name or a prefix is there twice, or built in */
    ML_ALLOCATOR_LIST_FULL,      /* one more does not fit into the list's text */
    ML_ALLOCATOR_LIST_REFUSAL_COUNT
};

/* Read "NAME=PREFIX,NAME=PREFIX". An empty text has no families.
 *
 * Errors: any refusal; *out_families has no family then. */
enum ml_allocator_list_refusal ml_allocator_families_read(
    const char *text, size_t text_bytes, struct ml_allocator_families *out_families
);

/* Put one more, or several, behind those in a text of `list_bytes`, and check all of it.
 *
 * Errors: any refusal; the list is as it was then. */
enum ml_allocator_list_refusal
ml_allocator_families_add(char *list, size_t list_bytes, const char *one);

/* Why, for people. Never NULL. */
const char *ml_allocator_list_refusal_text(enum ml_allocator_list_refusal refusal);

/* A function's name with whatever prefix it has. */
struct ml_allocator_function {
    struct ml_allocator_call call;
    uint8_t family; /* ML_ALLOCATOR_FAMILY_*; below ML_ALLOCATOR_FAMILIES_BUILT_IN: built in; from
                       there on: given */
    uint8_t prefix_bytes;
};

/* Quick for names that are none: an executable has 100,000. `given` may be NULL. */
bool ml_allocator_function_of(
    const char *name,
    size_t name_bytes,
    const struct ml_allocator_families *given,
    struct ml_allocator_function *out_function
);

/* A family's name and prefix: "jemalloc", "je_". `given` as above; "" for a number that is none. */
const char *ml_allocator_family_name(uint8_t family, const struct ml_allocator_families *given);
const char *ml_allocator_family_prefix(uint8_t family, const struct ml_allocator_families *given);

#endif
