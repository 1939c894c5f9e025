/* Which functions of an object are an allocator's, and which of them belong together. Room: client
 * (private). Context: the constructor: one thread.
 *
 * One rule: a block must be seen as it comes and as it goes. So functions are taken or left family
 * by family: those with one prefix (je_malloc, je_free, ...). Families that have a function in
 * common under two names are one allocator's, and are taken or left together. */
#ifndef MEMLOG_CLIENT_PATCH_FAMILY_H
#define MEMLOG_CLIENT_PATCH_FAMILY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/entry/allocator_family.h"
#include "base/entry/plan.h"
#include "client/patch/object_file.h"

enum {
    ML_FAMILY_FUNCTIONS_MAX = 192, /* mimalloc has some 100, with operators new and delete */
    ML_FAMILIES = ML_ALLOCATOR_FAMILIES_BUILT_IN + ML_ALLOCATOR_FAMILIES_GIVEN_MAX
};

struct ml_candidate {
    const char *name; /* in the object's file */
    uintptr_t address;
    uint64_t size_bytes;
    uint8_t family;
    struct ml_allocator_call call;
    enum ml_entry_refusal refusal; /* set by who plans */
    struct ml_entry_plan plan;
};

struct ml_families {
    const struct ml_object_file *object;
    struct ml_allocator_families given; /* as people gave them */
    bool is_library; /* memlog stands in front of what it exports under libc's names */
    struct ml_allocator_family {
        uint8_t joined;   /* the one that stands for it; itself: it stands for itself */
        uint32_t acts;    /* bit per enum ml_allocator_act */
        uint32_t basic;   /* bit for each of malloc, free, calloc, realloc */
        bool is_prefixed; /* one of those that it stands for has a prefix */
        bool is_wanted;   /* its functions are to be hooked */
    } families[ML_FAMILIES];
    struct ml_candidate functions[ML_FAMILY_FUNCTIONS_MAX];
    uint32_t count;
    bool has_too_many;  /* more than there is room for: no family is wanted */
    bool has_sanitizer; /* a run-time that checks each call is in it: likewise */
};

/* Look through the object's symbols; `object`, `given` and `is_library` are set. False: no family
 * is wanted. */
bool ml_families_find(struct ml_families *families);

/* Mark functions within whose first bytes another function of the object begins as too short. Where
 * they would be written over is planned. */
void ml_families_check_neighbours(struct ml_families *families);

/* The one that stands for the function's family. */
struct ml_allocator_family *
ml_family_of(struct ml_families *families, const struct ml_candidate *function);

/* Whether the function is to be hooked, and can be. */
bool ml_family_takes(struct ml_families *families, const struct ml_candidate *function);

#endif
