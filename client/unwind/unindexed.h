/* Unwind tables (.eh_frame) of objects without an index (.eh_frame_hdr), as Debian's gcc -static
 * and musl-gcc link programs. Room: client. Context: the search at a start, before any stack is
 * walked; afterwards any thread, inside malloc.
 *
 * One rule: a table is found by what it looks like, in the object's mapped read-only segments, and
 * counts only where it describes the object's own code. Objects that are loaded later, and those
 * for whose functions there is no room, have none. In a process that runs already it is the
 * program's own alone: its libraries may go while they are looked at. */
#ifndef MEMLOG_CLIENT_UNWIND_UNINDEXED_H
#define MEMLOG_CLIENT_UNWIND_UNINDEXED_H

#include <stddef.h>
#include <stdint.h>

#include "client/unwind/cfi.h"

/* Find the tables of all objects that are loaded now, and index them. */
void ml_unindexed_find(void);

/* The table in that segment, as program headers give its bounds; header 0, no pairs: none. */
struct ml_cfi_table ml_unindexed_table(uintptr_t segment_lo, uintptr_t segment_hi);

/* Index what lies in a mapped segment and describes code in [code_lo, code_hi), in the order of the
 * code. Of a large segment the ends alone are read, by how much code there is. Offsets are from
 * `base`. Returns how many; SIZE_MAX: more than `most`. */
size_t ml_unindexed_scan(
    const struct ml_cfi_table *segment,
    uintptr_t code_lo,
    uintptr_t code_hi,
    uintptr_t base,
    struct ml_cfi_pair *out_pairs,
    size_t most
);

#endif
