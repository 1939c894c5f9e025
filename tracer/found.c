#include "tracer/found.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tracer/process/memory.h"

enum { MARK_STEP_BYTES = 4096 };

static bool is_sound(const struct ml_attach_block *block) {
    if (block->version != ML_ATTACH_VERSION || block->functions_count > ML_ATTACH_FUNCTIONS_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < block->functions_count; i++) {
        if (block->functions[i].hook >= ML_ATTACH_HOOK_COUNT) {
            return false;
        }
    }
    return true;
}

/* Functions lie where the process has code. A library may have been unloaded, and its place be
 * another's data. */
static void drop_without_code(struct ml_attach_block *block, const struct ml_maps *maps) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < block->functions_count; i++) {
        const struct ml_map *map = ml_maps_at(maps, block->functions[i].entry);
        if (map == NULL || map->is_executable) {
            block->functions[kept++] = block->functions[i];
        }
    }
    block->functions_count = kept;
}

static bool
read_block(struct ml_found *found, int memory_fd, const struct ml_maps *maps, uint64_t address) {
    char mark[ML_ATTACH_MARK_BYTES];
    if (!ml_memory_read(memory_fd, address, mark, sizeof(mark)) ||
        memcmp(mark, ML_ATTACH_MARK, sizeof(mark)) != 0) {
        return false;
    }
    struct ml_attach_block *content = aligned_alloc(4096, sizeof(*content));
    if (content == NULL ||
        !ml_memory_read(memory_fd, address, content, offsetof(struct ml_attach_block, frame)) ||
        !is_sound(content)) {
        free(content);
        return false;
    }
    drop_without_code(content, maps);
    found->block = address;
    found->content = content;
    return true;
}

/* The block lies in memory without a file, which can be written; at the start of a page. */
void ml_found_look(
    struct ml_found *out_found,
    int memory_fd,
    const struct ml_maps *maps,
    const struct ml_client_image *image
) {
    *out_found = (struct ml_found){.block = 0};
    for (size_t i = 0; i < maps->count && out_found->block == 0; i++) {
        const struct ml_map *map = &maps->list[i];
        const uint64_t at_in_segment = image->block_at % MARK_STEP_BYTES;
        if (!map->is_writable || map->is_executable || map->inode != 0 || at_in_segment != 0 ||
            map->end - map->start < image->block_bytes ||
            map->end - map->start > 4 * (uint64_t)image->count_bytes) {
            continue;
        }
        for (uint64_t at = map->start; at + image->block_bytes <= map->end && out_found->block == 0;
             at += MARK_STEP_BYTES) {
            (void)read_block(out_found, memory_fd, maps, at);
        }
    }
    const struct ml_attach_block *content = out_found->content;
    out_found->is_same = content != NULL && content->fingerprint == image->fingerprint &&
                         out_found->block == content->address + image->block_at;
}

void ml_found_free(struct ml_found *found) {
    free(found->content);
    *found = (struct ml_found){.block = 0};
}
