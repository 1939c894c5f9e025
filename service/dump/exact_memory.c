/* The exact packets' mappings: of each process its view, an earlier one, and that of the tree's
 * peak. */
#include <stdlib.h>

#include "ipc/trace/tables.h"
#include "service/dump/exact_internal.h"
#include "service/snapshot/host_view.h"

enum { KIB = 1024 };

static const struct ml_column word_columns[] = {ML_TRACE_WORD_COLUMNS(struct ml_snapshot_word)};
static const struct ml_column holding_columns[] = {
    ML_TRACE_HOLDING_COLUMNS(struct ml_snapshot_holding)};

void ml_dump_exact_status_head(
    ml_trace_MemlogProcess *head, const struct memlog_service_memory_status *status
) {
    head->status_was_read = status->known;
    head->status_anonymous_bytes = status->anonymous_kb * KIB;
    head->status_file_bytes = status->file_kb * KIB;
    head->status_shared_bytes = status->shared_kb * KIB;
    head->status_swapped_bytes = status->swap_kb * KIB;
    head->page_tables_bytes = status->page_tables_kb * KIB;
    head->kernel_stacks_bytes = status->kernel_stacks_kb * KIB;
}

static void put_view(ml_trace_MemlogProcess *head, const struct ml_host_view *view) {
    const struct memlog_service_process_view *seen = &view->message->view;

    head->regions_count = seen->regions.count;
    head->regions_boottime_ns = seen->boottime_ns;
    head->heap_was_laid = view->overlay.heaps != NULL;
    head->heap_is_estimated = view->overlay.is_estimated;
    head->heap_elsewhere_bytes = view->overlay.elsewhere_bytes;
    head->is_unreadable = seen->unreadable;
    head->memory_trouble = ml_dump_text(&seen->trouble);
    head->memory_held_ns = seen->held_ns;
    ml_dump_exact_status_head(head, &seen->status);
}

static ml_trace_MemlogTreeView tree_head(const struct ml_snapshot_process *process) {
    const struct ml_host_view *view = process->tree_view;
    const struct memlog_service_process_view *seen = &view->message->view;
    const struct memlog_service_memory_status *status = &seen->status;

    if (view == process->view) {
        return (ml_trace_MemlogTreeView){.boottime_ns = seen->boottime_ns, .is_the_other = true};
    }
    return (ml_trace_MemlogTreeView){
        .boottime_ns = seen->boottime_ns,
        .regions_count = seen->regions.count,
        .holdings_count = process->tree_holdings_count,
        .heap_was_laid = view->overlay.heaps != NULL,
        .heap_is_estimated = view->overlay.is_estimated,
        .cells_were_laid = process->tree_cells_were_laid,
        .heap_elsewhere_bytes = view->overlay.elsewhere_bytes,
        .status_was_read = status->known,
        .status_anonymous_bytes = status->anonymous_kb * KIB,
        .status_file_bytes = status->file_kb * KIB,
        .status_shared_bytes = status->shared_kb * KIB,
        .status_swapped_bytes = status->swap_kb * KIB,
        .page_tables_bytes = status->page_tables_kb * KIB,
        .kernel_stacks_bytes = status->kernel_stacks_kb * KIB,
        .is_unreadable = seen->unreadable,
        .memory_trouble = ml_dump_text(&seen->trouble),
        .memory_held_ns = seen->held_ns,
    };
}

void ml_dump_exact_memory_head(
    ml_trace_MemlogProcess *head, const struct ml_snapshot_process *process
) {
    if (process->view != NULL) {
        put_view(head, process->view);
        head->holdings_count = process->holdings_count;
    }
    if (process->earlier_view != NULL) {
        head->earlier_boottime_ns = process->earlier_view->message->view.boottime_ns;
        head->earlier_heap_was_laid = process->earlier_view->overlay.heaps != NULL;
    }
    if (process->tree_view != NULL) {
        head->tree_view = tree_head(process);
    }
}

static void put_regions(
    struct ml_dump_packet *packet,
    uint32_t process_id,
    uint32_t tag,
    const struct ml_host_view *host_view
) {
    static const struct ml_region_heap no_heap = {0};
    if (host_view == NULL) {
        return;
    }
    const struct ml_overlay *overlay = &host_view->overlay;
    const struct memlog_service_process_view *view = &host_view->message->view;
    for (uint32_t i = 0; i < view->regions.count; i++) {
        const struct memlog_service_memory_region *region = &view->regions.items[i];
        const struct ml_region_heap *heap = overlay->heaps != NULL ? &overlay->heaps[i] : &no_heap;
        ml_trace_MemlogRegion message = {
            .start = region->start,
            .end = region->end,
            .permissions = region->permissions,
            .offset = region->offset,
            .device = region->device,
            .inode = region->inode,
            .name = ml_dump_text(&region->name),
            .size_kb = region->size_kb,
            .resident_kb = region->resident_kb,
            .proportional_kb = region->proportional_kb,
            .private_clean_kb = region->private_clean_kb,
            .private_dirty_kb = region->private_dirty_kb,
            .shared_clean_kb = region->shared_clean_kb,
            .shared_dirty_kb = region->shared_dirty_kb,
            .anonymous_kb = region->anonymous_kb,
            .swap_kb = region->swap_kb,
            .heap_blocks = heap->blocks,
            .heap_requested_bytes = heap->requested_bytes,
            .heap_private_bytes = heap->bytes.private,
            .heap_shared_bytes = heap->bytes.shared,
            .heap_pages_private_bytes = heap->pages.private,
            .heap_pages_shared_bytes = heap->pages.shared,
        };
        ml_dump_exact_begin_table(packet, process_id);
        while (!ml_dump_packet_put(packet, tag, ml_trace_MemlogRegion_fields, &message)) {
            ml_dump_exact_send_table(packet);
            ml_dump_exact_begin_table(packet, process_id);
        }
    }
}

