#include "tests/dump/snapshot_eq.h"

#include <check.h>

static void text_eq(const struct ml_string *wrote, const struct ml_profile_text *read) {
    ck_assert_uint_eq(wrote->count_bytes, read->count_bytes);
    if (wrote->count_bytes > 0) {
        ck_assert_mem_eq(wrote->data, read->bytes, wrote->count_bytes);
    }
    ck_assert_int_eq(read->bytes[read->count_bytes], 0);
}

static void
timestamp_eq(const struct ml_timestamp *wrote, const struct ml_profile_timestamp *read) {
    ck_assert_uint_eq(wrote->ticks, read->ticks);
    ck_assert_uint_eq(wrote->monotonic_ns, read->monotonic_ns);
    ck_assert_uint_eq(wrote->realtime_ns, read->realtime_ns);
    ck_assert_uint_eq(wrote->boottime_ns, read->boottime_ns);
}

static void
moment_eq(const struct memlog_service_moment *wrote, const struct ml_profile_timestamp *read) {
    const struct ml_timestamp timestamp = ml_timestamp_of(wrote);
    timestamp_eq(&timestamp, read);
}

void totals_eq(const struct ml_totals *wrote, const struct ml_profile_totals *read) {
    ck_assert_uint_eq(wrote->live_bytes, read->live_bytes);
    ck_assert_uint_eq(wrote->live_blocks, read->live_blocks);
    ck_assert_uint_eq(wrote->peak_bytes, read->peak_bytes);
    ck_assert_uint_eq(wrote->peak_blocks, read->peak_blocks);
    ck_assert_uint_eq(wrote->total_bytes, read->total_bytes);
    ck_assert_uint_eq(wrote->total_blocks, read->total_blocks);
}

static void
accounting_eq(const struct ml_accounting *wrote, const struct ml_profile_accounting *read) {
    ck_assert_uint_eq(wrote->produced, read->produced);
    ck_assert_uint_eq(wrote->received, read->received);
    ck_assert_uint_eq(wrote->in_flight, read->in_flight);
    ck_assert_uint_eq(wrote->overrun, read->overrun);
    ck_assert_uint_eq(wrote->no_lane, read->no_lane);
    ck_assert_uint_eq(wrote->nested, read->nested);
    ck_assert_uint_eq(wrote->no_pipe, read->no_pipe);
    ck_assert_uint_eq(wrote->refused, read->refused);
    ck_assert_uint_eq(wrote->unaccounted, read->unaccounted);
    ck_assert(wrote->balanced == read->balanced);
    ck_assert_uint_eq(wrote->waits, read->waits);
    ck_assert_uint_eq(wrote->waited_ns, read->waited_ns);
    ck_assert_uint_eq(wrote->longest_wait_ns, read->longest_wait_ns);
    ck_assert_uint_eq(wrote->stream_bytes, read->stream_bytes);
}

