#include "tools/analyzer/model/trace_decode.h"

#include <pb_decode.h>

#include <stdlib.h>
#include <string.h>

#include "ipc/trace/crc32.h"
#include "ipc/trace/trace.pb.h"
#include "tools/analyzer/model/trace_deobfuscation.h"
#include "tools/analyzer/model/trace_series.h"
#include "tools/analyzer/model/trace_symbols.h"
#include "tools/analyzer/model/trace_table.h"

/* The version of the exact packets that this reader knows. */
enum { EXACT_VERSION = 1 };

/* Bounds the processes of a whole run. The service's own limit is 65,536 at once. */
enum { PROCESSES_MAX = 1 << 20 };

/* Memlog's field of a TracePacket, not decoded yet. */
struct sealed {
    uint32_t crc32;
    uint32_t kind;
    const uint8_t *body;
    size_t body_bytes;
    bool found;
};

static bool decode_body(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    struct sealed *sealed = *arg;

    (void)field;
    /* Not copied: the stream reads from memory, and its state is the position. */
    sealed->body = stream->state;
    sealed->body_bytes = stream->bytes_left;
    return pb_read(stream, NULL, stream->bytes_left);
}

static bool decode_memlog(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    struct sealed *sealed = *arg;
    ml_trace_Memlog memlog = {.body = {.funcs.decode = decode_body, .arg = sealed}};

    (void)field;
    if (!pb_decode(stream, ml_trace_Memlog_fields, &memlog)) {
        return false;
    }
    sealed->found = true;
    sealed->crc32 = memlog.crc32;
    sealed->kind = memlog.kind;
    return true;
}

/* The names that a packet brings. */
struct names {
    struct ml_profile *profile;
    enum ml_status status; /* the result of reading them */
};

static bool decode_symbols(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    struct names *names = *arg;

    (void)field;
    names->status = ml_trace_symbols_decode(&names->profile->symbols, stream);
    return names->status == ML_OK;
}

static bool decode_deobfuscation(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    struct names *names = *arg;

    (void)field;
    names->status = ml_trace_deobfuscation_decode(&names->profile->deobfuscation, stream);
    return names->status == ML_OK;
}

static struct ml_profile_timestamp timestamp_of(const ml_trace_MemlogMoment *timestamp) {
    return (struct ml_profile_timestamp){
        .ticks = timestamp->ticks,
        .monotonic_ns = timestamp->monotonic_ns,
        .realtime_ns = timestamp->realtime_ns,
        .boottime_ns = timestamp->boottime_ns,
    };
}

static struct ml_profile_totals totals_of(const ml_trace_MemlogTotals *totals) {
#define FIGURE(figure) .figure = totals->figure,
    return (struct ml_profile_totals){ML_PROFILE_FIGURES(FIGURE)};
}

static enum ml_status decode_run(struct ml_trace_decoder *decoder, pb_istream_t *stream) {
    struct ml_profile *profile = decoder->profile;
    ml_trace_MemlogRun run = {
        .program = ML_TEXT_INTO(&profile->arena, &profile->program),
        .sandbox_missing = ML_TEXT_INTO(&profile->arena, &profile->sandbox_missing),
        .uncovered = ML_TEXT_INTO(&profile->arena, &profile->uncovered),
        .service_trouble = ML_TEXT_INTO(&profile->arena, &profile->service_trouble),
        .trigger.reason = ML_TEXT_INTO(&profile->arena, &profile->trigger.reason),
        .list_source = ML_TEXT_INTO(&profile->arena, &profile->list_source),
        .whole = ML_TEXT_INTO(&profile->arena, &profile->whole),
    };

