#include "tools/analyzer/report/components.h"

#include <stdbool.h>
#include <string.h>

#include "mojom_like_idl/contracts/heap_service_mojom.h"

enum { KIB = 1024 };

__extension__ typedef unsigned __int128 ml_wide_product;

const char *ml_component_name(enum ml_component component) {
    static const char *const names[ML_COMPONENTS] = {
        [ML_COMPONENT_HEAP] = "heap",
        [ML_COMPONENT_SLACK] = "allocator slack",
        [ML_COMPONENT_CODE] = "code",
        [ML_COMPONENT_DATA] = "data",
        [ML_COMPONENT_FILES] = "files",
        [ML_COMPONENT_SHARED] = "shared memory",
        [ML_COMPONENT_STACK] = "stack",
        [ML_COMPONENT_MEMLOG] = "memlog",
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

/* The loader maps .bss without a file, behind the file's data. The kernel may join that mapping
 * with its neighbours. Then it is larger, and not .bss alone. */
static bool
is_bss(const struct ml_profile_process *process, const struct ml_profile_region *region) {
    enum { PAGE_BYTES = 4096 };
    for (size_t i = 0; i < process->modules_count; i++) {
        const struct ml_profile_module *module = &process->modules[i];
        if (region->start >= module->start && region->end < module->end + PAGE_BYTES) {
            return true;
        }
    }
    return false;
}

/* The component of a region in which no block is known. */
static enum ml_component
component_of(const struct ml_profile_process *process, const struct ml_profile_region *region) {
    if (is_memlog(region)) {
        return ML_COMPONENT_MEMLOG;
    }
    if (is_shared_memory(region)) {
        return ML_COMPONENT_SHARED;
    }
    if (region->inode != 0) {
        return of_file(region);
    }
    if (is_named(&region->name, "[stack]")) {
        return ML_COMPONENT_STACK;
    }
    if (begins_with(&region->name, "[v")) { /* the kernel's own: [vdso], [vvar], [vsyscall] */
        return ML_COMPONENT_CODE;
    }
    return is_bss(process, region) ? ML_COMPONENT_DATA : ML_COMPONENT_ANONYMOUS;
}

static struct ml_component_figures figures_of(const struct ml_profile_region *region) {
    return (struct ml_component_figures
    ){.private = (region->private_clean_kb + region->private_dirty_kb) * KIB,
      .shared = (region->shared_clean_kb + region->shared_dirty_kb) * KIB,
      .proportional = region->proportional_kb * KIB,
      .swapped = region->swap_kb * KIB};
}

static void add(struct ml_component_figures *sum, const struct ml_component_figures *figures) {
    sum->private += figures->private;
    sum->shared += figures->shared;
    sum->proportional += figures->proportional;
    sum->swapped += figures->swapped;
}

static uint64_t least(uint64_t one, uint64_t other) {
    return one < other ? one : other;
}

/* A part of a region. The kernel tells `proportional` for the whole region only. Its shared part is
 * split in the ratio of the shared bytes. */
static struct ml_component_figures
part_of(const struct ml_component_figures *whole, uint64_t private_bytes, uint64_t shared_bytes) {
    struct ml_component_figures part = {
        .private = least(private_bytes, whole->private),
        .shared = least(shared_bytes, whole->shared)};
    const uint64_t shared_part =
        whole->proportional > whole->private ? whole->proportional - whole->private : 0;
    part.proportional = part.private;
    if (whole->shared > 0) {
        part.proportional += (uint64_t)((ml_wide_product)shared_part * part.shared / whole->shared);
    }
    part.proportional = least(part.proportional, whole->proportional);
    return part;
}

static struct ml_component_figures
without(const struct ml_component_figures *whole, const struct ml_component_figures *part) {
    return (struct ml_component_figures
    ){.private = whole->private - part->private,
      .shared = whole->shared - part->shared,
      .proportional = whole->proportional - part->proportional,
      .swapped = whole->swapped - part->swapped};
}

/* The heap has what its blocks hold. Slack is the rest of their pages. Pages without a block are
 * slack only if the whole mapping is the allocator's. That is certain of [heap] alone, since the
 * kernel joins neighbouring mappings. */
static void split(
    struct ml_components *components,
    const struct ml_profile_region *region,
    const struct ml_component_figures *whole
) {
    const bool is_all = is_named(&region->name, "[heap]");
    const struct ml_component_figures heap =
        part_of(whole, region->heap_private_bytes, region->heap_shared_bytes);
    const struct ml_component_figures held =
        is_all ? *whole
               : part_of(whole, region->heap_pages_private_bytes, region->heap_pages_shared_bytes);
    const struct ml_component_figures slack = without(&held, &heap);
    const struct ml_component_figures rest = without(whole, &held);
    components->moved += region->heap_private_bytes - heap.private;
    components->moved += region->heap_shared_bytes - heap.shared;
    add(&components->of[ML_COMPONENT_HEAP], &heap);
    add(&components->of[ML_COMPONENT_SLACK], &slack);
    add(&components->of[ML_COMPONENT_ANONYMOUS], &rest);
}

void ml_components_of(const struct ml_profile_process *process, struct ml_components *out) {
    *out = (struct ml_components){0};
    for (size_t i = 0; i < process->regions_count; i++) {
        const struct ml_profile_region *region = &process->regions[i];
        const struct ml_component_figures figures = figures_of(region);
        add(&out->all, &figures);
        if (process->heap_was_laid &&
            (region->heap_blocks > 0 || is_named(&region->name, "[heap]"))) {
            split(out, region, &figures);
        } else {
            add(&out->of[component_of(process, region)], &figures);
        }
    }
}
