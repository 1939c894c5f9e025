/* A process's threads, for a dump's reader. Room: host. Context: any; reads /proc only.
 *
 * One rule: as in info.h, what cannot be read is left out. */
#ifndef MEMLOG_HOST_PROCESS_THREADS_H
#define MEMLOG_HOST_PROCESS_THREADS_H

#include <stdint.h>
#include <sys/types.h>

#include "host/process/info.h"

/* The limit of the contract, memlog.service.ProcessView: of more threads the first are told. */
enum { ML_PROCESS_THREADS_MAX = 1024 };

struct ml_process_thread {
    uint32_t tid;
    char name[ML_PROCESS_NAME_BYTES];
};

struct ml_process_threads {
    struct ml_process_thread *items; /* by tid */
    uint32_t count;
};

/* Read them. None: the process is gone, may not be read, or there is no memory. */
void ml_process_threads_init(struct ml_process_threads *threads, pid_t pid);
void ml_process_threads_fini(struct ml_process_threads *threads);

#endif
