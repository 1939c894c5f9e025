/* Putting the client and its rooms into a process's memory, by a borrowed thread. Room: tracer.
 * Context: the tracer's one thread; other threads of the process may run.
 *
 * One rule: nothing that is mapped is replaced, and nothing that the program runs is touched. */
#ifndef MEMLOG_TRACER_PLACE_H
#define MEMLOG_TRACER_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error_message.h"
#include "ipc/attach/block.h"
#include "tracer/borrow.h"
#include "tracer/client_image.h"
#include "tracer/plan.h"

/* Map the client at image->address, and write it. The block is empty then, but for where it lies.
 * False, with an error message. */
bool ml_place_client(
    struct ml_borrowed *borrowed,
    const struct ml_client_image *image,
    struct ml_error_message *error
);

/* Pages of rooms. */
struct ml_place_pages {
    uint64_t addresses[2 * ML_ATTACH_FUNCTIONS_MAX];
    uint32_t count;
};

/* Join the plan's functions to those that the block knows from earlier: whose entry is known keeps
 * its stub. The rest get rooms, with their trampolines in them. Those of objects that have been
 * unloaded are forgotten; `out_gone`: what only they had. False, with an error message. */
bool ml_place_functions(
    struct ml_borrowed *borrowed,
    const struct ml_plan *plan,
    struct ml_attach_block *block,
    struct ml_place_pages *out_gone,
    struct ml_error_message *error
);

/* Unmap them, once the process's own block does not name them. False: the thread is lost. */
bool ml_place_give_back(struct ml_borrowed *borrowed, const struct ml_place_pages *pages);

/* Write the stubs, which the client has made, into the rooms. False: the memory is not there. */
bool ml_place_stubs(int memory_fd, const struct ml_attach_block *block);

#endif
