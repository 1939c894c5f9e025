#include "tools/analyzer/model/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/analyzer/model/trace_symbols.h"

bool ml_profile_text_eq(struct ml_profile_text a, struct ml_profile_text b) {
    return a.count_bytes == b.count_bytes &&
           (a.count_bytes == 0 || memcmp(a.bytes, b.bytes, a.count_bytes) == 0);
}

const char *ml_profile_hex(struct ml_profile_text build_id, char out_hex[ML_PROFILE_HEX_BYTES]) {
    static const char digits[] = "0123456789abcdef";
    size_t count = 0;

    for (size_t i = 0; i < build_id.count_bytes && i < ML_BUILD_ID_MAX_BYTES; i++) {
        const unsigned byte = (unsigned char)build_id.bytes[i];
        out_hex[count++] = digits[byte >> 4];
        out_hex[count++] = digits[byte & 15];
    }
    out_hex[count] = '\0';
    return out_hex;
}

static void process_fini(struct ml_profile_process *process) {
    free(process->arguments);
    free(process->modules);
    free(process->regions);
    free(process->holdings);
    free(process->strings);
    free(process->nodes);
    free(process->cells);
    free(process->heaps);
    free(process->types);
    free(process->words);
    if (process->earlier) {
        process_fini(process->earlier);
        free(process->earlier);
    }
    if (process->at_tree_peak) {
        process_fini(process->at_tree_peak);
        free(process->at_tree_peak);
    }
}

static void dump_fini(struct ml_profile *profile) {
    for (size_t i = 0; i < profile->series_count; i++) {
        free(profile->series[i].points);
    }
    free(profile->series);
    for (size_t i = 0; i < profile->processes_count; i++) {
        process_fini(&profile->processes[i]);
    }
    free(profile->processes);
    for (size_t i = 0; i < profile->others_count; i++) {
        process_fini(&profile->others[i]);
    }
    free(profile->others);
    free(profile->gaps);
    free(profile->not_profiled);
    ml_arena_fini(&profile->arena);
}

void ml_profile_fini(struct ml_profile *profile) {
    dump_fini(profile);
    ml_trace_symbols_fini(&profile->symbols);
    ml_deobfuscation_fini(&profile->deobfuscation);
    *profile = (struct ml_profile){0};
}

void ml_profile_restart(struct ml_profile *profile) {
    dump_fini(profile);
    *profile = (struct ml_profile){
        .program = {.bytes = ""},
        .sandbox_missing = {.bytes = ""},
        .uncovered = {.bytes = ""},
        .service_trouble = {.bytes = ""},
        .list_source = {.bytes = ""},
        .whole = {.bytes = ""},
        .trigger = {.reason = {.bytes = ""}},
        .symbols = profile->symbols,
        .deobfuscation = profile->deobfuscation,
        .dumps_count = profile->dumps_count,
        .truncated = profile->truncated,
        .damaged = profile->damaged,
        .bad_at = profile->bad_at,
        .bad_is = profile->bad_is,
        .whole_bytes = profile->whole_bytes,
    };
}

/* The remaining processes become the tree; its peak is that of the image that held most. */
static void tree_of_images(struct ml_profile *profile) {
    const struct ml_profile_process *largest = &profile->processes[0];

    profile->tree = (struct ml_profile_totals){0};
    if (profile->processes_count == 0) { /* only processes without a profile */
        profile->tree_peak_ticks = 0;
        return;
    }
    for (size_t i = 0; i < profile->processes_count; i++) {
        const struct ml_profile_process *process = &profile->processes[i];
        ml_profile_totals_add(&profile->tree, &process->totals);
        if (process->totals.peak_bytes > largest->totals.peak_bytes) {
            largest = process;
        }
    }
    profile->tree.peak_bytes = largest->totals.peak_bytes;
    profile->tree.peak_blocks = largest->totals.peak_blocks;
    profile->tree.variances.peak_bytes = largest->totals.variances.peak_bytes;
    profile->tree.variances.peak_blocks = largest->totals.variances.peak_blocks;
    profile->tree_peak_ticks = largest->peak_ticks;
    for (size_t i = 0; i < profile->processes_count; i++) {
        struct ml_profile_process *process = &profile->processes[i];
        for (size_t c = 0; c < process->cells_count; c++) {
            struct ml_profile_cell *cell = &process->cells[c];
            cell->tree_peak_bytes = process == largest ? cell->own.peak_bytes : 0;
            cell->tree_peak_blocks = process == largest ? cell->own.peak_blocks : 0;
            cell->tree_peak_bytes_variance =
                process == largest ? cell->own.variances.peak_bytes : 0;
            cell->tree_peak_blocks_variance =
                process == largest ? cell->own.variances.peak_blocks : 0;
        }
    }
}

