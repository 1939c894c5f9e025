/* A stream of records: the decoder of runs against the decoder of one at a time. The first byte
 * says how many a run may have. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/wire/event_plain.h"
#include "tests/fuzz/fuzz.h"

enum { RUN_MAX = 256 };

static bool same_state(const struct ml_event_state *a, const struct ml_event_state *b) {
    return a->time == b->time && a->address == b->address && a->node == b->node &&
           a->node_id == b->node_id && a->node_address == b->node_address &&
           a->node_module == b->node_module;
}

static void compare(const struct ml_event_plain *plain, const struct ml_event *event) {
    const bool alloc = event->kind == ML_EVENT_ALLOC;
    REQUIRE(alloc || event->kind == ML_EVENT_FREE || event->kind == ML_EVENT_RESIZE);
    REQUIRE(plain->kind == event->kind && plain->time == event->time);
    REQUIRE(plain->address == event->block.address);
    REQUIRE(plain->size_bytes == (alloc ? event->block.size_bytes : 0));
    REQUIRE(plain->node == (alloc ? event->block.node : 0));
    REQUIRE(event->block.heap == 0 && event->block.type == 0 && event->block.marks == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    static struct ml_event_plain run[RUN_MAX];
    if (count_bytes == 0) {
        return 0;
    }
    const size_t capacity = (size_t)data[0] + 1;
    struct ml_reader r = ml_reader_over(data + 1, count_bytes - 1);
    struct ml_reader one = r;
    struct ml_event_state state = {0};
    struct ml_event_state state_of_one = {0};
    struct ml_event event;
    enum ml_status status = ML_OK;
    while (status == ML_OK && ml_reader_left(&r) > 0) {
        uint64_t bytes = 0;
        uint64_t bytes_of_one = 0;
        const size_t count = ml_event_decode_plain(&r, &state, run, capacity, &bytes);
        REQUIRE(count <= capacity);
        for (size_t i = 0; i < count; i++) {
            REQUIRE(ml_event_decode(&one, &state_of_one, &event) == ML_OK);
            compare(&run[i], &event);
            bytes_of_one += run[i].size_bytes;
        }
        REQUIRE(bytes == bytes_of_one && r.pos == one.pos && same_state(&state, &state_of_one));
        if (count == 0) {
            status = ml_event_decode(&r, &state, &event);
            REQUIRE(ml_event_decode(&one, &state_of_one, &event) == status);
        }
    }
    return 0;
}
