/* Whole streams into a session of two processes. */
#include <stdlib.h>
#include <string.h>

#include "service/session/client.h"
#include "service/session/session.h"
#include "service/session/snapshot_build.h"
#include "tests/fuzz/fuzz.h"
#include "tests/service/session/check.h"

enum { MEMORY_MAX_BYTES = 4 << 20, PART_BYTES = 61, TAIL_LANES = 2 };

static void require(bool promise) {
    if (!promise) {
        abort();
    }
}

static void add(struct ml_session *session, uint32_t id, struct ml_client **out_client) {
    const struct ml_client_setup setup = {
        .id = id, .parent_id = id - 1, .pid = 100 + id, .forked = id > 1};
    require(ml_session_add(session, &setup, out_client) == ML_OK);
}

/* Staging that says what the input's first bytes say; its chunks hold the input too. */
static void look(struct ml_client *client, const uint8_t *data, size_t count_bytes) {
    static uint8_t slot[ML_FRAME_MAX_BYTES];
    const struct ml_staging_header header = {
        .magic = ML_STAGING_MAGIC, .version = ML_STAGING_VERSION, .slots = 1, .lanes_used = 2};
    struct ml_staging_lane lanes[TAIL_LANES];
    struct ml_client_want wants[TAIL_LANES];
    size_t wanted = 0;
    memset(lanes, 0, sizeof(lanes));
    memcpy(lanes, data, count_bytes < sizeof(lanes) ? count_bytes : sizeof(lanes));
    for (int i = 0; i < TAIL_LANES; i++) {
        lanes[i].published &= 0x30000 | ML_PUBLISHED_BUSY | 0x3ff;
        lanes[i].sent &= 3;
        lanes[i].lost_chunks &= 3;
    }
    memcpy(slot, data, count_bytes < sizeof(slot) ? count_bytes : sizeof(slot));
    if (ml_client_lanes(client, &header, lanes, TAIL_LANES, wants, TAIL_LANES, &wanted) == ML_OK) {
        for (size_t i = 0; i < wanted; i++) {
            (void)!ml_client_tail(client, &wants[i], slot, &lanes[wants[i].lane]);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    const struct ml_timestamp start = {.ticks = 1};
    const struct ml_client_end end = {.state = 1, .end = {.ticks = 50}};
    struct ml_session *session = ml_session_new(&start, MEMORY_MAX_BYTES);
    struct ml_client *clients[2] = {NULL, NULL};
    struct ml_snapshot *snapshot = NULL;
    require(session != NULL);
    add(session, 1, &clients[0]);
    add(session, 2, &clients[1]);
    for (size_t at = 0; at < count_bytes; at += PART_BYTES) {
        const size_t part = count_bytes - at < PART_BYTES ? count_bytes - at : PART_BYTES;
        (void)!ml_client_feed(clients[0], data + at, part);
        (void)!ml_client_feed(clients[1], data + at, part);
    }
    require(ml_session_advance(session, 20) == ML_OK && ml_session_check(session));
    look(clients[1], data, count_bytes);
    require(ml_session_advance(session, 100) == ML_OK && ml_session_check(session));
    require(ml_client_ended(clients[0], &end) == ML_OK);
    require(ml_session_advance(session, 101) == ML_OK && ml_session_check(session));
    require(ml_session_snapshot(session, NULL, 0, &snapshot) == ML_OK);
    ml_snapshot_free(snapshot);
    require(ml_client_ended(clients[1], &end) == ML_OK && ml_session_check(session));
    ml_session_free(session);
    return 0;
}