static bool has_image(const struct ml_profile *profile, uint32_t id) {
    for (size_t i = 0; i < profile->processes_count; i++) {
        if (profile->processes[i].id == id) {
            return true;
        }
    }
    return false;
}

static bool has_pid(const struct ml_profile *profile, uint32_t pid) {
    for (size_t i = 0; i < profile->processes_count; i++) {
        if (profile->processes[i].pid == pid) {
            return true;
        }
    }
    return false;
}

/* Which processes are kept: those with one of the pids, or without any those of the role. */
struct wanted {
    const uint32_t *pids;
    size_t pids_count;
    const char *role;
};

static bool names_pid(const struct wanted *wanted, uint32_t pid) {
    for (size_t i = 0; i < wanted->pids_count; i++) {
        if (wanted->pids[i] == pid) {
            return true;
        }
    }
    return false;
}

static bool is_wanted(const struct ml_profile_process *process, const struct wanted *wanted) {
    return wanted->pids_count > 0 ? names_pid(wanted, process->pid)
                                  : strcmp(ml_profile_role_name(process->role), wanted->role) == 0;
}

static void keep_others(struct ml_profile *profile, const struct wanted *wanted) {
    size_t kept = 0;

    for (size_t i = 0; i < profile->others_count; i++) {
        if (is_wanted(&profile->others[i], wanted)) {
            profile->others[kept++] = profile->others[i];
        } else {
            process_fini(&profile->others[i]);
        }
    }
    profile->others_count = kept;
}

/* Remove the processes that are not marked, with their data, and of those without a profile what is
 * not wanted. */
static void
keep_marked(struct ml_profile *profile, const bool *is_kept, const struct wanted *wanted) {
    size_t kept = 0;

    for (size_t i = 0; i < profile->processes_count; i++) {
        if (is_kept[i]) {
            const struct ml_profile_process one = profile->processes[i];
            profile->processes[i] = profile->processes[kept];
            profile->processes[kept++] = one;
        }
    }
    for (size_t i = kept; i < profile->processes_count; i++) {
        process_fini(&profile->processes[i]);
    }
    profile->processes_count = kept;
    keep_others(profile, wanted);
    kept = 0;
    for (size_t i = 0; i < profile->gaps_count; i++) {
        uint32_t of = profile->gaps[i].process_id;
        if (of == 0 || has_image(profile, of)) {
            profile->gaps[kept++] = profile->gaps[i];
        }
    }
    profile->gaps_count = kept;
    kept = 0;
    for (size_t i = 0; i < profile->not_profiled_count; i++) {
        const struct ml_profile_not_profiled *one = &profile->not_profiled[i];
        if (has_pid(profile, one->parent_pid) || names_pid(wanted, one->pid)) {
            profile->not_profiled[kept++] = profile->not_profiled[i];
        }
    }
    profile->not_profiled_count = kept;
    ml_profile_match_series(profile);
}

