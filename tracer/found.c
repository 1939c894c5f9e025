#include "tracer/found.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracer/process/memory.h"

enum { MARK_STEP_BYTES = 4096, PAGES_AT_ONCE = 512 };

/* What the kernel knows of the process's pages, some at a time. */
struct pages {
    int fd; /* -1: it does not tell */
    uint64_t first, count;
    uint64_t entries[PAGES_AT_ONCE];
};

/* Whether a page has ever had a content. A thread's stack has thousands that have none, and to read
 * one has the kernel make it. What cannot be told counts as used. */
static bool is_used(struct pages *pages, uint64_t address) {
    const uint64_t present_or_swapped = UINT64_C(3) << 62;
    const uint64_t page = address / MARK_STEP_BYTES;
    if (page - pages->first >= pages->count) {
        const ssize_t got = pages->fd >= 0 ? pread(
                                                 pages->fd,
                                                 pages->entries,
                                                 sizeof(pages->entries),
                                                 (off_t)(page * sizeof(pages->entries[0]))
                                             )
                                           : -1;
        pages->first = page;
        pages->count = got > 0 ? (uint64_t)got / sizeof(pages->entries[0]) : 0;
    }
    return pages->count == 0 || (pages->entries[page - pages->first] & present_or_swapped) != 0;
}

static void open_pages(struct pages *pages, pid_t pid) {
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)pid);
    pages->fd = open(path, O_RDONLY | O_CLOEXEC);
    pages->first = 0;
    pages->count = 0;
}

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
    pid_t pid,
    int memory_fd,
    const struct ml_maps *maps,
    const struct ml_client_image *image
) {
    struct pages pages;
    *out_found = (struct ml_found){.block = 0};
    open_pages(&pages, pid);
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
            (void)(is_used(&pages, at) && read_block(out_found, memory_fd, maps, at));
        }
    }
    if (pages.fd >= 0) {
        (void)close(pages.fd);
    }
    const struct ml_attach_block *content = out_found->content;
    out_found->is_same = content != NULL && content->fingerprint == image->fingerprint &&
                         out_found->block == content->address + image->block_at;
}

void ml_found_free(struct ml_found *found) {
    free(found->content);
    *found = (struct ml_found){.block = 0};
}