    if (profile->has_run) {
        ml_profile_restart(profile);
        decoder->ended = false;
    }
    if (!pb_decode(stream, ml_trace_MemlogRun_fields, &run)) {
        return ML_PEER_FORM;
    }
    if (run.version != EXACT_VERSION) {
        return ML_PEER_VERSION;
    }
    profile->has_run = true;
    profile->dumps_count = decoder->dumps_count;
    profile->run_start = timestamp_of(&run.run_start);
    profile->now = timestamp_of(&run.now);
    profile->reason = run.reason;
    profile->trigger.kind = run.trigger.kind;
    profile->trigger.process_id = run.trigger.process_id;
    profile->trigger.node = run.trigger.node;
    profile->trigger.node_bytes = run.trigger.node_bytes;
    profile->trigger.checked_ns = run.trigger.checked_monotonic_ns;
    profile->tree = totals_of(&run.tree);
    profile->running.bytes = run.tree.live_bytes;
    profile->running.blocks = run.tree.live_blocks;
    profile->left.bytes = run.left_bytes;
    profile->left.blocks = run.left_blocks;
    profile->tree_peak_ticks = run.tree_peak_ticks;
    profile->complete = run.complete;
    profile->list_blind_ns = run.list_blind_ns;
    profile->list_missed = run.list_missed;
    profile->lost_forks = run.lost_forks;
    profile->tree_views_dropped = run.tree_views_dropped;
    profile->processes_expected = run.processes_count;
    profile->gaps_expected = run.gaps_count;
    profile->not_profiled_expected = run.not_profiled_count;
    return ML_OK;
}

static struct ml_profile_accounting accounting_of(const ml_trace_MemlogAccounting *accounting) {
    return (struct ml_profile_accounting){
        .produced = accounting->produced,
        .received = accounting->received,
        .in_flight = accounting->in_flight,
        .overrun = accounting->overrun,
        .no_lane = accounting->no_lane,
        .nested = accounting->nested,
        .no_pipe = accounting->no_pipe,
        .refused = accounting->refused,
        .unaccounted = accounting->unaccounted,
        .balanced = accounting->balanced,
        .waits = accounting->waits,
        .waited_ns = accounting->waited_ns,
        .longest_wait_ns = accounting->longest_wait_ns,
        .stream_bytes = accounting->stream_bytes,
    };
}

static void words_take(struct ml_profile_process *process, const ml_trace_MemlogProcess *head) {
    process->words_were_read = head->words_were_read;
    process->words_are_cut = head->words_are_cut;
    process->words_read_bytes = head->words_read_bytes;
    process->words_expected = head->words_count;
}

static void sampling_take(struct ml_profile_process *process, const ml_trace_MemlogProcess *head) {
    process->sampling_bytes = head->sampling_bytes;
    process->sampling_changes_count = head->sampling_ticks_count < head->sampling_intervals_count
                                          ? head->sampling_ticks_count
                                          : head->sampling_intervals_count;
    for (size_t i = 0; i < process->sampling_changes_count; i++) {
        process->sampling_changes[i].ticks = head->sampling_ticks[i];
        process->sampling_changes[i].interval_bytes = head->sampling_intervals[i];
    }
    process->sampling_left_out = head->sampling_left_out;
    process->overhead.promised_ppm = head->overhead_promised_ppm;
    process->overhead.recording_ppm = head->overhead_recording_ppm;
    process->overhead.passing_ppm = head->overhead_passing_ppm;
    process->overhead.was_measured = head->overhead_was_measured;
    process->overhead.shortest_bytes = head->sampling_shortest_bytes;
}