/* False: there is none that is wanted, or no memory. */
static bool select_some(struct ml_profile *profile, const struct wanted *wanted) {
    bool *is_kept = calloc(profile->processes_count + 1, sizeof *is_kept);
    bool found = false;

    for (size_t i = 0; is_kept && i < profile->processes_count; i++) {
        const struct ml_profile_process *process = &profile->processes[i];
        is_kept[i] = is_wanted(process, wanted);
        found = found || is_kept[i];
    }
    for (size_t i = 0; is_kept && i < profile->others_count; i++) {
        found = found || names_pid(wanted, profile->others[i].pid);
    }
    if (found) {
        keep_marked(profile, is_kept, wanted);
        profile->uncovered = (struct ml_profile_text){.bytes = ""}; /* may be about a removed one */
    }
    free(is_kept);
    return found;
}

bool ml_profile_select(struct ml_profile *profile, uint32_t pid) {
    const struct wanted wanted = {.pids = &pid, .pids_count = 1};

    if (pid == 0 || !select_some(profile, &wanted)) {
        return false;
    }
    tree_of_images(profile);
    ml_profile_count_live(profile);
    return true;
}

bool ml_profile_select_pids(struct ml_profile *profile, const uint32_t *pids, size_t count) {
    const struct wanted wanted = {.pids = pids, .pids_count = count};

    if (count == 0 || !select_some(profile, &wanted)) {
        return false;
    }
    ml_profile_sum_shares(profile);
    return true;
}

void ml_profile_sum_shares(struct ml_profile *profile) {
    profile->tree = (struct ml_profile_totals){0};
    for (size_t i = 0; i < profile->processes_count; i++) {
        const struct ml_profile_process *process = &profile->processes[i];
        struct ml_profile_totals own = process->totals;
        own.peak_bytes = own.peak_blocks = 0;
        own.variances.peak_bytes = own.variances.peak_blocks = 0;
        for (size_t c = 0; c < process->cells_count; c++) {
            own.peak_bytes += process->cells[c].tree_peak_bytes;
            own.peak_blocks += process->cells[c].tree_peak_blocks;
            own.variances.peak_bytes += process->cells[c].tree_peak_bytes_variance;
            own.variances.peak_blocks += process->cells[c].tree_peak_blocks_variance;
        }
        ml_profile_totals_add(&profile->tree, &own);
    }
    ml_profile_count_live(profile);
}

bool ml_profile_select_role(struct ml_profile *profile, const char *role) {
    const struct wanted wanted = {.role = role};

    if (!select_some(profile, &wanted)) {
        return false;
    }
    ml_profile_sum_shares(profile);
    return true;
}

uint64_t ml_profile_stands_for(const struct ml_profile_process *process) {
    return process->folded_processes > 0 ? process->folded_processes : 1;
}

bool ml_profile_anyone_runs(const struct ml_profile *profile) {
    for (size_t i = 0; i < profile->processes_count; i++) {
        if (!profile->processes[i].left_tree) {
            return true;
        }
    }
    return false;
}

uint64_t ml_profile_sampling_bytes(const struct ml_profile *profile) {
    uint64_t sampling_bytes = 1;

    for (size_t i = 0; i < profile->processes_count; i++) {
        if (profile->processes[i].sampling_bytes > sampling_bytes) {
            sampling_bytes = profile->processes[i].sampling_bytes;
        }
    }
    return sampling_bytes;
}

uint32_t ml_profile_promised_ppm(const struct ml_profile *profile) {
    uint32_t promised_ppm = 0;

    for (size_t i = 0; i < profile->processes_count && promised_ppm == 0; i++) {
        promised_ppm = profile->processes[i].overhead.promised_ppm;
    }
    return promised_ppm;
}

const struct ml_profile_process *ml_profile_costliest(const struct ml_profile *profile) {
    const struct ml_profile_process *most = NULL;

    for (size_t i = 0; i < profile->processes_count; i++) {
        const struct ml_profile_process *process = &profile->processes[i];
        if (process->overhead.was_measured &&
            (!most || ml_profile_cost_ppm(process) > ml_profile_cost_ppm(most))) {
            most = process;
        }
    }
    return most;
}

uint64_t ml_profile_images(const struct ml_profile *profile) {
    uint64_t count = 0;

    for (size_t i = 0; i < profile->processes_count; i++) {
        count += ml_profile_stands_for(&profile->processes[i]);
    }
    for (size_t i = 0; i < profile->others_count; i++) {
        count += ml_profile_stands_for(&profile->others[i]);
    }
    return count;
}

