/* One process's heap, built from its events: live blocks, cells, sums, exact peaks. Room: service.
 * Context: whoever works on the client.
 *
 * One rule: every change of a cell goes through one function, which first saves the cell's share of
 * a past peak. Events come in the order of their stamps.
 *
 * Shares at the peaks, in O(1) an event and without a copy: `mark` counts the maxima of the process
 * and of the tree that this process has noticed (at its next change). A cell notes the mark at each
 * of its changes. A cell that is about to change, with a note from before the last maximum of the
 * process (or the tree), still holds what it held then, and saves that as its share. So a cell
 * whose note is not older than a maximum has saved its share; any other cell's share is its live
 * sum.
 *
 * Sums are of weights (requested bytes; more when sampled). Totals saturate; a live sum beyond
 * ML_LIVE_MAX_BYTES is ML_PEER_LIMIT.
 *
 * The sums of the process and the tree are malloc's. What a program reports of a heap of its own
 * lies in memory that it has from malloc or mmap, and would be counted twice: such a heap has sums
 * and a peak of its own, at which its cells have their shares. Their shares at the tree's peak are
 * of that moment all the same. */
#ifndef MEMLOG_SERVICE_HEAP_TRACKER_H
#define MEMLOG_SERVICE_HEAP_TRACKER_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/wire/ml_status.h"
#include "service/heap/cells.h"
#include "service/heap/change_log.h"
#include "service/heap/live_map.h"
#include "service/heap/reuse_log.h"
#include "service/heap/stack_store.h"
#include "service/heap/tree.h"
#include "service/heap/variances.h"
#include "service/snapshot/snapshot.h"

struct ml_heap_sums {
    struct ml_totals own;
    uint64_t peak_mark;     /* of its last maximum */
    uint64_t unknown_frees; /* the program's: of what it did not report */
    uint64_t unsure_frees;  /* of these: of what may not have been recorded */
};

struct ml_tracker {
    struct ml_tree *tree;
    struct ml_change_log *log; /* also logs changes; may be NULL */
    struct ml_stack_store *stacks;
    struct ml_live_map live;
    struct ml_reuse_log reused; /* allocated again, the free not seen */
    struct ml_reuse_log early;  /* freed, the alloc not seen */
    struct ml_cells cells;
    struct ml_variances variances;
    struct ml_totals totals;
    struct ml_heap_sums *heaps; /* [ML_HEAPS_MAX], by id, from 1; NULL: there was no such block */
    uint64_t peak_ticks;
    uint64_t mark;            /* grows with every maximum, from 1 */
    uint64_t peak_mark;       /* of the process's last maximum */
    uint64_t tree_mark;       /* of the tree's, ... */
    uint64_t tree_epoch;      /* ... which is this tree->epoch */
    uint64_t sampled_blocks;  /* live; of blocks, not of their weights */
    uint64_t unknown_frees;   /* of malloc's blocks */
    uint64_t missed_frees;    /* allocs at an address that was live: its free was not seen */
    uint64_t undefined_nodes; /* allocs whose node was not defined when they were applied */
    bool has_reused;          /* there was such an alloc */
    bool has_undefined;       /* so undefined_nodes has to be counted on */
    bool totals_only;         /* live sums are frozen: ml_tracker_keep_totals */
    bool in_tree;             /* counted in tree->live_* */
    uint64_t left_epoch;      /* tree->epoch when it left last */
    /* What the process held at the tree's peak of tree_epoch. */
    struct ml_amount held;
    uint64_t absent_epoch; /* tree epochs up to here were reached without this process, which has
                              since returned; 0: none */
};

/* The look-up of an event, made early for many events at once so that their memory is prefetched.
 * Only the hashes are certain; slot and cell are guesses, nearly always right, and checked before
 * use. */
struct ml_tracker_lookup {
    uint64_t hash;             /* ml_live_map_hash of the block's key, ... */
    struct ml_live_line *home; /* ... and its home, until the next reserve */
    uint64_t cell_key;         /* of an alloc: ml_cell_key, ... */
    uint64_t cell_hash;        /* ... its ml_cells_hash, ... */
    uint32_t cell;             /* ... and the cell's number; UINT32_MAX: not guessed */
};

