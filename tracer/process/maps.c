#include "tracer/process/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    READ_STEP_BYTES = 1 << 16,
    TEXT_MAX_BYTES = 256 << 20,
    PAGE_BYTES = 4096,
    GUARD_BYTES = 1 << 16 /* to what else is mapped */
};
static const uint64_t reach_bytes = (uint64_t)0x7fff0000; /* of a 32-bit displacement, with room */
static const uint64_t lowest = 1 << 20;                   /* above what vm.mmap_min_addr may be */
static const uint64_t highest = UINT64_C(0x7ffffffff000);
static const uint64_t heap_growth_bytes = UINT64_C(1) << 30;

/* ---- reading */

static char *read_text(pid_t pid, size_t *out_bytes, struct ml_error_message *error) {
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        ml_error_set(error, "%s cannot be read: %s", path, strerror(errno));
        return NULL;
    }
    char *text = NULL;
    size_t used = 0;
    size_t room = 0;
    ssize_t got = 1;
    while (got > 0 && room < TEXT_MAX_BYTES) {
        if (room - used < READ_STEP_BYTES) {
            room = room * 2 + 2 * (size_t)READ_STEP_BYTES;
            char *larger = realloc(text, room);
            if (larger == NULL) {
                break;
            }
            text = larger;
        }
        got = read(fd, text + used, room - used - 1);
        used += got > 0 ? (size_t)got : 0;
    }
    (void)close(fd);
    if (text == NULL || used == 0) {
        ml_error_set(error, "%s cannot be read: it has ended, or is another user's", path);
        free(text);
        return NULL;
    }
    text[used] = '\0';
    *out_bytes = used;
    return text;
}

/* One line of the kernel's. */
static bool read_line(const char *line, const char *text, struct ml_map *out_map) {
    char rights[5] = "";
    unsigned major = 0;
    unsigned minor = 0;
    int path_at = 0;
    struct ml_map map = {.path = 0};
    if (sscanf(
            line,
            "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n",
            &map.start,
            &map.end,
            rights,
            &map.offset,
            &major,
            &minor,
            &map.inode,
            &path_at
        ) < 7) {
        return false;
    }
    map.device = (uint64_t)major << 32 | minor;
    map.is_readable = rights[0] == 'r';
    map.is_writable = rights[1] == 'w';
    map.is_executable = rights[2] == 'x';
    if (path_at > 0 && line[path_at] != '\0') {
        map.path = (uint32_t)(line + path_at - text);
    }
    *out_map = map;
    return true;
}

bool ml_maps_read(pid_t pid, struct ml_maps *out_maps, struct ml_error_message *error) {
    size_t bytes = 0;
    struct ml_maps maps = {.text = read_text(pid, &bytes, error)};
    if (maps.text == NULL) {
        return false;
    }
    size_t lines = 1;
    for (size_t i = 0; i < bytes; i++) {
        lines += maps.text[i] == '\n';
    }
    maps.list = calloc(lines + 16, sizeof(*maps.list)); /* and some that are taken */
    if (maps.list == NULL) {
        ml_error_set(error, "memory ran out");
        ml_maps_free(&maps);
        return false;
    }
    char *rest = NULL;
    for (char *line = strtok_r(maps.text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        maps.count += read_line(line, maps.text, &maps.list[maps.count]);
    }
    *out_maps = maps;
    return true;
}

void ml_maps_free(struct ml_maps *maps) {
    free(maps->list);
    free(maps->text);
    *maps = (struct ml_maps){.list = NULL};
}

const char *ml_maps_path(const struct ml_maps *maps, const struct ml_map *map) {
    return map->path != 0 ? maps->text + map->path : "";
}

const struct ml_map *ml_maps_at(const struct ml_maps *maps, uint64_t address) {
    for (size_t i = 0; i < maps->count; i++) {
        if (address >= maps->list[i].start && address < maps->list[i].end) {
            return &maps->list[i];
        }
    }
    return NULL;
}

/* ---- room */

static bool is_named(const struct ml_maps *maps, const struct ml_map *map, const char *name) {
    return strcmp(ml_maps_path(maps, map), name) == 0;
}

static bool reaches(uint64_t at, uint64_t count_bytes, uint64_t low, uint64_t high) {
    const uint64_t first = at < low ? at : low;
    const uint64_t last = at + count_bytes > high ? at + count_bytes : high;
    return last - first < reach_bytes;
}

/* The gap in front of mapping number `i`; behind the last one where `i` is their number. */
static bool gap_of(const struct ml_maps *maps, size_t i, uint64_t *out_from, uint64_t *out_to) {
    uint64_t from = lowest;
    uint64_t to = highest;
    if (i > 0) {
        const struct ml_map *below = &maps->list[i - 1];
        from = below->end + GUARD_BYTES;
        from += is_named(maps, below, "[heap]") ? heap_growth_bytes : 0;
    }
    if (i < maps->count) {
        const struct ml_map *above = &maps->list[i];
        to = above->start - GUARD_BYTES;
        to -= is_named(maps, above, "[stack]") ? heap_growth_bytes : 0;
        if (above->start < GUARD_BYTES || to > above->start || above->start > highest) {
            return false;
        }
    }
    *out_from = from < lowest ? lowest : from;
    *out_to = to;
    return *out_from < *out_to;
}

/* As high in the gap as the object is reached from, or as low. */
static uint64_t
place_in(uint64_t from, uint64_t to, uint64_t low, uint64_t high, uint64_t count_bytes) {
    if (to - from < count_bytes) {
        return 0;
    }
    const uint64_t top = (to - count_bytes) & ~(uint64_t)(PAGE_BYTES - 1);
    const uint64_t bottom = (from + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);
    if (top >= from && reaches(top, count_bytes, low, high)) {
        return top;
    }
    return bottom + count_bytes <= to && reaches(bottom, count_bytes, low, high) ? bottom : 0;
}

uint64_t
ml_maps_room(const struct ml_maps *maps, uint64_t low, uint64_t high, uint64_t count_bytes) {
    uint64_t best = 0;
    for (size_t i = 0; i <= maps->count; i++) {
        uint64_t from = 0;
        uint64_t to = 0;
        if (!gap_of(maps, i, &from, &to)) {
            continue;
        }
        const uint64_t at = place_in(from, to, low, high, count_bytes);
        if (at == 0) {
            continue;
        }
        /* Below the object where there is room: above an executable its heap grows. */
        if (best == 0 || (at < low && at > best) || (best > low && at < best)) {
            best = at;
        }
    }
    return best;
}

bool ml_maps_take(struct ml_maps *maps, uint64_t address, uint64_t count_bytes) {
    size_t at = 0;
    while (at < maps->count && maps->list[at].start < address) {
        at++;
    }
    struct ml_map *larger = realloc(maps->list, (maps->count + 1) * sizeof(*maps->list));
    if (larger == NULL) {
        return false;
    }
    maps->list = larger;
    memmove(&maps->list[at + 1], &maps->list[at], (maps->count - at) * sizeof(*maps->list));
    maps->list[at] = (struct ml_map){.start = address, .end = address + count_bytes};
    maps->count++;
    return true;
}
