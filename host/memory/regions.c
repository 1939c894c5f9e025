#include "host/memory/regions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

/* Behind the last region that has an address of its own. */
enum { REGIONS_APART = ML_MEMORY_REGIONS_MAX - 1, FIRST_CAPACITY = 64, HEX = 16, DECIMAL = 10 };

/* Whether the line begins a mapping: "START-END FLAGS OFFSET DEVICE INODE    NAME", in hex but for
 * the inode; a key's line begins with a capital letter, and no hex number here has one. */
static bool is_mapping(const char *line) {
    return line[strspn(line, "0123456789abcdef")] == '-' && line[0] != '-';
}

/* The number at *at, which moves behind it and what parts it from the next. */
static uint64_t take_number(const char **at, int base) {
    char *end = NULL;
    const uint64_t number = strtoull(*at, &end, base);
    *at = end + strspn(end, "-: ");
    return number;
}

static uint32_t take_permissions(const char **at) {
    static const char letters[] = "rwxs";
    uint32_t permissions = 0;
    for (unsigned i = 0; i < sizeof(letters) - 1 && **at != '\0' && **at != '\n'; i++) {
        permissions |= **at == letters[i] ? 1U << i : 0;
        (*at)++;
    }
    *at += strspn(*at, " ");
    return permissions;
}

static struct ml_memory_region parse(const char *line) {
    struct ml_memory_region region = {.start = take_number(&line, HEX)};
    region.end = take_number(&line, HEX);
    region.permissions = take_permissions(&line);
    region.offset = take_number(&line, HEX);
    const uint64_t major = take_number(&line, HEX);
    const uint64_t minor = take_number(&line, HEX);
    region.device = makedev((unsigned)major, (unsigned)minor);
    region.inode = take_number(&line, DECIMAL);
    const size_t count = strcspn(line, "\n");
    region.name =
        strndup(line, count < ML_MEMORY_REGION_NAME_BYTES ? count : ML_MEMORY_REGION_NAME_BYTES);
    return region;
}

static bool make_room(struct ml_memory_regions *regions) {
    if (regions->count < regions->capacity) {
        return true;
    }
    const uint32_t capacity = regions->capacity > 0 ? regions->capacity * 2 : FIRST_CAPACITY;
    struct ml_memory_region *items =
        reallocarray(regions->items, capacity, sizeof(*regions->items));
    if (items == NULL) {
        return false;
    }
    regions->items = items;
    regions->capacity = capacity;
    return true;
}

/* The list is read in pieces, and the program maps on meanwhile: a mapping that was merged with its
 * neighbours is told once more, as a part of the larger one. The later word holds. */
static void drop_behind(struct ml_memory_regions *regions, uint64_t start) {
    while (regions->count > 0 && regions->items[regions->count - 1].end > start) {
        free(regions->items[--regions->count].name);
    }
}

static bool begin_region(struct ml_memory_regions *regions, const char *line) {
    if (regions->count == ML_MEMORY_REGIONS_MAX) {
        return true; /* the last one is of all that come */
    }
    if (!make_room(regions)) {
        return false;
    }
    const struct ml_memory_region region = regions->count < REGIONS_APART
                                               ? parse(line)
                                               : (struct ml_memory_region){.name = strdup("")};
    if (region.name == NULL) {
        return false;
    }
    if (region.end > region.start) {
        drop_behind(regions, region.start);
    }
    regions->items[regions->count++] = region;
    return true;
}

bool ml_memory_regions_line(struct ml_memory_regions *regions, const char *line) {
    static const char *const keys[ML_MEMORY_FIGURES] = {
        [ML_MEMORY_SIZE] = "Size:",
        [ML_MEMORY_RESIDENT] = "Rss:",
        [ML_MEMORY_PROPORTIONAL] = "Pss:",
        [ML_MEMORY_PRIVATE_CLEAN] = "Private_Clean:",
        [ML_MEMORY_PRIVATE_DIRTY] = "Private_Dirty:",
        [ML_MEMORY_SHARED_CLEAN] = "Shared_Clean:",
        [ML_MEMORY_SHARED_DIRTY] = "Shared_Dirty:",
        [ML_MEMORY_ANONYMOUS] = "Anonymous:",
        [ML_MEMORY_SWAP] = "Swap:",
    };
    if (is_mapping(line)) {
        return begin_region(regions, line);
    }
    for (int i = 0; i < ML_MEMORY_FIGURES && regions->count > 0; i++) {
        const size_t key_bytes = strlen(keys[i]);
        if (strncmp(line, keys[i], key_bytes) == 0) {
            const char *figure = line + key_bytes;
            regions->items[regions->count - 1].figures_kb[i] += take_number(&figure, DECIMAL);
            break;
        }
    }
    return true;
}

void ml_memory_regions_init(struct ml_memory_regions *regions, pid_t pid) {
    char path[64];
    char *line = NULL;
    size_t room = 0;
    bool has_memory = true;
    *regions = (struct ml_memory_regions){0};
    (void)snprintf(path, sizeof(path), "/proc/%d/smaps", (int)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return;
    }
    while (has_memory && getline(&line, &room, file) > 0) {
        has_memory = ml_memory_regions_line(regions, line);
    }
    free(line);
    (void)fclose(file);
    if (!has_memory) {
        ml_memory_regions_fini(regions);
    }
}

void ml_memory_regions_fini(struct ml_memory_regions *regions) {
    for (uint32_t i = 0; i < regions->count; i++) {
        free(regions->items[i].name);
    }
    free(regions->items);
    *regions = (struct ml_memory_regions){0};
}

bool ml_memory_region_is_unlinked(const struct ml_memory_region *region) {
    static const char own[] = "/memfd:memlog-";
    static const char deleted[] = " (deleted)";
    const size_t count = strlen(region->name);
    return region->inode != 0 && count >= sizeof(deleted) &&
           strcmp(region->name + count - (sizeof(deleted) - 1), deleted) == 0 &&
           strncmp(region->name, own, sizeof(own) - 1) != 0;
}

/* "libc.so.6", before glibc 2.34 also "libc-2.31.so". */
static bool is_libc(const char *name) {
    static const char before[] = "/libc-2.";
    const char *slash = strrchr(name, '/');
    return slash != NULL &&
           (strcmp(slash, "/libc.so.6") == 0 || strncmp(slash, before, sizeof(before) - 1) == 0);
}

uint32_t ml_memory_regions_libcs(const struct ml_memory_regions *regions) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < regions->count; i++) {
        const struct ml_memory_region *region = &regions->items[i];
        /* Programs that only read the file do not execute it. */
        count += (region->permissions & ML_MEMORY_EXECUTE) != 0 && is_libc(region->name) ? 1 : 0;
    }
    return count;
}
