#include "tools/analyzer/model/memory.h"

#include <stdlib.h>
#include <string.h>

/* Pieces are cut from blocks. Each block is twice as large as the one before, up to the maximum.
 * Larger pieces get their own block. */
enum { BLOCK_MIN_BYTES = 1024, BLOCK_MAX_BYTES = 64 * 1024 };

struct ml_arena_block {
    struct ml_arena_block *next;
    size_t used_bytes, size_bytes;
    max_align_t memory[];
};

void ml_arena_fini(struct ml_arena *arena) {
    while (arena->blocks) {
        struct ml_arena_block *next = arena->blocks->next;
        free(arena->blocks);
        arena->blocks = next;
    }
}

static struct ml_arena_block *block_add(struct ml_arena *arena, size_t needed_bytes) {
    size_t size_bytes = arena->blocks ? 2 * arena->blocks->size_bytes : BLOCK_MIN_BYTES;
    struct ml_arena_block *block = NULL;

    size_bytes = size_bytes < BLOCK_MAX_BYTES ? size_bytes : BLOCK_MAX_BYTES;
    size_bytes = size_bytes > needed_bytes ? size_bytes : needed_bytes;
    if (size_bytes > SIZE_MAX - sizeof *block) {
        return NULL;
    }
    block = calloc(1, sizeof *block + size_bytes);
    if (!block) {
        return NULL;
    }
    block->size_bytes = size_bytes;
    block->next = arena->blocks;
    arena->blocks = block;
    return block;
}

void *ml_arena_take(struct ml_arena *arena, size_t count_bytes) {
    struct ml_arena_block *block = arena->blocks;
    size_t rounded_bytes = 0;
    void *piece = NULL;

    if (count_bytes > SIZE_MAX / 2) {
        return NULL;
    }
    rounded_bytes =
        (count_bytes + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
    if (!block || block->size_bytes - block->used_bytes < rounded_bytes) {
        block = block_add(arena, rounded_bytes);
    }
    if (!block) {
        return NULL;
    }
    piece = (unsigned char *)block->memory + block->used_bytes;
    block->used_bytes += rounded_bytes;
    return piece;
}

char *ml_arena_text(struct ml_arena *arena, const char *bytes, size_t count_bytes) {
    char *text = ml_arena_take(arena, count_bytes + 1);

    if (text && count_bytes > 0) {
        memcpy(text, bytes, count_bytes);
    }
    return text;
}

bool ml_grow(void **items, size_t *capacity, size_t needed, size_t item_bytes) {
    size_t wanted = *capacity ? *capacity : 16;
    void *grown = NULL;

    if (needed <= *capacity) {
        return true;
    }
    while (wanted < needed) {
        if (wanted > SIZE_MAX / 2) {
            return false;
        }
        wanted *= 2;
    }
    grown = reallocarray(*items, wanted, item_bytes);
    if (!grown) {
        return false;
    }
    *items = grown;
    *capacity = wanted;
    return true;
}

uint64_t ml_hash(uint64_t hash, const void *bytes, size_t count_bytes) {
    const unsigned char *in = bytes;

    hash ^= 0xcbf29ce484222325ULL; /* FNV's offset basis */
    for (size_t i = 0; i < count_bytes; i++) {
        hash = (hash ^ in[i]) * 0x100000001b3ULL; /* FNV's prime */
    }
    return hash;
}

size_t ml_hash_index(uint64_t hash, size_t slots_count) {
    hash ^= hash >> 32;
    hash *= 0x9e3779b97f4a7c15ULL; /* 2^64 / golden ratio: spreads low bits upwards */
    return (size_t)(hash >> 32) & (slots_count - 1);
}
