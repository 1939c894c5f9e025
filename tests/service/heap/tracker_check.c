#include <stdlib.h>

#include "service/heap/tracker_internal.h"
#include "tests/service/heap/checks.h"

/* Each cell's live sums less those of its blocks; the results must be zero. */
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
    uint64_t sampled = 0;
    struct ml_live_block block;
    while (ml_live_map_next(&tracker->live, &cursor, &block)) {
        sampled += block.sampled ? 1 : 0;
        if (block.cell < count) {
            left[2 * (size_t)block.cell] -= block.weight_bytes;
            left[2 * (size_t)block.cell + 1] -= block.weight_blocks;
        }
    }
    bool good = sampled == tracker->sampled_blocks;
    for (size_t i = 0; i < (size_t)count * 2; i++) {
        good = good && left[i] == 0;
    }
    free(left);
    return good;
}

/* Whether the sums of a heap are those of its cells. */
static bool
check_sums(const struct ml_tracker *tracker, unsigned heap, const struct ml_totals *totals) {
    struct ml_totals sum = {0};
    for (uint32_t i = 0; i < tracker->cells.count; i++) {
        const struct ml_cell *cell = &tracker->cells.cells[i];
        if (ml_cell_heap(cell->key) != heap) {
            continue;
        }
        const struct ml_amount peak = ml_tracker_peak_share(tracker, cell);
        sum.peak_bytes += peak.bytes;
        sum.peak_blocks += peak.blocks;
        sum.live_bytes += cell->live_bytes;
        sum.live_blocks += cell->live_blocks;
        ml_add_saturating(&sum.total_bytes, cell->total_bytes);
        ml_add_saturating(&sum.total_blocks, cell->total_blocks);
    }
    return sum.live_bytes == totals->live_bytes && sum.live_blocks == totals->live_blocks &&
           sum.total_bytes == totals->total_bytes && sum.total_blocks == totals->total_blocks &&
           sum.peak_bytes == totals->peak_bytes && sum.peak_blocks == totals->peak_blocks;
}

bool ml_tracker_check(const struct ml_tracker *tracker, bool has_blocks) {
    bool good = check_sums(tracker, 0, &tracker->totals);
    for (unsigned heap = 1; good && tracker->heaps != NULL && heap < ML_HEAPS_MAX; heap++) {
        good = check_sums(tracker, heap, &tracker->heaps[heap].own);
    }
    return good && (!has_blocks || check_blocks(tracker));
}