static void
heads_eq(const struct ml_snapshot_process *wrote, const struct ml_profile_process *read) {
    ck_assert_uint_eq(wrote->id, read->id);
    ck_assert_uint_eq(wrote->parent_id, read->parent_id);
    ck_assert_uint_eq(wrote->pid, read->pid);
    ck_assert_uint_eq(wrote->parent_pid, read->parent_pid);
    ck_assert_uint_eq(wrote->role, read->role);
    ck_assert_uint_eq(wrote->state, read->state);
    ck_assert_int_eq(wrote->exit_code, read->exit_code);
    ck_assert_uint_eq(wrote->signal, read->signal);
    ck_assert(wrote->from_startup == read->from_startup);
    ck_assert(wrote->complete == read->complete);
    text_eq(&wrote->trouble, &read->trouble);
    text_eq(&wrote->name, &read->name);
    text_eq(&wrote->exe_path, &read->exe_path);
    ck_assert_uint_eq(wrote->footprint_bytes, read->footprint_bytes);
    ck_assert_uint_eq(wrote->resident_bytes, read->resident_bytes);
    ck_assert_uint_eq(wrote->overhead.promised_ppm, read->overhead.promised_ppm);
    ck_assert_uint_eq(wrote->overhead.recording_ppm, read->overhead.recording_ppm);
    ck_assert_uint_eq(wrote->overhead.passing_ppm, read->overhead.passing_ppm);
    ck_assert(wrote->overhead.measured == read->overhead.was_measured);
    ck_assert_uint_eq(wrote->overhead.shortest_bytes, read->overhead.shortest_bytes);
    ck_assert(wrote->coverage_was_read == read->coverage_was_read);
    ck_assert_uint_eq(wrote->coverage_heap_bytes, read->coverage_heap_bytes);
    ck_assert_uint_eq(wrote->coverage_private_bytes, read->coverage_private_bytes);
    ck_assert_uint_eq(wrote->coverage_mapped_bytes, read->coverage_mapped_bytes);
    ck_assert_uint_eq(wrote->coverage_files_bytes, read->coverage_files_bytes);
    ck_assert_uint_eq(wrote->coverage_shared_bytes, read->coverage_shared_bytes);
    ck_assert_uint_eq(wrote->hooked_functions, read->hooked_functions);
    text_eq(&wrote->allocator, &read->allocator);
    text_eq(&wrote->unseen, &read->unseen);
    ck_assert_uint_eq(wrote->sampling.longest_bytes, read->sampling_bytes);
    ck_assert_uint_eq(wrote->sampling.count, read->sampling_changes_count);
    ck_assert_uint_eq(wrote->sampling.left_out, read->sampling_left_out);
    for (uint32_t i = 0; i < wrote->sampling.count; i++) {
        const struct ml_sampling_change *change = &wrote->sampling.changes[i];
        ck_assert_uint_eq(change->ticks, read->sampling_changes[i].ticks);
        ck_assert_uint_eq(change->interval_bytes, read->sampling_changes[i].interval_bytes);
    }
    timestamp_eq(&wrote->start, &read->start);
    timestamp_eq(&wrote->end, &read->end);
    totals_eq(&wrote->totals, &read->totals);
    ck_assert(wrote->left_tree == read->left_tree);
    ck_assert(wrote->cells_were_laid == read->cells_were_laid);
    ck_assert_uint_eq(wrote->held_at_tree_peak_bytes, read->held_at_tree_peak_bytes);
    ck_assert_uint_eq(wrote->held_at_tree_peak_blocks, read->held_at_tree_peak_blocks);
    ck_assert_uint_eq(wrote->peak_ticks, read->peak_ticks);
    ck_assert_uint_eq(wrote->inherited_bytes, read->inherited_bytes);
    ck_assert_uint_eq(wrote->inherited_blocks, read->inherited_blocks);
    ck_assert_uint_eq(wrote->events, read->events);
    ck_assert_uint_eq(wrote->lost_events, read->lost_events);
    accounting_eq(&wrote->accounting, &read->accounting);
    ck_assert_uint_eq(wrote->unknown_frees, read->unknown_frees);
    ck_assert_uint_eq(wrote->late_events, read->late_events);
    ck_assert_uint_eq(wrote->truncated_stacks, read->truncated_stacks);
    ck_assert_uint_eq(wrote->broken_stacks, read->broken_stacks);
    ck_assert_uint_eq(wrote->unwind_checked, read->unwind_checked);
    ck_assert_uint_eq(wrote->unwind_differed, read->unwind_differed);
    ck_assert_uint_eq(wrote->folded_processes, read->folded_processes);
    ck_assert_uint_eq(wrote->folded_failed, read->folded_failed);
}

static void
nodes_eq(const struct ml_snapshot_process *wrote, const struct ml_profile_process *read) {
    ck_assert_uint_eq(wrote->nodes_count, read->nodes_count);
    for (uint32_t i = 0; i < wrote->nodes_count; i++) {
        const struct ml_snapshot_node *a = &wrote->nodes[i];
        const struct ml_profile_node *b = &read->nodes[i];
        ck_assert(
            a->id == b->id && a->parent == b->parent && a->frame == b->frame &&
            a->module == b->module && a->address == b->address && a->string == b->string
        );
    }
}

static void cell_eq(const struct ml_snapshot_cell *a, const struct ml_profile_cell *b) {
    ck_assert(
        a->node == b->node && a->heap == b->heap && a->type == b->type &&
        a->size_class == b->size_class && a->tree_peak_bytes == b->tree_peak_bytes &&
        a->tree_peak_blocks == b->tree_peak_blocks && a->temporary_blocks == b->temporary_blocks
    );
    ck_assert(
        a->resident_private_bytes == b->resident_private_bytes &&
        a->resident_shared_bytes == b->resident_shared_bytes && a->alone_bytes == b->alone_bytes &&
        a->waste_bytes == b->waste_bytes
    );
    totals_eq(&a->own, &b->own);
}

