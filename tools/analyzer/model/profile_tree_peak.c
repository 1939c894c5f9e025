/* What processes were made of when all together had most private memory;
 * tools/analyzer/model/profile.h. */
#include "mojom_like_idl/contracts/heap_service_mojom.h"
#include "tools/analyzer/model/profile.h"

/* What is said of a process's memory. */
#define MEMORY_MEMBERS(x)                                                                          \
    x(regions) x(regions_count) x(regions_capacity) x(regions_expected) x(regions_boottime_ns)     \
        x(heap_was_laid) x(heap_is_estimated) x(cells_were_laid) x(heap_elsewhere_bytes) x(status) \
            x(memory_trouble) x(holdings) x(holdings_count) x(holdings_capacity)                   \
                x(holdings_expected)

bool ml_profile_at_tree_peak(
    const struct ml_profile_process *process, struct ml_profile_process *out
) {
    const struct ml_profile_process *then = process->at_tree_peak;

    if (!process->was_at_tree_peak) {
        return false;
    }
    *out = *process;
    if (then) {
#define TAKE(member_) out->member_ = then->member_;
        MEMORY_MEMBERS(TAKE)
#undef TAKE
        out->cells_were_laid = false;
        out->coverage_private_bytes = out->footprint_bytes = 0; /* they are of another moment */
    }
    return true;
}

uint64_t ml_profile_tree_peak_ns(const struct ml_profile *profile) {
    uint64_t first_ns = 0;

    for (size_t i = 0; i < profile->processes_count; i++) {
        const struct ml_profile_process *process = &profile->processes[i];
        const struct ml_profile_process *then =
            process->at_tree_peak && !profile->is_at_tree_peak ? process->at_tree_peak : process;
        const uint64_t ns = process->was_at_tree_peak ? ml_profile_regions_ns(profile, then) : 0;
        first_ns = ns > 0 && (first_ns == 0 || ns < first_ns) ? ns : first_ns;
    }
    return first_ns;
}

/* Exchange them, so that each is freed with its process. */
static void exchange(struct ml_profile_process *a, struct ml_profile_process *b) {
    const struct ml_profile_process before = *a;
#define EXCHANGE(member_)                                                                          \
    a->member_ = b->member_;                                                                       \
    b->member_ = before.member_;
    MEMORY_MEMBERS(EXCHANGE)
#undef EXCHANGE
}

/* Of which pages stacks' blocks lie alone, and what they waste, is not known of that moment. */
static void exchange_cells(struct ml_profile_process *process) {
    for (size_t i = 0; i < process->cells_count; i++) {
        struct ml_profile_cell *cell = &process->cells[i];
        cell->resident_private_bytes = cell->tree_private_bytes;
        cell->resident_shared_bytes = cell->tree_shared_bytes;
        cell->alone_bytes = 0;
        cell->waste_bytes = 0;
    }
}

bool ml_profile_move_to_tree_peak(struct ml_profile *profile) {
    if (ml_profile_tree_peak_ns(profile) == 0) {
        return false;
    }
    for (size_t i = 0; i < profile->processes_count; i++) {
        struct ml_profile_process *process = &profile->processes[i];
        process->left_tree = !process->was_at_tree_peak;
        if (process->was_at_tree_peak) {
            process->state = MEMLOG_SERVICE_PROCESS_STATE_RUNNING;
        }
        if (process->at_tree_peak) {
            exchange(process, process->at_tree_peak);
            exchange_cells(process);
        }
    }
    for (size_t i = 0; i < profile->others_count; i++) {
        profile->others[i].left_tree = true;
    }
    profile->is_ended_shown = false;
    profile->is_at_tree_peak = true;
    return true;
}
