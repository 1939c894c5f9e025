#include "tests/client/unwind/tree.h"

#include <cstddef>

namespace {

struct Oops {
    uint32_t depth;
};

struct Probing { /* a destructor that runs while an exception passes */
    ml_unwind_tree *tree;
    uint32_t depth;
    ~Probing() {
        if (tree->calls_left > 0) {
            (void)ml_tree_descend(tree, depth + 2);
        }
    }
};

__attribute__((noinline)) long thrower(ml_unwind_tree *tree, uint32_t depth) {
    long sum = ml_tree_descend(tree, depth);
    if (ml_tree_random(tree) % 2 == 0) {
        throw Oops{depth};
    }
    return sum + ml_tree_descend(tree, depth);
}

__attribute__((noinline)) long middle(ml_unwind_tree *tree, uint32_t depth) {
    Probing probing{tree, depth};
    return thrower(tree, depth) + 1;
}

long catcher(ml_unwind_tree *tree, uint32_t depth) {
    long sum = 0;
    try {
        sum += middle(tree, depth);
    } catch (const Oops &oops) {
        sum += ml_tree_descend(tree, depth) + oops.depth;
    }
    return sum + ml_tree_descend(tree, depth);
}

long lambda(ml_unwind_tree *tree, uint32_t depth) {
    auto inner = [tree](uint32_t deeper) { return ml_tree_descend(tree, deeper); };
    return inner(depth) + inner(depth + 1);
}

ml_tree_fn *const functions[] = {catcher, lambda};

} // namespace

extern "C" {
const ml_tree_set ml_tree_cxx = {functions, sizeof functions / sizeof functions[0]};
}