static void process_take(struct ml_profile_process *process, const ml_trace_MemlogProcess *head) {
    process->id = head->id;
    process->parent_id = head->parent_id;
    process->pid = head->pid;
    process->parent_pid = head->parent_pid;
    process->role = head->role;
    process->state = head->state;
    process->exit_code = head->exit_code;
    process->signal = head->signal;
    process->from_startup = head->from_startup;
    process->complete = head->complete;
    process->footprint_bytes = head->footprint_bytes;
    process->resident_bytes = head->resident_bytes;
    /* Dumps of older versions have only the figures. */
    process->coverage_was_read = head->coverage_was_read || head->coverage_private_bytes > 0;
    process->coverage_heap_bytes = head->coverage_heap_bytes;
    process->coverage_private_bytes = head->coverage_private_bytes;
    process->coverage_mapped_bytes = head->coverage_mapped_bytes;
    process->coverage_files_bytes = head->coverage_files_bytes;
    process->coverage_shared_bytes = head->coverage_shared_bytes;
    process->hooked_functions = head->hooked_functions;
    words_take(process, head);
    sampling_take(process, head);
    process->start = timestamp_of(&head->start);
    process->end = timestamp_of(&head->end);
    process->totals = totals_of(&head->totals);
    process->left_tree = head->left_tree;
    process->held_at_tree_peak_bytes = head->held_at_tree_peak_bytes;
    process->held_at_tree_peak_blocks = head->held_at_tree_peak_blocks;
    process->peak_ticks = head->peak_ticks;
    process->inherited_bytes = head->inherited_bytes;
    process->inherited_blocks = head->inherited_blocks;
    process->events = head->events;
    process->lost_events = head->lost_events;
    process->accounting = accounting_of(&head->accounting);
    process->unknown_frees = head->unknown_frees;
    process->late_events = head->late_events;
    process->truncated_stacks = head->truncated_stacks;
    process->broken_stacks = head->broken_stacks;
    process->unwind_checked = head->unwind_checked;
    process->unwind_differed = head->unwind_differed;
    process->folded_processes = head->folded_processes;
    process->folded_failed = head->folded_failed;
    if (head->not_recorded) {
        process->recording = head->idle ? ML_PROFILE_IDLE : ML_PROFILE_UNRECORDED;
    }
    process->arguments_expected = head->arguments_count;
    process->modules_expected = head->modules_count;
    process->regions_expected = head->regions_count;
    process->holdings_expected = head->holdings_count;
    process->regions_boottime_ns = head->regions_boottime_ns;
    process->heap_was_laid = head->heap_was_laid;
    process->earlier_boottime_ns = head->earlier_boottime_ns;
    process->earlier_heap_was_laid = head->earlier_heap_was_laid;
    process->heap_is_estimated = head->heap_is_estimated;
    process->cells_were_laid = head->cells_were_laid;
    process->heap_elsewhere_bytes = head->heap_elsewhere_bytes;
    process->status = (struct ml_profile_status){
        .was_read = head->status_was_read,
        .is_unreadable = head->is_unreadable,
        .anonymous_bytes = head->status_anonymous_bytes,
        .file_bytes = head->status_file_bytes,
        .shared_bytes = head->status_shared_bytes,
        .swapped_bytes = head->status_swapped_bytes,
        .page_tables_bytes = head->page_tables_bytes,
        .kernel_stacks_bytes = head->kernel_stacks_bytes,
        .held_ns = head->memory_held_ns,
    };
    process->strings_expected = head->strings_count;
    process->nodes_expected = head->nodes_count;
    process->cells_expected = head->cells_count;
}

/* What the process was made of at the tree's peak. False: no memory. */
static bool take_tree_view(
    struct ml_profile_process *process,
    const ml_trace_MemlogTreeView *head,
    struct ml_profile_text trouble
) {
    struct ml_profile_process *then = NULL;

    process->was_at_tree_peak = head->boottime_ns != 0;
    if (head->boottime_ns == 0 || head->is_the_other) {
        return true;
    }
    then = calloc(1, sizeof *then);
    process->at_tree_peak = then;
    if (!then) {
        return false;
    }
    then->regions_expected = head->regions_count;
    then->holdings_expected = head->holdings_count;
    then->regions_boottime_ns = head->boottime_ns;
    then->heap_was_laid = head->heap_was_laid;
    then->heap_is_estimated = head->heap_is_estimated;
    then->cells_were_laid = head->cells_were_laid;
    then->heap_elsewhere_bytes = head->heap_elsewhere_bytes;
    then->memory_trouble = trouble;
    then->status = (struct ml_profile_status){
        .was_read = head->status_was_read,
        .is_unreadable = head->is_unreadable,
        .anonymous_bytes = head->status_anonymous_bytes,
        .file_bytes = head->status_file_bytes,
        .shared_bytes = head->status_shared_bytes,
        .swapped_bytes = head->status_swapped_bytes,
        .page_tables_bytes = head->page_tables_bytes,
        .kernel_stacks_bytes = head->kernel_stacks_bytes,
        .held_ns = head->memory_held_ns,
    };
    return true;
}

