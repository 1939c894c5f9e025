/* Names of code that a runtime generated, from /tmp/perf-PID.map. node, Java and Python write it
 * when asked to. Room: tools. Context: one thread; hostile bytes.
 *
 * A dump has the names of its moment itself (ml_frame_kind SCRIPT); this is for what has none
 * there: Java's map, which is written when somebody asks for it, and dumps of before.
 *
 * One rule: a map that is older than its process belongs to an earlier one, a younger one to a
 * later one. */
#ifndef MEMLOG_TOOLS_ANALYZER_SYMBOLS_PERF_MAP_H
#define MEMLOG_TOOLS_ANALYZER_SYMBOLS_PERF_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/analyzer/model/memory.h"

struct ml_perf_entry {
    uint64_t start, end;
    const char *name;
    size_t line; /* in the file; a later line replaces earlier ones */
};

struct ml_perf_map {
    struct ml_perf_entry *entries; /* sorted by start, equal ones from the last line on */
    size_t count, capacity;
    struct ml_arena arena;
};

/* Read the map of a process; an empty one is all zero. It must be this user's or root's and written
 * between `since_ns` and `until_ns` (time of day). False: there is none. */
bool ml_perf_map_read(struct ml_perf_map *map, uint32_t pid, uint64_t since_ns, uint64_t until_ns);

/* The same from a path. Other lines are skipped. */
bool ml_perf_map_read_file(
    struct ml_perf_map *map, const char *path, uint64_t since_ns, uint64_t until_ns
);
void ml_perf_map_fini(struct ml_perf_map *map);

/* The name of the code at that address; NULL: none. */
const char *ml_perf_map_find(const struct ml_perf_map *map, uint64_t address);

#endif
