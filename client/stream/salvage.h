/* Keeps the records of a dropped chunk that later events need: definitions, forks, ends. Room:
 * client (private). Context: the malloc path, when the pipe has been full for too long.
 *
 * One rule: chunk and next chunk share a slot, so kept records move towards its start. */
#ifndef MEMLOG_CLIENT_STREAM_SALVAGE_H
#define MEMLOG_CLIENT_STREAM_SALVAGE_H

#include <stddef.h>
#include <stdint.h>

#include "ipc/wire/event.h"

enum { ML_SALVAGE_TIMED_MAX = 4 };

struct ml_salvage {
    size_t bytes;                /* kept, as records without a time */
    struct ml_event_state state; /* of the encoder behind them */
    uint32_t timed_count; /* kept, to be recorded anew with a stamp of now; beyond the limit */
    struct ml_event timed[ML_SALVAGE_TIMED_MAX]; /* the latest */
};

/* The events in a chunk (ml_staging_counts). */
uint64_t ml_salvage_events(const uint8_t *records, size_t count_bytes);

/* Move the records [0, count_bytes) that define something to the front, at most room_bytes of them:
 * as many as come first. */
void ml_salvage_definitions(
    uint8_t *records, size_t count_bytes, size_t room_bytes, struct ml_salvage *out_salvage
);

#endif
