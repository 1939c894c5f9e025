#include "tools/analyzer/memory/kind.h"

#include <stdbool.h>
#include <string.h>

#include "mojom_like_idl/contracts/heap_service_mojom.h"

const char *ml_component_name(enum ml_component component) {
    static const char *const names[ML_COMPONENTS] = {
        [ML_COMPONENT_HEAP] = "heap",
        [ML_COMPONENT_SLACK] = "allocator slack",
        [ML_COMPONENT_INHERITED] = "inherited heap",
        [ML_COMPONENT_CODE] = "code",
        [ML_COMPONENT_DATA] = "data",
        [ML_COMPONENT_FILES] = "files",
        [ML_COMPONENT_SHARED] = "shared memory",
        [ML_COMPONENT_STACK] = "stacks",
        [ML_COMPONENT_MEMLOG] = "memlog",
        [ML_COMPONENT_MAPPED] = "mapped",
        [ML_COMPONENT_ANONYMOUS] = "other anonymous"};
    return names[component];
}

static bool begins_with(const struct ml_profile_text *text, const char *word) {
    const size_t count = strlen(word);
    return text->count_bytes >= count && memcmp(text->bytes, word, count) == 0;
}

static bool is_named(const struct ml_profile_text *text, const char *word) {
    return text->count_bytes == strlen(word) && begins_with(text, word);
}

static bool has_permission(const struct ml_profile_region *region, uint32_t permission) {
    return (region->permissions & permission) != 0;
}

static bool is_memlog(const struct ml_profile_region *region) {
    const char *slash = strrchr(region->name.bytes, '/');
    return begins_with(&region->name, "/memfd:memlog") ||
           (slash != NULL && strncmp(slash, "/libmemlog.so", sizeof "/libmemlog.so" - 1) == 0);
}

/* Files without a disk. They live as long as a process maps them or has them open. */
static bool is_shared_memory(const struct ml_profile_region *region) {
    static const char *const names[] = {"/memfd:", "/dev/shm/", "/dev/zero", "/SYSV", "[shmem"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (begins_with(&region->name, names[i])) {
            return has_permission(region, MEMLOG_SERVICE_MEMORY_PERMISSION_SHARED);
        }
    }
    return region->inode == 0 && has_permission(region, MEMLOG_SERVICE_MEMORY_PERMISSION_SHARED);
}

static enum ml_component of_file(const struct ml_profile_region *region) {
    if (has_permission(region, MEMLOG_SERVICE_MEMORY_PERMISSION_EXECUTE)) {
        return ML_COMPONENT_CODE;
    }
    return region->anonymous_kb > 0 ||
                   (has_permission(region, MEMLOG_SERVICE_MEMORY_PERMISSION_WRITE) &&
                    !has_permission(region, MEMLOG_SERVICE_MEMORY_PERMISSION_SHARED))
               ? ML_COMPONENT_DATA
               : ML_COMPONENT_FILES;
}

/* The file's mapping that ends where this one begins; NULL: none does. */
static const struct ml_profile_region *
file_before(const struct ml_profile_process *process, const struct ml_profile_region *region) {
    const struct ml_profile_region *before = region - 1;
    return region > process->regions && before->inode != 0 && before->end == region->start ? before
                                                                                           : NULL;
}

/* The loader maps .bss without a file, right behind the file's data. The kernel may join that
 * mapping with what was mapped behind it: what is known to be somebody else's is not counted here.
 */
static bool is_bss(const struct ml_profile_region *before) {
    return before != NULL && has_permission(before, MEMLOG_SERVICE_MEMORY_PERMISSION_WRITE) &&
           !has_permission(before, MEMLOG_SERVICE_MEMORY_PERMISSION_SHARED);
}

/* Of glibc: 64 MiB of address space at a multiple of that, readable as far as it is used. */
static bool
is_arena(const struct ml_profile_process *process, const struct ml_profile_region *region) {
    const uint64_t arena_bytes = (uint64_t)64 << 20;
    const struct ml_profile_region *behind = region + 1;
    return region->start % arena_bytes == 0 && region->end - region->start < arena_bytes &&
           has_permission(region, MEMLOG_SERVICE_MEMORY_PERMISSION_WRITE) &&
           behind < process->regions + process->regions_count && behind->start == region->end &&
           behind->end >= region->start + arena_bytes && behind->permissions == 0 &&
           behind->inode == 0;
}

/* Whoever maps by a call has its holding. What is left beside live blocks is the C library's, which
 * maps for its malloc without a call that is seen. */
static bool
has_blocks(const struct ml_profile_process *process, const struct ml_profile_region *region) {
    return process->holdings_count > 0 &&
           (region->heap_pages_private_bytes | region->heap_pages_shared_bytes) != 0;
}

static enum ml_component
of_plain(const struct ml_profile_process *process, const struct ml_profile_region *region) {
    const struct ml_profile_region *before = file_before(process, region);
    if (process->heap_was_laid && (is_arena(process, region) || has_blocks(process, region))) {
        return ML_COMPONENT_SLACK;
    }
    if (!is_bss(before)) {
        return ML_COMPONENT_ANONYMOUS;
    }
    return is_memlog(before) ? ML_COMPONENT_MEMLOG : ML_COMPONENT_DATA;
}

enum ml_component ml_component_of_region(
    const struct ml_profile_process *process, const struct ml_profile_region *region
) {
    if (is_memlog(region)) {
        return ML_COMPONENT_MEMLOG;
    }
    if (is_shared_memory(region)) {
        return ML_COMPONENT_SHARED;
    }
    if (region->inode != 0) {
        return of_file(region);
    }
    if (is_named(&region->name, "[heap]")) { /* what blocks do not hold of it is glibc's */
        return process->heap_was_laid ? ML_COMPONENT_SLACK : ML_COMPONENT_ANONYMOUS;
    }
    if (is_named(&region->name, "[stack]")) {
        return ML_COMPONENT_STACK;
    }
    if (begins_with(&region->name, "[v")) { /* the kernel's own: [vdso], [vvar], [vsyscall] */
        return ML_COMPONENT_CODE;
    }
    return of_plain(process, region);
}
