/* Events, from what a hook knows to bytes in the lane. Room: client (private). Context: inside a
 * hook, on its lane.
 *
 * One rule: the stamp of an alloc is taken after the real call returned, that of a free before the
 * real call starts. */
#ifndef MEMLOG_CLIENT_RECORD_H
#define MEMLOG_CLIENT_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "client/hook.h"
#include "client/unwind.h"
#include "client/visible.h"

/* The block is new; its stack starts at `entry`. */
ML_HOT void ml_record_alloc(
    struct ml_lane *lane, const struct ml_unwind_entry *entry, const void *block, size_t size_bytes
);

/* The same for a block of a sample, which stands for more. */
void ml_record_alloc_sampled(
    struct ml_lane *lane,
    const struct ml_unwind_entry *entry,
    const void *block,
    size_t size_bytes,
    uint64_t weight_bytes,
    uint64_t weight_blocks
);

/* The block is about to be freed, or (op ML_OP_RESIZE) about to be given to realloc. With op may
 * stand ML_FREE_SKIPPED and ML_FREE_UNSURE. */
ML_HOT void ml_record_free(struct ml_lane *lane, const void *block, unsigned op);

/* That realloc failed: the block of the lane's last RESIZE is as it was. */
void ml_record_cancel(struct ml_lane *lane);

/* The START record, first in lane 0. */
void ml_record_start(struct ml_lane *lane, uint64_t fork_serial);

/* This lane is now that thread's; its name where the stack mode wants it. */
void ml_record_thread(struct ml_lane *lane);

/* A module that dlclose has unmapped. */
void ml_record_unload(void *lane, uint32_t module_id);

#endif
