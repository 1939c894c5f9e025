/* Names of code that a runtime made while it ran: /tmp/perf-PID.map, which node, Java and Python
 * write when asked to. Room: tools. Context: one thread; hostile bytes.
 *
 * One rule: a map that is older than its process is another one's. */
#ifndef MEMLOG_TOOLS_ANALYZER_SYMBOLS_PERF_MAP_H
#define MEMLOG_TOOLS_ANALYZER_SYMBOLS_PERF_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/analyzer/model/memory.h"

struct ml_perf_entry {
    uint64_t start, end;
    const char *name;
    size_t line; /* in the file: later ones hold */
};

struct ml_perf_map {
    struct ml_perf_entry *entries; /* sorted by start; of equal ones the last in the file first */
    size_t count, capacity;
    struct ml_arena arena;
};

/* An empty map is all zero. Read the process's, if there is one of this user's or root's written
 * after `since_ns` (time of day). False: none. */
bool ml_perf_map_read(struct ml_perf_map *map, uint32_t pid, uint64_t since_ns);

/* The same from a path. Lines that are none are skipped. */
bool ml_perf_map_read_file(struct ml_perf_map *map, const char *path, uint64_t since_ns);
void ml_perf_map_fini(struct ml_perf_map *map);

/* The name of the code at that address; NULL: none. */
const char *ml_perf_map_find(const struct ml_perf_map *map, uint64_t address);

#endif
