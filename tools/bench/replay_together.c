/* Streams of several processes, replayed as one tree. Room: tools (testonly).
 *
 * The streams were recorded one after another: their stamps are moved to one start and stretched to
 * one span, that of the shortest, so that events of all of them follow each other closely and the
 * tree's peak has to be found among them. In each round every stream is fed up to the same stamp.
 * With 0 workers every slice is merged event by event, as a reference. What is timed is the wall
 * clock, and beside it the processor time of all workers. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ipc/wire/event.h"
#include "service/session/session.h"
#include "service/workers/workers.h"
#include "tools/bench/replay.h"

enum {
    STREAMS_MAX = 64,
    RUNS_MAX = 8 /* numbers of workers in one call */
};

/* A frame of a stream: everything in it is stamped from `first_time` on. */
struct frame {
    size_t end;
    uint64_t first_time;
    uint64_t left_time; /* the least stamp of this frame and of all behind it */
};

struct process {
    struct stream stream;
    struct frame *frames;
    size_t frames_count, frames_capacity;
    /* While it is replayed: */
    struct ml_client *client;
    size_t at, end; /* fed, and to be fed in this round */
    size_t frame;   /* the first that is not wholly fed */
};

struct tree {
    struct process processes[STREAMS_MAX];
    unsigned count;
    size_t bytes;
    uint64_t span; /* stamps are from 1 to this */
};

struct outcome {
    double wall_s;
    double cpu_s, main_s; /* of all workers; of the thread that merges */
    uint64_t events;
    struct ml_totals totals;
    uint64_t shares; /* of all cells at the tree's peak, hashed */
};

/* ---- stamps */

static bool timed(const struct ml_event *event) {
    switch (event->kind) {
    case ML_EVENT_ALLOC:
    case ML_EVENT_FREE:
    case ML_EVENT_RESIZE:
    case ML_EVENT_CANCEL:
    case ML_EVENT_FORK:
    case ML_EVENT_REAPED:
    case ML_EVENT_END:
        return true;
    default:
        return false;
    }
}

/* Maps [first, last] to [1, span]. */
struct scale {
    uint64_t first, last, span;
};

static uint64_t scaled(const struct scale *scale, uint64_t time) {
    const double part = (double)(time - scale->first) / (double)(scale->last - scale->first + 1);
    return 1 + (uint64_t)(part * (double)scale->span);
}

typedef void on_record(void *context, struct ml_event *event);

/* Each record of a frame's payload. */
static void walk(const uint8_t *payload, size_t count, on_record *on, void *context) {
    struct ml_reader r = ml_reader_over(payload, count);
    struct ml_event_state state = {0};
    struct ml_event event;
    while (ml_reader_left(&r) > 0) {
        const enum ml_status status = ml_event_decode(&r, &state, &event);
        if (status != ML_OK) {
            replay_die(ml_status_text(status));
        }
        on(context, &event);
    }
}

static void widen(void *context, struct ml_event *event) {
    struct scale *scale = context;
    if (timed(event)) {
        scale->first = event->time < scale->first ? event->time : scale->first;
        scale->last = event->time > scale->last ? event->time : scale->last;
    }
}

struct rewriting {
    const struct scale *scale;
    struct ml_writer w;
    struct ml_event_state state;
    uint64_t first_time;
};

static void rewrite(void *context, struct ml_event *event) {
    struct rewriting *rewriting = context;
    if (timed(event)) {
        event->time = scaled(rewriting->scale, event->time);
        if (event->time < rewriting->first_time) {
            rewriting->first_time = event->time;
        }
    }
    const enum ml_status status = ml_event_encode(&rewriting->w, &rewriting->state, event);
    if (status != ML_OK) {
        replay_die(ml_status_text(status));
    }
}

/* Each frame of a stream; one that is cut off is its end. */
static bool
next_frame(struct ml_reader *r, struct ml_frame_header *out_header, const uint8_t **out_payload) {
    if (ml_frame_header_read(r, out_header) != ML_OK) {
        return false;
    }
    if (out_header->start_bytes != 0) {
        replay_die("not a stream of whole chunks");
    }
    return ml_reader_bytes(r, out_header->end_bytes, out_payload) == ML_OK;
}

