#include <stdlib.h>

#include "tools/analyzer/model/profile.h"

void ml_profile_match_series(struct ml_profile *profile) {
    size_t kept = 0;

    for (size_t i = 0; i < profile->processes_count; i++) {
        profile->processes[i].series_count = 0;
    }
    struct ml_profile_process *process = NULL;
    for (size_t i = 0; i < profile->series_count; i++) {
        struct ml_profile_series *series = &profile->series[i];
        if (i == 0 || series->process_id != series[-1].process_id) {
            process = ml_profile_find(profile, series->process_id);
        }
        if (!process) {
            free(series->points);
            series->points = NULL;
            continue;
        }
        process->series_first = process->series_count == 0 ? kept : process->series_first;
        process->series_count++;
        profile->series[kept++] = *series;
    }
    profile->series_count = kept;
}

/* Mark a node and its callers. */
static void mark(const struct ml_profile_process *process, uint32_t id, bool *is_needed) {
    size_t at = ml_profile_node_at(process, id);

    while (at != SIZE_MAX && !is_needed[at]) {
        is_needed[at] = true;
        at = ml_profile_node_at(process, process->nodes[at].parent);
    }
}

static bool keep_nodes(const struct ml_profile *profile, struct ml_profile_process *process) {
    bool *is_needed = calloc(process->nodes_count + 1, sizeof *is_needed);
    size_t kept = 0;

    if (!is_needed) {
        return false;
    }
    for (size_t i = 0; i < process->series_count; i++) {
        const struct ml_profile_series *series = &profile->series[process->series_first + i];
        if (series->is_stack) {
            mark(process, series->node, is_needed);
        }
    }
    for (size_t i = 0; i < process->nodes_count; i++) {
        if (is_needed[i]) {
            process->nodes[kept++] = process->nodes[i];
        }
    }
    process->nodes_count = kept;
    process->cells_count = 0;
    free(is_needed);
    return true;
}

bool ml_profile_keep_series(struct ml_profile *profile) {
    for (size_t i = 0; i < profile->processes_count; i++) {
        if (!keep_nodes(profile, &profile->processes[i])) {
            return false;
        }
    }
    return true;
}

uint64_t ml_profile_realtime_ms(const struct ml_profile *profile, uint64_t monotonic_ms) {
    const uint64_t now_ms = profile->now.monotonic_ns / 1000000;
    const uint64_t realtime_ms = profile->now.realtime_ns / 1000000;

    /* The difference may wrap; the sum wraps back. */
    return realtime_ms - now_ms + monotonic_ms;
}
