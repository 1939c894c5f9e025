#include "tests/service/session/racer.h"

#include <stdlib.h>
#include <string.h>

uint64_t racer_clock;
uint64_t racer_repeats;
static uint64_t holder;
static uint64_t random_state;
static uint64_t order;

void racer_seed(uint64_t seed) {
    random_state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    racer_clock = 10;
    racer_repeats = 0;
    holder = 0;
    order = 1;
}

uint32_t racer_pick(uint32_t below) {
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((random_state >> 33) % below);
}

static struct racer_chunk *chunk_of(struct racer *racer, uint32_t lane, uint64_t number) {
    return &racer->lanes[lane].chunks[number % racer->slots];
}

static void publish(struct racer *racer, uint32_t lane) {
    struct racer_lane *at = &racer->lanes[lane];
    at->header.published =
        at->number << ML_PUBLISHED_SHIFT | chunk_of(racer, lane, at->number)->bytes;
}

struct racer *racer_new(struct model *model, uint32_t index, uint32_t slots) {
    struct racer *racer = calloc(1, sizeof(*racer));
    if (racer == NULL || slots > RACER_SLOTS) {
        abort();
    }
    racer->header.magic = ML_STAGING_MAGIC;
    racer->header.version = ML_STAGING_VERSION;
    racer->header.slots = slots;
    racer->header.lanes_used = RACER_LANES;
    racer->slots = slots;
    racer->chunk_bytes = ML_CHUNK_MAX_BYTES;
    racer->model = model;
    racer->index = index;
    return racer;
}

void racer_free(struct racer *racer) {
    if (racer != NULL) {
        free(racer->pipe);
        free(racer);
    }
}

/* ---- the model's share */

static void tell(struct racer *racer, uint32_t lane, struct racer_record *record) {
    if (!record->seen) {
        record->seen = true;
        if (record->event.time != 0) {
            model_add(racer->model, racer->index, lane, record->order, &record->event);
        }
    }
}

/* Nobody can read this chunk any more. If it was dropped, what staging has not shown of it is
 * lost: not before, for a piece that was copied in time counts until its slot is used again, and of
 * a thread that was killed before `sent` passed the chunk all of it is still there. */
static void leave(struct racer *racer, uint32_t lane, const struct racer_chunk *chunk) {
    if (chunk->dropped && !chunk->whole) {
        const struct ml_event hole = {
            .kind = ML_EVENT_NONE, .time = chunk->records[chunk->count - 1].event.time};
        model_add(racer->model, racer->index, lane, chunk->close_order, &hole);
    }
}

enum racer_hand racer_hand(
    struct racer *racer, const struct ml_client_want *want, const struct ml_staging_lane *after
) {
    struct racer_chunk *chunk = chunk_of(racer, want->lane, want->number);
    if (after->published >> ML_PUBLISHED_SHIFT >= want->number + racer->slots) {
        return RACER_TOO_LATE;
    }
    if (!chunk->used || chunk->number != want->number) {
        abort();
    }
    chunk->whole = chunk->whole || want->end_bytes == ML_FRAME_MAX_BYTES;
    for (uint32_t i = 0; i < chunk->count; i++) {
        if (chunk->records[i].end_bytes <= want->end_bytes) {
            tell(racer, want->lane, &chunk->records[i]);
        }
    }
    return RACER_COUNTS;
}

const uint8_t *racer_piece(const struct racer *racer, const struct ml_client_want *want) {
    const struct racer_chunk *chunk = &racer->lanes[want->lane].chunks[want->number % racer->slots];
    return want->end_bytes == ML_FRAME_MAX_BYTES
               ? chunk->frame
               : chunk->frame + ML_FRAME_HEADER_BYTES + want->start_bytes;
}

/* ---- the threads */

static void into_pipe(struct racer *racer, const uint8_t *bytes, size_t count) {
    if (racer->pipe_count + count > racer->pipe_capacity) {
        racer->pipe_capacity = (racer->pipe_count + count) * 2;
        racer->pipe = realloc(racer->pipe, racer->pipe_capacity);
        if (racer->pipe == NULL) {
            abort();
        }
    }
    memcpy(racer->pipe + racer->pipe_count, bytes, count);
    racer->pipe_count += count;
}

static uint64_t blocks_of(const struct racer_chunk *chunk) {
    uint64_t blocks = 0;
    for (uint32_t i = 0; i < chunk->count; i++) {
        blocks += ml_staging_counts(chunk->records[i].event.kind) ? 1 : 0;
    }
    return blocks;
}

/* True when the record is in the open chunk. */
static bool record(struct racer *racer, uint32_t lane, const struct ml_event *event) {
    struct racer_lane *at = &racer->lanes[lane];
    struct racer_chunk *chunk = chunk_of(racer, lane, at->number);
    chunk->used = true;
    chunk->number = at->number;
    if (chunk->count == RACER_RECORDS) {
        return false;
    }
    struct ml_writer w = ml_writer_into(
        chunk->frame + ML_FRAME_HEADER_BYTES + chunk->bytes, ML_CHUNK_MAX_BYTES - chunk->bytes
    );
    const enum ml_status status = ml_event_encode(&w, &at->state, event);
    if (status == ML_BUG_SPACE) {
        return false;
    }
    if (status != ML_OK) {
        abort();
    }
    chunk->bytes += (uint32_t)ml_writer_count(&w);
    chunk->records[chunk->count++] =
        (struct racer_record){.end_bytes = chunk->bytes, .order = order++, .event = *event};
    return true;
}

