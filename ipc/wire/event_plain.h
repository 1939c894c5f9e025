/* The records that nearly all of a stream is made of, decoded many at a time. Room: ipc (:wire).
 * Context: any.
 *
 * One rule: a record that is not plain is left for ml_event_decode(), which alone reports errors.
 * So both decoders accept the same streams; tests/ipc/wire/event_plain_test.c compares them.
 *
 * Plain are: an ALLOC of less than 4 GiB without TYPED and WEIGHTED, and a FREE or RESIZE without
 * HEAP. All their numbers have at most eight bytes, and they are far enough from the end
 * (ML_EVENT_PLAIN_MARGIN_BYTES). */
#ifndef MEMLOG_IPC_WIRE_EVENT_PLAIN_H
#define MEMLOG_IPC_WIRE_EVENT_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/wire/event.h"

enum {
    /* op, four numbers of at most nine bytes, and what a load of four bytes reads besides. */
    ML_EVENT_PLAIN_MARGIN_BYTES = 40
};

struct ml_event_plain {
    uint64_t time;
    uint64_t address;
    uint32_t size_bytes; /* of an ALLOC; else 0 */
    uint32_t node : 24;  /* of an ALLOC; else 0 */
    uint32_t kind : 8;   /* enum ml_event_kind: ALLOC FREE RESIZE */
};

/* Decode plain records up to the first one that is not, at most `capacity`. Reader and state stand
 * behind the last one taken. Returns their number; *out_size_bytes is the sum of their sizes. */
size_t ml_event_decode_plain(
    struct ml_reader *r,
    struct ml_event_state *state,
    struct ml_event_plain *out_events,
    size_t capacity,
    uint64_t *out_size_bytes
);

/* Decode one plain NODE: an address of the same module as the one before. False: the next record is
 * not one, and nothing has moved. */
bool ml_event_decode_plain_node(
    struct ml_reader *r, struct ml_event_state *state, struct ml_event_node *out_node
);

#endif
