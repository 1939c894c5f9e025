/* Threads on their way into a hook, inside one, or on their way out. Room: tracer. Context: the
 * tracer's one thread; the process's threads are stopped, and no entry leads to a hook.
 *
 * One rule: who cannot be told from a thread inside counts as one. Such a thread reads memory of
 * memlog's that the next start gives back.
 *
 * On the way in and out nothing in the process tells of it but its instruction pointer, or that to
 * which a signal handler will take it back; or, inside a real prctl, fork or execve that a hook has
 * called, its return address. Of a hook that calls the program's allocator the
 * client's table of threads tells (ipc/attach/block.h). That row stays where the program left the
 * call by siglongjmp: then the thread's stack has no word in it that leads back to the hook. */
#ifndef MEMLOG_TRACER_PASSERS_H
#define MEMLOG_TRACER_PASSERS_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/attach/block.h"
#include "tracer/process/threads.h"

/* What was seen of the table before. No thread enters a hook, so who was seen outside stays there.
 * All 0 at first. */
struct ml_passers {
    uint8_t is_outside[ML_ATTACH_THREADS_MAX];
};

/* Whether a stopped thread is one, of the client that the block describes. */
bool ml_passers_are_there(
    struct ml_passers *passers,
    const struct ml_threads *threads,
    int memory_fd,
    const struct ml_attach_block *block
);

#endif
