/* The check mode, between the hook and libunwind. Room: client (private). Context: inside a hook,
 * on its lane.
 *
 * One rule: off, it costs nothing where the stack is the expected one, else one load of a word that
 * never changes (ml_process.check_every). */
#ifndef MEMLOG_CLIENT_RECORDING_CHECK_H
#define MEMLOG_CLIENT_RECORDING_CHECK_H

#include "client/stream/lane.h"
#include "client/unwind/unwind.h"

/* The host wants stacks checked. libunwind is opened later, at the first stack on which it can be
 * (ml_unwind_checker_may_open). Without it on the machine nothing is checked, and the report says 0
 * stacks. */
void ml_check_want(uint32_t every);

/* Compare the stack just walked, when it is its turn; counted in the staging header, as is each
 * stack for which the memo had another path than the walk (`memo_agrees`). */
void ml_check_stack(struct ml_lane *lane, const struct ml_unwind_entry *entry, bool memo_agrees);

#endif
