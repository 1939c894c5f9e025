/* The shares of a process's cells at its own peak and the tree's. */
#include "service/heap/tracker_internal.h"

static struct ml_amount live_of(const struct ml_cell *cell) {
    return (struct ml_amount){cell->live_bytes, cell->live_blocks};
}

struct ml_amount
ml_tracker_peak_share(const struct ml_tracker *tracker, const struct ml_cell *cell) {
    return cell->mark >= ml_tracker_peak_mark(tracker, cell)
               ? (struct ml_amount){cell->peak_bytes, cell->peak_blocks}
               : live_of(cell);
}

/* Whether the tree's peak was reached while this process was not in its sum. */
static bool absent_at_peak(const struct ml_tracker *tracker) {
    return tracker->in_tree ? tracker->absent_epoch == tracker->tree->epoch
                            : tracker->left_epoch != tracker->tree->epoch ||
                                  tracker->absent_epoch == tracker->tree->epoch;
}

struct ml_amount
ml_tracker_tree_share(const struct ml_tracker *tracker, const struct ml_cell *cell) {
    if (tracker->tree_epoch == tracker->tree->epoch && cell->mark >= tracker->tree_mark) {
        return (struct ml_amount){cell->tree_bytes, cell->tree_blocks};
    }
    return absent_at_peak(tracker) ? (struct ml_amount){0} : live_of(cell);
}

struct ml_amount ml_tracker_tree_held(const struct ml_tracker *tracker) {
    const struct ml_totals *totals = &tracker->totals;
    if (tracker->tree_epoch == tracker->tree->epoch) {
        return tracker->held;
    }
    return absent_at_peak(tracker) ? (struct ml_amount){0}
                                   : (struct ml_amount){totals->live_bytes, totals->live_blocks};
}

void ml_tracker_notice_tree(struct ml_tracker *tracker) {
    tracker->held = ml_tracker_tree_held(tracker);
    tracker->tree_epoch = tracker->tree->epoch;
    tracker->tree_mark = ++tracker->mark;
}

void ml_tracker_notice_late(struct ml_tracker *tracker, const struct ml_change_log *log) {
    ml_tracker_notice_tree(tracker);
    for (uint32_t i = log->count; i-- > log->at_peak;) {
        const struct ml_change *change = &log->changes[i];
        struct ml_cell *cell = &tracker->cells.cells[change->cell];
        if (cell->mark < tracker->mark) {
            /* Its last change lies behind the tree's peak, and perhaps before its process's. */
            if (cell->mark < tracker->peak_mark) {
                cell->peak_bytes = cell->live_bytes;
                cell->peak_blocks = cell->live_blocks;
            }
            cell->tree_bytes = cell->live_bytes;
            cell->tree_blocks = cell->live_blocks;
            cell->mark = tracker->mark;
        }
        tracker->held.bytes -= (uint64_t)change->bytes;
        tracker->held.blocks -= (uint64_t)(int64_t)change->blocks;
        cell->tree_bytes -= (uint64_t)change->bytes;
        cell->tree_blocks -= (uint64_t)(int64_t)change->blocks;
    }
}

struct ml_variance_pair
ml_tracker_peak_variance(const struct ml_tracker *tracker, uint32_t cell_index) {
    const struct ml_cell_variances *own = ml_variances_of(&tracker->variances, cell_index);
    if (own == NULL) {
        return (struct ml_variance_pair){0, 0};
    }
    const struct ml_cell *cell = &tracker->cells.cells[cell_index];
    return cell->mark >= ml_tracker_peak_mark(tracker, cell) ? own->peak : own->live;
}

struct ml_variance_pair
ml_tracker_tree_variance(const struct ml_tracker *tracker, uint32_t cell_index) {
    const struct ml_cell_variances *own = ml_variances_of(&tracker->variances, cell_index);
    if (own == NULL) {
        return (struct ml_variance_pair){0, 0};
    }
    if (tracker->tree_epoch == tracker->tree->epoch &&
        tracker->cells.cells[cell_index].mark >= tracker->tree_mark) {
        return own->tree;
    }
    return absent_at_peak(tracker) ? (struct ml_variance_pair){0, 0} : own->live;
}

/* The same for the variances of sampled blocks; called before it. */
static void keep_variances(const struct ml_tracker *tracker, const struct ml_cell *cell) {
    struct ml_cell_variances *own =
        ml_variances_of(&tracker->variances, (uint32_t)(cell - tracker->cells.cells));
    if (own != NULL && cell->mark < ml_tracker_peak_mark(tracker, cell)) {
        own->peak = own->live;
    }
    if (own != NULL && cell->mark < tracker->tree_mark) {
        own->tree = absent_at_peak(tracker) ? (struct ml_variance_pair){0, 0} : own->live;
    }
}

void ml_tracker_keep_shares(const struct ml_tracker *tracker, struct ml_cell *cell) {
    if (tracker->variances.cells != NULL) {
        keep_variances(tracker, cell);
    }
    if (cell->mark < ml_tracker_peak_mark(tracker, cell)) {
        cell->peak_bytes = cell->live_bytes;
        cell->peak_blocks = cell->live_blocks;
    }
    if (cell->mark < tracker->tree_mark) {
        const bool absent = absent_at_peak(tracker);
        cell->tree_bytes = absent ? 0 : cell->live_bytes;
        cell->tree_blocks = absent ? 0 : cell->live_blocks;
    }
    cell->mark = tracker->mark;
}
