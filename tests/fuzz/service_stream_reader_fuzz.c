/* A pipe's bytes, read in three ways that must give the same events: in one piece, cut into pieces
 * (the first byte says how), and with every frame shown by staging before the pipe brings it. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/wire/staging.h"
#include "service/stream/reader.h"
#include "tests/fuzz/fuzz.h"

/* What a reading gave: a sum over its events in their order. */
struct reading {
    uint64_t sum, events, holes;
    enum ml_status status;
    struct ml_event_plain run[ML_STREAM_RUN_EVENTS];
};

/* FNV-1a, a word at a time. */
static void add(struct reading *reading, uint64_t word) {
    reading->sum = (reading->sum ^ word) * UINT64_C(0x100000001b3);
}

static enum ml_status
on_room(void *context, uint32_t lane, uint32_t count, struct ml_event_plain **out_events) {
    struct reading *reading = context;
    (void)lane;
    REQUIRE(count <= ML_STREAM_RUN_EVENTS);
    *out_events = reading->run;
    return ML_OK;
}

static enum ml_status on_run(void *context, uint32_t lane, uint32_t count, uint64_t size_bytes) {
    struct reading *reading = context;
    const struct ml_event_plain *events = reading->run;
    uint64_t sum_bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        add(reading, lane);
        add(reading, events[i].kind);
        add(reading, events[i].time);
        add(reading, events[i].address);
        add(reading, events[i].size_bytes);
        sum_bytes += events[i].size_bytes;
    }
    reading->events += count;
    REQUIRE(sum_bytes == size_bytes);
    return ML_OK;
}

/* Runs end where frames do: what is plain to one reading must count the same in another. */
static enum ml_status on_event(void *context, uint32_t lane, const struct ml_event *event) {
    struct reading *reading = context;
    const bool alloc = event->kind == ML_EVENT_ALLOC;
    const bool block = alloc || event->kind == ML_EVENT_FREE || event->kind == ML_EVENT_RESIZE;
    add(reading, lane);
    add(reading, event->kind);
    add(reading, ml_staging_counts(event->kind) ? event->time : 0);
    add(reading, block ? event->block.address : 0);
    add(reading, alloc ? event->block.size_bytes : 0);
    reading->events++;
    return ML_OK;
}

static enum ml_status on_hole(void *context, uint32_t lane, uint64_t chunks) {
    struct reading *reading = context;
    add(reading, lane);
    add(reading, chunks);
    reading->holes++;
    return ML_OK;
}

static void
open_reader(struct ml_stream_reader *reader, struct ml_budget *budget, struct reading *reading) {
    const struct ml_stream_sink sink = {
        .context = reading,
        .on_room = on_room,
        .on_run = on_run,
        .on_event = on_event,
        .on_hole = on_hole};
    *budget = (struct ml_budget){.max_bytes = UINT64_MAX};
    *reading = (struct reading){.status = ML_OK};
    ml_stream_reader_init(reader, budget, &sink, 0);
}

static void close_reader(struct ml_stream_reader *reader, const struct ml_budget *budget) {
    ml_stream_reader_fini(reader);
    REQUIRE(budget->used_bytes == 0);
}

/* Pieces of 1 to 2^(cut % 13) bytes. */
static struct reading read_cut(uint8_t cut, const uint8_t *bytes, size_t count_bytes) {
    struct ml_stream_reader reader;
    struct ml_budget budget;
    struct reading reading;
    uint64_t dice = cut;
    open_reader(&reader, &budget, &reading);
    for (size_t at = 0; at < count_bytes && reading.status == ML_OK;) {
        dice = dice * UINT64_C(6364136223846793005) + 1442695040888963407;
        size_t part = 1 + (dice >> 33) % (UINT64_C(1) << cut % 13);
        part = part < count_bytes - at ? part : count_bytes - at;
        reading.status = ml_stream_reader_feed(&reader, bytes + at, part);
        at += part;
    }
    close_reader(&reader, &budget);
    return reading;
}

static struct reading read_whole(const uint8_t *bytes, size_t count_bytes) {
    struct ml_stream_reader reader;
    struct ml_budget budget;
    struct reading reading;
    open_reader(&reader, &budget, &reading);
    reading.status = ml_stream_reader_feed(&reader, bytes, count_bytes);
    close_reader(&reader, &budget);
    return reading;
}

static struct reading read_staged_first(const uint8_t *bytes, size_t count_bytes) {
    struct ml_stream_reader reader;
    struct ml_budget budget;
    struct reading reading;
    struct ml_reader r = ml_reader_over(bytes, count_bytes);
    open_reader(&reader, &budget, &reading);
    while (reading.status == ML_OK && ml_reader_left(&r) > ML_FRAME_HEADER_BYTES) {
        const uint8_t *frame = r.pos;
        struct ml_frame_header header;
        uint64_t number = 0;
        REQUIRE(ml_frame_header_read(&r, &header) == ML_OK);
        const size_t payload_bytes = (size_t)header.end_bytes - header.start_bytes;
        if (ml_reader_left(&r) < payload_bytes) {
            break;
        }
        r.pos += payload_bytes;
        if (ml_profile_strip(0, header.chunk_number, &number)) {
            reading.status = ml_stream_reader_staged(
                &reader,
                header.lane,
                number,
                header.start_bytes,
                header.end_bytes,
                frame + ML_FRAME_HEADER_BYTES,
                false
            );
        }
        if (reading.status == ML_OK) {
            reading.status = ml_stream_reader_feed(&reader, frame, (size_t)(r.pos - frame));
        }
    }
    close_reader(&reader, &budget);
    return reading;
}

static bool is_same(const struct reading *a, const struct reading *b) {
    return a->status == b->status && a->sum == b->sum && a->events == b->events &&
           a->holes == b->holes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    if (count_bytes == 0) {
        return 0;
    }
    const struct reading whole = read_whole(data + 1, count_bytes - 1);
    const struct reading cut = read_cut(data[0], data + 1, count_bytes - 1);
    REQUIRE(is_same(&whole, &cut));
    /* Where something is missing, staging may know more than the pipe brings. */
    if (whole.status == ML_OK && whole.holes == 0) {
        const struct reading staged = read_staged_first(data + 1, count_bytes - 1);
        REQUIRE(is_same(&whole, &staged));
    }
    return 0;
}
