/* memlog in another process: put there, taken back. Room: tracer. Context: the tracer's one thread.
 *
 * One rule: at each moment the process is as it was, or whole with memlog in it, or its own block
 * says how to make it so. */
#ifndef MEMLOG_TRACER_ATTACHMENT_H
#define MEMLOG_TRACER_ATTACHMENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error_message.h"
#include "ipc/attach/block.h"
#include "mojom_like_idl/contracts/heap_tracer_mojom.h"
#include "tracer/client_image.h"

struct ml_attachment {
    pid_t pid;
    uint64_t start_ticks;
    const char *allocators; /* as --allocator gives them */
    /* Programs that the process executes are to have this library and that host; "": none. */
    const char *library, *socket_path;
    /* The process has made its connection: the descriptor is borrowed until this returns. */
    void (*on_connection)(pid_t pid, int connection_fd);
    struct ml_client_image image;
    uint64_t began_ns;                  /* of the monotonic clock; by what follows */
    struct memlog_tracer_traced traced; /* what was done, and what it cost */
    char refused[ML_ENTRIES_REFUSED_BYTES];
    struct ml_error_message error;
};

/* Put memlog into the process, and have its entries lead there. */
enum memlog_tracer_outcome ml_attach(struct ml_attachment *attachment);

/* Have its entries be as they were. Also what a killed tracer has left is put right. */
enum memlog_tracer_outcome ml_detach(struct ml_attachment *attachment);

#endif
