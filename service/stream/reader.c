#include "service/stream/reader.h"

#include <string.h>

#include "ipc/wire/staging.h"

void ml_stream_reader_init(
    struct ml_stream_reader *reader,
    struct ml_budget *budget,
    const struct ml_stream_sink *sink,
    uint32_t profile
) {
    memset(reader, 0, sizeof(*reader));
    reader->budget = budget;
    reader->sink = *sink;
    reader->profile = profile;
}

void ml_stream_reader_fini(struct ml_stream_reader *reader) {
    for (uint32_t i = 0; i < reader->lanes_count; i++) {
        ml_budget_free(reader->budget, reader->lanes[i], sizeof(struct ml_stream_lane));
    }
    ml_budget_free(reader->budget, reader->lanes, reader->lanes_count * sizeof(*reader->lanes));
    ml_budget_free(reader->budget, reader->frame, ML_FRAME_MAX_BYTES);
    reader->lanes = NULL;
    reader->lanes_count = 0;
    reader->frame = NULL;
    reader->frame_bytes = 0;
}

static enum ml_status
lane_of(struct ml_stream_reader *reader, uint32_t lane, struct ml_stream_lane **out_lane) {
    *out_lane = ml_budget_entry(
        reader->budget, &reader->lanes, &reader->lanes_count, lane, ML_LANES_MAX, sizeof(**out_lane)
    );
    return *out_lane != NULL ? ML_OK : ML_ENV_MEMORY;
}

static const struct ml_stream_lane *
known_lane(const struct ml_stream_reader *reader, uint32_t lane) {
    return lane < reader->lanes_count ? reader->lanes[lane] : NULL;
}

/* NULL: the lane has none. */
static const struct ml_chunk *latest_chunk(const struct ml_stream_reader *reader, uint32_t lane) {
    const struct ml_stream_lane *at = known_lane(reader, lane);
    return at != NULL && at->now.state != ML_CHUNK_NONE ? &at->now : NULL;
}

/* A piece of a chunk. */
struct piece {
    uint32_t lane;
    uint64_t number;
    uint32_t start_bytes, end_bytes;
    const uint8_t *bytes; /* from start_bytes on */
};

/* A new stack is many nodes, one behind the other. */
static enum ml_status decode_nodes(
    const struct ml_stream_sink *sink,
    uint32_t lane,
    struct ml_reader *r,
    struct ml_event_state *state
) {
    struct ml_event event = {.kind = ML_EVENT_NODE};
    enum ml_status status = ML_OK;
    while (status == ML_OK && ml_event_decode_plain_node(r, state, &event.node)) {
        status = sink->on_event(sink->context, lane, &event);
    }
    return status;
}

static enum ml_status decode_records(
    struct ml_stream_reader *reader,
    uint32_t lane,
    struct ml_reader *r,
    struct ml_event_state *state
) {
    const struct ml_stream_sink *sink = &reader->sink;
    enum ml_status status = decode_nodes(sink, lane, r, state);
    while (status == ML_OK && ml_reader_left(r) > 0) {
        struct ml_event_plain *run = NULL;
        uint64_t size_bytes = 0;
        status = sink->on_room(sink->context, lane, ML_STREAM_RUN_EVENTS, &run);
        if (status != ML_OK) {
            break;
        }
        const size_t count =
            ml_event_decode_plain(r, state, run, ML_STREAM_RUN_EVENTS, &size_bytes);
        if (count > 0) {
            status = sink->on_run(sink->context, lane, (uint32_t)count, size_bytes);
        } else {
            struct ml_event event;
            status = ml_event_decode(r, state, &event);
            if (status == ML_OK) {
                status = sink->on_event(sink->context, lane, &event);
            }
        }
        if (status == ML_OK) {
            status = decode_nodes(sink, lane, r, state);
        }
    }
    return status;
}

