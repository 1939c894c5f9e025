/* replay [--repeat=N] STREAM | replay [--repeat=N] --synthetic EVENTS LIVE LANES: how fast the
 * service's core takes a stream on one core, and what it remembers takes, as a line of JSON. Room:
 * tools (testonly: it links the service's core, no shipped tool does).
 *
 * One rule: what is timed is what the service does with bytes that it has read: decode, sequence,
 * track. The stream is in memory before the clock starts, and the clock is of processor time.
 *
 * STREAM is a process's stream as out/capture_tool --streams=FOLDER PROGRAM keeps it, cut into
 * reads and rounds as the service makes them; each read is copied first, as the kernel would.
 * --synthetic makes EVENTS allocations and frees at random addresses, on LANES threads, around LIVE
 * live blocks; making those is not timed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ipc/wire/event.h"
#include "service/session/client.h"
#include "service/session/figures.h"
#include "service/session/session.h"

enum {
    READ_BYTES = 1 << 16,  /* a read of the pipe */
    ROUND_BYTES = 1 << 18, /* read between two advances */
    NODES = 5000
};

struct stream {
    uint8_t *bytes;
    size_t count, capacity;
    size_t untimed; /* bytes in front that are only there to begin with */
};

/* One line on stderr, and the end. */
static _Noreturn void die(const char *what) {
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

/* LIVE of twice as many places are taken, which is not timed; then blocks come and go at random.
 * Half of the time a thread stays at one place of the program. */
static void make(struct stream *stream, uint64_t events, uint32_t live, unsigned lanes_count) {
    struct lane *lanes = calloc(lanes_count, sizeof(*lanes));
    uint8_t *used = calloc((size_t)live * 2, 1);
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
    for (uint64_t i = 0; i < live + events; i++) {
        const unsigned lane = i < live ? 0 : pick(lanes_count);
        const uint32_t place = i < live ? (uint32_t)i * 2 : pick(live * 2);
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
        if (i == live) {
            flush(stream, &lanes[0], 0);
            stream->untimed = stream->count;
        }
        emit(stream, &lanes[lane], lane, &event);
    }
    for (unsigned i = 0; i < lanes_count; i++) {
        if (lanes[i].bytes > 0) {
            flush(stream, &lanes[i], i);
        }
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

/* What one replay has shown. */
struct result {
    double seconds;
    uint64_t events, timed_events;
    struct ml_session_memory memory; /* when most blocks were live */
};

/* The session with its one client, and how far it has got. */
struct player {
    struct ml_session *session;
    struct ml_client *client;
    uint32_t lanes_count;
    size_t round_bytes;
};

static struct player open_player(const struct stream *stream) {
    const struct ml_timestamp start = {.ticks = 1};
    const struct ml_client_setup setup = {.id = 1, .pid = 1};
    struct player player = {
        .session = ml_session_new(&start, 0), .lanes_count = count_lanes(stream)};
    if (player.session != NULL) {
        ml_session_patience(player.session, UINT64_MAX / 16);
    }
    if (player.session == NULL || ml_session_add(player.session, &setup, &player.client) != ML_OK) {
        die("no memory");
    }
    return player;
}

/* [at, end) of the stream. */
static void feed(
    struct player *player, const struct stream *stream, size_t at, size_t end, struct result *out
) {
    static uint8_t pipe[READ_BYTES];
    while (at < end) {
        const size_t part = end - at < READ_BYTES ? end - at : READ_BYTES;
        memcpy(pipe, stream->bytes + at, part);
        const enum ml_status status = ml_client_feed(player->client, pipe, part);
        if (status != ML_OK) {
            die(ml_status_text(status));
        }
        at += part;
        player->round_bytes += part;
        if (player->round_bytes >= ROUND_BYTES || at == end) {
            advance(player->session, player->client, player->lanes_count);
            player->round_bytes = 0;
            const struct ml_session_memory memory = ml_session_memory(player->session);
            if (memory.blocks >= out->memory.blocks) {
                out->memory = memory;
            }
        }
    }
}

static struct result replay(const struct stream *stream) {
    const struct ml_client_end end = {.end = {.ticks = UINT64_MAX}};
    struct result result = {.seconds = 0};
    struct player player = open_player(stream);
    feed(&player, stream, 0, stream->untimed, &result);
    const uint64_t untimed_events = ml_client_figures(player.client).events;
    const double begin = seconds();
    feed(&player, stream, stream->untimed, stream->count, &result);
    if (ml_client_ended(player.client, &end) != ML_OK) {
        die("not ended");
    }
    result.seconds = seconds() - begin;
    result.events = ml_client_figures(player.client).events;
    result.timed_events = result.events - untimed_events;
    ml_session_free(player.session);
    return result;
}

static int by_seconds(const void *a, const void *b) {
    const struct result *first = a;
    const struct result *second = b;
    return (first->seconds > second->seconds) - (first->seconds < second->seconds);
}

static double each(uint64_t bytes, uint64_t count) {
    return count == 0 ? 0 : (double)bytes / (double)count;
}

static void report(const struct stream *stream, unsigned repeat) {
    struct result *results = calloc(repeat, sizeof(*results));
    if (results == NULL) {
        die("no memory");
    }
    for (unsigned i = 0; i < repeat; i++) {
        results[i] = replay(stream);
    }
    qsort(results, repeat, sizeof(*results), by_seconds);
    const struct result *median = &results[repeat / 2];
    const struct ml_session_memory *memory = &median->memory;
    printf(
        "{\"events\": %llu, \"events_a_second\": %.0f, \"live_blocks\": %llu, "
        "\"bytes_a_block\": %.2f, \"cells\": %llu, \"bytes_a_cell\": %.2f}\n",
        (unsigned long long)median->events,
        (double)median->timed_events / median->seconds,
        (unsigned long long)memory->blocks,
        each(memory->blocks_bytes, memory->blocks),
        (unsigned long long)memory->cells,
        each(memory->cells_bytes, memory->cells)
    );
    free(results);
}

static int usage(void) {
    fputs(
        "usage: replay [--repeat=N] STREAM\n"
        "       replay [--repeat=N] --synthetic EVENTS LIVE LANES\n",
        stderr
    );
    return 2;
}

int main(int argc, char **argv) {
    static const char repeat_word[] = "--repeat=";
    unsigned long repeat = 1;
    int at = 1;
    if (argc > 1 && strncmp(argv[1], repeat_word, sizeof(repeat_word) - 1) == 0) {
        repeat = strtoul(argv[1] + sizeof(repeat_word) - 1, NULL, 10);
        at++;
    }
    struct stream stream = {.bytes = NULL};
    if (repeat < 1 || repeat > 1000) {
        return usage();
    }
    if (argc - at == 1) {
        read_file(&stream, argv[at]);
    } else if (argc - at == 4 && strcmp(argv[at], "--synthetic") == 0) {
        const unsigned long live = strtoul(argv[at + 2], NULL, 0);
        const unsigned long lanes = strtoul(argv[at + 3], NULL, 0);
        if (live == 0 || live > UINT32_MAX / 2 || lanes == 0 || lanes > ML_LANES_MAX) {
            die("LIVE and LANES are at least 1, LANES at most 8192");
        }
        make(&stream, strtoull(argv[at + 1], NULL, 0), (uint32_t)live, (unsigned)lanes);
    } else {
        return usage();
    }
    report(&stream, (unsigned)repeat);
    free(stream.bytes);
    return EXIT_SUCCESS;
}
