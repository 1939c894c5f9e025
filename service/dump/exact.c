#include "service/dump/exact.h"

#include <stdlib.h>

#include "ipc/trace/crc32.h"
#include "ipc/trace/tables.h"
#include "service/dump/exact_internal.h"
#include "service/dump/standard.h"
#include "service/snapshot/host_view.h"

/* To be raised when readers of the version before would misread. */
enum { EXACT_VERSION = 1 };

static const struct ml_column node_columns[] = {ML_TRACE_NODE_COLUMNS(struct ml_snapshot_node)};
static const struct ml_column cell_columns[] = {ML_TRACE_CELL_COLUMNS(struct ml_snapshot_cell)};
static const struct ml_column heap_columns[] = {ML_TRACE_HEAP_COLUMNS(struct ml_snapshot_heap)};
static const struct ml_column type_columns[] = {ML_TRACE_TYPE_COLUMNS(struct ml_snapshot_type)};
static const struct ml_column point_columns[] = {ML_TRACE_POINT_COLUMNS(struct ml_snapshot_point)};

struct sealed_body {
    const struct ml_dump_packet *packet;
    uint32_t kind;
};

/* The memlog field: the body and its checksum. */
static bool encode_sealed(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    const struct sealed_body *sealed = *arg;
    const struct ml_dump_packet *packet = sealed->packet;
    uint8_t kind_byte = (uint8_t)sealed->kind;
    ml_trace_Memlog memlog = ml_trace_Memlog_init_zero;

    memlog.kind = sealed->kind;
    memlog.crc32 = ml_crc32(ml_crc32(0, &kind_byte, 1), packet->body, packet->body_count);
    memlog.body.funcs.encode = ml_dump_encode_body;
    memlog.body.arg = (void *)(uintptr_t)packet; /* only read; nanopb's argument is not const */
    return pb_encode_tag_for_field(stream, field) &&
           pb_encode_submessage(stream, ml_trace_Memlog_fields, &memlog);
}

static void
send_sealed_with(struct ml_dump_packet *packet, uint32_t kind, ml_trace_TracePacket *head) {
    struct sealed_body sealed = {.packet = packet, .kind = kind};

    head->memlog.funcs.encode = encode_sealed;
    head->memlog.arg = &sealed;
    packet->exact_packets_count++;
    ml_dump_packet_send(packet, head, &head->memlog);
}

static void send_sealed(struct ml_dump_packet *packet, uint32_t kind) {
    ml_trace_TracePacket head = ml_trace_TracePacket_init_zero;

    send_sealed_with(packet, kind, &head);
}

void ml_dump_exact_send_message(
    struct ml_dump_packet *packet, uint32_t kind, const pb_msgdesc_t *fields, const void *message
) {
    ml_dump_packet_append(packet, fields, message);
    send_sealed(packet, kind);
}

static ml_trace_MemlogMoment timestamp_of(struct ml_timestamp timestamp) {
    return (ml_trace_MemlogMoment){
        .ticks = timestamp.ticks,
        .monotonic_ns = timestamp.monotonic_ns,
        .realtime_ns = timestamp.realtime_ns,
        .boottime_ns = timestamp.boottime_ns,
    };
}

static ml_trace_MemlogTotals totals_of(const struct ml_totals *totals) {
    return (ml_trace_MemlogTotals){
        .live_bytes = totals->live_bytes,
        .live_blocks = totals->live_blocks,
        .peak_bytes = totals->peak_bytes,
        .peak_blocks = totals->peak_blocks,
        .total_bytes = totals->total_bytes,
        .total_blocks = totals->total_blocks,
    };
}

