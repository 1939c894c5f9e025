#include "tests/service/session/check.h"

#include "service/session/internal.h"
#include "tests/service/heap/checks.h"

/* Whether its share at the tree's peak is the sum of its cells' shares. */
static bool holds_what_its_cells_held(const struct ml_tracker *tracker, struct ml_tree *sum) {
    struct ml_amount left = ml_tracker_tree_held(tracker);
    for (uint32_t i = 0; i < tracker->cells.count; i++) {
        const struct ml_amount share = ml_tracker_tree_share(tracker, &tracker->cells.cells[i]);
        if (ml_cell_heap(tracker->cells.cells[i].key) != 0) {
            continue;
        }
        sum->peak_bytes += share.bytes;
        sum->peak_blocks += share.blocks;
        left.bytes -= share.bytes;
        left.blocks -= share.blocks;
    }
    return left.bytes == 0 && left.blocks == 0;
}

bool ml_session_check(const struct ml_session *session) {
    struct ml_tree sum = {0};
    for (const struct ml_client *client = session->first; client != NULL; client = client->next) {
        const struct ml_tracker *tracker = &client->tracker;
        const bool has_blocks = client->phase != ML_CLIENT_DONE && client->lost != ML_ENV_MEMORY &&
                                !tracker->totals_only;
        if (!ml_tracker_check(tracker, has_blocks)) {
            return false;
        }
        if (tracker->in_tree) {
            sum.live_bytes += tracker->totals.live_bytes;
            sum.live_blocks += tracker->totals.live_blocks;
        }
        if (!holds_what_its_cells_held(tracker, &sum)) {
            return false;
        }
    }
    const struct ml_tree *tree = &session->tree;
    return sum.live_bytes == tree->live_bytes && sum.live_blocks == tree->live_blocks &&
           sum.peak_bytes == tree->peak_bytes && sum.peak_blocks == tree->peak_blocks;
}
