/* How long a dump of a large tree keeps pipes waiting: processor time from one rest to the next,
 * at each of which the service reads its pipes, while it copies its tables and while it writes.
 * Room: tools (testonly).
 *
 * One rule: as replay.c's, the clock is of processor time. The kernel's part of writing is a copy,
 * as into its page cache. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ipc/wire/event.h"
#include "service/dump/writer.h"
#include "service/session/session.h"
#include "tools/bench/replay.h"

enum { CACHE_BYTES = 1 << 20 };

static double now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

/* Rests, and the longest time without one. */
struct clocked {
    double begin_ms, last_ms, longest_ms;
    unsigned rests;
};

static struct clocked begin(void) {
    const double now = now_ms();
    return (struct clocked){.begin_ms = now, .last_ms = now};
}

static void rest(void *context) {
    struct clocked *clocked = context;
    const double now = now_ms();
    const double without_ms = now - clocked->last_ms;
    clocked->longest_ms = without_ms > clocked->longest_ms ? without_ms : clocked->longest_ms;
    clocked->last_ms = now;
    clocked->rests++;
}

static void report(const char *what, const struct clocked *clocked) {
    printf(
        "  %-6s %7.1f ms, %6u rests, the longest time without one %.1f ms\n",
        what,
        clocked->last_ms - clocked->begin_ms,
        clocked->rests,
        clocked->longest_ms
    );
}

static enum ml_status swallow(void *context, const uint8_t *bytes, size_t count_bytes) {
    static uint8_t cache[CACHE_BYTES];
    for (size_t at = 0; at < count_bytes; at += sizeof(cache)) {
        const size_t left = count_bytes - at;
        memcpy(cache, bytes + at, left < sizeof(cache) ? left : sizeof(cache));
    }
    rest(context);
    return ML_OK;
}

/* One more process that has done what the stream says. */
static void add(struct ml_session *session, uint32_t id, const struct stream *stream) {
    const struct ml_client_setup setup = {.id = id, .pid = id, .start = {.ticks = 1}};
    const struct ml_staging_header header = {
        .magic = ML_STAGING_MAGIC, .version = ML_STAGING_VERSION, .slots = 1};
    const struct ml_staging_lane lane = {.published = ML_PUBLISHED_BUSY};
    struct ml_client *client = NULL;
    struct ml_client_want want;
    size_t wanted = 0;
    if (ml_session_add(session, &setup, &client) != ML_OK ||
        ml_client_feed(client, stream->bytes, stream->count) != ML_OK ||
        ml_client_lanes(client, &header, &lane, 1, &want, 1, &wanted) != ML_OK ||
        ml_session_advance(session, UINT64_MAX) != ML_OK) {
        replay_die("the service's core does not take it");
    }
}

static void dump(struct ml_session *session) {
    struct ml_snapshot *snapshot = NULL;
    uint64_t written_bytes = 0;
    struct clocked copying = begin();
    if (ml_session_begin_snapshot(session, NULL, 0, &snapshot) != ML_OK) {
        replay_die("no memory");
    }
    rest(&copying);
    const struct ml_rest resting = {.take = rest, .context = &copying};
    if (ml_session_copy_tables(session, snapshot, &resting) != ML_OK) {
        replay_die("no memory");
    }
    rest(&copying);
    struct clocked writing = begin();
    const struct ml_dump_sink sink = {.write = swallow, .rest = rest, .context = &writing};
    const enum ml_status status = ml_dump_write(snapshot, &sink, &written_bytes);
    rest(&writing);
    ml_snapshot_free(snapshot);
    if (status != ML_OK) {
        replay_die(ml_status_text(status));
    }
    printf("dump of %.1f MB\n", (double)written_bytes / 1e6);
    report("copied", &copying);
    report("written", &writing);
}

int replay_dump(const char *path, uint32_t processes, unsigned repeat) {
    const struct ml_timestamp start = {.ticks = 1};
    struct stream stream = {.bytes = NULL};
    replay_read_file(&stream, path);
    struct ml_session *session = ml_session_new(&start, 0);
    if (session == NULL) {
        replay_die("no memory");
    }
    for (uint32_t id = 1; id <= processes; id++) {
        add(session, id, &stream);
    }
    for (unsigned i = 0; i < repeat; i++) {
        dump(session);
    }
    ml_session_free(session);
    free(stream.bytes);
    return EXIT_SUCCESS;
}
