/* The figures that a view can be about. Room: tools. */
#ifndef MEMLOG_TOOLS_ANALYZER_STACKS_METRIC_H
#define MEMLOG_TOOLS_ANALYZER_STACKS_METRIC_H

#include <stdint.h>

#include "tools/analyzer/model/profile.h"

enum ml_metric { ML_METRIC_LIVE, ML_METRIC_PEAK, ML_METRIC_TOTAL };

static inline uint64_t
ml_metric_bytes(const struct ml_profile_totals *totals, enum ml_metric metric) {
    switch (metric) {
    case ML_METRIC_LIVE:
        return totals->live_bytes;
    case ML_METRIC_PEAK:
        return totals->peak_bytes;
    default:
        return totals->total_bytes;
    }
}

static inline uint64_t
ml_metric_blocks(const struct ml_profile_totals *totals, enum ml_metric metric) {
    switch (metric) {
    case ML_METRIC_LIVE:
        return totals->live_blocks;
    case ML_METRIC_PEAK:
        return totals->peak_blocks;
    default:
        return totals->total_blocks;
    }
}

#endif
