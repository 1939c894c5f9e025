#include "tools/analyzer/model/trace_table.h"

#include <stdlib.h>
#include <string.h>

#include "ipc/trace/tables.h"
#include "ipc/wire/event.h"

static const struct ml_column node_columns[] = {ML_TRACE_NODE_COLUMNS(struct ml_profile_node)};
static const struct ml_column cell_columns[] = {ML_TRACE_CELL_COLUMNS(struct ml_profile_cell)};
static const struct ml_column heap_columns[] = {ML_TRACE_HEAP_COLUMNS(struct ml_profile_heap)};
static const struct ml_column type_columns[] = {ML_TRACE_TYPE_COLUMNS(struct ml_profile_type)};
static const struct ml_column word_columns[] = {ML_TRACE_WORD_COLUMNS(struct ml_profile_word)};
static const struct ml_column holding_columns[] = {
    ML_TRACE_HOLDING_COLUMNS(struct ml_profile_region_holding)};

/* memlog.service.ProcessView's limit. */
enum { ML_REGIONS_MAX = 65536 };

/* Every mapping of a process may be held in several parts. */
enum { ML_HOLDINGS_MAX = 16 * ML_REGIONS_MAX };

/* Rows of one table of one process; everything in it is of a fixed limit. */
struct table {
    struct ml_profile *profile;
    struct ml_profile_process *process;
    const struct ml_profile_process *names; /* whose nodes and strings are meant; NULL: its own */
    enum ml_status status;
};

bool ml_text_read(pb_istream_t *stream, struct ml_text_target *target) {
    size_t count = stream->bytes_left;
    char *bytes = ml_arena_text(target->arena, stream->state, count);

    if (!bytes || !pb_read(stream, NULL, count)) {
        return false;
    }
    *target->out_text = (struct ml_profile_text){.bytes = bytes, .count_bytes = count};
    return true;
}

bool ml_text_decode(pb_istream_t *stream, const pb_field_t *field, void **target) {
    (void)field;
    return ml_text_read(stream, *target);
}

static bool fail(struct table *table, enum ml_status status) {
    if (table->status == ML_OK) {
        table->status = status;
    }
    return false;
}

/* The rows of a piece, behind what is there: *count of them at `rows`, which has room. */
static bool read_rows(
    struct table *table,
    pb_istream_t *stream,
    const struct ml_column *columns,
    size_t columns_count,
    void *rows,
    size_t row_bytes,
    size_t count
) {
    memset(rows, 0, count * row_bytes);
    return ml_columns_decode(stream, columns, columns_count, rows, row_bytes, count) ||
           fail(table, ML_PEER_FORM);
}

#define READ_ROWS(table, stream, columns, rows, count)                                             \
    read_rows(                                                                                     \
        table, stream, columns, sizeof(columns) / sizeof(columns)[0], rows, sizeof *(rows), count  \
    )

static bool read_text_item(
    pb_istream_t *stream,
    struct table *table,
    struct ml_profile_text **texts,
    size_t *count,
    size_t *capacity
) {
    struct ml_text_target target = {.arena = &table->profile->arena};

    if (!ML_GROW(*texts, *capacity, *count + 1)) {
        return fail(table, ML_ENV_MEMORY);
    }
    target.out_text = &(*texts)[*count];
    if (!ml_text_read(stream, &target)) {
        return fail(table, ML_ENV_MEMORY);
    }
    (*count)++;
    return true;
}

static bool decode_argument(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    struct table *table = *arg;
    struct ml_profile_process *process = table->process;

    (void)field;
    return read_text_item(
        stream, table, &process->arguments, &process->arguments_count, &process->arguments_capacity
    );
}

static bool decode_string(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    struct table *table = *arg;
    struct ml_profile_process *process = table->process;

    (void)field;
    return read_text_item(
        stream, table, &process->strings, &process->strings_count, &process->strings_capacity
    );
}

static bool decode_module(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    struct table *table = *arg;
    struct ml_profile_process *process = table->process;
    struct ml_profile_module module = {.build_id = {.bytes = ""}, .path = {.bytes = ""}};
    ml_trace_MemlogModule message = {
        .build_id = ML_TEXT_INTO(&table->profile->arena, &module.build_id),
        .path = ML_TEXT_INTO(&table->profile->arena, &module.path),
    };

    (void)field;
    if (!pb_decode(stream, ml_trace_MemlogModule_fields, &message)) {
        return fail(table, ML_PEER_FORM);
    }
    if (process->modules_count >= ML_MODULES_MAX) {
        return fail(table, ML_PEER_LIMIT);
    }
    module.id = message.id;
    module.start = message.start;
    module.end = message.end;
    module.bias = message.bias;
    module.code_address = message.code_address;
    module.code_offset = message.code_offset;
    if (!ML_GROW(process->modules, process->modules_capacity, process->modules_count + 1)) {
        return fail(table, ML_ENV_MEMORY);
    }
    process->modules[process->modules_count++] = module;
    return true;
}

