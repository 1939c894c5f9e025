#include "service/tracker.h"

#include <stdlib.h>

#include "ipc/event.h"

void ml_tracker_init(
    struct ml_tracker *tracker,
    struct ml_budget *budget,
    struct ml_tree *tree,
    struct ml_stack_store *stacks,
    uint64_t seed
) {
    *tracker =
        (struct ml_tracker){.tree = tree, .stacks = stacks, .peak_epoch = 1, .in_tree = true};
    ml_live_map_init(&tracker->live, budget, seed);
    ml_reuse_log_init(&tracker->reused, budget);
    ml_cells_init(&tracker->cells, budget);
}

void ml_tracker_fini(struct ml_tracker *tracker) {
    ml_live_map_fini(&tracker->live);
    ml_reuse_log_fini(&tracker->reused);
    ml_cells_fini(&tracker->cells);
}

void ml_tracker_drop_blocks(struct ml_tracker *tracker) {
    ml_live_map_fini(&tracker->live);
    ml_reuse_log_fini(&tracker->reused);
}

void ml_tracker_peak_share(
    const struct ml_tracker *tracker,
    const struct ml_cell *cell,
    uint64_t *out_bytes,
    uint64_t *out_blocks
) {
    const bool kept = cell->peak_epoch == tracker->peak_epoch;
    *out_bytes = kept ? cell->peak_bytes : cell->live_bytes;
    *out_blocks = kept ? cell->peak_blocks : cell->live_blocks;
}

/* Whether the tree's peak was reached while this process did not count. */
static bool absent_at_peak(const struct ml_tracker *tracker) {
    return tracker->in_tree ? tracker->absent_epoch == tracker->tree->epoch
                            : tracker->left_epoch != tracker->tree->epoch ||
                                  tracker->absent_epoch == tracker->tree->epoch;
}

void ml_tracker_tree_share(
    const struct ml_tracker *tracker,
    const struct ml_cell *cell,
    uint64_t *out_bytes,
    uint64_t *out_blocks
) {
    const bool absent = absent_at_peak(tracker);
    const bool kept = cell->tree_epoch == tracker->tree->epoch;
    *out_bytes = kept ? cell->tree_bytes : absent ? 0 : cell->live_bytes;
    *out_blocks = kept ? cell->tree_blocks : absent ? 0 : cell->live_blocks;
}

/* Before a cell changes: what it held at the peaks, unless that is already kept. */
static inline void keep_shares(const struct ml_tracker *tracker, struct ml_cell *cell) {
    if (cell->peak_epoch != tracker->peak_epoch) {
        cell->peak_epoch = tracker->peak_epoch;
        cell->peak_bytes = cell->live_bytes;
        cell->peak_blocks = cell->live_blocks;
    }
    const uint64_t tree_epoch = tracker->tree->epoch;
    if (cell->tree_epoch != tree_epoch) {
        const bool absent = absent_at_peak(tracker);
        cell->tree_epoch = tree_epoch;
        cell->tree_bytes = absent ? 0 : cell->live_bytes;
        cell->tree_blocks = absent ? 0 : cell->live_blocks;
    }
}

static inline void
grow(struct ml_tracker *tracker, struct ml_cell *cell, uint64_t bytes, uint64_t blocks) {
    keep_shares(tracker, cell);
    cell->live_bytes += bytes;
    cell->live_blocks += blocks;
    tracker->totals.live_bytes += bytes;
    tracker->totals.live_blocks += blocks;
    if (tracker->in_tree) {
        tracker->tree->live_bytes += bytes;
        tracker->tree->live_blocks += blocks;
    }
}

static inline void
shrink(struct ml_tracker *tracker, struct ml_cell *cell, uint64_t bytes, uint64_t blocks) {
    keep_shares(tracker, cell);
    cell->live_bytes -= bytes;
    cell->live_blocks -= blocks;
    tracker->totals.live_bytes -= bytes;
    tracker->totals.live_blocks -= blocks;
    if (tracker->in_tree) {
        tracker->tree->live_bytes -= bytes;
        tracker->tree->live_blocks -= blocks;
    }
}

static inline void note_peaks(struct ml_tracker *tracker, uint64_t ticks) {
    struct ml_totals *totals = &tracker->totals;
    if (totals->live_bytes > totals->peak_bytes) {
        totals->peak_bytes = totals->live_bytes;
        totals->peak_blocks = totals->live_blocks;
        tracker->peak_ticks = ticks;
        tracker->peak_epoch++;
    }
    if (tracker->in_tree) {
        ml_tree_note(tracker->tree, ticks);
    }
}

