/* What no service can go below: a stream only decoded; decoded with each block put into the map of
 * live blocks and taken out of it; and that with its bytes put down to its call site. Room: tools
 * (testonly).
 *
 * Nothing is put in order, no maximum is looked for, nothing else is remembered, and no other lane
 * or process is waited for: what the whole costs above that is the price of exact peaks, of several
 * threads, and of streams that may lie. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "service/heap/live_map.h"
#include "service/stream/reader.h"
#include "tools/bench/replay.h"

enum part { DECODED, IN_THE_MAP, AT_ITS_SITE, PARTS };

enum { NODES_MAX = 1 << 24 };

/* The least that is known of a call site: half a cache line. */
struct site {
    uint64_t live_bytes;
    uint64_t live_blocks;
    uint64_t total_bytes;
    uint64_t total_blocks;
};

struct floor {
    struct ml_event_plain run[ML_STREAM_RUN_EVENTS];
    uint64_t events;
    enum part part;
    uint32_t *site_of_node; /* 0: none yet */
    struct site *sites;
    uint32_t sites_count;
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

static uint32_t site_of(struct floor *floor, uint32_t node) {
    if (floor->part != AT_ITS_SITE) {
        return 0;
    }
    if (floor->site_of_node[node] == 0) {
        floor->site_of_node[node] = ++floor->sites_count;
    }
    return floor->site_of_node[node];
}

/* Returns the block's site and bytes. */
static struct ml_live_block
put_or_take(struct floor *floor, const struct ml_event_plain *event, uint64_t hash) {
    struct ml_live_block block = {
        .weight_bytes = event->size_bytes, .weight_blocks = 1, .size_bytes = event->size_bytes};
    if (event->kind != ML_EVENT_ALLOC) {
        (void)ml_live_map_remove(&floor->map, event->address, hash, &block);
        return block;
    }
    block.cell = site_of(floor, event->node);
    if (!ml_live_fits_slot(hash, event->size_bytes) ||
        !ml_live_map_put_fast(
            &floor->map, ml_live_map_home(&floor->map, hash), hash, event->size_bytes, block.cell
        )) {
        struct ml_live_block old;
        (void)ml_live_map_put(&floor->map, event->address, hash, &block, &old);
    }
    return block;
}

static void count(struct site *site, enum ml_event_kind kind, uint64_t bytes) {
    if (kind == ML_EVENT_ALLOC) {
        site->live_bytes += bytes;
        site->live_blocks++;
        site->total_bytes += bytes;
        site->total_blocks++;
    } else {
        site->live_bytes -= bytes;
        site->live_blocks--;
    }
}

static enum ml_status map_run(struct floor *floor, uint32_t events) {
    uint64_t hashes[ML_STREAM_RUN_EVENTS];
    struct ml_live_block blocks[ML_STREAM_RUN_EVENTS];
    enum ml_status status = ml_live_map_reserve(&floor->map, events);
    for (uint32_t i = 0; status == ML_OK && i < events; i++) {
        hashes[i] = ml_live_map_hash(&floor->map, floor->run[i].address);
        ml_live_map_prefetch(&floor->map, hashes[i]);
        if (floor->part == AT_ITS_SITE) {
            __builtin_prefetch(&floor->site_of_node[floor->run[i].node]);
        }
    }
    for (uint32_t i = 0; status == ML_OK && i < events; i++) {
        status = ml_live_map_reserve_wide(&floor->map);
        blocks[i] = put_or_take(floor, &floor->run[i], hashes[i]);
        if (floor->part == AT_ITS_SITE) {
            __builtin_prefetch(&floor->sites[blocks[i].cell], 1);
        }
    }
    for (uint32_t i = 0; status == ML_OK && floor->part == AT_ITS_SITE && i < events; i++) {
        count(&floor->sites[blocks[i].cell], floor->run[i].kind, blocks[i].weight_bytes);
    }
    return status;
}

static enum ml_status on_run(void *context, uint32_t lane, uint32_t events, uint64_t size_bytes) {
    struct floor *floor = context;
    (void)lane;
    (void)size_bytes;
    floor->events += events;
    return floor->part == DECODED ? ML_OK : map_run(floor, events);
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
static double run_once(struct floor *floor, const struct stream *stream, enum part part) {
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
    floor->part = part;
    floor->sites_count = 0;
    floor->site_of_node = calloc(NODES_MAX, sizeof(*floor->site_of_node));
    floor->sites = calloc(NODES_MAX + 1, sizeof(*floor->sites)); /* untouched pages cost nothing */
    if (floor->site_of_node == NULL || floor->sites == NULL) {
        replay_die("no memory");
    }
    ml_live_map_init(&floor->map, &floor->budget, 1);
    ml_stream_reader_init(&floor->reader, &floor->budget, &sink, 0);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    for (size_t at = 0; at < stream->count; at += sizeof(pipe)) {
        const size_t left = stream->count - at;
        const size_t bytes = left < sizeof(pipe) ? left : sizeof(pipe);
        memcpy(pipe, stream->bytes + at, bytes);
        const enum ml_status status = ml_stream_reader_feed(&floor->reader, pipe, bytes);
        if (status != ML_OK) {
            replay_die(ml_status_text(status));
        }
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    ml_stream_reader_fini(&floor->reader);
    ml_live_map_fini(&floor->map);
    free(floor->site_of_node);
    free(floor->sites);
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
median_of(struct floor *floor, const struct stream *stream, enum part part, unsigned repeat) {
    double *times = calloc(repeat, sizeof(*times));
    if (times == NULL) {
        replay_die("no memory");
    }
    for (unsigned i = 0; i < repeat; i++) {
        times[i] = run_once(floor, stream, part);
    }
    qsort(times, repeat, sizeof(*times), by_value);
    const double median = times[repeat / 2];
    free(times);
    return median;
}

int replay_floor(char *const *paths, unsigned paths_count, unsigned repeat) {
    static struct floor floor;
    static const char *const names[PARTS] = {
        [DECODED] = "decoded                ",
        [IN_THE_MAP] = "and put in the map     ",
        [AT_ITS_SITE] = "and counted at its site",
    };
    for (unsigned i = 0; i < paths_count; i++) {
        struct stream stream = {.bytes = NULL};
        replay_read_file(&stream, paths[i]);
        printf("%s\n", paths[i]);
        for (enum part part = DECODED; part < PARTS; part++) {
            const double ns = median_of(&floor, &stream, part, repeat);
            printf("  %s %5.1f ns an event, %.1f million events/s\n", names[part], ns, 1e3 / ns);
        }
        free(stream.bytes);
    }
    return EXIT_SUCCESS;
}
