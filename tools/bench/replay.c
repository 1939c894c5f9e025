/* replay FILE | replay --synthetic EVENTS LIVE LANES: how fast the service's core takes a stream on
 * one core. Room: tools (testonly: it links the service's core, no shipped tool does).
 *
 * One rule: what is timed is what the service does with bytes that it has read: decode, sequence,
 * track. The file is in memory before the clock starts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ipc/event.h"
#include "service/session.h"

enum {
    READ_BYTES = 1 << 16,  /* a read of the pipe */
    ROUND_BYTES = 1 << 18, /* read between two advances */
    NODES = 5000
};

struct stream {
    uint8_t *bytes;
    size_t count, capacity;
};

static void die(const char *what) {
    fprintf(stderr, "replay: %s\n", what);
    exit(EXIT_FAILURE);
}

static void append(struct stream *stream, const void *bytes, size_t count) {
    if (stream->capacity - stream->count < count) {
        stream->capacity = (stream->count + count) * 2;
        stream->bytes = realloc(stream->bytes, stream->capacity);
        if (stream->bytes == NULL) {
            die("no memory");
        }
    }
    memcpy(stream->bytes + stream->count, bytes, count);
    stream->count += count;
}

static void read_file(struct stream *stream, const char *path) {
    static uint8_t buffer[READ_BYTES];
    FILE *in = fopen(path, "rb");
    if (in == NULL) {
        die("cannot open the file");
    }
    size_t got = 0;
    do {
        got = fread(buffer, 1, sizeof(buffer), in);
        append(stream, buffer, got);
    } while (got > 0);
    fclose(in);
}

/* ---- a stream without a program */

struct lane {
    uint64_t chunk;
    size_t bytes;
    struct ml_event_state state;
    uint8_t payload[ML_CHUNK_MAX_BYTES];
};

static void flush(struct stream *stream, struct lane *lane, unsigned index) {
    uint8_t header_bytes[ML_FRAME_HEADER_BYTES];
    const struct ml_frame_header header = {
        .chunk_number = lane->chunk++,
        .end_bytes = (uint16_t)lane->bytes,
        .lane = (uint16_t)index,
    };
    ml_frame_header_write(header_bytes, &header);
    append(stream, header_bytes, sizeof(header_bytes));
    append(stream, lane->payload, lane->bytes);
    lane->bytes = 0;
    lane->state = (struct ml_event_state){0};
}

static void
emit(struct stream *stream, struct lane *lane, unsigned index, const struct ml_event *event) {
    for (;;) {
        struct ml_writer w =
            ml_writer_into(lane->payload + lane->bytes, sizeof(lane->payload) - lane->bytes);
        const enum ml_status status = ml_event_encode(&w, &lane->state, event);
        if (status == ML_OK) {
            lane->bytes += ml_writer_count(&w);
            return;
        }
        if (status != ML_BUG_SPACE) {
            die(ml_status_text(status));
        }
        flush(stream, lane, index);
    }
}

static uint32_t pick(uint32_t below) {
    static uint64_t state = 88172645463325252;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)((state >> 32) % below);
}

/* Blocks come and go at random; half of the time a thread stays at one place of the program. */
static void make(struct stream *stream, uint64_t events, uint32_t live, unsigned lanes_count) {
    struct lane *lanes = calloc(lanes_count, sizeof(*lanes));
    uint8_t *used = calloc(live, 1);
    uint32_t node = 1;
    uint64_t time = 1;
    if (lanes == NULL || used == NULL) {
        die("no memory");
    }
    for (uint32_t id = 1; id < NODES; id++) {
        const struct ml_event event = {
            .kind = ML_EVENT_NODE,
            .node = {.id = id, .parent = pick(id), .address = 0x400000 + 16 * (uint64_t)id}};
        emit(stream, &lanes[0], 0, &event);
    }
    for (uint64_t i = 0; i < events; i++) {
        const unsigned lane = pick(lanes_count);
        const uint32_t place = pick(live);
        struct ml_event event = {.kind = ML_EVENT_FREE, .time = time};
        event.block.address = 0x7f0000000000 + 64 * (uint64_t)place;
        if (used[place] == 0) {
            node = pick(2) == 0 ? node : 1 + pick(NODES - 1);
            event.kind = ML_EVENT_ALLOC;
            event.block.size_bytes = 16U << node % 6;
            event.block.weight_bytes = event.block.size_bytes;
            event.block.weight_blocks = 1;
            event.block.node = node;
        }
        used[place] ^= 1;
        time += 1 + pick(200);
        emit(stream, &lanes[lane], lane, &event);
    }
    for (unsigned i = 0; i < lanes_count; i++) {
        flush(stream, &lanes[i], i);
    }
    free(lanes);
    free(used);
}

