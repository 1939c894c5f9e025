/* Threads on their way into a hook, or out of it. Room: tracer. Context: the tracer's one thread.
 *
 * One rule: such a thread may be about to read memory of memlog's whose address it has read
 * already. Nothing in the process tells of it: it is no guest of a hook yet. So only its
 * instruction pointer does, or that to which a signal handler will take it back. */
#ifndef MEMLOG_TRACER_PASSERS_H
#define MEMLOG_TRACER_PASSERS_H

#include <stdbool.h>

#include "ipc/attach/block.h"
#include "tracer/threads.h"

/* Whether a stopped thread is one, of the client that the block describes. */
bool ml_passers_are_there(
    const struct ml_threads *threads, int memory_fd, const struct ml_attach_block *block
);

#endif
