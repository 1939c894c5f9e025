/* Which processes' live figures the tree sums; tools/analyzer/model/profile.h. */
#include "tools/analyzer/model/profile.h"

static void hold_add(struct ml_profile_holding *sum, const struct ml_profile_totals *totals) {
    sum->bytes += totals->live_bytes;
    sum->blocks += totals->live_blocks;
    sum->bytes_variance += totals->variances.live_bytes;
    sum->blocks_variance += totals->variances.live_blocks;
}

/* Sum up the remaining processes. */
static void sum_up(
    const struct ml_profile *profile,
    struct ml_profile_holding *out_running,
    struct ml_profile_holding *out_left
) {
    *out_running = (struct ml_profile_holding){0};
    *out_left = (struct ml_profile_holding){0};
    for (size_t i = 0; i < profile->processes_count; i++) {
        const struct ml_profile_process *process = &profile->processes[i];
        hold_add(process->left_tree ? out_left : out_running, &process->totals);
    }
}

bool ml_profile_knows_pages(const struct ml_profile *profile) {
    bool is_known = false;

    for (size_t i = 0; i < profile->processes_count; i++) {
        const struct ml_profile_process *process = &profile->processes[i];
        is_known = is_known || (process->cells_were_laid && ml_profile_is_shown(profile, process));
    }
    return is_known;
}

bool ml_profile_process_knows_waste(const struct ml_profile_process *process) {
    return process->cells_were_laid && process->inherited_bytes == 0;
}

bool ml_profile_knows_waste(const struct ml_profile *profile) {
    bool is_known = false;

    for (size_t i = 0; i < profile->processes_count; i++) {
        const struct ml_profile_process *process = &profile->processes[i];
        is_known = is_known || (ml_profile_process_knows_waste(process) &&
                                ml_profile_is_shown(profile, process));
    }
    return is_known;
}

/* The tree's figures of pages: the sum of the shown processes'. */
static void sum_pages(struct ml_profile *profile) {
    struct ml_profile_totals sum = {0};

    for (size_t i = 0; i < profile->processes_count; i++) {
        if (ml_profile_is_shown(profile, &profile->processes[i])) {
            ml_profile_totals_add(&sum, &profile->processes[i].totals);
        }
    }
    profile->tree.pages = sum.pages;
}

void ml_profile_show_ended(struct ml_profile *profile, enum ml_ended ended) {
    const struct ml_profile_holding *running = &profile->running;
    const struct ml_profile_holding *left = &profile->left;
    struct ml_profile_totals *tree = &profile->tree;

    profile->is_ended_shown =
        ended == ML_ENDED_SHOWN || (ended == ML_ENDED_ALONE && !ml_profile_anyone_runs(profile));
    tree->live_bytes = running->bytes;
    tree->live_blocks = running->blocks;
    tree->variances.live_bytes = running->bytes_variance;
    tree->variances.live_blocks = running->blocks_variance;
    if (profile->is_ended_shown) {
        tree->live_bytes += left->bytes;
        tree->live_blocks += left->blocks;
        tree->variances.live_bytes += left->bytes_variance;
        tree->variances.live_blocks += left->blocks_variance;
    }
    sum_pages(profile);
}

bool ml_profile_is_shown(
    const struct ml_profile *profile, const struct ml_profile_process *process
) {
    return profile->is_ended_shown || !process->left_tree;
}

void ml_profile_totals_forget_live(struct ml_profile_totals *totals) {
    totals->live_bytes = totals->live_blocks = 0;
    totals->variances.live_bytes = totals->variances.live_blocks = 0;
    totals->pages = (struct ml_profile_pages){0};
}

void ml_profile_forget_hidden(struct ml_profile *profile) {
    for (size_t i = 0; i < profile->processes_count; i++) {
        struct ml_profile_process *process = &profile->processes[i];
        if (ml_profile_is_shown(profile, process)) {
            continue;
        }
        ml_profile_totals_forget_live(&process->totals);
        for (size_t c = 0; c < process->cells_count + process->apart_count; c++) {
            ml_profile_totals_forget_live(&process->cells[c].own);
        }
    }
}

/* Whether an older version wrote the dump, which does not separate ended processes. Its live
 * figures are of all processes. */
static bool is_of_before(const struct ml_profile *profile) {
    bool anybody_ended = false;

    for (size_t i = 0; i < profile->processes_count; i++) {
        const struct ml_profile_process *process = &profile->processes[i];
        if (process->left_tree) {
            return false;
        }
        anybody_ended = anybody_ended || process->state != MEMLOG_SERVICE_PROCESS_STATE_RUNNING;
    }
    return anybody_ended;
}

static void settle_before(struct ml_profile *profile) {
    struct ml_profile_holding running;

    for (size_t i = 0; i < profile->processes_count; i++) {
        struct ml_profile_process *process = &profile->processes[i];
        process->left_tree = process->state != MEMLOG_SERVICE_PROCESS_STATE_RUNNING;
    }
    sum_up(profile, &running, &profile->left);
    profile->running.bytes -=
        profile->left.bytes < profile->running.bytes ? profile->left.bytes : profile->running.bytes;
    profile->running.blocks -= profile->left.blocks < profile->running.blocks
                                   ? profile->left.blocks
                                   : profile->running.blocks;
}

/* What each process held at the tree's peak, by its cells. */
static void count_held(struct ml_profile_process *process) {
    process->held_at_tree_peak_bytes = 0;
    process->held_at_tree_peak_blocks = 0;
    for (size_t c = 0; c < process->cells_count; c++) {
        process->held_at_tree_peak_bytes += process->cells[c].tree_peak_bytes;
        process->held_at_tree_peak_blocks += process->cells[c].tree_peak_blocks;
    }
}

void ml_profile_settle_live(struct ml_profile *profile) {
    struct ml_profile_holding running;
    struct ml_profile_holding left;

    if (is_of_before(profile)) {
        settle_before(profile);
        for (size_t i = 0; i < profile->processes_count; i++) {
            count_held(&profile->processes[i]);
        }
    }
    sum_up(profile, &running, &left);
    profile->running.bytes_variance = running.bytes_variance;
    profile->running.blocks_variance = running.blocks_variance;
    profile->left.bytes_variance = left.bytes_variance;
    profile->left.blocks_variance = left.blocks_variance;
    ml_profile_show_ended(profile, ML_ENDED_ALONE);
}

void ml_profile_count_live(struct ml_profile *profile) {
    sum_up(profile, &profile->running, &profile->left);
    for (size_t i = 0; i < profile->processes_count; i++) {
        count_held(&profile->processes[i]);
    }
    ml_profile_show_ended(profile, ML_ENDED_ALONE);
}
