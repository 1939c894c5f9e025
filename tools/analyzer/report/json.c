#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ipc/wire/event.h"
#include "tools/analyzer/formats/units.h"
#include "tools/analyzer/memory/components.h"
#include "tools/analyzer/progress/progress.h"
#include "tools/analyzer/report/internal.h"
#include "tools/analyzer/suppressions/suppress.h"
#include "tools/analyzer/whole/data.h"
#include "tools/analyzer/whole/grown.h"

/* The version of the JSON form. */
enum { REPORT_VERSION = 1 };

static void text_member(struct ml_json *json, const char *name, struct ml_profile_text text) {
    ml_json_text_member(json, name, text.bytes, text.count_bytes);
}

static void time_member(struct ml_json *json, const char *name, uint64_t realtime_ns) {
    ml_json_string_member(json, name, ml_units_time_ms(realtime_ns).text);
}

/* The error as a whole number of bytes or blocks. */
static void error_member(struct ml_json *json, const char *name, double error) {
    ml_json_number_member(json, name, (uint64_t)(error + 0.5));
}

/* Prints nothing when the figures are exact. */
static void put_errors(struct ml_json *json, const struct ml_profile_totals *totals) {
    struct ml_profile_spread errors;

    if (!ml_profile_standard_errors(totals, &errors)) {
        return;
    }
#define PUT_ERROR(figure) error_member(json, #figure "_error", errors.figure);
    ML_PROFILE_FIGURES(PUT_ERROR)
}

void ml_report_json_totals(struct ml_json *json, const struct ml_profile_totals *totals) {
#define PUT_FIGURE(figure) ml_json_number_member(json, #figure, totals->figure);
    ML_PROFILE_FIGURES(PUT_FIGURE)
    put_errors(json, totals);
}

static void hex_member(struct ml_json *json, const char *name, struct ml_profile_text bytes) {
    char hex[ML_PROFILE_HEX_BYTES];

    ml_json_string_member(json, name, ml_profile_hex(bytes, hex));
}

/* One frame; `symbol` NULL: no name is known. */
static void put_frame(
    struct ml_json *json,
    const struct ml_stacks *stacks,
    const struct ml_place *place,
    const struct ml_symbol *symbol
) {
    static const char script_word[] = "[script]";
    const struct ml_profile_text none = {.bytes = "", .count_bytes = 0};
    const struct ml_profile_text script = {
        .bytes = script_word, .count_bytes = sizeof script_word - 1};
    const bool is_script = ml_place_is_script(place);
    const struct ml_code_file *file =
        place->file == ML_STACKS_NONE ? NULL : &stacks->files[place->file];
    char buffer[ML_PLACE_NAME_BYTES];
    char offset[sizeof "0xffffffffffffffff"];
    const char *function = "";

    if (symbol) {
        function = symbol->function;
    } else if (place->kind != ML_FRAME_ADDRESS) {
        function = ml_place_name(place, buffer);
    }
    snprintf(offset, sizeof offset, "0x%" PRIx64, place->offset);
    ml_json_open(json, '{');
    ml_json_string_member(json, "function", function);
    ml_json_string_member(json, "file", symbol ? symbol->file : "");
    ml_json_number_member(json, "line", symbol ? symbol->line : 0);
    text_member(json, "module", file ? file->path : is_script ? script : none);
    hex_member(json, "build_id", file ? file->build_id : none);
    ml_json_string_member(json, "offset", offset);
    ml_json_bool_member(json, "inlined", symbol && symbol->inlined);
    if (is_script || place->kind == ML_FRAME_SCOPE) {
        ml_json_string_member(json, "kind", is_script ? "script" : "scope");
    }
    ml_json_close(json, '}');
}