/* Images of one pid are next to each other, in the order of their starts. */
static int order_images(const void *left, const void *right) {
    const struct ml_profile_process *a = *(const struct ml_profile_process *const *)left;
    const struct ml_profile_process *b = *(const struct ml_profile_process *const *)right;

    if (a->pid != b->pid) {
        return (a->pid > b->pid) - (a->pid < b->pid);
    }
    if (a->start.monotonic_ns != b->start.monotonic_ns) {
        return (a->start.monotonic_ns > b->start.monotonic_ns) -
               (a->start.monotonic_ns < b->start.monotonic_ns);
    }
    return (a->id > b->id) - (a->id < b->id);
}

uint64_t ml_profile_processes(const struct ml_profile *profile) {
    const size_t images_count = profile->processes_count + profile->others_count;
    const struct ml_profile_process **images = calloc(images_count + 1, sizeof *images);
    uint64_t count = 0;

    if (!images) {
        return ml_profile_images(profile);
    }
    for (size_t i = 0; i < images_count; i++) {
        images[i] = i < profile->processes_count ? &profile->processes[i]
                                                 : &profile->others[i - profile->processes_count];
    }
    qsort(images, images_count, sizeof *images, order_images);
    for (size_t i = 0; i < images_count; i++) {
        const struct ml_profile_process *image = images[i];
        /* If its successor is not in the dump, the image stands for the process. For a folded entry
         * that is not known. The successors of its images usually have entries. */
        const bool goes_on = i + 1 < images_count && images[i + 1]->pid == image->pid;
        const bool is_left = image->state == MEMLOG_SERVICE_PROCESS_STATE_REPLACED &&
                             (goes_on || image->folded_processes > 0);
        count += is_left ? 0 : ml_profile_stands_for(image);
    }
    free(images);
    return count;
}

bool ml_profile_is_complete(const struct ml_profile *profile) {
    if (!profile->complete || profile->truncated || profile->damaged || profile->gaps_count > 0) {
        return false;
    }
    for (size_t i = 0; i < profile->processes_count; i++) {
        const struct ml_profile_process *process = &profile->processes[i];
        if (!process->complete || process->partial || process->lost_events > 0) {
            return false;
        }
    }
    return true;
}

struct ml_profile_process *ml_profile_find(struct ml_profile *profile, uint32_t id) {
    /* Tables follow their processes in order, so search from the end. */
    for (size_t i = profile->processes_count; i > 0; i--) {
        if (profile->processes[i - 1].id == id) {
            return &profile->processes[i - 1];
        }
    }
    for (size_t i = 0; i < profile->others_count; i++) { /* their tables come in their order */
        const size_t at = (profile->others_at + i) % profile->others_count;
        if (profile->others[at].id == id) {
            profile->others_at = at;
            return &profile->others[at];
        }
    }
    return NULL;
}

static int order_nodes(const void *left, const void *right) {
    const struct ml_profile_node *one = left;
    const struct ml_profile_node *other = right;

    return (one->id > other->id) - (one->id < other->id);
}

size_t ml_profile_node_at(const struct ml_profile_process *process, uint32_t id) {
    const struct ml_profile_node wanted = {.id = id};
    const struct ml_profile_node *found = NULL;

    /* Ids are usually dense. Then the id gives the position. */
    if (id != 0 && id <= process->nodes_count && process->nodes[id - 1].id == id) {
        return id - 1;
    }
    if (process->nodes_count > 0) {
        found = bsearch(&wanted, process->nodes, process->nodes_count, sizeof wanted, order_nodes);
    }
    return found ? (size_t)(found - process->nodes) : SIZE_MAX;
}

size_t ml_profile_module_at(const struct ml_profile_process *process, uint32_t id) {
    if (id != 0 && id <= process->modules_count && process->modules[id - 1].id == id) {
        return id - 1;
    }
    for (size_t i = 0; id != 0 && i < process->modules_count; i++) {
        if (process->modules[i].id == id) {
            return i;
        }
    }
    return SIZE_MAX;
}

