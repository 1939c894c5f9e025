/* Which stack memory may be read. Room: client (part of the unwinder). Context: one thread's own
 * state, inside malloc; its only effect outside is the page probe of arch.h.
 *
 * One rule: an address is inside a range only if its page was seen to be readable: because the hook
 * itself runs on it, or because the probe said so. Ranges grow a page at a time, as far as a walk
 * has to go, so a thread pays one probe (about 0.15 us) for each page of stack that it ever uses,
 * and the bounds of stacks need not be known. On the malloc path they could not be asked for:
 * pthread_getattr_np allocates, /proc/self/maps is a file.
 *
 * A thread's own stack stays mapped as long as the thread lives: its range is kept for good. It is
 * known by what lies at its outer end: the thread control block, or for the main thread the
 * kernel's argument block. Any other stack (fiber, alternate signal stack) may be unmapped once the
 * thread has left it: its ranges are forgotten when an event comes from another stack. */
#ifndef MEMLOG_CLIENT_UNWIND_RANGE_H
#define MEMLOG_CLIENT_UNWIND_RANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/wire/ml_status.h"

enum {
    ML_UNWIND_RANGES = 4,                 /* the own stack; a signal's on a fiber's needs 3 */
    ML_UNWIND_RANGE_GROW_PAGES = 1 << 14, /* 64 MiB: one frame is not larger */
    ML_UNWIND_RANGE_DOWN_PAGES = 1 << 8,  /* 1 MiB; a jump further down is another range */
    ML_UNWIND_RANGE_ANCHOR_PAGES = 16     /* static TLS between a stack's first frame and its TCB */
};

struct ml_unwind_range {
    uintptr_t lo;
    uintptr_t hi; /* hi == 0: empty */
};

/* All zero is the empty state. */
struct ml_unwind_ranges {
    struct ml_unwind_range list[ML_UNWIND_RANGES]; /* [0] is the own stack, once known */
    uint32_t current;                              /* the range of the last event */
};

/* Is `address` in the range of the last event? The common case of what follows, without a call. */
static inline bool
ml_unwind_range_is_current(const struct ml_unwind_ranges *ranges, uintptr_t address) {
    const struct ml_unwind_range *range = &ranges->list[ranges->current];
    return address - range->lo < range->hi - range->lo;
}

/* Begin a walk at `sp`; the word below sp is known to be mapped (the hook's return address).
 *
 * Returns the range's index. *out_changed: other stacks' ranges are forgotten, so cached addresses
 * in them may not be loaded any more. */
uint32_t ml_unwind_range_enter(struct ml_unwind_ranges *ranges, uintptr_t sp, bool *out_changed);

/* End of a walk that came to a stack's outermost frame: if the own stack is not known yet and this
 * is it, keep it from now on. */
void ml_unwind_range_settle(struct ml_unwind_ranges *ranges);

/* Forget every range but the own stack's. */
void ml_unwind_range_forget(struct ml_unwind_ranges *ranges);

/* Make [address, end) readable in the range: it is, or probing can extend the range to it.
 *
 * Errors: false when it is below the range, not mapped, or too far. */
ML_NODISCARD bool ml_unwind_range_reach(
    struct ml_unwind_ranges *ranges, uint32_t index, uintptr_t address, uintptr_t end
);

/* Another stack in the middle of a walk (behind a signal frame): the index of a range with
 * [address, end) in it.
 *
 * Errors: ML_UNWIND_RANGES when it is not readable or there is no room. */
uint32_t ml_unwind_range_switch(struct ml_unwind_ranges *ranges, uintptr_t address, uintptr_t end);

#endif
