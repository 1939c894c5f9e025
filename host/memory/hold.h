/* All threads of a process, held while its memory is read. Room: host. Context: a process of its
 * own that ends behind it (host/engine/views/holder.h): whatever is still held then, the kernel
 * lets go. Allocates nothing: that process may be a fork of a program with threads.
 *
 * One rule: nobody notices but by the time. The threads are seized, not stopped by a signal: their
 * parent hears of nothing, a signal that arrives is delivered afterwards, a process that is stopped
 * by job control stays so. */
#ifndef MEMLOG_HOST_MEMORY_HOLD_H
#define MEMLOG_HOST_MEMORY_HOLD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { ML_HOLD_THREADS_MAX = 4096, ML_HOLD_WHY_BYTES = 128 };

struct ml_held_thread {
    pid_t tid;
    bool is_stopped;
    int signal; /* that was on its way to it, and is delivered at the end; 0: none */
};

struct ml_memory_hold {
    uint32_t count;
    struct ml_held_thread threads[ML_HOLD_THREADS_MAX];
};

/* Hold all threads, those too that are born meanwhile. False: `out_why` says why not, else "". Then
 * some may be held, and the caller is to end. */
bool ml_memory_hold_begin(struct ml_memory_hold *hold, pid_t pid, char out_why[ML_HOLD_WHY_BYTES]);

/* Let them go. */
void ml_memory_hold_end(struct ml_memory_hold *hold);

#endif
