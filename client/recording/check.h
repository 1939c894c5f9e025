/* The check mode, between the hook and libunwind. Room: client (private). Context: inside a hook,
 * on its lane.
 *
 * One rule: when it is off, a stack that the memo expects costs nothing. Any other costs one load
 * of ml_process.check_every, which never changes. */
#ifndef MEMLOG_CLIENT_RECORDING_CHECK_H
#define MEMLOG_CLIENT_RECORDING_CHECK_H

#include "client/stream/lane.h"
#include "client/unwind/unwind.h"

/* Check every Nth stack of a lane from now on. libunwind is opened at the first stack that permits
 * it (ml_unwind_checker_may_open). Without libunwind nothing is checked, and the report says 0
 * stacks. */
void ml_check_want(uint32_t every);

/* Compare the stack just walked with libunwind's, if it is its turn. The staging header counts
 * comparisons and differences. A stack for which the memo's path is not the walk's (not
 * `memo_agrees`) counts as a difference too. */
void ml_check_stack(struct ml_lane *lane, const struct ml_unwind_entry *entry, bool memo_agrees);

#endif
