/* Which columns the tables of a dump have. Room: ipc (:trace). Context: any.
 *
 * One rule: this is the only list. Writer (service) and reader (tools) apply it to structs of their
 * own, whose members have the same names, so both have the same columns. */
#ifndef MEMLOG_IPC_TRACE_TABLES_H
#define MEMLOG_IPC_TRACE_TABLES_H

#include "ipc/trace/columns.h"
#include "ipc/trace/trace.pb.h"

#define ML_TRACE_NODE(type_, name_, member_, delta_)                                               \
    ML_COLUMN(ml_trace_MemlogNodes_##name_##_tag, type_, member_, delta_)
#define ML_TRACE_CELL(type_, name_, member_, delta_)                                               \
    ML_COLUMN(ml_trace_MemlogCells_##name_##_tag, type_, member_, delta_)
#define ML_TRACE_HOLDING(type_, name_, member_, delta_)                                            \
    ML_COLUMN(ml_trace_MemlogHoldings_##name_##_tag, type_, member_, delta_)
#define ML_TRACE_HEAP(type_, name_, member_)                                                       \
    ML_COLUMN(ml_trace_MemlogHeaps_##name_##_tag, type_, member_, false)
#define ML_TRACE_POINT(type_, name_, member_)                                                      \
    ML_COLUMN(ml_trace_MemlogPoints_##name_##_delta_tag, type_, member_, true)

/* MemlogNodes: initializers of struct ml_column over rows of `type_`. */
#define ML_TRACE_NODE_COLUMNS(type_)                                                               \
    ML_TRACE_NODE(type_, id_delta, id, true), ML_TRACE_NODE(type_, parent_delta, parent, true),    \
        ML_TRACE_NODE(type_, frame, frame, false),                                                 \
        ML_TRACE_NODE(type_, module_delta, module, true),                                          \
        ML_TRACE_NODE(type_, address_delta, address, true),                                        \
        ML_TRACE_NODE(type_, string, string, false),

/* MemlogCells, likewise. */
#define ML_TRACE_CELL_COLUMNS(type_)                                                               \
    ML_TRACE_CELL(type_, node_delta, node, true), ML_TRACE_CELL(type_, heap, heap, false),         \
        ML_TRACE_CELL(type_, type, type, false),                                                   \
        ML_TRACE_CELL(type_, size_class, size_class, false),                                       \
        ML_TRACE_CELL(type_, live_bytes, own.live_bytes, false),                                   \
        ML_TRACE_CELL(type_, live_blocks, own.live_blocks, false),                                 \
        ML_TRACE_CELL(type_, peak_bytes, own.peak_bytes, false),                                   \
        ML_TRACE_CELL(type_, peak_blocks, own.peak_blocks, false),                                 \
        ML_TRACE_CELL(type_, total_bytes, own.total_bytes, false),                                 \
        ML_TRACE_CELL(type_, total_blocks, own.total_blocks, false),                               \
        ML_TRACE_CELL(type_, tree_peak_bytes, tree_peak_bytes, false),                             \
        ML_TRACE_CELL(type_, tree_peak_blocks, tree_peak_blocks, false),                           \
        ML_TRACE_CELL(type_, temporary_blocks, temporary_blocks, false),                           \
        ML_TRACE_CELL(type_, live_bytes_error, own_errors.live_bytes, false),                      \
        ML_TRACE_CELL(type_, live_blocks_error, own_errors.live_blocks, false),                    \
        ML_TRACE_CELL(type_, peak_bytes_error, own_errors.peak_bytes, false),                      \
        ML_TRACE_CELL(type_, peak_blocks_error, own_errors.peak_blocks, false),                    \
        ML_TRACE_CELL(type_, total_bytes_error, own_errors.total_bytes, false),                    \
        ML_TRACE_CELL(type_, total_blocks_error, own_errors.total_blocks, false),                  \
        ML_TRACE_CELL(type_, tree_peak_bytes_error, tree_peak_bytes_error, false),                 \
        ML_TRACE_CELL(type_, tree_peak_blocks_error, tree_peak_blocks_error, false),               \
        ML_TRACE_CELL(type_, resident_private_bytes, resident_private_bytes, false),               \
        ML_TRACE_CELL(type_, resident_shared_bytes, resident_shared_bytes, false),                 \
        ML_TRACE_CELL(type_, alone_bytes, alone_bytes, false),                                     \
        ML_TRACE_CELL(type_, waste_bytes, waste_bytes, false),                                     \
        ML_TRACE_CELL(type_, tree_private_bytes, tree_private_bytes, false),                       \
        ML_TRACE_CELL(type_, tree_shared_bytes, tree_shared_bytes, false),

/* MemlogHoldings, likewise. */
#define ML_TRACE_HOLDING_COLUMNS(type_)                                                            \
    ML_TRACE_HOLDING(type_, region_delta, region, true),                                           \
        ML_TRACE_HOLDING(type_, kind, kind, false),                                                \
        ML_TRACE_HOLDING(type_, node_delta, node, true),                                           \
        ML_TRACE_HOLDING(type_, string, string, false),                                            \
        ML_TRACE_HOLDING(type_, mapped_bytes, mapped_bytes, false),                                \
        ML_TRACE_HOLDING(type_, private_bytes, private_bytes, false),                              \
        ML_TRACE_HOLDING(type_, shared_bytes, shared_bytes, false),

/* MemlogHeaps, likewise. */
#define ML_TRACE_HEAP_COLUMNS(type_)                                                               \
    ML_TRACE_HEAP(type_, id, id), ML_TRACE_HEAP(type_, string, string),                            \
        ML_TRACE_HEAP(type_, live_bytes, own.live_bytes),                                          \
        ML_TRACE_HEAP(type_, live_blocks, own.live_blocks),                                        \
        ML_TRACE_HEAP(type_, peak_bytes, own.peak_bytes),                                          \
        ML_TRACE_HEAP(type_, peak_blocks, own.peak_blocks),                                        \
        ML_TRACE_HEAP(type_, total_bytes, own.total_bytes),                                        \
        ML_TRACE_HEAP(type_, total_blocks, own.total_blocks),                                      \
        ML_TRACE_HEAP(type_, unknown_frees, unknown_frees),

/* MemlogTypes, likewise. */
#define ML_TRACE_TYPE_COLUMNS(type_)                                                               \
    ML_COLUMN(ml_trace_MemlogTypes_id_delta_tag, type_, id, true),                                 \
        ML_COLUMN(ml_trace_MemlogTypes_string_tag, type_, string, false),

/* MemlogWords, likewise. */
#define ML_TRACE_WORD(type_, name_, member_, delta_)                                               \
    ML_COLUMN(ml_trace_MemlogWords_##name_##_tag, type_, member_, delta_)
#define ML_TRACE_WORD_COLUMNS(type_)                                                               \
    ML_TRACE_WORD(type_, node_delta, node, true), ML_TRACE_WORD(type_, address_delta, word, true), \
        ML_TRACE_WORD(type_, live_bytes, live_bytes, false),                                       \
        ML_TRACE_WORD(type_, live_blocks, live_blocks, false),                                     \
        ML_TRACE_WORD(type_, live_bytes_error, live_bytes_error, false),                           \
        ML_TRACE_WORD(type_, live_blocks_error, live_blocks_error, false),

/* MemlogPoints, likewise. */
#define ML_TRACE_POINT_COLUMNS(type_)                                                              \
    ML_TRACE_POINT(type_, end_ms, end_ms), ML_TRACE_POINT(type_, least_bytes, least_bytes),        \
        ML_TRACE_POINT(type_, most_bytes, most_bytes),                                             \
        ML_TRACE_POINT(type_, last_bytes, last_bytes),                                             \
        ML_TRACE_POINT(type_, total_bytes, total_bytes),                                           \
        ML_TRACE_POINT(type_, total_blocks, total_blocks),

#endif
