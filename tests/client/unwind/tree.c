#include "tests/client/unwind/tree.h"

#include <stddef.h>

static const struct ml_tree_set *const all_sets[] = {
    &ml_tree_plain, &ml_tree_framed, &ml_tree_unoptimised, &ml_tree_cxx, &ml_tree_realigned};
enum { SET_COUNT = sizeof all_sets / sizeof all_sets[0] };

static uint32_t sets_used = (1 << SET_COUNT) - 1;

void ml_tree_use(uint32_t sets) {
    sets_used = sets;
}

uint64_t ml_tree_random(struct ml_unwind_tree *tree) {
    tree->random ^= tree->random << 13;
    tree->random ^= tree->random >> 7;
    tree->random ^= tree->random << 17;
    return tree->random;
}

long ml_tree_descend(struct ml_unwind_tree *tree, uint32_t depth) {
    if (depth >= tree->depth_max || tree->calls_left == 0 || ml_tree_random(tree) % 8 == 0) {
        tree->probe(tree->context);
        return 1;
    }
    tree->calls_left--;
    uint32_t i = (uint32_t)(ml_tree_random(tree) % SET_COUNT);
    while ((sets_used >> i & 1) == 0) {
        i = (i + 1) % SET_COUNT;
    }
    const struct ml_tree_set *set = all_sets[i];
    long result = set->functions[ml_tree_random(tree) % set->count](tree, depth + 1);
    return (result & 0xffffff) + 1; /* the functions add it up many times over: no overflow */
}
