/* The figures that a view can be about. Room: tools. */
#ifndef MEMLOG_TOOLS_ANALYZER_STACKS_METRIC_H
#define MEMLOG_TOOLS_ANALYZER_STACKS_METRIC_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/analyzer/model/profile.h"

enum ml_metric {
    ML_METRIC_LIVE,
    ML_METRIC_PEAK,
    ML_METRIC_TOTAL,
    /* Of the pages on which live blocks lie (struct ml_profile_pages). */
    ML_METRIC_RESIDENT,
    ML_METRIC_WASTE,
    ML_METRIC_ALONE,
    ML_METRIC_COUNT
};

/* Whether the figure is of pages, which not every dump knows. */
static inline bool ml_metric_is_of_pages(enum ml_metric metric) {
    return metric >= ML_METRIC_RESIDENT;
}

static inline uint64_t
ml_metric_bytes(const struct ml_profile_totals *totals, enum ml_metric metric) {
    switch (metric) {
    case ML_METRIC_LIVE:
        return totals->live_bytes;
    case ML_METRIC_PEAK:
        return totals->peak_bytes;
    case ML_METRIC_RESIDENT:
        return totals->pages.resident_bytes;
    case ML_METRIC_WASTE:
        return totals->pages.waste_bytes;
    case ML_METRIC_ALONE:
        return totals->pages.alone_bytes;
    default:
        return totals->total_bytes;
    }
}

/* Of a figure of pages: the blocks that are live. */
/* The figure that tells most: what is live, or the peak where hardly anything is live any more. */
static inline enum ml_metric ml_metric_telling(const struct ml_profile_totals *tree) {
    return tree->live_bytes < tree->peak_bytes / 10 ? ML_METRIC_PEAK : ML_METRIC_LIVE;
}

static inline uint64_t
ml_metric_blocks(const struct ml_profile_totals *totals, enum ml_metric metric) {
    switch (metric) {
    case ML_METRIC_PEAK:
        return totals->peak_blocks;
    case ML_METRIC_TOTAL:
        return totals->total_blocks;
    default:
        return totals->live_blocks;
    }
}

#endif
