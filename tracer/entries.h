/* The entries of a process's functions: jumps written and taken back while all its threads are
 * stopped. Room: tracer. Context: the tracer's one thread.
 *
 * One rule: a byte is written only where the bytes are known, and no thread can be between them. */
#ifndef MEMLOG_TRACER_ENTRIES_H
#define MEMLOG_TRACER_ENTRIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/attach/block.h"
#include "tracer/process/threads.h"

/* Whether a stopped thread stands within the bytes of one of the jumps, or will come back there
 * from a signal handler: then they must not be written now. */
bool ml_entries_are_busy(
    const struct ml_threads *threads,
    int memory_fd,
    const struct ml_attach_function *functions,
    uint32_t count
);

struct ml_entries_result {
    uint32_t written;
    uint32_t were_so; /* they stand there already */
    uint32_t foreign; /* neither the function's bytes nor ours: left alone */
    uint32_t failed;  /* not readable, or not writable */
};

/* Put the jumps (of those that are on), or what stood there, at all entries. All threads are
 * stopped.
 */
struct ml_entries_result ml_entries_write(
    int memory_fd, const struct ml_attach_function *functions, uint32_t count, bool jumps
);

#endif
