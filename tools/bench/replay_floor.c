/* What no service can go below: a stream only decoded, and decoded with each block put into the map
 * of live blocks and taken out of it. Room: tools (testonly).
 *
 * Nothing is put in order, counted or remembered besides, and no other lane or process is waited
 * for: what the whole costs above that is the price of exact figures. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "service/live_map.h"
#include "service/stream_reader.h"
#include "tools/bench/replay.h"

struct floor {
    struct ml_event_plain run[ML_STREAM_RUN_EVENTS];
    uint64_t events;
    bool with_map;
    struct ml_budget budget;
    struct ml_live_map map;
    struct ml_stream_reader reader;
};

static enum ml_status
on_room(void *context, uint32_t lane, uint32_t count, struct ml_event_plain **out_events) {
    struct floor *floor = context;
    (void)lane;
    (void)count;
    *out_events = floor->run;
    return ML_OK;
}

static void put_or_take(struct floor *floor, const struct ml_event_plain *event, uint64_t hash) {
    struct ml_live_block block = {
        .weight_bytes = event->size_bytes, .weight_blocks = 1, .size_bytes = event->size_bytes};
    if (event->kind != ML_EVENT_ALLOC) {
        (void)ml_live_map_remove(&floor->map, event->address, hash, &block);
        return;
    }
    if (!ml_live_fits_slot(hash, event->size_bytes) ||
        !ml_live_map_put_usual(
            &floor->map, ml_live_map_home(&floor->map, hash), hash, event->size_bytes, 0
        )) {
        struct ml_live_block old;
        (void)ml_live_map_put(&floor->map, event->address, hash, &block, &old);
    }
}

static enum ml_status on_run(void *context, uint32_t lane, uint32_t count, uint64_t size_bytes) {
    struct floor *floor = context;
    (void)lane;
    (void)size_bytes;
    floor->events += count;
    if (!floor->with_map) {
        return ML_OK;
    }
    uint64_t hashes[ML_STREAM_RUN_EVENTS];
    enum ml_status status = ml_live_map_reserve(&floor->map, count);
    for (uint32_t i = 0; status == ML_OK && i < count; i++) {
        hashes[i] = ml_live_map_hash(&floor->map, floor->run[i].address);
        ml_live_map_prefetch(&floor->map, hashes[i]);
    }
    for (uint32_t i = 0; status == ML_OK && i < count; i++) {
        status = ml_live_map_reserve_wide(&floor->map);
        put_or_take(floor, &floor->run[i], hashes[i]);
    }
    return status;
}

static enum ml_status on_event(void *context, uint32_t lane, const struct ml_event *event) {
    struct floor *floor = context;
    (void)lane;
    floor->events += event->kind >= ML_EVENT_ALLOC && event->kind != ML_EVENT_NODE;
    return ML_OK;
}

static enum ml_status on_hole(void *context, uint32_t lane, uint64_t chunks) {
    (void)context;
    (void)lane;
    (void)chunks;
    return ML_OK;
}

/* Nanoseconds of processor time an event. */
static double run_once(struct floor *floor, const struct stream *stream, bool with_map) {
    static uint8_t pipe[REPLAY_READ_BYTES];
    const struct ml_stream_sink sink = {
        .context = floor,
        .on_room = on_room,
        .on_run = on_run,
        .on_event = on_event,
        .on_hole = on_hole};
    struct timespec begin;
    struct timespec end;
    floor->budget = (struct ml_budget){.max_bytes = UINT64_MAX};
    floor->events = 0;
    floor->with_map = with_map;
    ml_live_map_init(&floor->map, &floor->budget, 1);
    ml_stream_reader_init(&floor->reader, &floor->budget, &sink, 0);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    for (size_t at = 0; at < stream->count; at += sizeof(pipe)) {
        const size_t left = stream->count - at;
        const size_t part = left < sizeof(pipe) ? left : sizeof(pipe);
        memcpy(pipe, stream->bytes + at, part);
        const enum ml_status status = ml_stream_reader_feed(&floor->reader, pipe, part);
        if (status != ML_OK) {
            replay_die(ml_status_text(status));
        }
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    ml_stream_reader_fini(&floor->reader);
    ml_live_map_fini(&floor->map);
    const double seconds =
        (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) * 1e-9;
    return floor->events == 0 ? 0 : seconds * 1e9 / (double)floor->events;
}

static int by_value(const void *a, const void *b) {
    const double first = *(const double *)a;
    const double second = *(const double *)b;
    return (first > second) - (first < second);
}

static double
median_of(struct floor *floor, const struct stream *stream, bool with_map, unsigned repeat) {
    double *times = calloc(repeat, sizeof(*times));
    if (times == NULL) {
        replay_die("no memory");
    }
    for (unsigned i = 0; i < repeat; i++) {
        times[i] = run_once(floor, stream, with_map);
    }
    qsort(times, repeat, sizeof(*times), by_value);
    const double median = times[repeat / 2];
    free(times);
    return median;
}

int replay_floor(char *const *paths, unsigned paths_count, unsigned repeat) {
    static struct floor floor;
    for (unsigned i = 0; i < paths_count; i++) {
        struct stream stream = {.bytes = NULL};
        replay_read_file(&stream, paths[i]);
        const double decoded_ns = median_of(&floor, &stream, false, repeat);
        const double mapped_ns = median_of(&floor, &stream, true, repeat);
        printf(
            "%s\n"
            "  decoded            %.1f ns an event, %.1f million events/s\n"
            "  and put in the map %.1f ns an event, %.1f million events/s\n",
            paths[i],
            decoded_ns,
            1e3 / decoded_ns,
            mapped_ns,
            1e3 / mapped_ns
        );
        free(stream.bytes);
    }
    return EXIT_SUCCESS;
}