void ml_report_json_frames(struct ml_json *json, const struct ml_stacks *stacks, uint32_t node) {
    ml_json_open_member(json, "frames", '[');
    for (; node != ML_STACKS_NONE; node = stacks->nodes[node].parent) {
        const struct ml_place *place = &stacks->places[stacks->nodes[node].place];

        if (place->kind == ML_FRAME_THREAD && stacks->nodes[node].parent == ML_STACKS_NONE) {
            continue; /* the stack has it as "thread" */
        }
        for (size_t i = 0; i < place->symbols_count; i++) {
            put_frame(json, stacks, place, &stacks->symbols[place->first_symbol + i]);
        }
        if (place->symbols_count == 0) {
            put_frame(json, stacks, place, NULL);
        }
    }
    ml_json_close(json, ']');
}

static void
put_type(struct ml_json *json, const struct ml_profile_process *process, uint32_t number) {
    const struct ml_profile_typed type = ml_profile_type_of(process, number);

    text_member(json, "type", type.name);
    ml_json_string_member(json, "type_known_by", ml_profile_known_word(type.known));
}

static void put_stacks(
    struct ml_json *json,
    const struct ml_report *report,
    const struct ml_profile_process *process,
    const struct ml_stack_list *list
) {
    size_t count = report->limit > 0 && report->limit < list->count ? report->limit : list->count;

    ml_json_open_member(json, "stacks", '[');
    for (size_t i = 0; i < count; i++) {
        const struct ml_stack *stack = &list->stacks[i];

        ml_progress_pieces("Writing stacks", i, count, process ? process->name.bytes : NULL);
        ml_json_line(json);
        ml_json_open(json, '{');
        ml_report_json_totals(json, &stack->own);
        ml_json_number_member(json, "temporary_blocks", stack->temporary_blocks);
        ml_report_json_pages(json, report->profile, process, &stack->own);
        if (process) {
            text_member(json, "heap", ml_profile_heap_name(process, stack->heap));
            put_type(json, process, stack->type);
        } else if (report->groups) {
            ml_report_json_types(json, report->groups, stack->node);
        }
        text_member(json, "thread", ml_stacks_thread(report->stacks, stack->node));
        ml_report_json_frames(json, report->stacks, stack->node);
        ml_json_close(json, '}');
    }
    ml_json_close(json, ']');
}

/* What memlog costs it, and was to cost. Prints nothing without a promise. */
static void put_overhead(struct ml_json *json, const struct ml_profile_process *process) {
    if (process->overhead.promised_ppm == 0) {
        return;
    }
    ml_json_open_member(json, "overhead", '{');
    ml_json_number_member(json, "promised_ppm", process->overhead.promised_ppm);
    ml_json_bool_member(json, "measured", process->overhead.was_measured);
    ml_json_number_member(json, "recording_ppm", process->overhead.recording_ppm);
    ml_json_number_member(json, "passing_ppm", process->overhead.passing_ppm);
    ml_json_number_member(json, "shortest_bytes", process->overhead.shortest_bytes);
    ml_json_number_member(json, "longest_bytes", process->sampling_bytes);
    ml_json_close(json, '}');
}

/* The sampling intervals, each with the time from which it held. */
static void put_sampling(
    struct ml_json *json, const struct ml_profile *profile, const struct ml_profile_process *process
) {
    ml_json_open_member(json, "sampling", '[');
    for (size_t i = 0; i < process->sampling_changes_count; i++) {
        ml_json_open(json, '{');
        time_member(
            json, "from", ml_profile_realtime_ns(profile, process->sampling_changes[i].ticks)
        );
        ml_json_number_member(json, "bytes", process->sampling_changes[i].interval_bytes);
        ml_json_close(json, '}');
    }
    ml_json_close(json, ']');
    ml_json_number_member(json, "sampling_left_out", process->sampling_left_out);
}

static void put_gaps(struct ml_json *json, const struct ml_profile *profile) {
    ml_json_open_member(json, "gaps", '[');
    for (size_t i = 0; i < profile->gaps_count; i++) {
        const struct ml_profile_gap *gap = &profile->gaps[i];
        ml_json_open(json, '{');
        ml_json_number_member(json, "id", gap->process_id);
        time_member(json, "from", ml_profile_timestamp_ns(profile, &gap->from));
        time_member(json, "to", ml_profile_timestamp_ns(profile, &gap->to));
        text_member(json, "reason", gap->reason);
        ml_json_close(json, '}');
    }
    ml_json_close(json, ']');
}