void ml_dump_exact_run(struct ml_dump_packet *packet, const struct ml_snapshot *snapshot) {
    const struct memlog_service_dump_order *order = &snapshot->order;
    ml_trace_MemlogRun run = {
        .version = EXACT_VERSION,
        .run_start = timestamp_of(snapshot->run_start),
        .now = timestamp_of(ml_timestamp_of(&order->now)),
        .reason = order->reason,
        .program = ml_dump_text(&order->program),
        .tree = totals_of(&snapshot->tree),
        .tree_peak_ticks = snapshot->tree_peak_ticks,
        .complete = snapshot->complete,
        .sandbox_missing = ml_dump_text(&snapshot->sandbox_missing),
        .processes_count = snapshot->processes_count + order->unrecorded.count,
        .gaps_count = order->gaps.count,
        .not_profiled_count = order->not_profiled.count,
        .uncovered = ml_dump_text(&snapshot->uncovered),
        .service_trouble = ml_dump_text(&snapshot->service_trouble),
        .left_bytes = snapshot->left_bytes,
        .left_blocks = snapshot->left_blocks,
        .list_source = ml_dump_text(&order->list_source),
        .list_blind_ns = order->list_blind_ns,
        .list_missed = order->list_missed,
        .lost_forks = order->lost_forks,
        .whole = ml_dump_text(&order->whole),
        .tree_views_dropped = snapshot->tree_views_dropped,
    };
    ml_trace_TracePacket head;

    if (order->has_trigger) {
        run.trigger = (ml_trace_MemlogTrigger){
            .kind = order->trigger.kind + 1,
            .process_id = order->trigger.id,
            .node = order->trigger.node,
            .node_bytes = order->trigger.node_bytes,
            .checked_monotonic_ns = order->trigger.checked_ns,
            .reason = ml_dump_text(&order->trigger.reason),
        };
    }
    ml_dump_standard_clocks(snapshot, &head);
    ml_dump_packet_append(packet, ml_trace_MemlogRun_fields, &run);
    send_sealed_with(packet, ml_trace_MemlogKind_MEMLOG_RUN, &head);
}

