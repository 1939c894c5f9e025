/* The client that is in a process already. Room: tracer. Context: the tracer's one thread.
 *
 * One rule: what a block says is checked: the process may write anything there. */
#ifndef MEMLOG_TRACER_FOUND_H
#define MEMLOG_TRACER_FOUND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "ipc/attach/block.h"
#include "tracer/client_image.h"
#include "tracer/process/maps.h"

struct ml_found {
    uint64_t block;                  /* its address; 0: there is none */
    bool is_same;                    /* it is of this very file, and can be used again */
    struct ml_attach_block *content; /* as it was read; NULL without a block */
};

/* Look through what is mapped. */
void ml_found_look(
    struct ml_found *out_found,
    pid_t pid,
    int memory_fd,
    const struct ml_maps *maps,
    const struct ml_client_image *image
);
void ml_found_free(struct ml_found *found);

#endif