static void put_not_profiled(struct ml_json *json, const struct ml_profile *profile) {
    ml_json_open_member(json, "not_profiled", '[');
    for (size_t i = 0; i < profile->not_profiled_count; i++) {
        const struct ml_profile_not_profiled *one = &profile->not_profiled[i];
        ml_json_open(json, '{');
        ml_json_number_member(json, "pid", one->pid);
        ml_json_number_member(json, "parent_pid", one->parent_pid);
        text_member(json, "path", one->path);
        text_member(json, "reason", one->reason);
        ml_json_close(json, '}');
    }
    ml_json_close(json, ']');
}

/* The source of the list of processes, and what the list may lack. */
static void put_list(struct ml_json *json, const struct ml_profile *profile) {
    ml_json_open_member(json, "process_list", '{');
    text_member(json, "source", profile->list_source);
    ml_json_number_member(json, "blind_ms", (profile->list_blind_ns + 999999) / 1000000);
    ml_json_number_member(json, "missed", profile->list_missed);
    ml_json_close(json, '}');
}

/* The trigger and the guilty stack. Prints nothing for a dump without a trigger. */
/* What the named process has more of than at an earlier reading. null: it is not known. */
static void put_grown(struct ml_json *json, const struct ml_profile *profile) {
    const struct ml_profile_process *named = NULL;
    struct ml_grown grown;

    for (size_t i = 0; i < profile->processes_count; i++) {
        named = profile->processes[i].id == profile->trigger.process_id ? &profile->processes[i]
                                                                        : named;
    }
    if (!named || !ml_grown_of(named, &grown)) {
        ml_json_key(json, "grown");
        ml_json_null(json);
        return;
    }
    const struct ml_profile_process earlier = {.regions_boottime_ns = grown.since_boottime_ns};
    ml_json_open_member(json, "grown", '{');
    time_member(json, "since", ml_profile_regions_ns(profile, &earlier));
    ml_json_key(json, "private_bytes");
    ml_json_integer(json, grown.all);
    ml_json_open_member(json, "components", '[');
    for (enum ml_component i = 0; i < ML_COMPONENTS; i++) {
        ml_json_open(json, '{');
        ml_json_string_member(json, "name", ml_component_name(i));
        ml_json_key(json, "private_bytes");
        ml_json_integer(json, grown.components[i]);
        ml_json_close(json, '}');
    }
    ml_json_close(json, ']');
    ml_json_close(json, '}');
}

static void put_trigger(struct ml_json *json, const struct ml_report *report) {
    const struct ml_profile_trigger *trigger = &report->profile->trigger;

    if (trigger->kind == 0) {
        return;
    }
    ml_json_open_member(json, "trigger", '{');
    ml_json_string_member(json, "kind", ml_profile_trigger_name(trigger->kind));
    text_member(json, "reason", trigger->reason);
    ml_json_number_member(json, "process_id", trigger->process_id);
    ml_json_number_member(json, "stack_bytes", trigger->node_bytes);
    if (trigger->checked_ns != 0 && trigger->checked_ns <= report->profile->now.monotonic_ns) {
        ml_json_number_member(
            json, "after_check_ns", report->profile->now.monotonic_ns - trigger->checked_ns
        );
    }
    put_grown(json, report->profile);
    ml_report_json_frames(json, report->stacks, report->stacks->guilty);
    ml_json_close(json, '}');
}

