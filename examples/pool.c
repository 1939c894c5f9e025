/* A pool of trees, as talloc's: a block hangs below its parent, and is freed with it. Each block
 * has the type that its caller names, and the heap's stacks say who asked.
 *
 *     gcc -g $(pkg-config --cflags memlog) -o pool pool.c
 *     memlog run -- ./pool 1000
 *     memlog report --heap=pool DUMP */
#define MEMLOG_WEAK
#include <memlog.h>
#include <stdio.h>
#include <stdlib.h>

struct block {
    struct block *parent, *first_child, *next, *before;
    _Alignas(16) char memory[];
};

static uint32_t heap;

static struct block *block_of(void *memory) {
    return memory == NULL ? NULL : (struct block *)((char *)memory - sizeof(struct block));
}

/* The frame of this function is not the one that a reader looks for: it is the caller's. */
static void *pool_take(void *parent, size_t bytes, const char *type) {
    struct block *block = malloc(sizeof(*block) + bytes);
    struct block *above = block_of(parent);
    if (block == NULL) {
        return NULL;
    }
    *block = (struct block){.parent = above, .next = above != NULL ? above->first_child : NULL};
    if (block->next != NULL) {
        block->next->before = block;
    }
    if (above != NULL) {
        above->first_child = block;
    }
    if (heap != 0) {
        memlog_alloc_typed(heap, (uintptr_t)block->memory, bytes, memlog_type(type));
    }
    return block->memory;
}

static void free_tree(struct block *block) {
    while (block->first_child != NULL) {
        struct block *child = block->first_child;
        block->first_child = child->next;
        free_tree(child);
    }
    if (heap != 0) {
        memlog_free(heap, (uintptr_t)block->memory);
    }
    free(block);
}

static void pool_free(void *memory) {
    struct block *block = block_of(memory);
    if (block->before != NULL) {
        block->before->next = block->next;
    } else if (block->parent != NULL) {
        block->parent->first_child = block->next;
    }
    if (block->next != NULL) {
        block->next->before = block->before;
    }
    free_tree(block);
}

static void *answer(void *request) {
    void *body = pool_take(request, 200, "body");
    (void)pool_take(body, 50, "header");
    return body;
}

int main(int argc, char **argv) {
    const int count = argc > 1 ? atoi(argv[1]) : 1000;
    heap = memlog_heap != NULL ? memlog_heap("pool", 1) : 0;
    void *session = pool_take(NULL, 1000, "session");
    for (int i = 0; i < count; i++) {
        void *request = pool_take(session, 300, "request");
        (void)answer(request);
        if (i % 10 != 0) { /* nine of ten are forgotten with all that hangs below */
            pool_free(request);
        }
    }
    const int left = (count + 9) / 10;
    printf(
        "session 1 1000\nrequest %d %d\nbody %d %d\nheader %d %d\n",
        left,
        left * 300,
        left,
        left * 200,
        left,
        left * 50
    );
    return fflush(stdout);
}