/* Mappings rise and do not overlap. Addresses of 0 are those of the mappings without room. */
static bool
region_check(const struct ml_profile_process *process, const struct ml_profile_region *region) {
    const size_t count = process->regions_count;
    return (region->start == 0 && region->end == 0) ||
           (region->end > region->start &&
            (count == 0 || process->regions[count - 1].end <= region->start));
}

static bool decode_region(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    struct table *table = *arg;
    struct ml_profile_process *process = table->process;
    struct ml_profile_region region = {.name = {.bytes = ""}};
    ml_trace_MemlogRegion message = {.name = ML_TEXT_INTO(&table->profile->arena, &region.name)};

    (void)field;
    if (!pb_decode(stream, ml_trace_MemlogRegion_fields, &message)) {
        return fail(table, ML_PEER_FORM);
    }
    if (process->regions_count >= ML_REGIONS_MAX) {
        return fail(table, ML_PEER_LIMIT);
    }
#define TAKE(field_) region.field_ = message.field_
    TAKE(start);
    TAKE(end);
    TAKE(permissions);
    TAKE(offset);
    TAKE(device);
    TAKE(inode);
    TAKE(size_kb);
    TAKE(resident_kb);
    TAKE(proportional_kb);
    TAKE(private_clean_kb);
    TAKE(private_dirty_kb);
    TAKE(shared_clean_kb);
    TAKE(shared_dirty_kb);
    TAKE(anonymous_kb);
    TAKE(swap_kb);
    TAKE(heap_blocks);
    TAKE(heap_requested_bytes);
    TAKE(heap_private_bytes);
    TAKE(heap_shared_bytes);
    TAKE(heap_pages_private_bytes);
    TAKE(heap_pages_shared_bytes);
#undef TAKE
    if (!region_check(process, &region)) {
        return fail(table, ML_PEER_RANGE);
    }
    if (!ML_GROW(process->regions, process->regions_capacity, process->regions_count + 1)) {
        return fail(table, ML_ENV_MEMORY);
    }
    process->regions[process->regions_count++] = region;
    return true;
}

/* Check a node against the tables. False: the piece is inconsistent. A reference to something
 * missing is removed. */
static bool node_check(struct table *table, size_t at) {
    struct ml_profile_process *process = table->process;
    struct ml_profile_node *node = &process->nodes[at];

    if (node->id == 0 || (at > 0 && node->id <= process->nodes[at - 1].id) ||
        node->parent >= node->id || node->frame >= ML_FRAME_KIND_COUNT) {
        return false;
    }
    if (node->parent != 0 && ml_profile_node_at(process, node->parent) == SIZE_MAX) {
        node->parent = 0;
        table->profile->damaged = true;
    }
    if (node->module != 0 && ml_profile_module_at(process, node->module) == SIZE_MAX) {
        node->module = 0;
        table->profile->damaged = true;
    }
    if (ml_frame_has_string(node->frame) && node->string >= process->strings_count) {
        node->frame = ML_FRAME_BROKEN;
        node->string = 0;
        table->profile->damaged = true;
    }
    return true;
}

static bool decode_nodes(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    struct table *table = *arg;
    struct ml_profile_process *process = table->process;
    size_t count = 0;
    size_t first = process->nodes_count;

    (void)field;
    if (!ml_columns_peek_count(stream, &count)) {
        return fail(table, ML_PEER_FORM);
    }
    if (first + count > ML_NODES_MAX) {
        return fail(table, ML_PEER_LIMIT);
    }
    if (!ML_GROW(process->nodes, process->nodes_capacity, first + count)) {
        return fail(table, ML_ENV_MEMORY);
    }
    if (!READ_ROWS(table, stream, node_columns, &process->nodes[first], count)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (!node_check(table, first + i)) {
            process->nodes_count = first;
            return fail(table, ML_PEER_RANGE);
        }
        process->nodes_count++;
    }
    return true;
}

static void take_pages(struct ml_profile_process *process, struct ml_profile_cell *cell) {
    struct ml_profile_pages *sum = &process->totals.pages;

    cell->own.pages.resident_bytes = cell->resident_private_bytes + cell->resident_shared_bytes;
    if (ml_profile_process_knows_waste(process)) {
        cell->own.pages.alone_bytes = cell->alone_bytes;
        cell->own.pages.waste_bytes = cell->waste_bytes;
    }
    sum->resident_bytes += cell->own.pages.resident_bytes;
    sum->alone_bytes += cell->own.pages.alone_bytes;
    sum->waste_bytes += cell->own.pages.waste_bytes;
}

