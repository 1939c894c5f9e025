/* What the program maps, with the stack that did it. Room: client (private). Context: the hooks of
 * mmap and its like, on any thread, in signal handlers, before the constructor.
 *
 * One rule: a record lost here costs a mapping its owner and nothing else, so none counts as a
 * loss. A forked child's first mapping begins its stream, as its first allocation does, but only
 * where that can succeed.
 *
 * What is mapped before the stream begins is kept in a small static list. */
#ifndef MEMLOG_CLIENT_RECORDING_MAPPING_H
#define MEMLOG_CLIENT_RECORDING_MAPPING_H

#include <stdint.h>

#include "client/stream/lane.h"
#include "client/unwind/unwind.h"
#include "ipc/wire/event.h"

/* The program has called, from `entry`. Length 0: not known. Lengths are rounded up to pages. */
void ml_mapping_note(
    const struct ml_unwind_entry *entry,
    enum ml_mapping_kind kind,
    const void *address,
    uint64_t length_bytes
);

/* It has started a thread with that stack, which calls `function` first. */
void ml_mapping_stack(
    const struct ml_unwind_entry *entry,
    const void *address,
    uint64_t length_bytes,
    const void *function
);

/* It has named the range, or (NULL) taken the name away. The text is the program's, and may not be
 * readable. */
void ml_mapping_name(const void *address, uint64_t length_bytes, const char *name);

/* The lane is the first of the process's stream: record what was mapped before it. */
void ml_mapping_begin(struct ml_lane *lane);

#endif
