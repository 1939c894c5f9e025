/* Which functions of an object are an allocator's, which of them belong together, and what of them
 * can be hooked. Room: base. Context: any; pure. The client hooks what is planned here, and the
 * analyzer tells of it beforehand.
 *
 * One rule: a block must be seen as it comes and as it goes. So functions are taken or left family
 * by family: those with one prefix (je_malloc, je_free, ...). Families that have a function in
 * common under two names are one allocator's, and are taken or left together. */
#ifndef MEMLOG_BASE_ENTRY_FAMILIES_H
#define MEMLOG_BASE_ENTRY_FAMILIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/entry/allocator_family.h"
#include "base/entry/plan.h"

enum {
    ML_FAMILIES_FUNCTIONS_MAX = 192, /* mimalloc has some 100, with operators new and delete */
    ML_FAMILIES_MAX = ML_ALLOCATOR_FAMILIES_BUILT_IN + ML_ALLOCATOR_FAMILIES_GIVEN_MAX,
    ML_FAMILIES_CODE_MAX = 8, /* segments; linkers write one, lld and mold two at most */
    /* Of a function's stub, and of the instructions that its entry had, which begin there. */
    ML_FAMILIES_ROOM_BYTES = 96,
    ML_FAMILIES_TRAMPOLINE_AT = 32
};

/* What may be executed, and not written, as the file has it. */
struct ml_families_code {
    const uint8_t *bytes;  /* all of it readable */
    const uint8_t *loaded; /* as it lies in memory, where breakpoints may stand in it; what is moved
                              from there is what the file has, or the function is refused. NULL: it
                              is not loaded */
    size_t count_bytes;
    uint64_t address; /* where it runs */
};

struct ml_families_function {
    const char *name; /* in the object's file */
    uint64_t address;
    uint64_t size_bytes;
    uint8_t family;
    struct ml_allocator_call call;
    enum ml_entry_refusal refusal;
    bool keeps; /* its hook is to keep all registers: callers may know those that it leaves alone */
    struct ml_entry_plan plan;
};

struct ml_allocator_family {
    uint8_t joined;   /* the one that stands for it; itself: it stands for itself */
    uint32_t acts;    /* bit per enum ml_allocator_act */
    uint32_t basic;   /* bit for each of malloc, free, calloc, realloc */
    bool is_prefixed; /* one of those that it stands for has a prefix */
    bool is_wanted;   /* its functions are to be hooked */
    const struct ml_families_function *refused; /* its first that is needed and cannot be hooked, so
                                                   that none is; NULL: there is none */
};

struct ml_families {
    /* What the caller sets. */
    const uint8_t *file; /* the object's, all of it; borrowed while this is used, as `code` is */
    size_t file_bytes;
    uint64_t base; /* how far off where it was linked for it lies */
    const struct ml_families_code *code;
    uint32_t code_count;
    struct ml_allocator_families given; /* as people gave them */
    bool is_library;     /* memlog stands in front of what it exports under libc's names */
    bool may_push_calls; /* base/entry/plan.h */
    bool may_keep;       /* the caller's hooks can keep all registers; else such functions are
                            refused */
    bool (*is_served)(const char *name); /* calls of that name come to memlog already; NULL: none */

    /* What is found. */
    struct ml_allocator_family families[ML_FAMILIES_MAX];
    struct ml_families_function functions[ML_FAMILIES_FUNCTIONS_MAX];
    uint32_t count;
    bool has_too_many;  /* more than there is room for: no family is wanted */
    bool has_sanitizer; /* a run-time that checks each call is in it: likewise */
};

/* Look through the object's symbols. False: no family is wanted. */
bool ml_families_find(struct ml_families *families);

/* Plan the functions of wanted families: function i has ML_FAMILIES_ROOM_BYTES for its stub and its
 * trampoline at `room` + i * ML_FAMILIES_ROOM_BYTES. A family that would be seen in part is wanted
 * no more. Returns how many functions are to be hooked, and can be. */
uint32_t ml_families_plan(struct ml_families *families, uint64_t room);

/* The one that stands for the function's family. */
struct ml_allocator_family *
ml_families_of(struct ml_families *families, const struct ml_families_function *function);

/* Whether the function is to be hooked, and can be: once it is planned. */
bool ml_families_takes(struct ml_families *families, const struct ml_families_function *function);

/* Whether the family has all of the names of libc without which it is none: malloc, free, calloc,
 * realloc. */
bool ml_families_has_basics(const struct ml_allocator_family *family);

#endif