void ml_report_json_dump(struct ml_json *json, const struct ml_report *report) {
    const struct ml_profile *profile = report->profile;
    char uncovered[ML_UNCOVERED_BYTES];

    ml_json_open_member(json, "dump", '{');
    ml_json_string_member(json, "file", basename(report->file_path));
    ml_json_string_member(json, "time", ml_units_time(profile->now.realtime_ns).text);
    ml_json_string_member(json, "reason", ml_profile_reason_name(profile->reason));
    text_member(json, "program", profile->program);
    ml_json_number_member(json, "sampling_bytes", ml_profile_sampling_bytes(profile));
    ml_json_bool_member(json, "complete", ml_profile_is_complete(profile));
    ml_json_number_member(json, "lost_forks", profile->lost_forks);
    ml_json_bool_member(json, "covered", ml_profile_is_covered(profile));
    ml_json_string_member(json, "uncovered", ml_profile_uncovered(profile, uncovered));
    ml_json_bool_member(json, "truncated", profile->truncated);
    ml_json_bool_member(json, "damaged", profile->damaged);
    text_member(json, "whole", profile->whole);
    text_member(json, "sandbox_missing", profile->sandbox_missing);
    text_member(json, "service_trouble", profile->service_trouble);
    put_list(json, profile);
    put_trigger(json, report);
    put_gaps(json, profile);
    put_not_profiled(json, profile);
    ml_suppressed_json(report->suppressed, json);
    ml_json_close(json, '}');
}

static void put_figures(struct ml_json *json, const struct ml_component_figures *figures) {
    ml_json_number_member(json, "private_bytes", figures->private);
    ml_json_number_member(json, "shared_bytes", figures->shared);
    ml_json_number_member(json, "proportional_bytes", figures->proportional);
    ml_json_number_member(json, "swapped_bytes", figures->swapped);
}

/* The components of the process's memory. null: its mappings are not in the dump. */
static void put_memory(
    struct ml_json *json, const struct ml_profile *profile, const struct ml_profile_process *process
) {
    struct ml_components components;

    if (process->regions_count == 0) {
        ml_json_key(json, "memory");
        ml_json_null(json);
        return;
    }
    ml_components_of(process, &components);
    ml_json_open_member(json, "memory", '{');
    time_member(json, "read_time", ml_profile_regions_ns(profile, process));
    put_figures(json, &components.all);
    ml_json_bool_member(json, "heap_known", process->heap_was_laid);
    ml_json_bool_member(json, "heap_estimated", process->heap_is_estimated);
    ml_report_json_heap_pages(json, profile, process, &process->totals);
    ml_json_key(json, "moved_bytes");
    ml_json_integer(json, components.moved);
    ml_json_open_member(json, "components", '[');
    for (enum ml_component i = 0; i < ML_COMPONENTS; i++) {
        ml_json_open(json, '{');
        ml_json_string_member(json, "name", ml_component_name(i));
        put_figures(json, &components.of[i]);
        ml_json_close(json, '}');
    }
    ml_json_close(json, ']');
    ml_json_close(json, '}');
}

/* null: the dump does not have it. */
static void put_status(struct ml_json *json, const struct ml_profile_process *process) {
    const struct ml_profile_status *status = &process->status;

    if (!status->was_read) {
        ml_json_key(json, "memory_status");
        ml_json_null(json);
        return;
    }
    ml_json_open_member(json, "memory_status", '{');
    ml_json_bool_member(json, "unreadable", status->is_unreadable);
    ml_json_number_member(json, "anonymous_bytes", status->anonymous_bytes);
    ml_json_number_member(json, "file_bytes", status->file_bytes);
    ml_json_number_member(json, "shared_bytes", status->shared_bytes);
    ml_json_number_member(json, "swapped_bytes", status->swapped_bytes);
    ml_json_number_member(json, "page_tables_bytes", status->page_tables_bytes);
    ml_json_number_member(json, "kernel_stacks_bytes", status->kernel_stacks_bytes);
    ml_json_number_member(json, "held_ns", status->held_ns);
    text_member(json, "trouble", process->memory_trouble);
    ml_json_close(json, '}');
}

