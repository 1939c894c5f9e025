/* One process's heap as its events say it: live blocks, cells, sums, exact peaks. Room: service.
 * Context: the session's one thread.
 *
 * One rule: every change of a cell goes through one function, which first keeps what a peak that
 * has been reached still needs of it. Events come in the order of their stamps.
 *
 * Sums are of weights (requested bytes; more when sampled). Totals saturate; a live sum beyond
 * ML_LIVE_MAX_BYTES is ML_PEER_LIMIT. */
#ifndef MEMLOG_SERVICE_TRACKER_H
#define MEMLOG_SERVICE_TRACKER_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/ml_status.h"
#include "service/cells.h"
#include "service/live_map.h"
#include "service/reuse_log.h"
#include "service/snapshot.h"
#include "service/stack_store.h"
#include "service/tree.h"

struct ml_tracker {
    struct ml_tree *tree;
    struct ml_stack_store *stacks;
    struct ml_live_map live;
    struct ml_reuse_log reused;
    struct ml_cells cells;
    struct ml_totals totals;
    uint64_t peak_ticks;
    uint64_t peak_epoch; /* as tree->epoch, of this process */
    uint64_t unknown_frees;
    uint64_t missed_frees;    /* allocs at an address that was live: its free was not seen */
    uint64_t undefined_nodes; /* allocs whose node was not defined when they were applied */
    bool in_tree;             /* counted in tree->live_* */
    uint64_t left_epoch;      /* tree->epoch when it left last */
    uint64_t absent_epoch;    /* tree epochs up to here were reached without this process, if it
                                 came back since; 0: none */
};

/* What is allocated. */
struct ml_tracker_alloc {
    uint64_t key; /* ml_live_key */
    uint64_t size_bytes;
    uint64_t weight_bytes, weight_blocks;
    uint32_t node;
    uint16_t type;
};

/* Begins in the tree, with nothing live. `seed` as ml_live_map_init's. */
void ml_tracker_init(
    struct ml_tracker *tracker,
    struct ml_budget *budget,
    struct ml_tree *tree,
    struct ml_stack_store *stacks,
    uint64_t seed
);
void ml_tracker_fini(struct ml_tracker *tracker);

/* The process has ended: its blocks are wanted no more, its cells are. */
void ml_tracker_drop_blocks(struct ml_tracker *tracker);

/* A block comes to life. Errors: ML_ENV_MEMORY; ML_PEER_LIMIT: nothing has changed then. */
ML_NODISCARD enum ml_status
ml_tracker_alloc(struct ml_tracker *tracker, uint64_t ticks, const struct ml_tracker_alloc *alloc);

/* A block dies. False if there is none, which is counted, or if what lives there is newer than
 * `ticks`: the free has come late, for the block before. */
bool ml_tracker_free(
    struct ml_tracker *tracker, uint64_t ticks, uint64_t key, struct ml_live_block *out_block
);

/* A failed realloc: the block that ml_tracker_free took is live as before. Errors: as _alloc. */
ML_NODISCARD enum ml_status ml_tracker_restore(
    struct ml_tracker *tracker, uint64_t ticks, uint64_t key, const struct ml_live_block *block
);

/* The process leaves the tree's sum, or is back in it. Twice is once. */
void ml_tracker_leave(struct ml_tracker *tracker);
void ml_tracker_enter(struct ml_tracker *tracker, uint64_t ticks);

/* Take out of the tree's sum and of its peak what they have of this process, whose profile is
 * forgotten; only ml_tracker_fini comes behind it. */
void ml_tracker_forget(struct ml_tracker *tracker, uint64_t ticks);

/* A cell's shares at the peaks of process and tree. */
void ml_tracker_peak_share(
    const struct ml_tracker *tracker,
    const struct ml_cell *cell,
    uint64_t *out_bytes,
    uint64_t *out_blocks
);
void ml_tracker_tree_share(
    const struct ml_tracker *tracker,
    const struct ml_cell *cell,
    uint64_t *out_bytes,
    uint64_t *out_blocks
);

/* For tests: recompute every sum. */
bool ml_tracker_check(const struct ml_tracker *tracker, bool has_blocks);

#endif