struct ml_profile_text ml_profile_module_path(
    const struct ml_profile_process *process, const struct ml_profile_module *module
) {
    if (module->path.count_bytes > 0) {
        return module->path;
    }
    if (process->exe_path.count_bytes > 0) {
        return process->exe_path;
    }
    return process->arguments_count > 0 ? process->arguments[0] : process->name;
}

uint64_t
ml_profile_regions_ns(const struct ml_profile *profile, const struct ml_profile_process *process) {
    const struct ml_profile_timestamp *now = &profile->now;
    const uint64_t since_ns = now->boottime_ns - process->regions_boottime_ns;
    if (process->regions_boottime_ns == 0) {
        return 0;
    }
    return process->regions_boottime_ns <= now->boottime_ns && since_ns < now->realtime_ns
               ? now->realtime_ns - since_ns
               : now->realtime_ns;
}

uint64_t ml_profile_realtime_ns(const struct ml_profile *profile, uint64_t ticks) {
    const struct ml_profile_timestamp *from = &profile->run_start;
    const struct ml_profile_timestamp *to = &profile->now;
    long double share = 0;

    if (ticks == 0) {
        return 0;
    }
    if (to->ticks <= from->ticks || to->monotonic_ns < from->monotonic_ns) {
        return to->realtime_ns;
    }
    /* Use the monotonic clock, since the time of day may have been set meanwhile. */
    share = ((long double)ticks - (long double)to->ticks) /
            ((long double)to->ticks - (long double)from->ticks);
    share *= (long double)(to->monotonic_ns - from->monotonic_ns);
    share += (long double)to->realtime_ns;
    if (share < 0 || share > (long double)INT64_MAX) {
        return to->realtime_ns;
    }
    return (uint64_t)share;
}

uint64_t ml_profile_timestamp_ns(
    const struct ml_profile *profile, const struct ml_profile_timestamp *timestamp
) {
    /* The end of a running process is 0, and some timestamps have no ticks. */
    if (timestamp->realtime_ns == 0 || timestamp->ticks == 0 || profile->now.ticks == 0) {
        return timestamp->realtime_ns;
    }
    return ml_profile_realtime_ns(profile, timestamp->ticks);
}

static const char *name_of(const char *const *names, size_t count, uint32_t value) {
    return value < count ? names[value] : "unknown";
}

const char *ml_profile_role_name(uint32_t role) {
    static const char *const names[] = {MEMLOG_SERVICE_ROLE_WORDS};

    return name_of(names, sizeof names / sizeof names[0], role);
}

const char *ml_profile_state_name(uint32_t state) {
    static const char *const names[] = {MEMLOG_SERVICE_PROCESS_STATE_WORDS};

    return name_of(names, sizeof names / sizeof names[0], state);
}

const char *ml_profile_trigger_name(uint32_t kind) {
    static const char *const names[] = {"", MEMLOG_SERVICE_TRIGGER_KIND_WORDS};

    return name_of(names, sizeof names / sizeof names[0], kind);
}

const char *ml_profile_reason_name(uint32_t reason) {
    static const char *const names[] = {MEMLOG_SERVICE_DUMP_REASON_WORDS};

    return name_of(names, sizeof names / sizeof names[0], reason);
}

const char *
ml_profile_build_id(const struct ml_profile *profile, char out_hex[ML_PROFILE_HEX_BYTES]) {
    const struct ml_profile_process *process = profile->processes;

    out_hex[0] = '\0';
    for (size_t i = 0; profile->processes_count > 0 && i < process->modules_count; i++) {
        const struct ml_profile_module *module = &process->modules[i];
        if (module->path.count_bytes > 0 &&
            strcmp(module->path.bytes, process->exe_path.bytes) != 0) {
            continue;
        }
        return ml_profile_hex(module->build_id, out_hex);
    }
    return out_hex;
}
