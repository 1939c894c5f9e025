#include "tools/analyzer/symbols/perf_map.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/analyzer/model/search.h"
#include "tools/analyzer/symbols/search.h"

/* A longer map is ignored. node writes some 100,000 lines in a long run. */
enum { ENTRIES_MAX = 10 * 1000 * 1000 };

static bool is_ours(FILE *file, uint64_t since_ns, uint64_t until_ns) {
    struct stat status;
    uint64_t written_ns = 0;

    if (fstat(fileno(file), &status) != 0) {
        return false;
    }
    written_ns = (uint64_t)status.st_mtim.tv_sec * 1000000000 + (uint64_t)status.st_mtim.tv_nsec;
    return (status.st_uid == geteuid() || status.st_uid == 0 || geteuid() == 0) &&
           written_ns >= since_ns && written_ns <= until_ns;
}

/* START SIZE NAME, numbers in hex. False: no memory. */
static bool line_take(struct ml_perf_map *map, char *line) {
    char *at = NULL;
    struct ml_perf_entry entry = {0};
    uint64_t size = 0;

    line[strcspn(line, "\r\n")] = '\0';
    entry.start = strtoull(line, &at, 16);
    if (at == line || *at != ' ') {
        return true;
    }
    line = at + 1;
    size = strtoull(line, &at, 16);
    if (at == line || *at != ' ' || size == 0 || size > UINT64_MAX - entry.start) {
        return true;
    }
    entry.end = entry.start + size;
    entry.line = map->count;
    entry.name = ml_arena_text(&map->arena, at + 1, strlen(at + 1));
    if (!entry.name || !ML_GROW(map->entries, map->capacity, map->count + 1)) {
        return false;
    }
    map->entries[map->count++] = entry;
    return true;
}

/* A runtime drops code and uses its place again: the later line is valid. */
static int order_entries(const void *left, const void *right) {
    const struct ml_perf_entry *a = left;
    const struct ml_perf_entry *b = right;

    if (a->start != b->start) {
        return (a->start > b->start) - (a->start < b->start);
    }
    return (a->line < b->line) - (a->line > b->line);
}

bool ml_perf_map_read_file(
    struct ml_perf_map *map, const char *path, uint64_t since_ns, uint64_t until_ns
) {
    FILE *file = ml_symbol_text_open(path);
    char *line = NULL;
    size_t capacity = 0;
    bool done = file && is_ours(file, since_ns, until_ns);

    while (done && map->count < ENTRIES_MAX && getline(&line, &capacity, file) > 0) {
        done = line_take(map, line);
    }
    free(line);
    if (file) {
        fclose(file);
    }
    ML_SORT(map->entries, map->count, order_entries);
    return done && map->count > 0;
}

bool ml_perf_map_read(struct ml_perf_map *map, uint32_t pid, uint64_t since_ns, uint64_t until_ns) {
    char path[sizeof "/tmp/perf-4294967295.map"];

    snprintf(path, sizeof path, "/tmp/perf-%" PRIu32 ".map", pid);
    return ml_perf_map_read_file(map, path, since_ns, until_ns);
}

void ml_perf_map_fini(struct ml_perf_map *map) {
    free(map->entries);
    ml_arena_fini(&map->arena);
    *map = (struct ml_perf_map){0};
}

const char *ml_perf_map_find(const struct ml_perf_map *map, uint64_t address) {
    size_t low = ml_keys_until(ML_KEYS(map->entries, map->count, start), address);

    while (low > 0) {
        const struct ml_perf_entry *entry = &map->entries[--low];
        if (address < entry->end) {
            /* Of equal starts the first is the latest. */
            while (low > 0 && map->entries[low - 1].start == entry->start &&
                   address < map->entries[low - 1].end) {
                entry = &map->entries[--low];
            }
            return entry->name;
        }
        if (low == 0 || map->entries[low - 1].start != entry->start) {
            break;
        }
    }
    return NULL;
}
