#include "service/heap/tracker.h"

#include "ipc/wire/event.h"
#include "service/heap/tracker_fast_path.h"
#include "service/heap/tracker_internal.h"

void ml_tracker_init(
    struct ml_tracker *tracker,
    struct ml_budget *budget,
    struct ml_tree *tree,
    struct ml_stack_store *stacks,
    uint64_t seed
) {
    *tracker = (struct ml_tracker
    ){.tree = tree,
      .stacks = stacks,
      .mark = 1,
      .peak_mark = 1,
      .tree_mark = 1,
      .tree_epoch = tree->epoch,
      .in_tree = true};
    ml_live_map_init(&tracker->live, budget, seed);
    ml_reuse_log_init(&tracker->reused, budget, ML_REUSE_LOG_ENTRIES);
    ml_reuse_log_init(&tracker->early, budget, ML_EARLY_LOG_ENTRIES);
    ml_cells_init(&tracker->cells, budget);
    ml_variances_init(&tracker->variances, budget);
}

void ml_tracker_fini(struct ml_tracker *tracker) {
    ml_budget_free(tracker->cells.budget, tracker->heaps, ML_HEAPS_MAX * sizeof(*tracker->heaps));
    tracker->heaps = NULL;
    ml_live_map_fini(&tracker->live);
    ml_reuse_log_fini(&tracker->reused);
    ml_reuse_log_fini(&tracker->early);
    ml_cells_fini(&tracker->cells);
    ml_variances_fini(&tracker->variances);
}

enum ml_status ml_tracker_reserve_heaps(struct ml_tracker *tracker) {
    if (tracker->heaps == NULL) {
        tracker->heaps =
            ml_budget_new(tracker->cells.budget, ML_HEAPS_MAX * sizeof(*tracker->heaps));
        for (uint32_t id = 0; tracker->heaps != NULL && id < ML_HEAPS_MAX; id++) {
            tracker->heaps[id].peak_mark = 1;
        }
    }
    return tracker->heaps != NULL ? ML_OK : ML_ENV_MEMORY;
}

void ml_tracker_drop_blocks(struct ml_tracker *tracker) {
    ml_live_map_fini(&tracker->live);
    ml_reuse_log_fini(&tracker->reused);
    ml_reuse_log_fini(&tracker->early);
    tracker->sampled_blocks = 0;
}

void ml_tracker_keep_totals(struct ml_tracker *tracker) {
    ml_tracker_drop_blocks(tracker);
    ml_live_map_close(&tracker->live);
    tracker->totals_only = true;
}

/* Before a cell changes: keep what it held at the peaks, unless that is kept already. */
static inline void before_change(struct ml_tracker *tracker, struct ml_cell *cell) {
    if (tracker->tree_epoch != tracker->tree->epoch) {
        ml_tracker_notice_tree(tracker);
    }
    if (cell->mark != tracker->mark) {
        ml_tracker_keep_shares(tracker, cell);
    }
}

static void note_change(
    const struct ml_tracker *tracker,
    uint64_t ticks,
    const struct ml_cell *cell,
    int64_t bytes,
    int32_t blocks
) {
    const struct ml_change change = {
        .time = ticks,
        .bytes = bytes,
        .cell = (uint32_t)(cell - tracker->cells.cells),
        .blocks = blocks};
    ml_change_log_add(tracker->log, &change);
}

/* The sums that a cell's changes go into. */
static inline struct ml_totals *totals_of(struct ml_tracker *tracker, uint64_t cell_key) {
    const unsigned heap = ml_cell_heap(cell_key);
    return heap == 0 ? &tracker->totals : &tracker->heaps[heap].own;
}

/* A heap of the program's own has grown: its peak is its own. */
static void note_heap_peak(struct ml_tracker *tracker, unsigned heap) {
    struct ml_heap_sums *sums = &tracker->heaps[heap];
    if (sums->own.live_bytes > sums->own.peak_bytes) {
        sums->own.peak_bytes = sums->own.live_bytes;
        sums->own.peak_blocks = sums->own.live_blocks;
        sums->peak_mark = ++tracker->mark;
    }
}