static enum ml_status
keep_other(struct ml_profile *profile, const struct ml_profile_process *process) {
    if (!ML_GROW(profile->others, profile->others_capacity, profile->others_count + 1)) {
        return ML_ENV_MEMORY;
    }
    profile->others[profile->others_count++] = *process;
    return ML_OK;
}

static enum ml_status decode_process(struct ml_trace_decoder *decoder, pb_istream_t *stream) {
    struct ml_profile *profile = decoder->profile;
    struct ml_profile_process process = {
        .trouble = {.bytes = ""},
        .name = {.bytes = ""},
        .exe_path = {.bytes = ""},
        .not_recorded_reason = {.bytes = ""},
        .allocator = {.bytes = ""},
        .unseen = {.bytes = ""},
        .memory_trouble = {.bytes = ""}};
    struct ml_profile_text tree_trouble = {.bytes = ""};
    ml_trace_MemlogProcess head = {
        .tree_view.memory_trouble = ML_TEXT_INTO(&profile->arena, &tree_trouble),
        .allocator = ML_TEXT_INTO(&profile->arena, &process.allocator),
        .unseen = ML_TEXT_INTO(&profile->arena, &process.unseen),
        .memory_trouble = ML_TEXT_INTO(&profile->arena, &process.memory_trouble),
        .trouble = ML_TEXT_INTO(&profile->arena, &process.trouble),
        .name = ML_TEXT_INTO(&profile->arena, &process.name),
        .exe_path = ML_TEXT_INTO(&profile->arena, &process.exe_path),
        .not_recorded_reason = ML_TEXT_INTO(&profile->arena, &process.not_recorded_reason),
    };

    if (!pb_decode(stream, ml_trace_MemlogProcess_fields, &head)) {
        return ML_PEER_FORM;
    }
    if (profile->processes_count + profile->others_count >= PROCESSES_MAX) {
        return ML_PEER_LIMIT;
    }
    process_take(&process, &head);
    if (process.recording != ML_PROFILE_RECORDED) {
        return keep_other(profile, &process);
    }
    if (!ML_GROW(profile->processes, profile->processes_capacity, profile->processes_count + 1) ||
        !take_tree_view(&process, &head.tree_view, tree_trouble)) {
        return ML_ENV_MEMORY;
    }
    profile->processes[profile->processes_count++] = process;
    return ML_OK;
}

static enum ml_status decode_gap(struct ml_trace_decoder *decoder, pb_istream_t *stream) {
    struct ml_profile *profile = decoder->profile;
    struct ml_profile_gap gap = {.reason = {.bytes = ""}};
    ml_trace_MemlogGap message = {.reason = ML_TEXT_INTO(&profile->arena, &gap.reason)};

    if (!pb_decode(stream, ml_trace_MemlogGap_fields, &message)) {
        return ML_PEER_FORM;
    }
    gap.process_id = message.process_id;
    gap.from = timestamp_of(&message.from);
    gap.to = timestamp_of(&message.to);
    if (!ML_GROW(profile->gaps, profile->gaps_capacity, profile->gaps_count + 1)) {
        return ML_ENV_MEMORY;
    }
    profile->gaps[profile->gaps_count++] = gap;
    return ML_OK;
}

static enum ml_status decode_not_profiled(struct ml_trace_decoder *decoder, pb_istream_t *stream) {
    struct ml_profile *profile = decoder->profile;
    struct ml_profile_not_profiled one = {.reason = {.bytes = ""}, .path = {.bytes = ""}};
    ml_trace_MemlogNotProfiled message = {
        .reason = ML_TEXT_INTO(&profile->arena, &one.reason),
        .path = ML_TEXT_INTO(&profile->arena, &one.path),
    };

