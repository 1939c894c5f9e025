#include "client/unwind/recipe.h"

#include <stddef.h>

enum { KEY_VERSION_SHIFT = ML_ARCH_ADDRESS_BITS };

/* The slot to give up: one of the same address, an unused one, one of another generation, or any.
 */
static struct ml_recipe_slot *
victim(struct ml_recipes *recipes, uintptr_t pc, uint64_t generation) {
    struct ml_recipe_slot *set = recipes->slots[ml_recipe_set(pc)];
    struct ml_recipe_slot *spare = NULL;
    for (uint32_t way = 0; way < ML_RECIPE_WAYS; way++) {
        uint64_t key = atomic_load_explicit(&set[way].key, memory_order_relaxed);
        uint64_t value = atomic_load_explicit(&set[way].value, memory_order_relaxed);
        if ((key & (ML_RECIPE_KEY_PC | ML_RECIPE_KEY_BUSY)) == pc) {
            return &set[way];
        }
        bool current = (value >> ML_RECIPE_GENERATION_SHIFT & 0xff) == (generation & 0xff);
        if (spare == NULL && (key & ML_RECIPE_KEY_BUSY) == 0 && (value == 0 || !current)) {
            spare = &set[way];
        }
    }
    return spare != NULL ? spare : &set[ml_recipe_hash(pc) >> 32 & (ML_RECIPE_WAYS - 1)];
}

void ml_recipes_put(
    struct ml_recipes *recipes, uintptr_t pc, uint64_t generation, uint64_t recipe
) {
    if (pc > ML_RECIPE_KEY_PC) {
        return;
    }
    struct ml_recipe_slot *slot = victim(recipes, pc, generation);
    uint64_t key = atomic_load_explicit(&slot->key, memory_order_relaxed);
    if ((key & ML_RECIPE_KEY_BUSY) != 0) {
        return;
    }
    uint64_t next =
        ((key & ~ML_RECIPE_KEY_PC) + (UINT64_C(1) << KEY_VERSION_SHIFT)) & ~ML_RECIPE_KEY_BUSY;
    if (!atomic_compare_exchange_strong_explicit(
            &slot->key,
            &key,
            next | pc | ML_RECIPE_KEY_BUSY,
            memory_order_acq_rel,
            memory_order_relaxed
        )) {
        return;
    }
    atomic_store_explicit(
        &slot->value, recipe | ml_recipe_stamp(pc, generation), memory_order_release
    );
    atomic_store_explicit(&slot->key, next | pc, memory_order_release);
}

void ml_recipes_wipe(struct ml_recipes *recipes) {
    for (uint32_t set = 0; set < ML_RECIPE_SETS; set++) {
        for (uint32_t way = 0; way < ML_RECIPE_WAYS; way++) {
            atomic_store_explicit(&recipes->slots[set][way].value, 0, memory_order_release);
        }
    }
}