static void put_coverage(struct ml_json *json, const struct ml_profile_process *process) {
    const struct ml_profile_text unknown = {.bytes = "unknown", .count_bytes = 7};
    const struct ml_profile_text none = {.bytes = "", .count_bytes = 0};
    const bool recorded = process->recording == ML_PROFILE_RECORDED;
    const bool hides = !recorded && ml_profile_hides(process);

    ml_json_open_member(json, "coverage", '{');
    ml_json_number_member(json, "heap_bytes", process->coverage_heap_bytes);
    ml_json_number_member(json, "mapped_bytes", process->coverage_mapped_bytes);
    ml_json_number_member(json, "files_bytes", process->coverage_files_bytes);
    ml_json_number_member(json, "shared_bytes", process->coverage_shared_bytes);
    ml_json_number_member(json, "hooked_functions", process->hooked_functions);
    if (process->coverage_was_read) {
        ml_json_number_member(json, "private_bytes", ml_profile_private_bytes(process));
    } else {
        ml_json_key(json, "private_bytes");
        ml_json_null(json); /* it was never read */
    }
    text_member(
        json, "allocator", process->allocator.count_bytes > 0 ? process->allocator : unknown
    );
    if (hides && process->not_recorded_reason.count_bytes == 0) {
        ml_json_string_member(json, "unseen", "it is not recorded");
    } else {
        text_member(
            json,
            "unseen",
            recorded ? process->unseen : (hides ? process->not_recorded_reason : none)
        );
    }
    ml_json_close(json, '}');
}

static void put_process_head(
    struct ml_json *json, const struct ml_profile *profile, const struct ml_profile_process *process
) {
    const bool recorded = process->recording == ML_PROFILE_RECORDED;

    ml_json_number_member(json, "id", process->id);
    ml_json_number_member(json, "parent_id", process->parent_id);
    ml_json_number_member(json, "pid", process->pid);
    ml_json_number_member(json, "parent_pid", process->parent_pid);
    text_member(json, "name", process->name);
    ml_json_open_member(json, "command_line", '[');
    for (size_t i = 0; i < process->arguments_count; i++) {
        ml_json_text(json, process->arguments[i].bytes, process->arguments[i].count_bytes);
    }
    ml_json_close(json, ']');
    ml_json_string_member(json, "role", ml_profile_role_name(process->role));
    ml_json_string_member(json, "state", ml_profile_state_name(process->state));
    ml_json_bool_member(json, "recorded", recorded);
    text_member(json, "reason", process->not_recorded_reason);
    if (!recorded) {
        ml_json_bool_member(json, "idle", process->recording == ML_PROFILE_IDLE);
    }
    ml_json_bool_member(json, "from_startup", process->from_startup);
    ml_json_key(json, "complete");
    if (!recorded) {
        ml_json_null(json); /* it has no events to lose */
    } else {
        ml_json_bool(json, process->complete && !process->partial);
    }
    text_member(json, "trouble", process->trouble);
    ml_json_number_member(json, "sampling_bytes", process->sampling_bytes);
    put_sampling(json, profile, process);
    put_overhead(json, process);
    ml_json_number_member(json, "footprint_bytes", process->footprint_bytes);
    ml_json_number_member(json, "resident_bytes", process->resident_bytes);
    put_coverage(json, process);
    put_memory(json, profile, process);
    put_status(json, process);
    ml_json_key(json, "exit_code");
    ml_json_integer(json, process->exit_code);
    ml_json_number_member(json, "signal", process->signal);
    time_member(json, "start_time", ml_profile_timestamp_ns(profile, &process->start));
    time_member(json, "end_time", ml_profile_timestamp_ns(profile, &process->end));
    time_member(json, "peak_time", ml_profile_realtime_ns(profile, process->peak_ticks));
}