/* What of the piece is behind the chunk's seen bytes. */
static enum ml_status
decode(struct ml_stream_reader *reader, struct ml_chunk *chunk, const struct piece *piece) {
    if (piece->end_bytes <= chunk->seen_bytes) {
        return ML_OK;
    }
    if (piece->start_bytes > chunk->seen_bytes && chunk->state != ML_CHUNK_BROKEN) {
        reader->lost_chunks += chunk->state != ML_CHUNK_CUT;
        chunk->state = ML_CHUNK_BROKEN;
        const enum ml_status status = reader->sink.on_hole(reader->sink.context, piece->lane, 1);
        if (status != ML_OK) {
            return status;
        }
    }
    if (chunk->state == ML_CHUNK_BROKEN) {
        chunk->seen_bytes = piece->end_bytes;
        return ML_OK;
    }
    const uint32_t skip = chunk->seen_bytes - piece->start_bytes;
    struct ml_reader r =
        ml_reader_over(piece->bytes + skip, piece->end_bytes - piece->start_bytes - skip);
    const enum ml_status status = decode_records(reader, piece->lane, &r, &chunk->decoder);
    if (status == ML_OK) {
        reader->decoded_bytes += piece->end_bytes - chunk->seen_bytes;
        chunk->seen_bytes = piece->end_bytes;
    }
    return status;
}

/* Chunks [start, end) were jumped over. */
static enum ml_status
skip_chunks(struct ml_stream_reader *reader, uint32_t lane, uint64_t start, uint64_t end) {
    if (start == end) {
        return ML_OK;
    }
    reader->lanes[lane]->hole_start = start;
    reader->lanes[lane]->hole_end = end;
    reader->lost_chunks += end - start;
    return reader->sink.on_hole(reader->sink.context, lane, end - start);
}

/* The rest of the lane's latest chunk was dropped; only its start came, by staging. */
static enum ml_status cut_chunk(struct ml_stream_reader *reader, uint32_t lane) {
    reader->lanes[lane]->now.state = ML_CHUNK_CUT;
    reader->lost_chunks++;
    return reader->sink.on_hole(reader->sink.context, lane, 1);
}

/* A chunk beyond the latest: that one is done, unless its rest may still be in the pipe. */
static enum ml_status
open_chunk(struct ml_stream_reader *reader, uint32_t lane, uint64_t number, bool by_pipe) {
    struct ml_stream_lane *at = reader->lanes[lane];
    const uint64_t next = at->now.state != ML_CHUNK_NONE ? at->now.number + 1 : 0;
    if (at->now.state == ML_CHUNK_PARTIAL) {
        const enum ml_status status = cut_chunk(reader, lane);
        if (status != ML_OK) {
            return status;
        }
    }
    if (by_pipe) {
        at->aside.state = ML_CHUNK_NONE;
    } else if (at->now.state != ML_CHUNK_NONE) {
        at->aside = at->now;
    }
    at->now = (struct ml_chunk){.number = number, .state = ML_CHUNK_PARTIAL};
    return skip_chunks(reader, lane, next, number);
}

/* A chunk that was counted as lost has come after all. */
static enum ml_status
fill_hole(struct ml_stream_reader *reader, struct ml_stream_lane *at, const struct piece *piece) {
    /* Bytes before it stay lost: the pipe has passed them. */
    at->hole_start = piece->number + 1;
    reader->lost_chunks--;
    at->aside = (struct ml_chunk){.number = piece->number, .state = ML_CHUNK_PARTIAL};
    return decode(reader, &at->aside, piece);
}

