/* The functions of one set: included once by each unwind_tree_<set>.c, which is compiled with the
 * set's own flags and defines ML_TREE_SET, the name of the set. Room: tests.
 *
 * One rule: each function calls ml_tree_descend, so that frames of all sets mix in one stack. */
#ifndef MEMLOG_TESTS_CLIENT_UNWIND_TREE_SET_H
#define MEMLOG_TESTS_CLIENT_UNWIND_TREE_SET_H

#include <alloca.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/client/unwind/tree.h"

enum { VICTIMS = 4 };

/* A variable-length array is one of the shapes that a frame may have. */
#pragma GCC diagnostic ignored "-Wvla"

static void use(void *memory) {
    __asm__ volatile("" ::"r"(memory) : "memory");
}

/* Leaves rbp and the others to the compiler, which needs them all across the calls. */
static long many_values(struct ml_unwind_tree *tree, uint32_t depth) {
    long a = (long)ml_tree_random(tree);
    long b = (long)ml_tree_random(tree);
    long c = (long)ml_tree_random(tree);
    long d = (long)ml_tree_random(tree);
    for (int i = 0; i < 3; i++) {
        a ^= ml_tree_descend(tree, depth);
        b ^= a ^ ml_tree_descend(tree, depth);
        c ^= b + i;
        d ^= c ^ a;
    }
    return a ^ b ^ c ^ d;
}

static long small(struct ml_unwind_tree *tree, uint32_t depth) {
    return ml_tree_descend(tree, depth) + 1;
}

static long small_twice(struct ml_unwind_tree *tree, uint32_t depth) {
    long sum = ml_tree_descend(tree, depth);
    return sum + ml_tree_descend(tree, depth);
}

static long with_alloca(struct ml_unwind_tree *tree, uint32_t depth) {
    long sum = 0;
    for (int i = 0; i < 2; i++) {
        size_t bytes = 16 + (size_t)(ml_tree_random(tree) % 6) * 48;
        char *memory = alloca(bytes);
        memset(memory, (int)depth, bytes);
        use(memory);
        sum += ml_tree_descend(tree, depth) + memory[bytes - 1];
    }
    return sum;
}

static long with_vla(struct ml_unwind_tree *tree, uint32_t depth) {
    size_t count = 1 + (size_t)(ml_tree_random(tree) % 64);
    long values[count];
    use(values); /* not written: stale return addresses of earlier frames stay in it */
    long sum = ml_tree_descend(tree, depth);
    values[0] = sum;
    use(values);
    return values[0] + ml_tree_descend(tree, depth);
}

static long with_large_frame(struct ml_unwind_tree *tree, uint32_t depth) {
    char memory[6000];
    use(memory);
    long sum = ml_tree_descend(tree, depth);
    memory[sum & 0xff] = 1;
    use(memory);
    return memory[0] + ml_tree_descend(tree, depth);
}

#ifdef ML_TREE_ALIGNED
static long with_aligned_locals(struct ml_unwind_tree *tree, uint32_t depth) {
    _Alignas(64) char memory[128];
    use(memory);
    memory[0] = (char)ml_tree_descend(tree, depth);
    use(memory);
    return memory[0] + ml_tree_descend(tree, depth);
}

/* Arguments on the stack and aligned locals: the frame is found through a saved copy of where the
 * arguments were, by a DWARF expression. */
__attribute__((noinline)) static long aligned_with_arguments(
    struct ml_unwind_tree *tree, uint32_t depth, long c, long d, long e, long f, long g, long h
) {
    _Alignas(64) char memory[128];
    use(memory);
    memory[0] = (char)(ml_tree_descend(tree, depth) + c + d + e + f + g + h);
    char *more = alloca((size_t)(ml_tree_random(tree) % 8) * 32 + 16);
    use(more);
    return memory[0] + ml_tree_descend(tree, depth) + g + h;
}

static long with_aligned_arguments(struct ml_unwind_tree *tree, uint32_t depth) {
    return aligned_with_arguments(tree, depth, 1, 2, 3, 4, 5, (long)depth) + 1;
}
#endif

__attribute__((noinline)) static long eight_arguments(
    struct ml_unwind_tree *tree, uint32_t depth, long c, long d, long e, long f, long g, long h
) {
    return ml_tree_descend(tree, depth) + c + d + e + f + g + h;
}

static long with_stack_arguments(struct ml_unwind_tree *tree, uint32_t depth) {
    long sum = eight_arguments(tree, depth, 1, 2, 3, 4, 5, (long)depth);
    return sum + eight_arguments(tree, depth, sum, sum, 3, 4, sum, 6);
}

static long with_tail_call(struct ml_unwind_tree *tree, uint32_t depth) {
    return ml_tree_descend(tree, depth + 1);
}

struct jump {
    jmp_buf buffer;
    struct ml_unwind_tree *tree;
};

__attribute__((noinline)) static void jump_out(struct jump *jump, uint32_t depth) {
    (void)ml_tree_descend(jump->tree, depth);
    if (ml_tree_random(jump->tree) % 2 == 0) {
        longjmp(jump->buffer, 1);
    }
    (void)ml_tree_descend(jump->tree, depth);
}

static long with_longjmp(struct ml_unwind_tree *tree, uint32_t depth) {
    struct jump jump;
    jump.tree = tree;
    if (setjmp(jump.buffer) == 0) {
        jump_out(&jump, depth);
    }
    return ml_tree_descend(tree, depth);
}

struct sorted {
    struct ml_unwind_tree *tree;
    long key;
    uint32_t depth;
};

static int order(const void *left, const void *right) {
    const struct sorted *a = left;
    const struct sorted *b = right;
    (void)ml_tree_descend(a->tree, a->depth + 1);
    return (a->key > b->key) - (a->key < b->key);
}

static long with_qsort(struct ml_unwind_tree *tree, uint32_t depth) {
    struct sorted items[VICTIMS];
    for (int i = 0; i < VICTIMS; i++) {
        items[i] =
            (struct sorted){.tree = tree, .key = (long)(ml_tree_random(tree) % 16), .depth = depth};
    }
    qsort(items, VICTIMS, sizeof items[0], order);
    return items[0].key;
}

static ml_tree_fn *const functions[] = {
    many_values,
    small,
    small_twice,
    with_alloca,
    with_vla,
    with_large_frame,
#ifdef ML_TREE_ALIGNED
    with_aligned_locals,
    with_aligned_arguments,
    with_aligned_arguments,
#endif
    with_stack_arguments,
    with_tail_call,
    with_longjmp,
    with_qsort,
};

const struct ml_tree_set ML_TREE_SET = {
    .functions = functions, .count = sizeof functions / sizeof functions[0]};

#endif
