#include "tests/service/stream_builder.h"

#include <stdlib.h>
#include <string.h>

struct builder *builder_new(void) {
    struct builder *builder = calloc(1, sizeof(*builder));
    if (builder == NULL) {
        abort();
    }
    builder->header.magic = ML_STAGING_MAGIC;
    builder->header.version = ML_STAGING_VERSION;
    builder->header.slots = 1;
    builder->header.lanes_used = BUILDER_LANES;
    builder->chunk_bytes = ML_CHUNK_MAX_BYTES;
    return builder;
}

void builder_free(struct builder *builder) {
    if (builder != NULL) {
        free(builder->pipe);
        free(builder);
    }
}

static void publish(struct builder_lane *at) {
    at->header.published = at->number << ML_PUBLISHED_SHIFT | at->bytes;
}

static void into_pipe(struct builder *builder, const uint8_t *bytes, size_t count) {
    if (builder->pipe_count + count > builder->pipe_capacity) {
        builder->pipe_capacity = (builder->pipe_count + count) * 2;
        builder->pipe = realloc(builder->pipe, builder->pipe_capacity);
        if (builder->pipe == NULL) {
            abort();
        }
    }
    memcpy(builder->pipe + builder->pipe_count, bytes, count);
    builder->pipe_count += count;
}

void builder_flush(struct builder *builder, uint32_t lane) {
    struct builder_lane *at = &builder->lanes[lane];
    if (at->bytes == 0) {
        return;
    }
    const struct ml_frame_header header = {
        .chunk_number = at->number,
        .end_bytes = (uint16_t)at->bytes,
        .lane = (uint16_t)lane,
        .thread_id = 1000 + lane,
    };
    if (at->drops) {
        at->header.lost_chunks++;
        at->header.lost_events += at->events;
    } else {
        ml_frame_header_write(at->slot, &header);
        into_pipe(builder, at->slot, ML_FRAME_HEADER_BYTES + at->bytes);
    }
    at->number++;
    at->header.sent = at->number;
    at->bytes = 0;
    at->events = 0;
    memset(&at->state, 0, sizeof(at->state));
    publish(at);
}

void builder_begin(struct builder *builder, uint32_t lane, uint32_t profile) {
    struct builder_lane *at = &builder->lanes[lane];
    memset(at, 0, sizeof(*at));
    at->number = ml_profile_first_chunk(profile);
    at->header.sent = at->number;
    publish(at);
}

void builder_add(struct builder *builder, uint32_t lane, const struct ml_event *event) {
    struct builder_lane *at = &builder->lanes[lane];
    uint8_t *records = at->slot + ML_FRAME_HEADER_BYTES;
    for (int attempt = 0; attempt < 2; attempt++) {
        struct ml_writer w = ml_writer_into(records + at->bytes, ML_CHUNK_MAX_BYTES - at->bytes);
        const enum ml_status status = ml_event_encode(&w, &at->state, event);
        if (status == ML_OK) {
            at->bytes += (uint32_t)ml_writer_count(&w);
            at->events += ml_staging_counts(event->kind) ? 1 : 0;
            at->header.produced += ml_staging_counts(event->kind) ? 1 : 0;
            publish(at);
            if (at->bytes >= builder->chunk_bytes) {
                builder_flush(builder, lane);
            }
            return;
        }
        if (status != ML_BUG_SPACE) {
            abort();
        }
        builder_flush(builder, lane);
    }
    abort();
}

void builder_start(struct builder *builder, uint32_t pid, uint64_t fork_serial) {
    const struct ml_event event = {
        .kind = ML_EVENT_START,
        .start =
            {.version = ML_STREAM_VERSION,
             .pid = pid,
             .sampling_bytes = 1,
             .page_bytes = 4096,
             .fork_serial = fork_serial},
    };
    builder_add(builder, 0, &event);
}

void builder_node(struct builder *builder, uint32_t lane, uint32_t id, uint32_t parent) {
    const struct ml_event event = {
        .kind = ML_EVENT_NODE,
        .node = {.id = id, .parent = parent, .address = 0x400000 + 16 * (uint64_t)id},
    };
    builder_add(builder, lane, &event);
}

void builder_alloc(
    struct builder *builder,
    uint32_t lane,
    uint64_t time,
    uint64_t address,
    uint64_t size_bytes,
    uint32_t node
) {
    const struct ml_event event = {
        .kind = ML_EVENT_ALLOC,
        .time = time,
        .block =
            {.address = address,
             .size_bytes = size_bytes,
             .weight_bytes = size_bytes,
             .weight_blocks = 1,
             .node = node},
    };
    builder_add(builder, lane, &event);
}

void builder_free_block(struct builder *builder, uint32_t lane, uint64_t time, uint64_t address) {
    const struct ml_event event = {
        .kind = ML_EVENT_FREE, .time = time, .block = {.address = address}};
    builder_add(builder, lane, &event);
}

void builder_timed(
    struct builder *builder, uint32_t lane, enum ml_event_kind kind, uint64_t time, uint64_t value
) {
    struct ml_event event = {.kind = kind, .time = time};
    switch (kind) {
    case ML_EVENT_RESIZE:
        event.block.address = value;
        break;
    case ML_EVENT_FORK:
        event.fork_serial = value;
        break;
    case ML_EVENT_REAPED:
        event.reaped_pid = (uint32_t)value;
        break;
    case ML_EVENT_END:
        event.end_kind = (uint32_t)value;
        break;
    default:
        break;
    }
    builder_add(builder, lane, &event);
}