static struct scale scale_of(const struct stream *stream) {
    struct scale scale = {.first = UINT64_MAX};
    struct ml_reader r = ml_reader_over(stream->bytes, stream->count);
    struct ml_frame_header header;
    const uint8_t *payload = NULL;
    while (next_frame(&r, &header, &payload)) {
        walk(payload, header.end_bytes, widen, &scale);
    }
    if (scale.first > scale.last) {
        replay_die("a stream without events");
    }
    return scale;
}

static void add_frame(struct process *process, uint64_t first_time) {
    if (process->frames_count == process->frames_capacity) {
        process->frames_capacity = process->frames_capacity * 2 + 1024;
        process->frames =
            realloc(process->frames, process->frames_capacity * sizeof(*process->frames));
        if (process->frames == NULL) {
            replay_die("no memory");
        }
    }
    process->frames[process->frames_count++] =
        (struct frame){.end = process->stream.count, .first_time = first_time};
}

/* The stream again, with stamps of that scale: none is longer than it was. */
static void restamp(struct process *process, const struct stream *from, const struct scale *scale) {
    static uint8_t chunk[ML_FRAME_HEADER_BYTES + 2 * ML_CHUNK_MAX_BYTES];
    struct ml_reader r = ml_reader_over(from->bytes, from->count);
    struct ml_frame_header header;
    const uint8_t *payload = NULL;
    while (next_frame(&r, &header, &payload)) {
        struct rewriting rewriting = {
            .scale = scale,
            .w = ml_writer_into(chunk + ML_FRAME_HEADER_BYTES, ML_CHUNK_MAX_BYTES),
            .first_time = UINT64_MAX};
        walk(payload, header.end_bytes, rewrite, &rewriting);
        header.end_bytes = (uint16_t)ml_writer_count(&rewriting.w);
        ml_frame_header_write(chunk, &header);
        replay_append(&process->stream, chunk, (size_t)ML_FRAME_HEADER_BYTES + header.end_bytes);
        add_frame(process, rewriting.first_time);
    }
    uint64_t left_time = UINT64_MAX;
    for (size_t i = process->frames_count; i-- > 0;) {
        struct frame *frame = &process->frames[i];
        left_time = frame->first_time < left_time ? frame->first_time : left_time;
        frame->left_time = left_time;
    }
}

static void read_tree(struct tree *tree, char *const *paths, unsigned count) {
    static struct stream streams[STREAMS_MAX];
    static struct scale scales[STREAMS_MAX];
    uint64_t span = UINT64_MAX;
    if (count > STREAMS_MAX) {
        replay_die("more than 64 streams");
    }
    tree->count = count;
    for (unsigned i = 0; i < count; i++) {
        replay_read_file(&streams[i], paths[i]);
        scales[i] = scale_of(&streams[i]);
        const uint64_t own = scales[i].last - scales[i].first + 1;
        span = own < span ? own : span;
    }
    tree->span = span;
    for (unsigned i = 0; i < count; i++) {
        scales[i].span = span;
        restamp(&tree->processes[i], &streams[i], &scales[i]);
        tree->bytes += tree->processes[i].stream.count;
        free(streams[i].bytes);
    }
}

/* ---- replaying */