static inline void grow(
    struct ml_tracker *tracker,
    uint64_t ticks,
    struct ml_cell *cell,
    uint64_t bytes,
    uint64_t blocks
) {
    struct ml_totals *totals = totals_of(tracker, cell->key);
    before_change(tracker, cell);
    cell->live_bytes += bytes;
    cell->live_blocks += blocks;
    totals->live_bytes += bytes;
    totals->live_blocks += blocks;
    if (totals != &tracker->totals) {
        note_heap_peak(tracker, ml_cell_heap(cell->key));
        return;
    }
    if (tracker->log != NULL) {
        note_change(tracker, ticks, cell, (int64_t)bytes, (int32_t)blocks);
    }
    if (tracker->in_tree) {
        tracker->tree->live_bytes += bytes;
        tracker->tree->live_blocks += blocks;
    }
}

static inline void shrink(
    struct ml_tracker *tracker,
    uint64_t ticks,
    struct ml_cell *cell,
    uint64_t bytes,
    uint64_t blocks
) {
    struct ml_totals *totals = totals_of(tracker, cell->key);
    before_change(tracker, cell);
    cell->live_bytes -= bytes;
    cell->live_blocks -= blocks;
    totals->live_bytes -= bytes;
    totals->live_blocks -= blocks;
    if (totals != &tracker->totals) {
        return;
    }
    if (tracker->log != NULL) {
        note_change(tracker, ticks, cell, -(int64_t)bytes, -(int32_t)blocks);
    }
    if (tracker->in_tree) {
        tracker->tree->live_bytes -= bytes;
        tracker->tree->live_blocks -= blocks;
    }
}

/* The same for a block that may be one of a sample. */
static void grow_by(struct ml_tracker *tracker, uint64_t ticks, const struct ml_live_block *block) {
    struct ml_cell *cell = &tracker->cells.cells[block->cell];
    grow(tracker, ticks, cell, block->weight_bytes, block->weight_blocks);
    if (block->sampled) {
        tracker->sampled_blocks++;
        ml_variance_add(&tracker->variances.cells[block->cell].live, ml_variance_of(block));
    }
}

static void
shrink_by(struct ml_tracker *tracker, uint64_t ticks, const struct ml_live_block *block) {
    struct ml_cell *cell = &tracker->cells.cells[block->cell];
    shrink(tracker, ticks, cell, block->weight_bytes, block->weight_blocks);
    if (block->sampled) {
        tracker->sampled_blocks--;
        ml_variance_take(&tracker->variances.cells[block->cell].live, ml_variance_of(block));
    }
}

static inline void note_peaks(struct ml_tracker *tracker, uint64_t ticks) {
    struct ml_totals *totals = &tracker->totals;
    if (totals->live_bytes > totals->peak_bytes) {
        totals->peak_bytes = totals->live_bytes;
        totals->peak_blocks = totals->live_blocks;
        tracker->peak_ticks = ticks;
        tracker->peak_mark = ++tracker->mark;
    }
    if (tracker->in_tree) {
        ml_tree_note(tracker->tree, ticks);
    }
}

/* Whether one more block keeps the live sums in bounds. */
static bool fits(const struct ml_totals *totals, uint64_t bytes, uint64_t blocks) {
    return bytes <= ML_LIVE_MAX_BYTES - totals->live_bytes &&
           blocks <= ML_LIVE_MAX_BYTES - totals->live_blocks;
}