static bool decode_cells(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    struct table *table = *arg;
    struct ml_profile_process *process = table->process;
    size_t count = 0;
    size_t first = process->cells_count;

    (void)field;
    if (!ml_columns_peek_count(stream, &count)) {
        return fail(table, ML_PEER_FORM);
    }
    if (!ML_GROW(process->cells, process->cells_capacity, first + count)) {
        return fail(table, ML_ENV_MEMORY);
    }
    if (!READ_ROWS(table, stream, cell_columns, &process->cells[first], count)) {
        return false;
    }
    for (size_t i = first; i < first + count; i++) {
        struct ml_profile_cell *cell = &process->cells[i];
        if (cell->node != 0 && ml_profile_node_at(process, cell->node) == SIZE_MAX) {
            cell->node = 0;
            table->profile->damaged = true;
        }
        if (process->cells_were_laid) {
            take_pages(process, cell);
        }
    }
    process->cells_count += count;
    return true;
}

/* A name that is missing is removed. */
static void check_name(struct table *table, uint32_t *string) {
    if (*string >= table->process->strings_count) {
        *string = 0;
        table->profile->damaged = true;
    }
}

/* Ids rise, and there are no more than the stream can have. */
static bool decode_heaps(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    struct table *table = *arg;
    struct ml_profile_process *process = table->process;
    const size_t first = process->heaps_count;
    size_t count = 0;

    (void)field;
    if (!ml_columns_peek_count(stream, &count) || first + count > ML_HEAPS_MAX) {
        return fail(table, ML_PEER_FORM);
    }
    if (!ML_GROW(process->heaps, process->heaps_capacity, first + count)) {
        return fail(table, ML_ENV_MEMORY);
    }
    if (!READ_ROWS(table, stream, heap_columns, &process->heaps[first], count)) {
        return false;
    }
    for (size_t i = first; i < first + count; i++) {
        if (process->heaps[i].id <= (i > 0 ? process->heaps[i - 1].id : 0)) {
            return fail(table, ML_PEER_FORM);
        }
        check_name(table, &process->heaps[i].string);
    }
    process->heaps_count += count;
    return true;
}

static bool decode_types(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    struct table *table = *arg;
    struct ml_profile_process *process = table->process;
    const size_t first = process->types_count;
    size_t count = 0;

    (void)field;
    if (!ml_columns_peek_count(stream, &count) || first + count > ML_TYPES_MAX) {
        return fail(table, ML_PEER_FORM);
    }
    if (!ML_GROW(process->types, process->types_capacity, first + count)) {
        return fail(table, ML_ENV_MEMORY);
    }
    if (!READ_ROWS(table, stream, type_columns, &process->types[first], count)) {
        return false;
    }
    for (size_t i = first; i < first + count; i++) {
        if (process->types[i].id <= (i > 0 ? process->types[i - 1].id : 0)) {
            return fail(table, ML_PEER_FORM);
        }
        process->types[i].known = ML_TYPE_REGISTERED;
        check_name(table, &process->types[i].string);
    }
    process->types_count += count;
    return true;
}

static bool decode_words(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    struct table *table = *arg;
    struct ml_profile_process *process = table->process;
    const size_t first = process->words_count;
    size_t count = 0;

    (void)field;
    if (!ml_columns_peek_count(stream, &count)) {
        return fail(table, ML_PEER_FORM);
    }
    if (!ML_GROW(process->words, process->words_capacity, first + count)) {
        return fail(table, ML_ENV_MEMORY);
    }
    if (!READ_ROWS(table, stream, word_columns, &process->words[first], count)) {
        return false;
    }
    for (size_t i = first; i < first + count; i++) {
        if (process->words[i].node != 0 &&
            ml_profile_node_at(process, process->words[i].node) == SIZE_MAX) {
            process->words[i].node = 0;
            table->profile->damaged = true;
        }
    }
    process->words_count += count;
    return true;
}

/* False: an unknown owner, or no such region. A reference to something missing is removed. */
static bool holding_check(struct table *table, struct ml_profile_region_holding *holding) {
    const struct ml_profile_process *process = table->process;
    const struct ml_profile_process *names = table->names ? table->names : process;

    if (holding->kind >= ML_HOLDING_KINDS || holding->region >= process->regions_count) {
        return false;
    }
    if (holding->node != 0 && ml_profile_node_at(names, holding->node) == SIZE_MAX) {
        holding->node = 0;
        table->profile->damaged = true;
    }
    if (holding->string != 0 && holding->string >= names->strings_count) {
        holding->string = 0;
        table->profile->damaged = true;
    }
    return true;
}