static double now_of(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void feed_one(void *context, uint32_t item, unsigned worker) {
    static uint8_t pipes[ML_WORKERS_MAX][REPLAY_READ_BYTES];
    struct tree *tree = context;
    struct process *process = &tree->processes[item];
    ml_client_take(process->client, worker);
    while (process->at < process->end) {
        const size_t left = process->end - process->at;
        const size_t part = left < REPLAY_READ_BYTES ? left : REPLAY_READ_BYTES;
        memcpy(pipes[worker], process->stream.bytes + process->at, part);
        const enum ml_status status = ml_client_feed(process->client, pipes[worker], part);
        if (status != ML_OK) {
            replay_die(ml_status_text(status));
        }
        process->at += part;
    }
}

/* Nothing is published that was not fed; what is fed next is stamped behind the moment answered. */
static uint64_t look(struct process *process) {
    static const struct ml_staging_header header = {
        .magic = ML_STAGING_MAGIC, .version = ML_STAGING_VERSION, .slots = 1};
    static const struct ml_staging_lane no_lane;
    struct ml_client_want want;
    size_t wanted = 0;
    if (ml_client_lanes(process->client, &header, &no_lane, 0, &want, 1, &wanted) != ML_OK) {
        replay_die(ml_status_text(ml_client_status(process->client)));
    }
    while (process->frame < process->frames_count &&
           process->frames[process->frame].end <= process->at) {
        process->frame++;
    }
    return process->frame == process->frames_count ? UINT64_MAX
                                                   : process->frames[process->frame].left_time;
}

static void round_of(struct ml_session *session, struct ml_workers *workers, struct tree *tree) {
    uint64_t until = UINT64_MAX;
    ml_session_apart(session);
    ml_workers_run(workers, feed_one, tree, tree->count);
    ml_session_together(session);
    for (unsigned i = 0; i < tree->count; i++) {
        ml_client_give_back(tree->processes[i].client);
    }
    for (unsigned i = 0; i < tree->count; i++) {
        const uint64_t next = look(&tree->processes[i]);
        until = next < until ? next : until;
    }
    if (ml_session_advance(session, until - 1) != ML_OK) {
        replay_die("cannot be applied");
    }
}

static void open_clients(struct ml_session *session, struct tree *tree) {
    for (unsigned i = 0; i < tree->count; i++) {
        struct process *process = &tree->processes[i];
        const struct ml_client_setup setup = {.id = i + 1, .pid = i + 1};
        process->at = 0;
        process->frame = 0;
        if (ml_session_add(session, &setup, &process->client) != ML_OK) {
            replay_die("no memory");
        }
    }
}

/* The end of the last frame that begins by then. */
static size_t end_by(const struct process *process, uint64_t time) {
    size_t end = process->at;
    for (size_t i = process->frame;
         i < process->frames_count && process->frames[i].first_time <= time;
         i++) {
        end = process->frames[i].end;
    }
    return end;
}

static size_t bytes_by(const struct tree *tree, uint64_t time) {
    size_t bytes = 0;
    for (unsigned i = 0; i < tree->count; i++) {
        bytes += end_by(&tree->processes[i], time) - tree->processes[i].at;
    }
    return bytes;
}

/* Rounds of about as many bytes as the service makes them of. Nobody is ended: a tree that ends has
 * no more to it than its last round. */
static void play(struct ml_session *session, struct ml_workers *workers, struct tree *tree) {
    const size_t wanted = (size_t)REPLAY_ROUND_BYTES * tree->count + 1;
    uint64_t step = tree->span / (tree->bytes / wanted + 1) + 1;
    for (uint64_t time = 0; time <= tree->span;) {
        while (step > 1 && bytes_by(tree, time + step) > 2 * wanted) {
            step /= 2;
        }
        time += step;
        step = bytes_by(tree, time) < wanted / 2 ? step * 2 : step;
        for (unsigned i = 0; i < tree->count; i++) {
            tree->processes[i].end = end_by(&tree->processes[i], time);
        }
        round_of(session, workers, tree);
    }
}

static uint64_t hash_of(const struct ml_snapshot *snapshot) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (uint32_t i = 0; i < snapshot->processes_count; i++) {
        const struct ml_snapshot_process *process = &snapshot->processes[i];
        for (uint32_t k = 0; k < process->cells_count; k++) {
            const struct ml_snapshot_cell *cell = &process->cells[k];
            const uint64_t figures[] = {
                cell->tree_peak_bytes,
                cell->tree_peak_blocks,
                cell->own.peak_bytes,
                cell->own.live_bytes,
                cell->own.total_bytes};
            for (size_t n = 0; n < sizeof(figures) / sizeof(figures[0]); n++) {
                hash = (hash ^ figures[n]) * UINT64_C(0x100000001b3);
            }
        }
    }
    return hash;
}