/* produced = received + in_flight + the sum of "dropped". "balanced" says whether that holds. */
static void put_accounting(struct ml_json *json, const struct ml_profile_accounting *accounting) {
    ml_json_open_member(json, "accounting", '{');
    ml_json_number_member(json, "produced", accounting->produced);
    ml_json_number_member(json, "received", accounting->received);
    ml_json_number_member(json, "in_flight", accounting->in_flight);
    ml_json_open_member(json, "dropped", '{');
    ml_json_number_member(json, "overrun", accounting->overrun);
    ml_json_number_member(json, "no_lane", accounting->no_lane);
    ml_json_number_member(json, "nested", accounting->nested);
    ml_json_number_member(json, "no_pipe", accounting->no_pipe);
    ml_json_number_member(json, "refused", accounting->refused);
    ml_json_number_member(json, "unaccounted", accounting->unaccounted);
    ml_json_close(json, '}');
    ml_json_bool_member(json, "balanced", accounting->balanced);
    ml_json_number_member(json, "waits", accounting->waits);
    ml_json_number_member(json, "waited_ns", accounting->waited_ns);
    ml_json_number_member(json, "longest_wait_ns", accounting->longest_wait_ns);
    ml_json_number_member(json, "stream_bytes", accounting->stream_bytes);
    ml_json_close(json, '}');
}

static void put_heap(
    struct ml_json *json,
    struct ml_profile_text name,
    const struct ml_profile_totals *totals,
    uint64_t unknown_frees
) {
    ml_json_open(json, '{');
    text_member(json, "name", name);
    ml_report_json_totals(json, totals);
    ml_json_number_member(json, "unknown_frees", unknown_frees);
    ml_json_close(json, '}');
}

/* Each with its own figures. Those of malloc's, or the chosen one, are the process's. */
static void put_heaps(
    struct ml_json *json, const struct ml_profile *profile, const struct ml_profile_process *process
) {
    const bool is_malloc = !profile->heap.bytes;

    ml_json_open_member(json, "heaps", '[');
    if (is_malloc) {
        put_heap(json, ml_profile_heap_name(process, 0), &process->totals, process->unknown_frees);
    }
    for (size_t i = 0; i < process->heaps_count; i++) {
        const struct ml_profile_heap *heap = &process->heaps[i];
        const struct ml_profile_text name = ml_profile_heap_name(process, heap->id);
        if (is_malloc || ml_profile_text_eq(name, profile->heap)) {
            put_heap(json, name, &heap->own, heap->unknown_frees);
        }
    }
    ml_json_close(json, ']');
}

/* What was read of first words: where nothing was, it is not known of any block. */
static void put_vtables(struct ml_json *json, const struct ml_profile_process *process) {
    uint64_t blocks = 0;

    if (!process->words_were_read) {
        return;
    }
    for (size_t i = 0; i < process->words_count; i++) {
        blocks += process->words[i].live_blocks;
    }
    ml_json_open_member(json, "vtables", '{');
    ml_json_bool_member(json, "complete", !process->words_are_cut);
    ml_json_number_member(json, "read_bytes", process->words_read_bytes);
    ml_json_number_member(json, "blocks", blocks);
    ml_json_close(json, '}');
}

static void put_process(
    struct ml_json *json,
    const struct ml_report *report,
    const struct ml_profile_process *process,
    const struct ml_stack_list *stacks
) {
    ml_json_line(json);
    ml_json_open(json, '{');
    put_process_head(json, report->profile, process);
    ml_json_bool_member(json, "in_tree", !process->left_tree);
    ml_report_json_totals(json, &process->totals);
    ml_json_number_member(json, "held_at_tree_peak_bytes", process->held_at_tree_peak_bytes);
    ml_json_number_member(json, "held_at_tree_peak_blocks", process->held_at_tree_peak_blocks);
    ml_json_number_member(json, "inherited_bytes", process->inherited_bytes);
    ml_json_number_member(json, "inherited_blocks", process->inherited_blocks);
    ml_json_number_member(json, "events", process->events);
    ml_json_number_member(json, "lost_events", process->lost_events);
    put_accounting(json, &process->accounting);
    ml_json_number_member(json, "late_events", process->late_events);
    ml_json_number_member(json, "unknown_frees", process->unknown_frees);
    ml_json_number_member(json, "truncated_stacks", process->truncated_stacks);
    ml_json_number_member(json, "broken_stacks", process->broken_stacks);
    ml_json_number_member(json, "unwind_checked", process->unwind_checked);
    ml_json_number_member(json, "unwind_differed", process->unwind_differed);
    if (process->folded_processes > 0) {
        ml_json_number_member(json, "folded_processes", process->folded_processes);
        ml_json_number_member(json, "folded_failed", process->folded_failed);
    }
    ml_json_number_member(json, "stack_nodes", process->nodes_count);
    ml_json_number_member(json, "counter_cells", process->cells_count);
    if (process->recording == ML_PROFILE_RECORDED) {
        put_heaps(json, report->profile, process);
        put_vtables(json, process);
    }
    if (stacks) {
        put_stacks(json, report, process, stacks);
    }
    ml_json_close(json, '}');
}

