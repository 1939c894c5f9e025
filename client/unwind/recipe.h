/* Recipes: how to step out of a frame, by its return address, cached for the whole process.
 * Room: client (part of the unwinder). Context: any thread, signal handlers; lock-free.
 *
 * One rule: a lookup gives the recipe that was stored for this very address in this generation, or
 * none. A slot is two words, and no interleaving mixes two entries unnoticed:
 *
 *   word 0 = pc (48 bits) | version (15 bits) | busy    changes twice with every store
 *   word 1 = the recipe, with 8 bits of pc's hash and 8 bits of the generation
 *
 * A reader takes word 0, word 1, word 0 again. A writer that is interrupted for good (longjmp out
 * of a signal handler) leaves a busy slot, which is a miss for ever. */
#ifndef MEMLOG_CLIENT_UNWIND_RECIPE_H
#define MEMLOG_CLIENT_UNWIND_RECIPE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/unwind/arch.h"
#include "ipc/wire/ml_status.h"

enum {
    ML_RECIPE_WAYS = 4, /* a set is one cache line */
    ML_RECIPE_SETS =
        1 << 13, /* 32,768 addresses, 512 KiB; clang's 8,450 stacks need under 20,000 */
    ML_RECIPE_CFA_WORDS_MAX = (1 << 16) - 1, /* frames up to 512 KiB; larger ones are cold */
    ML_RECIPE_FP_WORDS_MAX = (1 << 12) - 1
};

enum ml_recipe_kind {
    ML_RECIPE_NONE = 0,
    ML_RECIPE_SP,   /* CFA = sp + words */
    ML_RECIPE_FP,   /* CFA = fp + words */
    ML_RECIPE_COLD, /* any other rule: the interpreter's */
    ML_RECIPE_END   /* the tables say that this is the outermost frame */
};

/* A recipe is one word: kind (3 bits), CFA offset in words (16), where rbp is stored, in words
 * below the CFA, 0 for "unchanged" (12), module id (16). The upper 17 bits are the table's. */
enum {
    ML_RECIPE_CFA_SHIFT = 3,
    ML_RECIPE_FP_SHIFT = 19,
    ML_RECIPE_MODULE_SHIFT = 31,
    ML_RECIPE_GENERATION_SHIFT = 47,
    ML_RECIPE_TAG_SHIFT = 55
};

static inline enum ml_recipe_kind ml_recipe_kind(uint64_t recipe) {
    return (enum ml_recipe_kind)(recipe & 7);
}
static inline uintptr_t ml_recipe_cfa_bytes(uint64_t recipe) {
    return (recipe >> ML_RECIPE_CFA_SHIFT & ML_RECIPE_CFA_WORDS_MAX) * ML_ARCH_WORD_BYTES;
}
static inline uint32_t ml_recipe_fp_words(uint64_t recipe) {
    return (uint32_t)(recipe >> ML_RECIPE_FP_SHIFT) & ML_RECIPE_FP_WORDS_MAX;
}
static inline uint32_t ml_recipe_module(uint64_t recipe) {
    return (uint32_t)(recipe >> ML_RECIPE_MODULE_SHIFT) & 0xffff;
}
static inline uint64_t ml_recipe_make(
    enum ml_recipe_kind kind, uint64_t cfa_words, uint64_t fp_words, uint32_t module_id
) {
    return (uint64_t)kind | cfa_words << ML_RECIPE_CFA_SHIFT | fp_words << ML_RECIPE_FP_SHIFT |
           (uint64_t)module_id << ML_RECIPE_MODULE_SHIFT;
}

struct ml_recipe_slot {
    _Atomic uint64_t key;
    _Atomic uint64_t value;
};

/* All zero is the empty table. */
struct ml_recipes {
    _Alignas(64) struct ml_recipe_slot slots[ML_RECIPE_SETS][ML_RECIPE_WAYS];
};

#define ML_RECIPE_MASK ((UINT64_C(1) << ML_RECIPE_GENERATION_SHIFT) - 1)
#define ML_RECIPE_KEY_PC ((UINT64_C(1) << ML_ARCH_ADDRESS_BITS) - 1)
#define ML_RECIPE_KEY_BUSY (UINT64_C(1) << 63)

static inline uint64_t ml_recipe_hash(uintptr_t pc) {
    return pc * UINT64_C(0x9e3779b97f4a7c15);
}

/* Neighbours in the code are neighbours in the table (32 bytes of code share a set), so that the
 * few pages of code that a program's stacks touch are few pages here. Each step of a walk waits for
 * this hash, so it is a cheap one. */
static inline uint32_t ml_recipe_set(uintptr_t pc) {
    return (uint32_t)(pc >> 5 ^ pc >> 18) & (ML_RECIPE_SETS - 1);
}

/* The bits of a value that check its address and generation. */
static inline uint64_t ml_recipe_stamp(uintptr_t pc, uint64_t generation) {
    return (generation & 0xff) << ML_RECIPE_GENERATION_SHIFT | (ml_recipe_hash(pc) >> 56)
                                                                   << ML_RECIPE_TAG_SHIFT;
}

/* The recipe for return address `pc`; 0 (ML_RECIPE_NONE) when there is none. */
static inline uint64_t
ml_recipes_find(struct ml_recipes *recipes, uintptr_t pc, uint64_t generation) {
    struct ml_recipe_slot *set = recipes->slots[ml_recipe_set(pc)];
    for (uint32_t way = 0; way < ML_RECIPE_WAYS; way++) {
        uint64_t key = atomic_load_explicit(&set[way].key, memory_order_acquire);
        if (((key ^ pc) & (ML_RECIPE_KEY_PC | ML_RECIPE_KEY_BUSY)) != 0) {
            continue;
        }
        uint64_t value = atomic_load_explicit(&set[way].value, memory_order_acquire);
        if (atomic_load_explicit(&set[way].key, memory_order_relaxed) == key &&
            (value & ~ML_RECIPE_MASK) == ml_recipe_stamp(pc, generation)) {
            return value & ML_RECIPE_MASK;
        }
    }
    return 0;
}

/* Store one; may silently not happen. */
void ml_recipes_put(struct ml_recipes *recipes, uintptr_t pc, uint64_t generation, uint64_t recipe);

/* Drop everything, so that the 8 generation bits of an entry may come round again. */
void ml_recipes_wipe(struct ml_recipes *recipes);

#endif
