/* Walks through the fields of a protobuf message that lies in memory. Room: tools. Context: one
 * thread.
 *
 * One rule: the message is anybody's. Nothing is read behind its end, and what is no message ends
 * the walk as a broken one. */
#ifndef MEMLOG_TOOLS_ANALYZER_FLEET_PROTO_H
#define MEMLOG_TOOLS_ANALYZER_FLEET_PROTO_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/analyzer/fleet/form.h"

struct ml_fleet_field {
    uint32_t number;
    bool is_bytes;               /* else a number */
    uint64_t value;              /* of a number: varint, fixed64 or fixed32 */
    struct ml_fleet_piece bytes; /* of bytes, a text, a message or packed numbers */
};

/* Take the next field from the front of `rest`. False: there is none, or it is broken; then `rest`
 * is not empty. */
bool ml_fleet_field(struct ml_fleet_piece *rest, struct ml_fleet_field *out_field);

/* Take the next number of packed ones. */
bool ml_fleet_packed(struct ml_fleet_piece *rest, uint64_t *out_number);

/* The numbers of a repeated field, whether they are packed or single. False: it is broken. */
bool ml_fleet_numbers(
    const struct ml_fleet_field *field, bool (*take)(void *context, uint64_t number), void *context
);

#endif