/* What is allocated. */
struct ml_tracker_alloc {
    uint64_t key; /* ml_live_key */
    uint64_t weight_bytes, weight_blocks;
    uint64_t size_bytes;
    bool sampled;
    struct ml_tracker_lookup lookup;
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

/* The process has ended: drop its blocks, keep its cells. */
void ml_tracker_drop_blocks(struct ml_tracker *tracker);

/* Drop the live blocks for good: from now on totals grow and each cell's live sums are frozen.
 * Frees are ignored, and not counted as unknown. */
void ml_tracker_keep_totals(struct ml_tracker *tracker);

/* There are sums of heaps of the program's own. Errors: ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status ml_tracker_reserve_heaps(struct ml_tracker *tracker);

/* Reserve room for so many blocks, so that homes do not change until they are applied. False
 * without memory: then look up each event just before it is applied. */
static inline bool ml_tracker_reserve(struct ml_tracker *tracker, uint32_t blocks) {
    return ml_live_map_reserve(&tracker->live, blocks) == ML_OK;
}

/* The look-up's first step: compute hashes and prefetch. A free has no node, type and size;
 * prefetching for these is harmless. */
static inline void ml_tracker_look_up(
    const struct ml_tracker *tracker,
    uint64_t key,
    uint32_t node,
    uint16_t type,
    uint64_t size_bytes,
    struct ml_tracker_lookup *out_lookup
) {
    out_lookup->hash = ml_live_map_hash(&tracker->live, key);
    out_lookup->home = ml_live_map_home(&tracker->live, out_lookup->hash);
    out_lookup->cell_key =
        ml_cell_key(node, (unsigned)(key >> 56), type, ml_size_class(size_bytes));
    out_lookup->cell_hash = ml_cells_hash(out_lookup->cell_key);
    out_lookup->cell = UINT32_MAX;
    ml_prefetch(out_lookup->home);
    ml_prefetch(ml_live_line_beside(out_lookup->home));
    ml_cells_prefetch(&tracker->cells, out_lookup->cell_hash);
}

/* Its second step, for a large map: prefetch what is not at home. */
static inline void ml_tracker_look_further(
    const struct ml_tracker *tracker, const struct ml_tracker_lookup *lookup, bool alloc
) {
    if (alloc || ml_live_line_match(lookup->home, ml_live_low(lookup->hash)) == 0) {
        ml_live_map_prefetch_elsewhere(&tracker->live, lookup->home, lookup->hash);
    }
}

/* Apply the alloc of a block of weight 1. Errors: as ml_tracker_alloc. */
ML_NODISCARD enum ml_status ml_tracker_alloc_plain(
    struct ml_tracker *tracker,
    uint64_t ticks,
    uint64_t key,
    uint32_t size_bytes,
    const struct ml_tracker_lookup *lookup
);

/* Apply an alloc. If its free has been applied already, it only counts in the totals. Errors:
 * ML_ENV_MEMORY; ML_PEER_LIMIT: nothing has changed then. */
ML_NODISCARD enum ml_status
ml_tracker_alloc(struct ml_tracker *tracker, uint64_t ticks, const struct ml_tracker_alloc *alloc);

/* Apply a free. False if there is no such block, which is counted, or if the one there is newer
 * than `ticks`: a late free, of the block before. */
bool ml_tracker_free(
    struct ml_tracker *tracker,
    uint64_t ticks,
    uint64_t key,
    const struct ml_tracker_lookup *lookup,
    struct ml_live_block *out_block
);

/* Frees of unknown blocks of that heap until now. */
static inline uint64_t ml_tracker_unknown_frees(const struct ml_tracker *tracker, unsigned heap) {
    return heap == 0 ? tracker->unknown_frees
                     : (tracker->heaps != NULL ? tracker->heaps[heap].unknown_frees : 0);
}

/* A failed realloc: the block that ml_tracker_free took is live as before. Errors: as _alloc. */
ML_NODISCARD enum ml_status ml_tracker_restore(
    struct ml_tracker *tracker, uint64_t ticks, uint64_t key, const struct ml_live_block *block
);

/* The process leaves the tree's sum, or returns to it. Repeated calls have no effect. */
void ml_tracker_leave(struct ml_tracker *tracker);
void ml_tracker_enter(struct ml_tracker *tracker, uint64_t ticks);

/* Subtract this process, whose profile is dropped, from the tree's sum and peak; only
 * ml_tracker_fini may follow. */
void ml_tracker_forget(struct ml_tracker *tracker, uint64_t ticks);

/* The tree reached a new maximum, now tree->epoch, after the first log->at_peak changes of this
 * process's log: save what the cells held then. The process was in the tree all the time. */
void ml_tracker_notice_late(struct ml_tracker *tracker, const struct ml_change_log *log);

/* A cell's shares at the peaks of process and tree. */
struct ml_amount
ml_tracker_peak_share(const struct ml_tracker *tracker, const struct ml_cell *cell);
struct ml_amount
ml_tracker_tree_share(const struct ml_tracker *tracker, const struct ml_cell *cell);

/* The process's own share at the tree's peak: the sum of its cells' shares. */
struct ml_amount ml_tracker_tree_held(const struct ml_tracker *tracker);

/* The variances of a cell's shares, as far as it has any. */
struct ml_variance_pair
ml_tracker_peak_variance(const struct ml_tracker *tracker, uint32_t cell_index);
struct ml_variance_pair
ml_tracker_tree_variance(const struct ml_tracker *tracker, uint32_t cell_index);

#endif
