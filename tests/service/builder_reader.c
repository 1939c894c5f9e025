#include "tests/service/builder_reader.h"

#include <check.h>

enum ml_status builder_read_pipe(struct builder *builder, struct ml_client *client) {
    const enum ml_status status = ml_client_feed(
        client, builder->pipe + builder->pipe_read, builder->pipe_count - builder->pipe_read
    );
    builder->pipe_read = builder->pipe_count;
    return status;
}

void builder_read_staging(const struct builder *builder, struct ml_client *client) {
    struct ml_staging_lane lanes[BUILDER_LANES];
    struct ml_client_want wants[BUILDER_LANES];
    size_t count = 0;
    for (int i = 0; i < BUILDER_LANES; i++) {
        lanes[i] = builder->lanes[i].header;
    }
    ck_assert_int_eq(
        ml_client_lanes(
            client, &builder->header, lanes, BUILDER_LANES, wants, BUILDER_LANES, &count
        ),
        ML_OK
    );
    for (size_t i = 0; i < count; i++) {
        const struct builder_lane *lane = &builder->lanes[wants[i].lane];
        /* One slot a lane: the piece is where the profile's chunk number puts it. */
        ck_assert_uint_ge(wants[i].offset, ml_staging_slot_offset(wants[i].lane, 0, 1));
        const uint8_t *bytes = lane->slot + ML_FRAME_HEADER_BYTES + wants[i].start_bytes;
        ck_assert_int_eq(ml_client_tail(client, &wants[i], bytes, &lane->header), ML_OK);
    }
}
