/* The client in a process that runs already: what a tracer calls. Room: client (private). Context:
 * as begin.c says. */
#ifndef MEMLOG_CLIENT_ATTACHED_BEGIN_H
#define MEMLOG_CLIENT_ATTACHED_BEGIN_H

#include "ipc/attach/block.h"

/* What the tracer reads and writes. */
extern __attribute__((visibility("protected"))) struct ml_attach_block ml_attach_block;

/* Connect to the host over a new socket pair, and write the stubs of the functions in the block.
 * The outcome stands in the block. */
void ml_attached_begin(void);

/* The same, for a borrowed thread. */
extern __attribute__((visibility("default"))) const char ml_attached_enter[];

/* A hook by its name: the function of that name in the client itself. */
/* A hook by its name: the function of that name in the client itself. */
#define ML_ATTACHED_HOOK(name) ((const void *)(uintptr_t)(name))

#endif