static inline void add_saturating(uint64_t *sum, uint64_t value) {
    if (__builtin_add_overflow(*sum, value, sum)) {
        *sum = UINT64_MAX;
    }
}

/* Whether one more block keeps the live sums in bounds. */
static bool fits(const struct ml_tracker *tracker, uint64_t bytes, uint64_t blocks) {
    return bytes <= ML_LIVE_MAX_BYTES - tracker->totals.live_bytes &&
           blocks <= ML_LIVE_MAX_BYTES - tracker->totals.live_blocks;
}

bool ml_tracker_free(
    struct ml_tracker *tracker, uint64_t ticks, uint64_t key, struct ml_live_block *out_block
) {
    bool awaited = false;
    if (ml_reuse_log_outdates(&tracker->reused, key, ticks, &awaited)) {
        tracker->missed_frees -= awaited;
        return false;
    }
    if (!ml_live_map_remove(&tracker->live, key, out_block)) {
        tracker->unknown_frees++;
        return false;
    }
    shrink(
        tracker,
        &tracker->cells.cells[out_block->cell],
        out_block->weight_bytes,
        out_block->weight_blocks
    );
    return true;
}

/* The block is live from now on. An address that is given out again was freed meanwhile, whether we
 * saw it or not. */
static void
put(struct ml_tracker *tracker, uint64_t ticks, uint64_t key, const struct ml_live_block *block) {
    struct ml_live_block stale;
    if (ml_live_map_put(&tracker->live, key, block, &stale)) {
        tracker->missed_frees++;
        ml_reuse_log_add(&tracker->reused, key, ticks);
        shrink(tracker, &tracker->cells.cells[stale.cell], stale.weight_bytes, stale.weight_blocks);
    }
    grow(tracker, &tracker->cells.cells[block->cell], block->weight_bytes, block->weight_blocks);
}

static enum ml_status
cell_of(struct ml_tracker *tracker, const struct ml_tracker_alloc *alloc, uint32_t *out_cell) {
    struct ml_stack_node *node = NULL;
    enum ml_status status = ML_OK;
    const uint64_t key = ml_cell_key(
        alloc->node, (unsigned)(alloc->key >> 56), alloc->type, ml_size_class(alloc->size_bytes)
    );
    if (alloc->node == 0) {
        return ml_cells_find(&tracker->cells, key, out_cell);
    }
    node = ml_stack_store_node(tracker->stacks, alloc->node);
    if (node == NULL) {
        status = ml_stack_store_touch(tracker->stacks, alloc->node, &node);
        if (status != ML_OK) {
            return status;
        }
    }
    if (!node->defined) {
        tracker->undefined_nodes++;
    }
    /* Most nodes allocate one size of one thing: the last cell there is the one wanted again. */
    if (node->last_cell != 0 && tracker->cells.cells[node->last_cell - 1].key == key) {
        *out_cell = node->last_cell - 1;
        return ML_OK;
    }
    status = ml_cells_find(&tracker->cells, key, out_cell);
    if (status == ML_OK) {
        node->last_cell = *out_cell + 1;
    }
    return status;
}

enum ml_status
ml_tracker_alloc(struct ml_tracker *tracker, uint64_t ticks, const struct ml_tracker_alloc *alloc) {
    uint32_t index = 0;
    enum ml_status status = cell_of(tracker, alloc, &index);
    if (status == ML_OK) {
        status = ml_live_map_reserve(&tracker->live);
    }
    if (status == ML_OK && !fits(tracker, alloc->weight_bytes, alloc->weight_blocks)) {
        status = ML_PEER_LIMIT;
    }
    if (status != ML_OK) {
        return status;
    }
    const struct ml_live_block block = {
        .weight_bytes = alloc->weight_bytes,
        .weight_blocks = alloc->weight_blocks,
        .cell = index,
    };
    put(tracker, ticks, alloc->key, &block);
    struct ml_cell *cell = &tracker->cells.cells[index];
    add_saturating(&cell->total_bytes, alloc->weight_bytes);
    add_saturating(&cell->total_blocks, alloc->weight_blocks);
    add_saturating(&tracker->totals.total_bytes, alloc->weight_bytes);
    add_saturating(&tracker->totals.total_blocks, alloc->weight_blocks);
    note_peaks(tracker, ticks);
    return ML_OK;
}