/* The usual case: the block is in its home, or the line beside that. */
static inline bool take_plain(
    struct ml_tracker *tracker,
    uint64_t ticks,
    const struct ml_tracker_lookup *lookup,
    struct ml_live_block *out_block
) {
    struct ml_live_line *const home = lookup->home;
    struct ml_live_line *line = home;
    unsigned found = ml_live_line_match(line, ml_live_low(lookup->hash));
    if (found == 0 && ml_live_line_lends(home)) {
        line = ml_live_map_other(&tracker->live, home);
        found = ml_live_line_match(line, ml_live_low(lookup->hash));
    }
    const unsigned slot = (unsigned)__builtin_ctz(found | 1U << ML_LIVE_LINE_SLOTS);
    if (found == 0 || !ml_live_line_holds(line, slot, lookup->hash)) {
        return false;
    }
    const uint64_t bytes = ml_live_rest_bytes(line->rest[slot]);
    const uint32_t cell = ml_live_rest_cell(line->rest[slot]);
    *out_block = (struct ml_live_block
    ){.weight_bytes = bytes, .weight_blocks = 1, .size_bytes = bytes, .cell = cell};
    home->state -= line == home ? 0 : ML_LIVE_IN_OTHER;
    ml_live_map_empty(&tracker->live, line, slot);
    shrink(tracker, ticks, &tracker->cells.cells[cell], bytes, 1);
    return true;
}

/* Where the free of an unknown block is counted; NULL: nowhere. */
static uint64_t *unknown_frees_of(struct ml_tracker *tracker, uint64_t key) {
    const unsigned heap = (unsigned)(key >> ML_LIVE_HEAP_SHIFT);
    if (heap == 0) {
        return &tracker->unknown_frees;
    }
    return ml_tracker_reserve_heaps(tracker) == ML_OK ? &tracker->heaps[heap].unknown_frees : NULL;
}

bool ml_tracker_free(
    struct ml_tracker *tracker,
    uint64_t ticks,
    uint64_t key,
    const struct ml_tracker_lookup *lookup,
    struct ml_live_block *out_block
) {
    bool awaited = false;
    if (ml_reuse_log_outdates(&tracker->reused, key, ticks, &awaited)) {
        tracker->missed_frees -= awaited;
        return false;
    }
    if (tracker->live.count > 0 && take_plain(tracker, ticks, lookup, out_block)) {
        return true;
    }
    if (!ml_live_map_remove(&tracker->live, key, lookup->hash, out_block)) {
        if (tracker->totals_only) {
            return false;
        }
        uint64_t *unknown_frees = unknown_frees_of(tracker, key);
        if (unknown_frees != NULL) {
            (*unknown_frees)++;
        }
        ml_reuse_log_add(&tracker->early, key, ticks);
        return false;
    }
    shrink_by(tracker, ticks, out_block);
    return true;
}

/* The block is live from now on. An address that is allocated again was freed meanwhile, seen or
 * not. */
static void
put(struct ml_tracker *tracker,
    uint64_t ticks,
    uint64_t key,
    uint64_t hash,
    const struct ml_live_block *block) {
    struct ml_live_block stale;
    if (ml_live_map_put(&tracker->live, key, hash, block, &stale)) {
        tracker->missed_frees++;
        tracker->has_reused = true;
        ml_reuse_log_add(&tracker->reused, key, ticks);
        shrink_by(tracker, ticks, &stale);
    }
    grow_by(tracker, ticks, block);
}

/* Out of line: streams that lost chunks are rare. */
static void count_undefined(struct ml_tracker *tracker, uint32_t node) {
    const struct ml_stored_node *known = ml_stack_store_node(tracker->stacks, node);
    if (node != 0 && (known == NULL || !known->defined)) {
        tracker->undefined_nodes++;
        tracker->has_undefined = true;
    }
}

static enum ml_status
make_cell(struct ml_tracker *tracker, const struct ml_tracker_lookup *lookup, uint32_t *out_cell) {
    const uint32_t before = tracker->cells.count;
    enum ml_status status =
        ml_cell_heap(lookup->cell_key) != 0 ? ml_tracker_reserve_heaps(tracker) : ML_OK;
    if (status == ML_OK) {
        status = ml_cells_make(&tracker->cells, lookup->cell_key, lookup->cell_hash, out_cell);
    }
    /* Nodes stay defined: an alloc needs no check unless some cell was made before its node. */
    if (status == ML_OK && tracker->cells.count != before && !tracker->has_undefined) {
        count_undefined(tracker, ml_cell_node(lookup->cell_key));
    }
    return status;
}