static bool decode_holdings(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    struct table *table = *arg;
    struct ml_profile_process *process = table->process;
    const size_t first = process->holdings_count;
    size_t count = 0;

    (void)field;
    if (!ml_columns_peek_count(stream, &count)) {
        return fail(table, ML_PEER_FORM);
    }
    if (first + count > ML_HOLDINGS_MAX) {
        return fail(table, ML_PEER_LIMIT);
    }
    if (!ML_GROW(process->holdings, process->holdings_capacity, first + count)) {
        return fail(table, ML_ENV_MEMORY);
    }
    if (!READ_ROWS(table, stream, holding_columns, &process->holdings[first], count)) {
        return false;
    }
    for (size_t i = first; i < first + count; i++) {
        if (!holding_check(table, &process->holdings[i])) {
            process->holdings_count = first;
            return fail(table, ML_PEER_RANGE);
        }
        process->holdings_count++;
    }
    return true;
}

/* The process's mappings at an earlier reading; made when the first of them comes. */
static struct ml_profile_process *earlier_of(struct ml_profile_process *process) {
    if (!process->earlier) {
        process->earlier = calloc(1, sizeof *process->earlier);
    }
    if (process->earlier) {
        process->earlier->regions_boottime_ns = process->earlier_boottime_ns;
        process->earlier->heap_was_laid = process->earlier_heap_was_laid;
    }
    return process->earlier;
}

/* Into the tables of another reading of the process. NULL: there is no memory for it. */
static bool decode_other(
    pb_istream_t *stream,
    const pb_field_t *field,
    struct table *table,
    struct ml_profile_process *other,
    bool (*decode)(pb_istream_t *stream, const pb_field_t *field, void **arg)
) {
    struct table into = {.profile = table->profile, .process = other, .names = table->process};
    void *arg = &into;

    if (!other) {
        return fail(table, ML_ENV_MEMORY);
    }
    return decode(stream, field, &arg) || fail(table, into.status);
}

static bool decode_earlier_region(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    struct table *table = *arg;
    return decode_other(stream, field, table, earlier_of(table->process), decode_region);
}

static bool decode_earlier_holdings(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    struct table *table = *arg;
    return decode_other(stream, field, table, earlier_of(table->process), decode_holdings);
}

/* Made with the process's head, if that announces it. */
static bool decode_tree_region(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    struct table *table = *arg;
    struct ml_profile_process *then = table->process->at_tree_peak;
    return then ? decode_other(stream, field, table, then, decode_region)
                : fail(table, ML_PEER_REFERENCE);
}

static bool decode_tree_holdings(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    struct table *table = *arg;
    struct ml_profile_process *then = table->process->at_tree_peak;
    return then ? decode_other(stream, field, table, then, decode_holdings)
                : fail(table, ML_PEER_REFERENCE);
}

/* The process_id is the first field of the packet. */
static struct ml_profile_process *owner_of(struct ml_profile *profile, pb_istream_t *stream) {
    pb_istream_t copy = *stream;
    pb_wire_type_t wire_type = PB_WT_VARINT;
    uint32_t tag = 0;
    uint32_t id = 0;
    bool eof = false;

    if (!pb_decode_tag(&copy, &wire_type, &tag, &eof) ||
        tag != ml_trace_MemlogTable_process_id_tag || wire_type != PB_WT_VARINT ||
        !pb_decode_varint32(&copy, &id)) {
        return NULL;
    }
    return ml_profile_find(profile, id);
}

enum ml_status ml_trace_decode_table(struct ml_profile *profile, pb_istream_t *stream) {
    struct table table = {.profile = profile, .process = owner_of(profile, stream)};
    ml_trace_MemlogTable message = {
        .arguments = {.funcs.decode = decode_argument, .arg = &table},
        .modules = {.funcs.decode = decode_module, .arg = &table},
        .strings = {.funcs.decode = decode_string, .arg = &table},
        .regions = {.funcs.decode = decode_region, .arg = &table},
        .nodes = {.funcs.decode = decode_nodes, .arg = &table},
        .cells = {.funcs.decode = decode_cells, .arg = &table},
        .heaps = {.funcs.decode = decode_heaps, .arg = &table},
        .types = {.funcs.decode = decode_types, .arg = &table},
        .words = {.funcs.decode = decode_words, .arg = &table},
        .holdings = {.funcs.decode = decode_holdings, .arg = &table},
        .earlier_regions = {.funcs.decode = decode_earlier_region, .arg = &table},
        .earlier_holdings = {.funcs.decode = decode_earlier_holdings, .arg = &table},
        .tree_regions = {.funcs.decode = decode_tree_region, .arg = &table},
        .tree_holdings = {.funcs.decode = decode_tree_holdings, .arg = &table},
    };

    if (!table.process) {
        return ML_PEER_REFERENCE;
    }
    if (!pb_decode(stream, ml_trace_MemlogTable_fields, &message)) {
        return table.status != ML_OK ? table.status : ML_PEER_FORM;
    }
    return ML_OK;
}
