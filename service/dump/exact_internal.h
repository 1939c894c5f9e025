/* What service/dump/exact.c and exact_memory.c share. Room: service (private). Context: one thread.
 *
 * One rule: every packet of ours is sealed in exact.c. */
#ifndef MEMLOG_SERVICE_DUMP_EXACT_INTERNAL_H
#define MEMLOG_SERVICE_DUMP_EXACT_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/trace/columns.h"
#include "ipc/trace/trace.pb.h"
#include "service/dump/packet.h"
#include "service/snapshot/snapshot.h"

/* Rows on their way into a callback field. */
struct ml_dump_rows {
    const struct ml_column *columns;
    size_t columns_count;
    const void *first;
    size_t row_bytes;
    size_t count;
    uint8_t *wire; /* the packet's buffer, which is unused while its body is made */
};

#define ML_DUMP_ROWS(table, rows_first, rows_count)                                                \
    {                                                                                              \
        .columns = (table), .columns_count = sizeof(table) / sizeof(table)[0],                     \
        .first = (rows_first), .row_bytes = sizeof(rows_first)[0], .count = (rows_count),          \
    }

/* Rows [at, ...) of all, as many as a packet takes, and their callback (struct ml_dump_rows). */
struct ml_dump_rows
ml_dump_exact_piece(const struct ml_dump_packet *packet, const struct ml_dump_rows *all, size_t at);
bool ml_dump_exact_encode_rows(pb_ostream_t *stream, const pb_field_t *field, void *const *arg);

/* A table's packet begins with the process that it belongs to. */
void ml_dump_exact_begin_table(struct ml_dump_packet *packet, uint32_t process_id);
void ml_dump_exact_send_table(struct ml_dump_packet *packet);

/* A packet whose body is one message. */
void ml_dump_exact_send_message(
    struct ml_dump_packet *packet, uint32_t kind, const pb_msgdesc_t *fields, const void *message
);

/* ---- exact_memory.c: what the kernel told of processes' memory */

void ml_dump_exact_status_head(
    ml_trace_MemlogProcess *head, const struct memlog_service_memory_status *status
);
void ml_dump_exact_memory_head(
    ml_trace_MemlogProcess *head, const struct ml_snapshot_process *process
);

/* First words of live blocks. */
void ml_dump_exact_words_head(
    ml_trace_MemlogProcess *head, const struct ml_snapshot_process *process
);
void ml_dump_exact_send_words(
    struct ml_dump_packet *packet, const struct ml_snapshot_process *process
);

/* The regions of all views, and what is held of them. */
void ml_dump_exact_put_regions(
    struct ml_dump_packet *packet, const struct ml_snapshot_process *process
);
void ml_dump_exact_send_holdings(
    struct ml_dump_packet *packet, const struct ml_snapshot_process *process
);

#endif