static enum ml_status
take(struct ml_stream_reader *reader, const struct piece *piece, bool by_pipe, bool whole) {
    struct ml_stream_lane *at = reader->lanes[piece->lane];
    if (at->now.state == ML_CHUNK_NONE || piece->number > at->now.number) {
        const enum ml_status status = open_chunk(reader, piece->lane, piece->number, by_pipe);
        if (status != ML_OK) {
            return status;
        }
    }
    if (piece->number == at->now.number) {
        if (whole && at->now.state == ML_CHUNK_PARTIAL) {
            at->now.state = ML_CHUNK_WHOLE;
        }
        return decode(reader, &at->now, piece);
    }
    if (at->aside.state != ML_CHUNK_NONE && piece->number == at->aside.number) {
        if (at->aside.state == ML_CHUNK_CUT && by_pipe) {
            at->aside.state = ML_CHUNK_PARTIAL;
            reader->lost_chunks--;
        }
        return decode(reader, &at->aside, piece);
    }
    if (piece->number >= at->hole_start && piece->number < at->hole_end) {
        return fill_hole(reader, at, piece);
    }
    return ML_OK;
}

/* One whole frame: header read, payload there. */
static enum ml_status take_frame(
    struct ml_stream_reader *reader, const struct ml_frame_header *header, const uint8_t *payload
) {
    struct ml_stream_lane *at = NULL;
    uint64_t number = 0;
    if (!ml_profile_strip(reader->profile, header->chunk_number, &number)) {
        return ML_OK;
    }
    const enum ml_status status = lane_of(reader, header->lane, &at);
    if (status != ML_OK) {
        return status;
    }
    const bool same = at->pipe_next != 0 && number == at->pipe_next - 1;
    if (same && header->start_bytes == 0 && header->end_bytes == at->pipe_bytes) {
        return ML_OK; /* again: its thread was left in the middle of writing it, by siglongjmp */
    }
    if (same ? header->start_bytes < at->pipe_bytes : number < at->pipe_next) {
        return ML_PEER_STATE; /* frames of a lane come in order and do not overlap */
    }
    at->pipe_chunks += same ? 0 : 1;
    at->pipe_next = number + 1;
    at->pipe_bytes = header->end_bytes;
    const struct piece piece = {
        .lane = header->lane,
        .number = number,
        .start_bytes = header->start_bytes,
        .end_bytes = header->end_bytes,
        .bytes = payload,
    };
    return take(reader, &piece, true, true);
}

/* The frame at the start of [bytes, bytes + count): *out_bytes long, 0 if it is not whole yet. */
static enum ml_status
take_whole(struct ml_stream_reader *reader, const uint8_t *bytes, size_t count, size_t *out_bytes) {
    *out_bytes = 0;
    if (count < ML_FRAME_HEADER_BYTES) {
        return ML_OK;
    }
    struct ml_reader r = ml_reader_over(bytes, ML_FRAME_HEADER_BYTES);
    struct ml_frame_header header = {.lane = 0};
    enum ml_status status = ml_frame_header_read(&r, &header);
    if (status != ML_OK) {
        return status;
    }
    const size_t whole =
        ML_FRAME_HEADER_BYTES + (size_t)header.end_bytes - (size_t)header.start_bytes;
    if (count < whole) {
        return ML_OK;
    }
    *out_bytes = whole;
    return take_frame(reader, &header, bytes + ML_FRAME_HEADER_BYTES);
}

/* Fill up the frame that began in earlier bytes; *out_used of the new ones go into it. */
static enum ml_status complete_frame(
    struct ml_stream_reader *reader, const uint8_t *bytes, size_t count, size_t *out_used
) {
    *out_used = 0;
    for (;;) {
        size_t wanted = ML_FRAME_HEADER_BYTES;
        if (reader->frame_bytes >= ML_FRAME_HEADER_BYTES) {
            size_t whole = 0;
            const enum ml_status status =
                take_whole(reader, reader->frame, reader->frame_bytes, &whole);
            if (status != ML_OK || whole != 0) {
                reader->frame_bytes = 0;
                return status;
            }
            uint64_t word = 0;
            uint16_t start = 0;
            memcpy(&word, reader->frame, sizeof(word));
            memcpy(&start, reader->frame + 10, sizeof(start));
            wanted = ML_FRAME_HEADER_BYTES + (size_t)(uint16_t)word - start;
        }
        const size_t missing = wanted - reader->frame_bytes;
        const size_t left = count - *out_used;
        const size_t part = missing < left ? missing : left;
        if (part == 0) {
            return ML_OK;
        }
        memcpy(reader->frame + reader->frame_bytes, bytes + *out_used, part);
        reader->frame_bytes += (uint32_t)part;
        *out_used += part;
    }
}