void ml_report_json_tree(struct ml_json *json, const struct ml_profile *profile) {
    struct ml_profile_totals tree = profile->tree;

    tree.live_bytes = profile->running.bytes;
    tree.live_blocks = profile->running.blocks;
    tree.variances.live_bytes = profile->running.bytes_variance;
    tree.variances.live_blocks = profile->running.blocks_variance;
    ml_report_json_totals(json, &tree);
    ml_json_number_member(json, "left_bytes", profile->left.bytes);
    ml_json_number_member(json, "left_blocks", profile->left.blocks);
    if (profile->left.bytes_variance > 0) {
        const struct ml_profile_totals left = {
            .variances = {
                .live_bytes = profile->left.bytes_variance,
                .live_blocks = profile->left.blocks_variance,
                .total_bytes = 1}};
        struct ml_profile_spread errors;
        (void)ml_profile_standard_errors(&left, &errors);
        error_member(json, "left_bytes_error", errors.live_bytes);
        error_member(json, "left_blocks_error", errors.live_blocks);
    }
    ml_json_bool_member(json, "ended_shown", profile->is_ended_shown);
    ml_report_json_heap_pages(json, profile, NULL, &tree);
}

static void put_processes(struct ml_json *json, const struct ml_report *report, bool with_stacks) {
    const struct ml_profile *profile = report->profile;
    const struct ml_stack_list no_stacks = {.count = 0};

    ml_json_open_member(json, "processes", '[');
    for (size_t i = 0; i < profile->processes_count; i++) {
        const struct ml_stack_list *details = with_stacks ? &report->stacks->details[i] : NULL;
        const struct ml_stack_list *stacks = with_stacks ? &report->stacks->processes[i] : NULL;
        stacks = details && details->stacks ? details : stacks;
        put_process(json, report, &profile->processes[i], stacks);
    }
    for (size_t i = 0; i < profile->others_count; i++) {
        put_process(json, report, &profile->others[i], with_stacks ? &no_stacks : NULL);
    }
    ml_json_close(json, ']');
}

static void put_report(const struct ml_report *report, bool with_stacks, FILE *out) {
    const struct ml_profile *profile = report->profile;
    struct ml_json json = ml_json_over(out);

    ml_json_open(&json, '{');
    ml_json_number_member(&json, "memlog", REPORT_VERSION);
    ml_report_json_dump(&json, report);
    ml_json_line(&json);
    ml_json_open_member(&json, "tree", '{');
    ml_report_json_tree(&json, profile);
    time_member(&json, "peak_time", ml_profile_realtime_ns(profile, profile->tree_peak_ticks));
    ml_whole_tree_member(&json, profile);
    ml_whole_tree_peak_member(&json, profile);
    if (with_stacks && report->list != ML_LIST_ROWS) {
        put_stacks(&json, report, NULL, &report->stacks->tree);
    }
    ml_json_close(&json, '}');
    ml_json_line(&json);
    if (report->list == ML_LIST_ROWS) {
        ml_report_json_rows(&json, report);
    } else {
        put_processes(&json, report, with_stacks);
    }
    ml_json_close(&json, '}');
    putc('\n', out);
}

void ml_report_json(const struct ml_report *report, FILE *out) {
    put_report(report, true, out);
}

void ml_report_json_processes(const struct ml_report *report, FILE *out) {
    put_report(report, false, out);
}