static inline enum ml_status
cell_of(struct ml_tracker *tracker, const struct ml_tracker_lookup *lookup, uint32_t *out_cell) {
    if (tracker->has_undefined) {
        count_undefined(tracker, ml_cell_node(lookup->cell_key));
    }
    *out_cell = lookup->cell;
    return ml_cells_is(&tracker->cells, lookup->cell, lookup->cell_key)
               ? ML_OK
               : make_cell(tracker, lookup, out_cell);
}

static inline void
count_total(struct ml_tracker *tracker, struct ml_cell *cell, uint64_t bytes, uint64_t blocks) {
    struct ml_totals *totals = totals_of(tracker, cell->key);
    ml_add_saturating(&cell->total_bytes, bytes);
    ml_add_saturating(&cell->total_blocks, blocks);
    ml_add_saturating(&totals->total_bytes, bytes);
    ml_add_saturating(&totals->total_blocks, blocks);
}

/* The alloc arrives late, after its own free, which found no block. */
static bool is_dead(struct ml_tracker *tracker, uint64_t ticks, uint64_t key) {
    bool awaited = false;
    (void)ml_reuse_log_outdates(&tracker->early, key, ticks, &awaited);
    uint64_t *unknown_frees = awaited ? unknown_frees_of(tracker, key) : NULL;
    if (unknown_frees != NULL) {
        (*unknown_frees)--;
    }
    return awaited;
}

/* There is no live map any more: it counts only in the totals, if its cell was made. */
static enum ml_status count_only(
    struct ml_tracker *tracker,
    uint32_t index,
    const struct ml_tracker_alloc *alloc,
    enum ml_status status
) {
    if (!tracker->totals_only || !ml_cells_is(&tracker->cells, index, alloc->lookup.cell_key)) {
        return status;
    }
    if (alloc->sampled && ml_variances_reserve(&tracker->variances, index + 1) == ML_OK) {
        const struct ml_live_block block = {
            .weight_bytes = alloc->weight_bytes,
            .weight_blocks = alloc->weight_blocks,
            .size_bytes = alloc->size_bytes};
        ml_variance_add(&tracker->variances.cells[index].total, ml_variance_of(&block));
    }
    count_total(tracker, &tracker->cells.cells[index], alloc->weight_bytes, alloc->weight_blocks);
    return ML_OK;
}

enum ml_status ml_tracker_alloc_plain(
    struct ml_tracker *tracker,
    uint64_t ticks,
    uint64_t key,
    uint32_t size_bytes,
    const struct ml_tracker_lookup *lookup
) {
    uint32_t index = 0;
    if (!ml_live_fits_slot(lookup->hash, size_bytes)) {
        const struct ml_tracker_alloc alloc = {
            .key = key,
            .weight_bytes = size_bytes,
            .weight_blocks = 1,
            .size_bytes = size_bytes,
            .lookup = *lookup};
        return ml_tracker_alloc(tracker, ticks, &alloc);
    }
    enum ml_status status = cell_of(tracker, lookup, &index);
    struct ml_live_line *home = lookup->home;
    if (status == ML_OK && !ml_live_map_has_room(&tracker->live)) {
        status = ml_live_map_reserve_more(&tracker->live, 1);
        home = ml_live_map_home(&tracker->live, lookup->hash);
    }
    if (status == ML_OK && !fits(totals_of(tracker, lookup->cell_key), size_bytes, 1)) {
        status = ML_PEER_LIMIT;
    }
    if (status != ML_OK) {
        const struct ml_tracker_alloc alloc = {
            .weight_bytes = size_bytes, .weight_blocks = 1, .lookup = *lookup};
        return count_only(tracker, index, &alloc, status);
    }
    struct ml_cell *cell = &tracker->cells.cells[index];
    if (ticks < tracker->early.latest && is_dead(tracker, ticks, key)) {
        count_total(tracker, cell, size_bytes, 1);
        return ML_OK;
    }
    if (ml_live_map_put_fast(&tracker->live, home, lookup->hash, size_bytes, index)) {
        grow(tracker, ticks, cell, size_bytes, 1);
    } else {
        const struct ml_live_block block = {
            .weight_bytes = size_bytes,
            .weight_blocks = 1,
            .size_bytes = size_bytes,
            .cell = index};
        put(tracker, ticks, key, lookup->hash, &block);
    }
    count_total(tracker, cell, size_bytes, 1);
    note_peaks(tracker, ticks);
    return ML_OK;
}