/* Those of malloc's heap come first, in their order; the others in any. */
static void
cells_eq(const struct ml_snapshot_process *wrote, const struct ml_profile_process *read) {
    const struct ml_profile_cell *apart = read->cells + read->cells_count;
    struct ml_totals sums[2] = {{0}};
    size_t own = 0;
    ck_assert_uint_eq(wrote->cells_count, read->cells_count + read->apart_count);
    for (uint32_t i = 0; i < wrote->cells_count; i++) {
        const struct ml_snapshot_cell *a = &wrote->cells[i];
        if (a->heap == 0) {
            ck_assert_uint_lt(own, read->cells_count);
            cell_eq(a, &read->cells[own++]);
            continue;
        }
        sums[0].live_bytes += a->own.live_bytes * (a->type + 1U);
        sums[0].total_blocks += a->own.total_blocks * (a->size_class + 1U);
    }
    for (size_t i = 0; i < read->apart_count; i++) {
        ck_assert_uint_ne(apart[i].heap, 0);
        sums[1].live_bytes += apart[i].own.live_bytes * (apart[i].type + 1U);
        sums[1].total_blocks += apart[i].own.total_blocks * (apart[i].size_class + 1U);
    }
    ck_assert_uint_eq(sums[0].live_bytes, sums[1].live_bytes);
    ck_assert_uint_eq(sums[0].total_blocks, sums[1].total_blocks);
}

static void
heaps_eq(const struct ml_snapshot_process *wrote, const struct ml_profile_process *read) {
    ck_assert_uint_eq(wrote->heaps_count, read->heaps_count);
    for (uint32_t i = 0; i < wrote->heaps_count; i++) {
        ck_assert_uint_eq(wrote->heaps[i].id, read->heaps[i].id);
        ck_assert_uint_eq(wrote->heaps[i].string, read->heaps[i].string);
        ck_assert_uint_eq(wrote->heaps[i].unknown_frees, read->heaps[i].unknown_frees);
        totals_eq(&wrote->heaps[i].own, &read->heaps[i].own);
    }
    ck_assert_uint_eq(wrote->words_facts.were_read, read->words_were_read);
    ck_assert_uint_eq(wrote->words_facts.are_cut, read->words_are_cut);
    ck_assert_uint_eq(wrote->words_facts.read_bytes, read->words_read_bytes);
    ck_assert_uint_eq(wrote->words_count, read->words_count);
    for (uint32_t i = 0; i < wrote->words_count; i++) {
        ck_assert_uint_eq(wrote->words[i].node, read->words[i].node);
        ck_assert_uint_eq(wrote->words[i].word, read->words[i].word);
        ck_assert_uint_eq(wrote->words[i].live_bytes, read->words[i].live_bytes);
        ck_assert_uint_eq(wrote->words[i].live_blocks, read->words[i].live_blocks);
        ck_assert_uint_eq(wrote->words[i].live_bytes_error, read->words[i].live_bytes_error);
        ck_assert_uint_eq(wrote->words[i].live_blocks_error, read->words[i].live_blocks_error);
    }
    ck_assert_uint_eq(wrote->types_count, read->types_count);
    for (uint32_t i = 0; i < wrote->types_count; i++) {
        ck_assert_uint_eq(wrote->types[i].id, read->types[i].id);
        ck_assert_uint_eq(wrote->types[i].string, read->types[i].string);
    }
}

static void
process_eq(const struct ml_snapshot_process *wrote, const struct ml_profile_process *read) {
    heads_eq(wrote, read);
    ck_assert(!read->partial);
    ck_assert_uint_eq(wrote->command_line_count, read->arguments_count);
    for (uint32_t i = 0; i < wrote->command_line_count; i++) {
        text_eq(&wrote->command_line[i], &read->arguments[i]);
    }
    ck_assert_uint_eq(wrote->strings_count, read->strings_count);
    for (uint32_t i = 0; i < wrote->strings_count; i++) {
        text_eq(&wrote->strings[i], &read->strings[i]);
    }
    ck_assert_uint_eq(wrote->modules_count, read->modules_count);
    for (uint32_t i = 0; i < wrote->modules_count; i++) {
        const struct ml_snapshot_module *a = &wrote->modules[i];
        const struct ml_profile_module *b = &read->modules[i];
        ck_assert(a->id == b->id && a->start == b->start && a->end == b->end && a->bias == b->bias);
        ck_assert_uint_eq(a->code_address, b->code_address);
        ck_assert_uint_eq(a->code_offset, b->code_offset);
        text_eq(&a->build_id, &b->build_id);
        text_eq(&a->path, &b->path);
    }
    nodes_eq(wrote, read);
    cells_eq(wrote, read);
    heaps_eq(wrote, read);
}