static ml_trace_MemlogAccounting accounting_of(const struct ml_accounting *accounting) {
    return (ml_trace_MemlogAccounting){
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

static void send_process(struct ml_dump_packet *packet, const struct ml_snapshot_process *process) {
    ml_trace_MemlogProcess head = {
        .id = process->id,
        .parent_id = process->parent_id,
        .pid = process->pid,
        .parent_pid = process->parent_pid,
        .role = process->role,
        .state = process->state,
        .exit_code = process->exit_code,
        .signal = process->signal,
        .from_startup = process->from_startup,
        .forked = process->forked,
        .complete = process->complete,
        .trouble = ml_dump_text(&process->trouble),
        .name = ml_dump_text(&process->name),
        .exe_path = ml_dump_text(&process->exe_path),
        .footprint_bytes = process->footprint_bytes,
        .resident_bytes = process->resident_bytes,
        .sampling_bytes = process->sampling.longest_bytes,
        .sampling_ticks_count = (pb_size_t)process->sampling.count,
        .sampling_intervals_count = (pb_size_t)process->sampling.count,
        .sampling_left_out = process->sampling.left_out,
        .overhead_promised_ppm = process->overhead.promised_ppm,
        .overhead_recording_ppm = process->overhead.recording_ppm,
        .overhead_passing_ppm = process->overhead.passing_ppm,
        .overhead_was_measured = process->overhead.measured,
        .sampling_shortest_bytes = process->overhead.shortest_bytes,
        .start = timestamp_of(process->start),
        .end = timestamp_of(process->end),
        .totals = totals_of(&process->totals),
        .peak_ticks = process->peak_ticks,
        .inherited_bytes = process->inherited_bytes,
        .inherited_blocks = process->inherited_blocks,
        .events = process->events,
        .lost_events = process->lost_events,
        .unknown_frees = process->unknown_frees,
        .late_events = process->late_events,
        .truncated_stacks = process->truncated_stacks,
        .broken_stacks = process->broken_stacks,
        .unwind_checked = process->unwind_checked,
        .unwind_differed = process->unwind_differed,
        .arguments_count = process->command_line_count,
        .modules_count = process->modules_count,
        .strings_count = process->strings_count,
        .nodes_count = process->nodes_count,
        .cells_count = process->cells_count,
        .accounting = accounting_of(&process->accounting),
        .folded_processes = process->folded_processes,
        .folded_failed = process->folded_failed,
        .held_at_tree_peak_bytes = process->held_at_tree_peak_bytes,
        .held_at_tree_peak_blocks = process->held_at_tree_peak_blocks,
        .left_tree = process->left_tree,
        .allocator = ml_dump_text(&process->allocator),
        .coverage_was_read = process->coverage_was_read,
        .coverage_heap_bytes = process->coverage_heap_bytes,
        .coverage_private_bytes = process->coverage_private_bytes,
        .coverage_mapped_bytes = process->coverage_mapped_bytes,
        .coverage_files_bytes = process->coverage_files_bytes,
        .coverage_shared_bytes = process->coverage_shared_bytes,
        .hooked_functions = process->hooked_functions,
        .unseen = ml_dump_text(&process->unseen),
        .cells_were_laid = process->cells_were_laid,
    };
    ml_dump_exact_memory_head(&head, process);
    ml_dump_exact_words_head(&head, process);
    for (uint32_t i = 0; i < process->sampling.count; i++) {
        head.sampling_ticks[i] = process->sampling.changes[i].ticks;
        head.sampling_intervals[i] = process->sampling.changes[i].interval_bytes;
    }
    ml_dump_exact_send_message(
        packet, ml_trace_MemlogKind_MEMLOG_PROCESS, ml_trace_MemlogProcess_fields, &head
    );
}

static uint32_t count_arguments(struct ml_bytes line) {
    uint32_t count = 0;
    struct ml_string argument;
    while (ml_dump_next_argument(&line, &argument)) {
        count++;
    }
    return count;
}

static void
send_unrecorded(struct ml_dump_packet *packet, const struct memlog_service_unrecorded *one) {
    ml_trace_MemlogProcess head = {
        .id = one->id,
        .parent_id = one->parent_id,
        .pid = one->pid,
        .parent_pid = one->parent_pid,
        .role = one->role,
        .state = one->state,
        .exit_code = one->exit_code,
        .signal = one->signal,
        .forked = one->forked,
        .name = ml_dump_text(&one->name),
        .exe_path = ml_dump_text(&one->executable),
        .footprint_bytes = one->footprint_bytes,
        .resident_bytes = one->resident_bytes,
        .sampling_bytes = 1,
        .start = timestamp_of(ml_timestamp_of(&one->start)),
        .end = timestamp_of(ml_timestamp_of(&one->end)),
        .arguments_count = count_arguments(one->command_line),
        .accounting = {.balanced = true},
        .folded_processes = one->folded_processes,
        .folded_failed = one->folded_failed,
        .left_tree = one->state != MEMLOG_SERVICE_PROCESS_STATE_RUNNING,
        /* Every process has resident memory, so 0 means that it was not read. */
        .coverage_was_read = one->resident_bytes != 0,
        .coverage_private_bytes = one->footprint_bytes,
        .not_recorded = true,
        .not_recorded_reason = ml_dump_text(&one->reason),
        .idle = one->idle,
        .is_unreadable = one->unreadable,
    };
    ml_dump_exact_status_head(&head, &one->status);
    ml_dump_exact_send_message(
        packet, ml_trace_MemlogKind_MEMLOG_PROCESS, ml_trace_MemlogProcess_fields, &head
    );
}

static void send_gap(struct ml_dump_packet *packet, const struct memlog_service_gap *gap) {
    ml_trace_MemlogGap message = {
        .process_id = gap->id,
        .from = timestamp_of(ml_timestamp_of(&gap->from)),
        .to = timestamp_of(ml_timestamp_of(&gap->to)),
        .reason = ml_dump_text(&gap->reason),
    };
    ml_dump_exact_send_message(
        packet, ml_trace_MemlogKind_MEMLOG_GAP, ml_trace_MemlogGap_fields, &message
    );
}

static void
send_not_profiled(struct ml_dump_packet *packet, const struct memlog_service_not_profiled *one) {
    ml_trace_MemlogNotProfiled message = {
        .pid = one->pid,
        .parent_pid = one->parent_pid,
        .reason = ml_dump_text(&one->reason),
        .path = ml_dump_text(&one->path),
        .is_listed = one->listed,
    };
    ml_dump_exact_send_message(
        packet, ml_trace_MemlogKind_MEMLOG_NOT_PROFILED, ml_trace_MemlogNotProfiled_fields, &message
    );
}

void ml_dump_exact_heads(struct ml_dump_packet *packet, const struct ml_snapshot *snapshot) {
    for (uint32_t i = 0; i < snapshot->processes_count; i++) {
        send_process(packet, &snapshot->processes[i]);
    }
    for (uint32_t i = 0; i < snapshot->order.unrecorded.count; i++) {
        send_unrecorded(packet, &snapshot->order.unrecorded.items[i]);
    }
    for (uint32_t i = 0; i < snapshot->order.gaps.count; i++) {
        send_gap(packet, &snapshot->order.gaps.items[i]);
    }
    for (uint32_t i = 0; i < snapshot->order.not_profiled.count; i++) {
        send_not_profiled(packet, &snapshot->order.not_profiled.items[i]);
    }
}

void ml_dump_exact_begin_table(struct ml_dump_packet *packet, uint32_t process_id) {
    if (ml_dump_packet_is_empty(packet)) {
        ml_dump_packet_add_number(packet, ml_trace_MemlogTable_process_id_tag, process_id);
    }
}

void ml_dump_exact_send_table(struct ml_dump_packet *packet) {
    send_sealed(packet, ml_trace_MemlogKind_MEMLOG_TABLE);
}

static void put_texts(
    struct ml_dump_packet *packet,
    uint32_t process_id,
    uint32_t tag,
    const struct ml_string *texts,
    uint32_t count
) {
    for (uint32_t i = 0; i < count; i++) {
        ml_dump_exact_begin_table(packet, process_id);
        while (!ml_dump_packet_put_text(packet, tag, &texts[i])) {
            ml_dump_exact_send_table(packet);
            ml_dump_exact_begin_table(packet, process_id);
        }
    }
}

static void put_modules(struct ml_dump_packet *packet, const struct ml_snapshot_process *process) {
    for (uint32_t i = 0; i < process->modules_count; i++) {
        const struct ml_snapshot_module *module = &process->modules[i];
        ml_trace_MemlogModule message = {
            .id = module->id,
            .start = module->start,
            .end = module->end,
            .bias = module->bias,
            .build_id = ml_dump_text(&module->build_id),
            .path = ml_dump_text(&module->path),
            .code_address = module->code_address,
            .code_offset = module->code_offset,
        };
        ml_dump_exact_begin_table(packet, process->id);
        while (!ml_dump_packet_put(
            packet, ml_trace_MemlogTable_modules_tag, ml_trace_MemlogModule_fields, &message
        )) {
            ml_dump_exact_send_table(packet);
            ml_dump_exact_begin_table(packet, process->id);
        }
    }
}

bool ml_dump_exact_encode_rows(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    const struct ml_dump_rows *rows = *arg;
    pb_ostream_t columns = pb_ostream_from_buffer(rows->wire, ML_DUMP_PACKET_MAX_BYTES);

    return ml_columns_encode(
               &columns,
               rows->columns,
               rows->columns_count,
               rows->first,
               rows->row_bytes,
               rows->count
           ) &&
           pb_encode_tag_for_field(stream, field) &&
           pb_encode_string(stream, rows->wire, columns.bytes_written);
}

struct ml_dump_rows ml_dump_exact_piece(
    const struct ml_dump_packet *packet, const struct ml_dump_rows *all, size_t at
) {
    struct ml_dump_rows piece = *all;
    piece.first = (const unsigned char *)all->first + at * all->row_bytes;
    piece.count = all->count - at < ML_COLUMNS_ROWS_MAX ? all->count - at : ML_COLUMNS_ROWS_MAX;
    piece.wire = packet->wire;
    return piece;
}

static void
send_heaps_and_types(struct ml_dump_packet *packet, const struct ml_snapshot_process *process) {
    const struct ml_dump_rows heaps =
        ML_DUMP_ROWS(heap_columns, process->heaps, process->heaps_count);
    const struct ml_dump_rows types =
        ML_DUMP_ROWS(type_columns, process->types, process->types_count);

    for (size_t at = 0; at < heaps.count; at += ML_COLUMNS_ROWS_MAX) {
        struct ml_dump_rows piece = ml_dump_exact_piece(packet, &heaps, at);
        const ml_trace_MemlogTable table = {
            .process_id = process->id,
            .heaps = {.funcs.encode = ml_dump_exact_encode_rows, .arg = &piece}};
        ml_dump_exact_send_message(
            packet, ml_trace_MemlogKind_MEMLOG_TABLE, ml_trace_MemlogTable_fields, &table
        );
    }
    for (size_t at = 0; at < types.count; at += ML_COLUMNS_ROWS_MAX) {
        struct ml_dump_rows piece = ml_dump_exact_piece(packet, &types, at);
        const ml_trace_MemlogTable table = {
            .process_id = process->id,
            .types = {.funcs.encode = ml_dump_exact_encode_rows, .arg = &piece}};
        ml_dump_exact_send_message(
            packet, ml_trace_MemlogKind_MEMLOG_TABLE, ml_trace_MemlogTable_fields, &table
        );
    }
}

/* In pieces, each of which begins where the one before ends. */
static void send_series(
    struct ml_dump_packet *packet, uint32_t process_id, const struct ml_snapshot_series *series
) {
    const struct ml_dump_rows all =
        ML_DUMP_ROWS(point_columns, series->points, series->points_count);
    uint64_t from_ms = series->from_ms;

    for (size_t at = 0; at < all.count; at += ML_COLUMNS_ROWS_MAX) {
        struct ml_dump_rows piece = ml_dump_exact_piece(packet, &all, at);
        ml_trace_MemlogSeries message = {
            .process_id = process_id,
            .node = series->node,
            .is_stack = series->is_stack,
            .from_ms = from_ms,
            .points = {.funcs.encode = ml_dump_exact_encode_rows, .arg = &piece},
        };
        ml_dump_exact_send_message(
            packet, ml_trace_MemlogKind_MEMLOG_SERIES, ml_trace_MemlogSeries_fields, &message
        );
        from_ms = series->points[at + piece.count - 1].end_ms;
    }
}

void ml_dump_exact_tree(struct ml_dump_packet *packet, const struct ml_snapshot *snapshot) {
    send_series(packet, 0, &snapshot->series);
}

void ml_dump_exact_tables(
    struct ml_dump_packet *packet, const struct ml_snapshot_process *process
) {
    const struct ml_dump_rows nodes =
        ML_DUMP_ROWS(node_columns, process->nodes, process->nodes_count);
    const struct ml_dump_rows cells =
        ML_DUMP_ROWS(cell_columns, process->cells, process->cells_count);

    put_texts(
        packet,
        process->id,
        ml_trace_MemlogTable_arguments_tag,
        process->command_line,
        process->command_line_count
    );
    put_texts(
        packet,
        process->id,
        ml_trace_MemlogTable_strings_tag,
        process->strings,
        process->strings_count
    );
    put_modules(packet, process);
    ml_dump_exact_put_regions(packet, process);
    if (!ml_dump_packet_is_empty(packet)) {
        ml_dump_exact_send_table(packet);
    }
    send_heaps_and_types(packet, process);
    for (size_t at = 0; at < nodes.count; at += ML_COLUMNS_ROWS_MAX) {
        struct ml_dump_rows piece = ml_dump_exact_piece(packet, &nodes, at);
        const ml_trace_MemlogTable table = {
            .process_id = process->id,
            .nodes = {.funcs.encode = ml_dump_exact_encode_rows, .arg = &piece}};
        ml_dump_exact_send_message(
            packet, ml_trace_MemlogKind_MEMLOG_TABLE, ml_trace_MemlogTable_fields, &table
        );
    }
    for (size_t at = 0; at < cells.count; at += ML_COLUMNS_ROWS_MAX) {
        struct ml_dump_rows piece = ml_dump_exact_piece(packet, &cells, at);
        const ml_trace_MemlogTable table = {
            .process_id = process->id,
            .cells = {.funcs.encode = ml_dump_exact_encode_rows, .arg = &piece}};
        ml_dump_exact_send_message(
            packet, ml_trace_MemlogKind_MEMLOG_TABLE, ml_trace_MemlogTable_fields, &table
        );
    }
    ml_dump_exact_send_words(packet, process);
    ml_dump_exact_send_holdings(packet, process);
    for (uint32_t i = 0; i < process->series_count; i++) {
        send_series(packet, process->id, &process->series[i]);
    }
}

void ml_dump_exact_end(struct ml_dump_packet *packet) {
    ml_trace_MemlogEnd end = {.packets_count = packet->exact_packets_count + 1};

    ml_dump_exact_send_message(
        packet, ml_trace_MemlogKind_MEMLOG_END, ml_trace_MemlogEnd_fields, &end
    );
}

void ml_dump_exact_unrecorded(
    struct ml_dump_packet *packet, const struct memlog_service_unrecorded *one
) {
    struct ml_bytes line = one->command_line;
    struct ml_string argument;
    while (ml_dump_next_argument(&line, &argument)) {
        put_texts(packet, one->id, ml_trace_MemlogTable_arguments_tag, &argument, 1);
    }
    if (!ml_dump_packet_is_empty(packet)) {
        ml_dump_exact_send_table(packet);
    }
}