enum ml_status
ml_tracker_alloc(struct ml_tracker *tracker, uint64_t ticks, const struct ml_tracker_alloc *alloc) {
    uint32_t index = 0;
    enum ml_status status = cell_of(tracker, &alloc->lookup, &index);
    if (status == ML_OK) {
        status = ml_live_map_reserve(&tracker->live, 1);
    }
    if (status == ML_OK) {
        status = ml_live_map_reserve_wide(&tracker->live);
    }
    if (status == ML_OK && alloc->sampled) {
        status = ml_variances_reserve(&tracker->variances, index + 1);
    }
    if (status == ML_OK &&
        !fits(
            totals_of(tracker, alloc->lookup.cell_key), alloc->weight_bytes, alloc->weight_blocks
        )) {
        status = ML_PEER_LIMIT;
    }
    if (status != ML_OK) {
        return count_only(tracker, index, alloc, status);
    }
    const struct ml_live_block block = {
        .weight_bytes = alloc->weight_bytes,
        .weight_blocks = alloc->weight_blocks,
        .size_bytes = alloc->size_bytes,
        .cell = index,
        .sampled = alloc->sampled,
    };
    if (block.sampled) {
        ml_variance_add(&tracker->variances.cells[index].total, ml_variance_of(&block));
    }
    struct ml_cell *cell = &tracker->cells.cells[index];
    if (ticks < tracker->early.latest && is_dead(tracker, ticks, alloc->key)) {
        count_total(tracker, cell, alloc->weight_bytes, alloc->weight_blocks);
        return ML_OK;
    }
    put(tracker, ticks, alloc->key, alloc->lookup.hash, &block);
    count_total(tracker, cell, alloc->weight_bytes, alloc->weight_blocks);
    note_peaks(tracker, ticks);
    return ML_OK;
}

enum ml_status ml_tracker_restore(
    struct ml_tracker *tracker, uint64_t ticks, uint64_t key, const struct ml_live_block *block
) {
    enum ml_status status = ml_live_map_reserve(&tracker->live, 1);
    if (status == ML_OK) {
        status = ml_live_map_reserve_wide(&tracker->live);
    }
    if (status != ML_OK) {
        return tracker->totals_only ? ML_OK : status;
    }
    const uint64_t cell_key = tracker->cells.cells[block->cell].key;
    if (!fits(totals_of(tracker, cell_key), block->weight_bytes, block->weight_blocks)) {
        return ML_PEER_LIMIT;
    }
    put(tracker, ticks, key, ml_live_map_hash(&tracker->live, key), block);
    note_peaks(tracker, ticks);
    return ML_OK;
}

/* ---- events on the fast path */

bool ml_tracker_may_be_fast(struct ml_tracker *tracker, uint32_t events) {
    return tracker->in_tree && !tracker->totals_only && !tracker->has_undefined &&
           tracker->variances.cells == NULL && tracker->cells.count > 0 &&
           tracker->live.lines_count > 0 &&
           fits(&tracker->totals, events * ML_LIVE_INLINE_MAX, events);
}

void ml_tracker_note_peaks(struct ml_tracker *tracker, uint64_t ticks) {
    note_peaks(tracker, ticks);
}

void ml_tracker_keep(struct ml_tracker *tracker, struct ml_cell *cell) {
    before_change(tracker, cell);
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
    for (uint32_t i = 0; i < tracker->cells.count; i++) {
        const struct ml_amount share = ml_tracker_tree_share(tracker, &tracker->cells.cells[i]);
        if (ml_cell_heap(tracker->cells.cells[i].key) != 0) {
            continue;
        }
        tree->peak_bytes -= share.bytes;
        tree->peak_blocks -= share.blocks;
    }
    ml_tracker_leave(tracker);
    ml_tree_note(tree, ticks); /* the others may hold more now than they did then */
}