void ml_dump_exact_put_regions(
    struct ml_dump_packet *packet, const struct ml_snapshot_process *process
) {
    const uint32_t id = process->id;
    const struct ml_host_view *tree =
        process->tree_view != process->view ? process->tree_view : NULL;

    put_regions(packet, id, ml_trace_MemlogTable_regions_tag, process->view);
    put_regions(packet, id, ml_trace_MemlogTable_earlier_regions_tag, process->earlier_view);
    put_regions(packet, id, ml_trace_MemlogTable_tree_regions_tag, tree);
}

/* In as many tables as it takes; `tag` is of the field. */
static void send_holdings(
    struct ml_dump_packet *packet,
    uint32_t process_id,
    uint32_t tag,
    const struct ml_snapshot_holding *holdings,
    uint32_t count
) {
    const struct ml_dump_rows all = ML_DUMP_ROWS(holding_columns, holdings, count);

    for (size_t at = 0; at < all.count; at += ML_COLUMNS_ROWS_MAX) {
        struct ml_dump_rows piece = ml_dump_exact_piece(packet, &all, at);
        const pb_callback_t rows = {.funcs.encode = ml_dump_exact_encode_rows, .arg = &piece};
        ml_trace_MemlogTable table = {.process_id = process_id};
        *(tag == ml_trace_MemlogTable_holdings_tag           ? &table.holdings
          : tag == ml_trace_MemlogTable_earlier_holdings_tag ? &table.earlier_holdings
                                                             : &table.tree_holdings) = rows;
        ml_dump_exact_send_message(
            packet, ml_trace_MemlogKind_MEMLOG_TABLE, ml_trace_MemlogTable_fields, &table
        );
    }
}

/* Without stacks and names: the earlier ones may be gone. */
static void send_earlier_holdings(
    struct ml_dump_packet *packet, uint32_t process_id, const struct ml_holdings *holdings
) {
    struct ml_snapshot_holding *copies = calloc((size_t)holdings->count + 1, sizeof(*copies));
    if (copies == NULL) {
        ml_dump_packet_fail(packet, ML_ENV_MEMORY);
        return;
    }
    for (uint32_t i = 0; i < holdings->count; i++) {
        const struct ml_holding *holding = &holdings->items[i];
        copies[i] = (struct ml_snapshot_holding
        ){.region = holding->region,
          .kind = holding->kind,
          .mapped_bytes = holding->mapped_bytes,
          .private_bytes = holding->bytes.private,
          .shared_bytes = holding->bytes.shared};
    }
    send_holdings(
        packet, process_id, ml_trace_MemlogTable_earlier_holdings_tag, copies, holdings->count
    );
    free(copies);
}

void ml_dump_exact_send_holdings(
    struct ml_dump_packet *packet, const struct ml_snapshot_process *process
) {
    send_holdings(
        packet,
        process->id,
        ml_trace_MemlogTable_holdings_tag,
        process->holdings,
        process->holdings_count
    );
    if (process->earlier_view != NULL) {
        send_earlier_holdings(packet, process->id, &process->earlier_view->holdings);
    }
    send_holdings(
        packet,
        process->id,
        ml_trace_MemlogTable_tree_holdings_tag,
        process->tree_holdings,
        process->tree_holdings_count
    );
}

void ml_dump_exact_words_head(
    ml_trace_MemlogProcess *head, const struct ml_snapshot_process *process
) {
    head->words_were_read = process->words_facts.were_read;
    head->words_are_cut = process->words_facts.are_cut;
    head->words_read_bytes = process->words_facts.read_bytes;
    head->words_count = process->words_count;
}

void ml_dump_exact_send_words(
    struct ml_dump_packet *packet, const struct ml_snapshot_process *process
) {
    const struct ml_dump_rows words =
        ML_DUMP_ROWS(word_columns, process->words, process->words_count);

    for (size_t at = 0; at < words.count; at += ML_COLUMNS_ROWS_MAX) {
        struct ml_dump_rows piece = ml_dump_exact_piece(packet, &words, at);
        const ml_trace_MemlogTable table = {
            .process_id = process->id,
            .words = {.funcs.encode = ml_dump_exact_encode_rows, .arg = &piece}};
        ml_dump_exact_send_message(
            packet, ml_trace_MemlogKind_MEMLOG_TABLE, ml_trace_MemlogTable_fields, &table
        );
    }
}
