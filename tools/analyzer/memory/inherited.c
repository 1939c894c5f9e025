#include "tools/analyzer/memory/inherited.h"

#include <stdint.h>

/* The recorded process with that id. The service writes them by id; in a dump that does not, none
 * is found. */
static const struct ml_profile_process *find(const struct ml_profile *profile, uint32_t id) {
    size_t low = 0;
    size_t high = profile->processes_count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (profile->processes[middle].id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < profile->processes_count && profile->processes[low].id == id
               ? &profile->processes[low]
               : NULL;
}

struct ml_ancestors
ml_ancestors_of(const struct ml_profile *profile, const struct ml_profile_process *process) {
    struct ml_ancestors ancestors = {.count = 0};
    const struct ml_profile_process *one = process;

    while (ancestors.count < ML_ANCESTORS_MAX && one->parent_id != 0 && one->parent_id < one->id) {
        one = find(profile, one->parent_id);
        if (!one || !ml_profile_text_eq(one->exe_path, process->exe_path)) {
            break;
        }
        ancestors.processes[ancestors.count++] = one;
    }
    return ancestors;
}

/* The region that has the address; SIZE_MAX: none. */
static size_t region_at(const struct ml_profile_process *process, uint64_t address) {
    size_t low = 0;
    size_t high = process->regions_count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (process->regions[middle].end <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < process->regions_count && process->regions[low].start <= address ? low : SIZE_MAX;
}

/* The first holding of a region; holdings stand by region. */
static size_t first_holding(const struct ml_profile_process *process, size_t region) {
    size_t low = 0;
    size_t high = process->holdings_count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (process->holdings[middle].region < region) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The holding of the one stack that mapped the region. NULL: none did, or several. */
static const struct ml_profile_region_holding *
only_mapper(const struct ml_profile_process *process, size_t region) {
    const struct ml_profile_region_holding *only = NULL;

    for (size_t i = first_holding(process, region);
         i < process->holdings_count && process->holdings[i].region == region;
         i++) {
        const struct ml_profile_region_holding *holding = &process->holdings[i];
        if (holding->kind != ML_HOLDING_MAPPED || holding->node == 0) {
            continue;
        }
        if (only && (only->node != holding->node || only->string != holding->string)) {
            return NULL;
        }
        only = holding;
    }
    return only;
}

const struct ml_profile_region_holding *ml_inherited_holding(
    const struct ml_ancestors *ancestors,
    const struct ml_profile_process *process,
    const struct ml_profile_region_holding *holding,
    const struct ml_profile_process **out_of
) {
    const uint64_t address = process->regions[holding->region].start;

    for (size_t i = 0; i < ancestors->count; i++) {
        const size_t region = region_at(ancestors->processes[i], address);
        const struct ml_profile_region_holding *found =
            region == SIZE_MAX ? NULL : only_mapper(ancestors->processes[i], region);
        if (found) {
            *out_of = ancestors->processes[i];
            return found;
        }
    }
    return NULL;
}
