#include "client/unwind_recipe.h"

#include <stddef.h>

enum { KEY_VERSION_SHIFT = ML_ARCH_ADDRESS_BITS };

static const uint64_t KEY_BUSY = UINT64_C(1) << 63;
static const uint64_t KEY_PC_MASK = (UINT64_C(1) << ML_ARCH_ADDRESS_BITS) - 1;
static const uint64_t RECIPE_MASK = (UINT64_C(1) << ML_RECIPE_GENERATION_SHIFT) - 1;

static uint64_t pc_hash(uintptr_t pc) {
    return pc * UINT64_C(0x9e3779b97f4a7c15);
}

/* Neighbours in the code are neighbours in the table (32 bytes of code share a set), so that the
 * few pages of code that a program's stacks touch are few pages here. */
static uint32_t set_of(uintptr_t pc) {
    return (uint32_t)((pc >> 5) + (pc_hash(pc >> 18) >> 40)) & (ML_RECIPE_SETS - 1);
}

/* The bits of a value that tie it to its address and generation. */
static uint64_t stamp(uintptr_t pc, uint64_t generation) {
    return (generation & 0xff) << ML_RECIPE_GENERATION_SHIFT | (pc_hash(pc) >> 56)
                                                                   << ML_RECIPE_TAG_SHIFT;
}

uint64_t ml_recipes_find(struct ml_recipes *recipes, uintptr_t pc, uint64_t generation) {
    struct ml_recipe_slot *set = recipes->slots[set_of(pc)];
    for (uint32_t way = 0; way < ML_RECIPE_WAYS; way++) {
        uint64_t key = atomic_load_explicit(&set[way].key, memory_order_acquire);
        if (((key ^ pc) & (KEY_PC_MASK | KEY_BUSY)) != 0) {
            continue;
        }
        uint64_t value = atomic_load_explicit(&set[way].value, memory_order_acquire);
        if (atomic_load_explicit(&set[way].key, memory_order_relaxed) == key &&
            (value & ~RECIPE_MASK) == stamp(pc, generation)) {
            return value & RECIPE_MASK;
        }
    }
    return 0;
}

/* The slot to give up: one of the same address, an unused one, one of another generation, or any.
 */
static struct ml_recipe_slot *
victim(struct ml_recipes *recipes, uintptr_t pc, uint64_t generation) {
    struct ml_recipe_slot *set = recipes->slots[set_of(pc)];
    struct ml_recipe_slot *spare = NULL;
    for (uint32_t way = 0; way < ML_RECIPE_WAYS; way++) {
        uint64_t key = atomic_load_explicit(&set[way].key, memory_order_relaxed);
        uint64_t value = atomic_load_explicit(&set[way].value, memory_order_relaxed);
        if ((key & (KEY_PC_MASK | KEY_BUSY)) == pc) {
            return &set[way];
        }
        bool current = (value >> ML_RECIPE_GENERATION_SHIFT & 0xff) == (generation & 0xff);
        if (spare == NULL && (key & KEY_BUSY) == 0 && (value == 0 || !current)) {
            spare = &set[way];
        }
    }
    return spare != NULL ? spare : &set[pc_hash(pc) >> 32 & (ML_RECIPE_WAYS - 1)];
}

void ml_recipes_put(
    struct ml_recipes *recipes, uintptr_t pc, uint64_t generation, uint64_t recipe
) {
    if (pc > KEY_PC_MASK) {
        return;
    }
    struct ml_recipe_slot *slot = victim(recipes, pc, generation);
    uint64_t key = atomic_load_explicit(&slot->key, memory_order_relaxed);
    if ((key & KEY_BUSY) != 0) {
        return;
    }
    uint64_t next = ((key & ~KEY_PC_MASK) + (UINT64_C(1) << KEY_VERSION_SHIFT)) & ~KEY_BUSY;
    if (!atomic_compare_exchange_strong_explicit(
            &slot->key, &key, next | pc | KEY_BUSY, memory_order_acq_rel, memory_order_relaxed
        )) {
        return;
    }
    atomic_store_explicit(&slot->value, recipe | stamp(pc, generation), memory_order_release);
    atomic_store_explicit(&slot->key, next | pc, memory_order_release);
}

void ml_recipes_wipe(struct ml_recipes *recipes) {
    for (uint32_t set = 0; set < ML_RECIPE_SETS; set++) {
        for (uint32_t way = 0; way < ML_RECIPE_WAYS; way++) {
            atomic_store_explicit(&recipes->slots[set][way].value, 0, memory_order_release);
        }
    }
}