    if (!pb_decode(stream, ml_trace_MemlogNotProfiled_fields, &message)) {
        return ML_PEER_FORM;
    }
    one.pid = message.pid;
    one.parent_pid = message.parent_pid;
    one.is_listed = message.is_listed;
    if (!ML_GROW(
            profile->not_profiled, profile->not_profiled_capacity, profile->not_profiled_count + 1
        )) {
        return ML_ENV_MEMORY;
    }
    profile->not_profiled[profile->not_profiled_count++] = one;
    return ML_OK;
}

static enum ml_status decode_end(struct ml_trace_decoder *decoder, pb_istream_t *stream) {
    ml_trace_MemlogEnd end = ml_trace_MemlogEnd_init_zero;

    if (!pb_decode(stream, ml_trace_MemlogEnd_fields, &end)) {
        return ML_PEER_FORM;
    }
    decoder->ended = true;
    return end.packets_count == decoder->packets_count ? ML_OK : ML_PEER_STATE;
}

/* Skip kinds of a later version. The run's version says whether that is allowed. */
static enum ml_status
decode_kind(struct ml_trace_decoder *decoder, uint32_t kind, pb_istream_t *stream) {
    if (kind == ml_trace_MemlogKind_MEMLOG_RUN) {
        decoder->dumps_count++;
        decoder->packets_count = 1;
    }
    if (decoder->wanted_dump != 0 && decoder->dumps_count != decoder->wanted_dump) {
        decoder->profile->dumps_count = decoder->dumps_count;
        return ML_OK;
    }
    if (kind != ml_trace_MemlogKind_MEMLOG_RUN && !decoder->profile->has_run) {
        return ML_PEER_STATE;
    }
    switch (kind) {
    case ml_trace_MemlogKind_MEMLOG_RUN:
        return decode_run(decoder, stream);
    case ml_trace_MemlogKind_MEMLOG_PROCESS:
        return decode_process(decoder, stream);
    case ml_trace_MemlogKind_MEMLOG_TABLE:
        return ml_trace_decode_table(decoder->profile, stream);
    case ml_trace_MemlogKind_MEMLOG_GAP:
        return decode_gap(decoder, stream);
    case ml_trace_MemlogKind_MEMLOG_NOT_PROFILED:
        return decode_not_profiled(decoder, stream);
    case ml_trace_MemlogKind_MEMLOG_SERIES:
        return ml_trace_decode_series(decoder->profile, stream);
    case ml_trace_MemlogKind_MEMLOG_END:
        return decode_end(decoder, stream);
    default:
        return ML_OK;
    }
}

enum ml_status
ml_trace_decode_packet(struct ml_trace_decoder *decoder, const uint8_t *bytes, size_t count_bytes) {
    struct sealed sealed = {0};
    struct names names = {.profile = decoder->profile};
    pb_istream_t stream = pb_istream_from_buffer(bytes, count_bytes);
    ml_trace_TracePacket packet = {
        .memlog = {.funcs.decode = decode_memlog, .arg = &sealed},
        .module_symbols = {.funcs.decode = decode_symbols, .arg = &names},
        .memlog_symbols = {.funcs.decode = decode_symbols, .arg = &names},
        .deobfuscation_mapping = {.funcs.decode = decode_deobfuscation, .arg = &names},
    };
    uint8_t kind_byte = 0;

    if (!pb_decode(&stream, ml_trace_TracePacket_fields, &packet)) {
        return names.status == ML_ENV_MEMORY ? ML_ENV_MEMORY : ML_PEER_FORM;
    }
    if (!sealed.found) {
        return ML_OK;
    }
    decoder->packets_count++;
    kind_byte = (uint8_t)sealed.kind;
    if (sealed.kind > UINT8_MAX ||
        ml_crc32(ml_crc32(0, &kind_byte, 1), sealed.body, sealed.body_bytes) != sealed.crc32) {
        return ML_PEER_FORM;
    }
    stream = pb_istream_from_buffer(sealed.body, sealed.body_bytes);
    return decode_kind(decoder, sealed.kind, &stream);
}