enum ml_status
ml_stream_reader_feed(struct ml_stream_reader *reader, const uint8_t *bytes, size_t count_bytes) {
    size_t at = 0;
    if (reader->frame_bytes > 0) {
        const enum ml_status status = complete_frame(reader, bytes, count_bytes, &at);
        if (status != ML_OK || reader->frame_bytes > 0) {
            return status;
        }
    }
    for (;;) {
        size_t whole = 0;
        const enum ml_status status = take_whole(reader, bytes + at, count_bytes - at, &whole);
        if (status != ML_OK) {
            return status;
        }
        if (whole == 0) {
            break;
        }
        at += whole;
    }
    /* Less than a frame: a whole one would have been consumed above. */
    const size_t rest = count_bytes - at;
    if (rest > 0 && reader->frame == NULL) {
        reader->frame = ml_budget_new(reader->budget, ML_FRAME_MAX_BYTES);
        if (reader->frame == NULL) {
            return ML_ENV_MEMORY;
        }
    }
    if (rest > 0) {
        memcpy(reader->frame, bytes + at, rest);
    }
    reader->frame_bytes = (uint32_t)rest;
    return ML_OK;
}

enum ml_status ml_stream_reader_staged(
    struct ml_stream_reader *reader,
    uint32_t lane,
    uint64_t number,
    uint32_t start_bytes,
    uint32_t end_bytes,
    const uint8_t *bytes,
    bool whole
) {
    struct ml_stream_lane *at = NULL;
    if (lane >= ML_LANES_MAX || end_bytes > ML_CHUNK_MAX_BYTES || start_bytes > end_bytes) {
        return ML_BUG_CONTRACT;
    }
    const enum ml_status status = lane_of(reader, lane, &at);
    if (status != ML_OK) {
        return status;
    }
    const struct piece piece = {lane, number, start_bytes, end_bytes, bytes};
    return take(reader, &piece, false, whole);
}

bool ml_stream_reader_reached(
    const struct ml_stream_reader *reader, uint32_t lane, uint64_t number, uint32_t bytes
) {
    const struct ml_chunk *now = latest_chunk(reader, lane);
    if (now == NULL) {
        return number == 0 && bytes == 0;
    }
    return now->number > number || (now->number == number && now->seen_bytes >= bytes);
}

uint64_t
ml_stream_reader_missing(const struct ml_stream_reader *reader, uint32_t lane, uint64_t sent) {
    const struct ml_stream_lane *at = known_lane(reader, lane);
    if (at == NULL) {
        return sent;
    }
    return at->pipe_next >= sent ? 0 : sent - at->pipe_chunks;
}

uint32_t
ml_stream_reader_seen(const struct ml_stream_reader *reader, uint32_t lane, uint64_t number) {
    const struct ml_chunk *now = latest_chunk(reader, lane);
    return now != NULL && now->number == number ? now->seen_bytes : 0;
}

uint64_t ml_stream_reader_next(const struct ml_stream_reader *reader, uint32_t lane) {
    const struct ml_chunk *now = latest_chunk(reader, lane);
    return now != NULL ? now->number : 0;
}

uint64_t ml_stream_reader_position(const struct ml_stream_reader *reader, uint32_t lane) {
    const struct ml_chunk *now = latest_chunk(reader, lane);
    return now != NULL ? now->number << 16 | now->seen_bytes : 0;
}
