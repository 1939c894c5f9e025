/* Records of the event stream, and frame headers. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/wire/event.h"
#include "tests/fuzz/fuzz.h"

static bool same_state(const struct ml_event_state *a, const struct ml_event_state *b) {
    return a->time == b->time && a->address == b->address && a->node == b->node &&
           a->node_id == b->node_id && a->node_address == b->node_address &&
           a->node_module == b->node_module;
}

/* What is read has one form: written again it is the same bytes, and leaves the same state. */
static void check_again(
    const struct ml_event *event,
    struct ml_event_state before,
    const struct ml_event_state *after,
    const uint8_t *bytes,
    size_t count_bytes
) {
    uint8_t again[ML_FRAME_MAX_BYTES];
    struct ml_writer w = ml_writer_into(again, sizeof(again));
    if (ml_event_encode(&w, &before, event) != ML_OK || ml_writer_count(&w) != count_bytes ||
        memcmp(again, bytes, count_bytes) != 0 || !same_state(&before, after)) {
        abort();
    }
}

static void check_frame(const uint8_t *data, size_t count_bytes) {
    struct ml_reader r = ml_reader_over(data, count_bytes);
    struct ml_frame_header header = {.lane = 0};
    uint8_t again[ML_FRAME_HEADER_BYTES];
    if (ml_frame_header_read(&r, &header) != ML_OK) {
        if (r.pos != data) {
            abort();
        }
        return;
    }
    ml_frame_header_write(again, &header);
    if (memcmp(again, data, sizeof(again)) != 0) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    struct ml_reader r = ml_reader_over(data, count_bytes);
    struct ml_event_state state = {0};
    enum ml_status status = ML_OK;
    while (ml_reader_left(&r) > 0) {
        const struct ml_event_state before = state;
        const uint8_t *start = r.pos;
        struct ml_event event;
        status = ml_event_decode(&r, &state, &event);
        if (status != ML_OK) {
            if (ml_status_family(status) != ML_FAMILY_PEER || r.pos != start ||
                !same_state(&before, &state)) {
                abort();
            }
            break;
        }
        check_again(&event, before, &state, start, (size_t)(r.pos - start));
    }
    check_frame(data, count_bytes);
    return 0;
}