enum ml_status ml_tracker_restore(
    struct ml_tracker *tracker, uint64_t ticks, uint64_t key, const struct ml_live_block *block
) {
    const enum ml_status status = ml_live_map_reserve(&tracker->live);
    if (status != ML_OK) {
        return status;
    }
    if (!fits(tracker, block->weight_bytes, block->weight_blocks)) {
        return ML_PEER_LIMIT;
    }
    put(tracker, ticks, key, block);
    note_peaks(tracker, ticks);
    return ML_OK;
}

void ml_tracker_leave(struct ml_tracker *tracker) {
    if (!tracker->in_tree) {
        return;
    }
    tracker->in_tree = false;
    tracker->left_epoch = tracker->tree->epoch;
    tracker->tree->live_bytes -= tracker->totals.live_bytes;
    tracker->tree->live_blocks -= tracker->totals.live_blocks;
}

void ml_tracker_enter(struct ml_tracker *tracker, uint64_t ticks) {
    if (tracker->in_tree) {
        return;
    }
    if (tracker->left_epoch != tracker->tree->epoch) {
        tracker->absent_epoch = tracker->tree->epoch;
    }
    tracker->in_tree = true;
    tracker->tree->live_bytes += tracker->totals.live_bytes;
    tracker->tree->live_blocks += tracker->totals.live_blocks;
    ml_tree_note(tracker->tree, ticks);
}

void ml_tracker_forget(struct ml_tracker *tracker, uint64_t ticks) {
    struct ml_tree *tree = tracker->tree;
    uint64_t bytes = 0;
    uint64_t blocks = 0;
    for (uint32_t i = 0; i < tracker->cells.count; i++) {
        ml_tracker_tree_share(tracker, &tracker->cells.cells[i], &bytes, &blocks);
        tree->peak_bytes -= bytes;
        tree->peak_blocks -= blocks;
    }
    ml_tracker_leave(tracker);
    ml_tree_note(tree, ticks); /* the others may hold more now than they did then */
}

/* Each cell's live sums against those of the blocks; they must come out at zero. */
static bool check_blocks(const struct ml_tracker *tracker) {
    const uint32_t count = tracker->cells.count;
    uint64_t *left = calloc(count > 0 ? (size_t)count * 2 : 1, sizeof(*left));
    if (left == NULL || !ml_live_map_check(&tracker->live)) {
        free(left);
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        left[2 * (size_t)i] = tracker->cells.cells[i].live_bytes;
        left[2 * (size_t)i + 1] = tracker->cells.cells[i].live_blocks;
    }
    size_t cursor = 0;
    uint64_t key = 0;
    struct ml_live_block block;
    while (ml_live_map_next(&tracker->live, &cursor, &key, &block)) {
        if (block.cell < count) {
            left[2 * (size_t)block.cell] -= block.weight_bytes;
            left[2 * (size_t)block.cell + 1] -= block.weight_blocks;
        }
    }
    bool good = true;
    for (size_t i = 0; i < (size_t)count * 2; i++) {
        good = good && left[i] == 0;
    }
    free(left);
    return good;
}

bool ml_tracker_check(const struct ml_tracker *tracker, bool has_blocks) {
    struct ml_totals sum = {0};
    for (uint32_t i = 0; i < tracker->cells.count; i++) {
        const struct ml_cell *cell = &tracker->cells.cells[i];
        uint64_t bytes = 0;
        uint64_t blocks = 0;
        ml_tracker_peak_share(tracker, cell, &bytes, &blocks);
        sum.peak_bytes += bytes;
        sum.peak_blocks += blocks;
        sum.live_bytes += cell->live_bytes;
        sum.live_blocks += cell->live_blocks;
        add_saturating(&sum.total_bytes, cell->total_bytes);
        add_saturating(&sum.total_blocks, cell->total_blocks);
    }
    const struct ml_totals *totals = &tracker->totals;
    return sum.live_bytes == totals->live_bytes && sum.live_blocks == totals->live_blocks &&
           sum.total_bytes == totals->total_bytes && sum.total_blocks == totals->total_blocks &&
           sum.peak_bytes == totals->peak_bytes && sum.peak_blocks == totals->peak_blocks &&
           (!has_blocks || check_blocks(tracker));
}