void racer_define(struct racer *racer, const struct ml_event *event) {
    if (!record(racer, 0, event)) {
        abort();
    }
    publish(racer, 0);
}

void racer_begin(struct racer *racer, uint32_t lane, const struct ml_event *event) {
    struct racer_lane *at = &racer->lanes[lane];
    at->event = *event;
    at->header.published |= ML_PUBLISHED_BUSY;
    at->step = RACER_STAMP;
}

void racer_flush(struct racer *racer, uint32_t lane) {
    if (chunk_of(racer, lane, racer->lanes[lane].number)->bytes > 0) {
        racer->lanes[lane].step = RACER_CLOSE;
    }
}

static void send_oldest(struct racer *racer, uint32_t lane) {
    struct racer_lane *at = &racer->lanes[lane];
    struct racer_chunk *chunk = chunk_of(racer, lane, at->unsent);
    if (racer_pick(100) < racer->drop_percent) {
        chunk->dropped = true;
        at->step = RACER_LOST_EVENTS;
        return;
    }
    into_pipe(racer, chunk->frame, ML_FRAME_HEADER_BYTES + chunk->bytes);
    for (uint32_t i = 0; i < chunk->count; i++) {
        tell(racer, lane, &chunk->records[i]);
    }
    at->step = RACER_SENT;
}

static void close_chunk(struct racer *racer, uint32_t lane) {
    struct racer_lane *at = &racer->lanes[lane];
    struct racer_chunk *chunk = chunk_of(racer, lane, at->number);
    const struct ml_frame_header header = {
        .chunk_number = at->number,
        .end_bytes = (uint16_t)chunk->bytes,
        .lane = (uint16_t)lane,
        .thread_id = 1000 + lane,
    };
    ml_frame_header_write(chunk->frame, &header);
    chunk->close_order = chunk->close_order == 0 ? order++ : chunk->close_order;
    at->step = at->unsent + racer->slots <= at->number + 1 ? RACER_SEND : RACER_OPEN;
}

static void open_chunk(struct racer *racer, uint32_t lane) {
    struct racer_lane *at = &racer->lanes[lane];
    struct racer_chunk *chunk = chunk_of(racer, lane, at->number + 1);
    leave(racer, lane, chunk);
    at->number++;
    chunk->bytes = 0;
    chunk->count = 0;
    chunk->used = false;
    chunk->dropped = false;
    chunk->whole = false;
    chunk->close_order = 0;
    memset(&at->state, 0, sizeof(at->state));
    publish(racer, lane);
    at->step = RACER_IDLE;
    if (at->pending) {
        at->pending = false;
        racer_begin(racer, lane, &at->event);
    }
}

void racer_evict(void) {
    racer_clock += holder != 0;
    holder = 0;
}

static void stamp(struct racer *racer, uint32_t lane) {
    struct racer_lane *at = &racer->lanes[lane];
    const uint64_t self = (uint64_t)racer->index * RACER_LANES + lane + 1;
    const struct racer_chunk *chunk = chunk_of(racer, lane, at->number);
    const bool opens_none = chunk->count > 0 && chunk->count < RACER_RECORDS;
    const bool may_repeat = ml_staging_counts(at->event.kind) && holder == self && opens_none;
    if (may_repeat && racer_pick(12) != 0) {
        racer_repeats++;
    } else {
        if (holder != self) {
            racer_evict();
        }
        if (holder == 0 && racer_pick(3) == 0) {
            holder = self;
        }
        at->stamp = racer_clock;
    }
    at->event.time = at->stamp;
}

bool racer_step(struct racer *racer, uint32_t lane) {
    struct racer_lane *at = &racer->lanes[lane];
    switch (at->step) {
    case RACER_IDLE:
        return false;
    case RACER_STAMP:
        stamp(racer, lane);
        at->step = RACER_PUBLISH;
        return true;
    case RACER_PUBLISH:
        if (!record(racer, lane, &at->event)) {
            at->pending = true;
            at->step = RACER_CLOSE;
            return true;
        }
        at->header.produced += ml_staging_counts(at->event.kind) ? 1 : 0;
        publish(racer, lane);
        at->step = chunk_of(racer, lane, at->number)->bytes >= racer->chunk_bytes ? RACER_CLOSE
                                                                                  : RACER_IDLE;
        return true;
    case RACER_CLOSE:
        close_chunk(racer, lane);
        return true;
    case RACER_SEND:
        send_oldest(racer, lane);
        return true;
    case RACER_LOST_EVENTS:
        at->header.lost_events += blocks_of(chunk_of(racer, lane, at->unsent));
        at->step = RACER_SENT;
        return true;
    case RACER_SENT:
        at->step = chunk_of(racer, lane, at->unsent)->dropped ? RACER_LOST_CHUNKS : RACER_CLOSE;
        racer->lost = racer->lost || at->step == RACER_LOST_CHUNKS;
        at->unsent++;
        at->header.sent = at->unsent;
        return true;
    case RACER_LOST_CHUNKS:
        at->header.lost_chunks++;
        at->step = RACER_CLOSE;
        return true;
    default:
        open_chunk(racer, lane);
        return true;
    }
}

void racer_killed(struct racer *racer) {
    for (uint32_t lane = 0; lane < RACER_LANES; lane++) {
        for (uint32_t i = 0; i < racer->slots; i++) {
            leave(racer, lane, &racer->lanes[lane].chunks[i]);
        }
    }
}
