/* Random call trees of functions of every shape, each compiled in several ways. Room: tests. */
#ifndef MEMLOG_TESTS_CLIENT_UNWIND_TREE_H
#define MEMLOG_TESTS_CLIENT_UNWIND_TREE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ml_unwind_tree {
    uint64_t random;
    uint32_t depth_max;
    uint64_t calls_left;
    void (*probe)(void *context);
    void *context;
};

typedef long ml_tree_fn(struct ml_unwind_tree *tree, uint32_t depth);

struct ml_tree_set {
    ml_tree_fn *const *functions;
    uint32_t count;
};

/* The sets: C without and with frame pointers, unoptimised, with realigned stacks, and C++. */
extern const struct ml_tree_set ml_tree_plain;
extern const struct ml_tree_set ml_tree_framed;
extern const struct ml_tree_set ml_tree_unoptimised;
extern const struct ml_tree_set ml_tree_realigned;
extern const struct ml_tree_set ml_tree_cxx;

uint64_t ml_tree_random(struct ml_unwind_tree *tree);

/* Probe, or call a random function of a random set. Each function of a tree calls it. */
long ml_tree_descend(struct ml_unwind_tree *tree, uint32_t depth);

/* Choose among the sets; bit i of `sets` permits set i. */
void ml_tree_use(uint32_t sets);

#ifdef __cplusplus
}
#endif

#endif
