/* What is mapped in another process. Room: tracer. Context: one thread.
 *
 * One rule: it is as it was when it was read; the process goes on. Whoever maps something there
 * asks the kernel not to replace anything. */
#ifndef MEMLOG_TRACER_PROCESS_MAPS_H
#define MEMLOG_TRACER_PROCESS_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error_message.h"

enum { ML_MAPS_MAX = 262144 /* four times the kernel's vm.max_map_count */ };

struct ml_map {
    uint64_t start, end;
    uint64_t offset;
    uint64_t device, inode; /* 0: no file's */
    bool is_readable, is_writable, is_executable;
    uint32_t path; /* where its path begins in `text`; 0: it has none */
};

struct ml_maps {
    struct ml_map *list; /* by address */
    size_t count;
    char *text;
};

/* False, with an error message: the process is gone, or may not be looked at. */
bool ml_maps_read(pid_t pid, struct ml_maps *out_maps, struct ml_error_message *error);
void ml_maps_free(struct ml_maps *maps);

const char *ml_maps_path(const struct ml_maps *maps, const struct ml_map *map);

/* The mapping that has that address; NULL: none. */
const struct ml_map *ml_maps_at(const struct ml_maps *maps, uint64_t address);

/* An address for `count_bytes` of memory from which, and to which, a 32-bit displacement reaches
 * all of [low, high), where nothing is mapped now and the program's heap and stacks do not grow. 0:
 * none.
 */
uint64_t
ml_maps_room(const struct ml_maps *maps, uint64_t low, uint64_t high, uint64_t count_bytes);

/* The room is taken: the next answer is another one. */
bool ml_maps_take(struct ml_maps *maps, uint64_t address, uint64_t count_bytes);

#endif