static struct outcome replay(struct tree *tree, unsigned workers_count) {
    const struct ml_timestamp start = {.ticks = 1};
    struct outcome outcome = {.events = 0};
    struct ml_workers *workers = ml_workers_new(workers_count > 0 ? workers_count : 1);
    struct ml_session *session = ml_session_new(&start, 0);
    struct ml_snapshot *snapshot = NULL;
    if (session == NULL || ml_workers_count(workers) < workers_count) {
        replay_die("no memory, or no threads");
    }
    ml_session_patience(session, UINT64_MAX / 16);
    ml_session_workers(session, workers, workers_count > 0 ? ML_SESSION_LEAST_EVENTS : UINT64_MAX);
    open_clients(session, tree);
    outcome.wall_s = -now_of(CLOCK_MONOTONIC);
    outcome.cpu_s = -now_of(CLOCK_PROCESS_CPUTIME_ID);
    outcome.main_s = -now_of(CLOCK_THREAD_CPUTIME_ID);
    play(session, workers, tree);
    outcome.wall_s += now_of(CLOCK_MONOTONIC);
    outcome.cpu_s += now_of(CLOCK_PROCESS_CPUTIME_ID);
    outcome.main_s += now_of(CLOCK_THREAD_CPUTIME_ID);
    for (unsigned i = 0; i < tree->count; i++) {
        outcome.events += ml_client_figures(tree->processes[i].client).events;
    }
    outcome.totals = ml_session_totals(session);
    if (ml_session_snapshot(session, NULL, 0, &snapshot) != ML_OK) {
        replay_die("no memory");
    }
    outcome.shares = hash_of(snapshot);
    ml_snapshot_free(snapshot);
    ml_session_free(session);
    ml_workers_free(workers);
    return outcome;
}

/* ---- reporting */

static int by_wall(const void *a, const void *b) {
    const struct outcome *first = a;
    const struct outcome *second = b;
    return (first->wall_s > second->wall_s) - (first->wall_s < second->wall_s);
}

static void report(unsigned workers, struct outcome *outcomes, unsigned count) {
    qsort(outcomes, count, sizeof(*outcomes), by_wall);
    const struct outcome *median = &outcomes[count / 2];
    const double events = (double)median->events / 1e6;
    printf(
        "  %2u worker%s %.1f million events/s, the median of %u (%.1f to %.1f); %.2f s of "
        "processor "
        "time, %.2f s of it in the thread that merges\n",
        workers,
        workers == 1 ? " " : "s",
        events / median->wall_s,
        count,
        events / outcomes[count - 1].wall_s,
        events / outcomes[0].wall_s,
        median->cpu_s,
        median->main_s
    );
}

static void compare(const struct outcome *is, const struct outcome *should) {
    if (is->shares != should->shares || is->events != should->events ||
        is->totals.peak_bytes != should->totals.peak_bytes ||
        is->totals.peak_blocks != should->totals.peak_blocks ||
        is->totals.live_bytes != should->totals.live_bytes) {
        replay_die("the figures of two replays differ: a fault of memlog");
    }
}

static unsigned parse_workers(const char *text, unsigned *out_counts) {
    unsigned count = 0;
    for (;;) {
        char *end = NULL;
        const unsigned long workers = strtoul(text, &end, 10);
        if (end == text || workers > ML_WORKERS_MAX || count == RUNS_MAX ||
            (*end != '\0' && *end != ',')) {
            replay_die("WORKERS is a list of up to 8 numbers from 0 to 16");
        }
        out_counts[count++] = (unsigned)workers;
        if (*end == '\0') {
            return count;
        }
        text = end + 1;
    }
}

int replay_together(
    const char *workers, char *const *paths, unsigned paths_count, unsigned repeat
) {
    static struct tree tree;
    unsigned counts[RUNS_MAX];
    const unsigned runs = parse_workers(workers, counts);
    struct outcome *outcomes = calloc((size_t)runs * repeat, sizeof(*outcomes));
    if (outcomes == NULL) {
        replay_die("no memory");
    }
    read_tree(&tree, paths, paths_count);
    for (unsigned i = 0; i < repeat; i++) {
        for (unsigned k = 0; k < runs; k++) {
            outcomes[k * repeat + i] = replay(&tree, counts[k]);
            compare(&outcomes[k * repeat + i], &outcomes[0]);
        }
    }
    printf(
        "%u streams together, %.1f million events; the tree's peak %llu bytes in %llu blocks, the "
        "same in all runs\n",
        tree.count,
        (double)outcomes[0].events / 1e6,
        (unsigned long long)outcomes[0].totals.peak_bytes,
        (unsigned long long)outcomes[0].totals.peak_blocks
    );
    for (unsigned k = 0; k < runs; k++) {
        report(counts[k], &outcomes[k * repeat], repeat);
    }
    for (unsigned i = 0; i < tree.count; i++) {
        free(tree.processes[i].stream.bytes);
        free(tree.processes[i].frames);
    }
    free(outcomes);
    return EXIT_SUCCESS;
}
