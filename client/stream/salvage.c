#include "client/stream/salvage.h"

#include <stdbool.h>
#include <string.h>

#include "ipc/wire/staging.h"

uint64_t ml_salvage_events(const uint8_t *records, size_t count_bytes) {
    struct ml_reader r = ml_reader_over(records, count_bytes);
    struct ml_event_state state = {0};
    struct ml_event event;
    uint64_t events = 0;
    while (ml_reader_left(&r) > 0 && ml_event_decode(&r, &state, &event) == ML_OK) {
        events += ml_staging_counts(event.kind) ? 1 : 0;
    }
    return events;
}

/* Records without a time: their encoding depends only on one another, so they can move together. */
static bool defines(enum ml_event_kind kind) {
    switch (kind) {
    case ML_EVENT_START:
    case ML_EVENT_THREAD:
    case ML_EVENT_MODULE:
    case ML_EVENT_STRING:
    case ML_EVENT_TYPE:
    case ML_EVENT_HEAP:
    case ML_EVENT_NODE:
        return true;
    default:
        return false;
    }
}

static bool is_turn(enum ml_event_kind kind) {
    return kind == ML_EVENT_FORK || kind == ML_EVENT_REAPED || kind == ML_EVENT_END ||
           kind == ML_EVENT_SAMPLING;
}

static void keep_turn(struct ml_salvage *salvage, const struct ml_event *event) {
    if (salvage->timed_count == ML_SALVAGE_TIMED_MAX) {
        salvage->timed_count--;
        memmove(
            &salvage->timed[0], &salvage->timed[1], salvage->timed_count * sizeof(salvage->timed[0])
        );
    }
    salvage->timed[salvage->timed_count++] = *event;
}

void ml_salvage_definitions(
    uint8_t *records, size_t count_bytes, size_t room_bytes, struct ml_salvage *out_salvage
) {
    struct ml_reader r = ml_reader_over(records, count_bytes);
    struct ml_event_state state = {0};
    struct ml_event event;
    bool room = true;
    out_salvage->bytes = 0;
    out_salvage->timed_count = 0;
    out_salvage->state = state;
    while (ml_reader_left(&r) > 0) {
        const size_t at = count_bytes - ml_reader_left(&r);
        if (ml_event_decode(&r, &state, &event) != ML_OK) {
            return; /* not our bytes: other processes have the memfd open */
        }
        const size_t record_bytes = count_bytes - ml_reader_left(&r) - at;
        if (is_turn(event.kind)) {
            keep_turn(out_salvage, &event);
        } else if (defines(event.kind)) {
            room = room && out_salvage->bytes + record_bytes <= room_bytes;
            if (room) {
                memmove(records + out_salvage->bytes, records + at, record_bytes);
                out_salvage->bytes += record_bytes;
                out_salvage->state.node_id = state.node_id;
                out_salvage->state.node_address = state.node_address;
                out_salvage->state.node_module = state.node_module;
            }
        }
    }
}