/* ---- replaying */

/* Of processor time: other programs do not count. */
static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* The lanes that the file has. */
static uint32_t count_lanes(const struct stream *stream) {
    struct ml_reader r = ml_reader_over(stream->bytes, stream->count);
    struct ml_frame_header header = {.lane = 0};
    const uint8_t *payload = NULL;
    uint32_t count = 0;
    while (ml_frame_header_read(&r, &header) == ML_OK &&
           ml_reader_bytes(&r, (size_t)(header.end_bytes - header.start_bytes), &payload) == ML_OK
    ) {
        count = header.lane + 1U > count ? header.lane + 1U : count;
    }
    return count;
}

/* All lanes look busy for ever: each is known as far as it has come. */
static void advance(struct ml_session *session, struct ml_client *client, uint32_t lanes_count) {
    static struct ml_staging_lane lanes[ML_LANES_MAX];
    const struct ml_staging_header header = {
        .magic = ML_STAGING_MAGIC, .version = ML_STAGING_VERSION, .slots = 1};
    struct ml_client_want want;
    size_t wanted = 0;
    for (uint32_t i = 0; i < lanes_count; i++) {
        lanes[i].published = ML_PUBLISHED_BUSY;
    }
    if (ml_client_lanes(client, &header, lanes, lanes_count, &want, 1, &wanted) != ML_OK ||
        ml_session_advance(session, UINT64_MAX) != ML_OK) {
        die(ml_status_text(ml_client_status(client)));
    }
}

static void replay(const struct stream *stream) {
    const struct ml_moment start = {.ticks = 1};
    const struct ml_client_setup setup = {.id = 1, .pid = 1};
    const struct ml_client_end end = {.end = {.ticks = UINT64_MAX}};
    struct ml_session *session = ml_session_new(&start, 0);
    struct ml_client *client = NULL;
    if (session != NULL) {
        ml_session_patience(session, UINT64_MAX / 16);
    }
    if (session == NULL || ml_session_add(session, &setup, &client) != ML_OK) {
        die("no memory");
    }
    const uint32_t lanes_count = count_lanes(stream);
    const double begin = seconds();
    size_t round_bytes = 0;
    for (size_t at = 0; at < stream->count; at += READ_BYTES) {
        const size_t part = stream->count - at < READ_BYTES ? stream->count - at : READ_BYTES;
        const enum ml_status status = ml_client_feed(client, stream->bytes + at, part);
        if (status != ML_OK) {
            die(ml_status_text(status));
        }
        round_bytes += part;
        if (round_bytes >= ROUND_BYTES) {
            advance(session, client, lanes_count);
            round_bytes = 0;
        }
    }
    if (ml_client_ended(client, &end) != ML_OK) {
        die("not ended");
    }
    const double took = seconds() - begin;
    const struct ml_client_figures figures = ml_client_figures(client);
    printf(
        "%.1f million events/s: %llu events, %.2f bytes each, %.3f s\n"
        "late %llu, unknown frees %llu, live %llu, peak %llu\n",
        (double)figures.events / took / 1e6,
        (unsigned long long)figures.events,
        (double)stream->count / (double)figures.events,
        took,
        (unsigned long long)figures.late_events,
        (unsigned long long)figures.unknown_frees,
        (unsigned long long)figures.totals.live_bytes,
        (unsigned long long)figures.totals.peak_bytes
    );
    ml_session_free(session);
}

int main(int argc, char **argv) {
    struct stream stream = {NULL, 0, 0};
    if (argc == 5 && strcmp(argv[1], "--synthetic") == 0) {
        const unsigned long live = strtoul(argv[3], NULL, 0);
        const unsigned long lanes = strtoul(argv[4], NULL, 0);
        if (live == 0 || live > UINT32_MAX || lanes == 0 || lanes > ML_LANES_MAX) {
            die("LIVE and LANES are at least 1, LANES at most 8192");
        }
        make(&stream, strtoull(argv[2], NULL, 0), (uint32_t)live, (unsigned)lanes);
    } else if (argc == 2) {
        read_file(&stream, argv[1]);
    } else {
        fputs("usage: replay STREAM | replay --synthetic EVENTS LIVE LANES\n", stderr);
        return 2;
    }
    replay(&stream);
    free(stream.bytes);
    return EXIT_SUCCESS;
}
