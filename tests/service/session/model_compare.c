#include "tests/service/session/model_compare.h"

#include <inttypes.h>

#include <check.h>

__extension__ typedef unsigned __int128 wide_square;

/* A standard error is the root of the model's variance. */
static void compare_error(uint64_t error, uint64_t variance) {
    /* In 1/256: the largest whole number whose square is not more. */
    const wide_square wide = (wide_square)variance << 16;
    /* A ck_assert that holds costs a write, and there are eight of these in a cell. */
    if ((wide_square)error * error > wide || (wide_square)(error + 1) * (error + 1) <= wide) {
        ck_abort_msg("an error of %" PRIu64 "/256 for a variance of %" PRIu64, error, variance);
    }
}

static void compare_errors(const struct ml_snapshot_cell *is, const struct model_cell *should) {
    const struct ml_totals *own = &should->variances.own;
    compare_error(is->own_errors.live_bytes, own->live_bytes);
    compare_error(is->own_errors.live_blocks, own->live_blocks);
    compare_error(is->own_errors.peak_bytes, own->peak_bytes);
    compare_error(is->own_errors.peak_blocks, own->peak_blocks);
    compare_error(is->own_errors.total_bytes, own->total_bytes);
    compare_error(is->own_errors.total_blocks, own->total_blocks);
    compare_error(is->tree_peak_bytes_error, should->variances.tree_bytes);
    compare_error(is->tree_peak_blocks_error, should->variances.tree_blocks);
}

static void compare_totals(const struct ml_totals *is, const struct ml_totals *should) {
    ck_assert_uint_eq(is->live_bytes, should->live_bytes);
    ck_assert_uint_eq(is->live_blocks, should->live_blocks);
    ck_assert_uint_eq(is->peak_bytes, should->peak_bytes);
    ck_assert_uint_eq(is->peak_blocks, should->peak_blocks);
    ck_assert_uint_eq(is->total_bytes, should->total_bytes);
    ck_assert_uint_eq(is->total_blocks, should->total_blocks);
}

static const struct ml_snapshot_cell *
find_cell(const struct ml_snapshot_process *process, const struct model_cell *cell) {
    for (uint32_t i = 0; i < process->cells_count; i++) {
        const struct ml_snapshot_cell *each = &process->cells[i];
        if (each->node == cell->node && each->heap == cell->heap && each->type == cell->type &&
            each->size_class == cell->size_class) {
            return each;
        }
    }
    return NULL;
}

static void compare_timestamps(uint64_t is, uint64_t should, bool may_be_later) {
    if (may_be_later) {
        ck_assert_uint_ge(is, should);
    } else {
        ck_assert_uint_eq(is, should);
    }
}

/* Those without blocks and name are not told. */
static void compare_heaps(const struct ml_snapshot_process *is, const struct model_client *should) {
    uint32_t told = 0;
    for (uint32_t id = 1; id < ML_HEAPS_MAX; id++) {
        if (told < is->heaps_count && is->heaps[told].id == id) {
            ck_assert_uint_eq(is->heaps[told].unknown_frees, should->heaps_unknown_frees[id]);
            compare_totals(&is->heaps[told++].own, &should->heaps[id]);
        } else {
            ck_assert_uint_eq(should->heaps[id].total_blocks, 0);
        }
    }
    ck_assert_uint_eq(told, is->heaps_count);
}

static void compare_process(
    const struct ml_snapshot_process *is, const struct model_client *should, bool may_be_later
) {
    compare_totals(&is->totals, &should->totals);
    compare_timestamps(is->peak_ticks, should->peak_ticks, may_be_later);
    ck_assert_uint_eq(is->unknown_frees, should->unknown_frees);
    ck_assert_uint_eq(is->events, should->events);
    ck_assert_uint_eq(is->late_events, 0);
    ck_assert_uint_eq(is->cells_count, should->cells_count);
    uint64_t held_bytes = 0;
    uint64_t held_blocks = 0;
    for (uint32_t i = 0; i < should->cells_count; i++) {
        const struct model_cell *cell = &should->cells[i];
        const struct ml_snapshot_cell *found = find_cell(is, cell);
        ck_assert_ptr_nonnull(found);
        compare_totals(&found->own, &cell->own);
        ck_assert_uint_eq(found->tree_peak_bytes, cell->tree_bytes);
        ck_assert_uint_eq(found->tree_peak_blocks, cell->tree_blocks);
        ck_assert_uint_eq(found->temporary_blocks, cell->temporary_blocks);
        compare_errors(found, cell);
        held_bytes += cell->heap == 0 ? cell->tree_bytes : 0;
        held_blocks += cell->heap == 0 ? cell->tree_blocks : 0;
    }
    compare_heaps(is, should);
    ck_assert_uint_eq(is->held_at_tree_peak_bytes, held_bytes);
    ck_assert_uint_eq(is->held_at_tree_peak_blocks, held_blocks);
}

void model_compare(const struct ml_snapshot *is, const struct model *should) {
    uint64_t live[2] = {0};
    uint64_t left[2] = {0};
    ck_assert_uint_eq(is->processes_count, should->clients_count);
    for (uint32_t i = 0; i < should->clients_count; i++) {
        compare_process(&is->processes[i], &should->clients[i], should->repeats_stamps);
        uint64_t *sum = should->clients[i].in_tree ? live : left;
        sum[0] += should->clients[i].totals.live_bytes;
        sum[1] += should->clients[i].totals.live_blocks;
        ck_assert(is->processes[i].left_tree != should->clients[i].in_tree);
    }
    ck_assert_uint_eq(is->tree.live_bytes, live[0]);
    ck_assert_uint_eq(is->tree.live_blocks, live[1]);
    ck_assert_uint_eq(is->left_bytes, left[0]);
    ck_assert_uint_eq(is->left_blocks, left[1]);
    ck_assert_uint_le(is->tree.live_bytes, is->tree.peak_bytes);
    ck_assert_uint_eq(is->tree.peak_bytes, should->tree.peak_bytes);
    ck_assert_uint_eq(is->tree.peak_blocks, should->tree.peak_blocks);
    compare_timestamps(is->tree_peak_ticks, should->tree_peak_ticks, should->repeats_stamps);
}
