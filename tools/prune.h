/* Stacks that hold little, left out. Room: tools. Context: one thread.
 *
 * One rule: every sum stays. What is left out is folded into a frame `<other>` below its nearest
 * caller that is on the way to a stack that stays. */
#ifndef MEMLOG_TOOLS_PRUNE_H
#define MEMLOG_TOOLS_PRUNE_H

#include <stdint.h>

#include "ipc/ml_status.h"
#include "tools/stacks.h"

/* A stack stays that holds or held at a peak at least this many blocks, however small; Chromium's
 * figure for its uploads. */
enum { ML_PRUNE_KEPT_BLOCKS = 1024 };

/* Leave out, in each process's list and in the tree's for itself, the stacks that hold less than
 * `below_bytes`, live and at the peak, and fewer blocks than ML_PRUNE_KEPT_BLOCKS. Places and nodes
 * that nothing needs any more go, too. 0: nothing is left out.
 *
 * Errors: ML_ENV_MEMORY; then the stacks are good for _fini alone. */
ML_NODISCARD enum ml_status ml_stacks_prune(struct ml_stacks *stacks, uint64_t below_bytes);

/* Let go of the nodes and places that no list needs. Errors: as above. */
ML_NODISCARD enum ml_status ml_stacks_forget(struct ml_stacks *stacks);

/* The same, where `kept_blocks` stands for ML_PRUNE_KEPT_BLOCKS. May be called again with larger
 * figures. */
ML_NODISCARD enum ml_status
ml_stacks_prune_to(struct ml_stacks *stacks, uint64_t below_bytes, uint64_t kept_blocks);

#endif