static void series_eq(
    const struct ml_snapshot_series *wrote,
    uint32_t process_id,
    const struct ml_profile_series *read
) {
    ck_assert_uint_eq(read->process_id, process_id);
    ck_assert_uint_eq(wrote->node, read->node);
    ck_assert(wrote->is_stack == read->is_stack);
    ck_assert_uint_eq(wrote->from_ms, read->from_ms);
    ck_assert_uint_eq(wrote->points_count, read->points_count);
    for (uint32_t i = 0; i < wrote->points_count; i++) {
        const struct ml_snapshot_point *a = &wrote->points[i];
        const struct ml_profile_point *b = &read->points[i];
        ck_assert(
            a->end_ms == b->end_ms && a->least_bytes == b->least_bytes &&
            a->most_bytes == b->most_bytes && a->last_bytes == b->last_bytes &&
            a->total_bytes == b->total_bytes && a->total_blocks == b->total_blocks
        );
    }
}

static void all_series_eq(const struct ml_snapshot *wrote, const struct ml_profile *read) {
    size_t at = 0;

    if (wrote->series.points_count > 0) {
        ck_assert_uint_gt(read->series_count, 0);
        series_eq(&wrote->series, 0, &read->series[at++]);
    }
    for (uint32_t i = 0; i < wrote->processes_count; i++) {
        const struct ml_snapshot_process *process = &wrote->processes[i];
        ck_assert_uint_eq(read->processes[i].series_count, process->series_count);
        ck_assert(process->series_count == 0 || read->processes[i].series_first == at);
        ck_assert_uint_le(at + process->series_count, read->series_count);
        for (uint32_t s = 0; s < process->series_count; s++) {
            series_eq(&process->series[s], process->id, &read->series[at++]);
        }
    }
    ck_assert_uint_eq(at, read->series_count);
}

void snapshot_eq(const struct ml_snapshot *wrote, const struct ml_profile *read) {
    ck_assert(read->has_run && !read->truncated && !read->damaged);
    timestamp_eq(&wrote->run_start, &read->run_start);
    moment_eq(&wrote->order.now, &read->now);
    ck_assert_uint_eq(wrote->order.reason, read->reason);
    text_eq(&wrote->order.program, &read->program);
    struct ml_profile_totals tree = read->tree; /* its live figures are what is shown */
    tree.live_bytes = read->running.bytes;
    tree.live_blocks = read->running.blocks;
    totals_eq(&wrote->tree, &tree);
    ck_assert_uint_eq(wrote->left_bytes, read->left.bytes);
    ck_assert_uint_eq(wrote->left_blocks, read->left.blocks);
    ck_assert_uint_eq(wrote->tree_peak_ticks, read->tree_peak_ticks);
    ck_assert(wrote->complete == read->complete);
    ck_assert_uint_eq(wrote->order.lost_forks, read->lost_forks);
    text_eq(&wrote->sandbox_missing, &read->sandbox_missing);
    text_eq(&wrote->uncovered, &read->uncovered);
    text_eq(&wrote->service_trouble, &read->service_trouble);
    ck_assert_uint_eq(wrote->processes_count, read->processes_count);
    for (uint32_t i = 0; i < wrote->processes_count; i++) {
        process_eq(&wrote->processes[i], &read->processes[i]);
    }
    all_series_eq(wrote, read);
    ck_assert_uint_eq(wrote->order.gaps.count, read->gaps_count);
    for (uint32_t i = 0; i < wrote->order.gaps.count; i++) {
        ck_assert_uint_eq(wrote->order.gaps.items[i].id, read->gaps[i].process_id);
        moment_eq(&wrote->order.gaps.items[i].from, &read->gaps[i].from);
        moment_eq(&wrote->order.gaps.items[i].to, &read->gaps[i].to);
        text_eq(&wrote->order.gaps.items[i].reason, &read->gaps[i].reason);
    }
    ck_assert_uint_eq(wrote->order.not_profiled.count, read->not_profiled_count);
    for (uint32_t i = 0; i < wrote->order.not_profiled.count; i++) {
        ck_assert_uint_eq(wrote->order.not_profiled.items[i].pid, read->not_profiled[i].pid);
        ck_assert_uint_eq(
            wrote->order.not_profiled.items[i].parent_pid, read->not_profiled[i].parent_pid
        );
        text_eq(&wrote->order.not_profiled.items[i].reason, &read->not_profiled[i].reason);
        text_eq(&wrote->order.not_profiled.items[i].path, &read->not_profiled[i].path);
    }
}
