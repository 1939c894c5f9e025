#include "service/ingest/readers.h"

#include <ev.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "service/ingest/client_io.h"
#include "service/ingest/poll_policy.h"
#include "service/session/client.h"
#include "service/session/session.h"
#include "service/workers/workers.h"

enum {
    /* Ids are the host's, counted from 1: a bucket holds a handful even with the most clients. */
    BUCKETS_COUNT = 4096,
    /* Pipes read in one turn; the rest keep their places in the kernel's queue. */
    TURN_PIPES = 64,
    /* Turns in a row while other work waits: enough for a large pipe, twice. */
    DRAIN_TURNS = 8,
    /* One turn of the loop: a client's fair share. */
    SHARE_BYTES = 1 << 18,
    /* Bytes read since the last round: decoded, they wait in the session and fit a processor's own
     * cache. More with many clients, as a round visits each of them. */
    ROUND_BYTES = 1 << 18,
    ROUND_BYTES_EACH = 1 << 12,
    /* Read in the last look or round, by all: then several workers read the next. Reading and
     * decoding that takes one thread some 200 us, several times the cost of waking the others. */
    SHARED_OUT_BYTES = 1 << 16
};

/* Interval of rounds while there is activity, and the longest one. Dumps and figures make their own
 * rounds, so the latter only bounds how long data waits in staging. */
static const double active_interval_s = 0.05;
static const double idle_interval_s = 1.0;
/* While a client is stuffed, its thread that delays the others needs the processor more than we do.
 */
static const double full_interval_s = 0.002;
static const double look_interval_s = ML_POLL_LOOK_NS / 1e9;

struct reader {
    struct ml_client_io io; /* first: what the epoll names */
    struct ml_readers *readers;
    struct reader *next; /* in its bucket */
    struct ml_client_end end;
    struct ml_poll_policy_pipe poll_policy;
    /* Of the last reading: */
    enum ml_status status;
    uint64_t bytes;
    bool active;
    bool stuffed; /* it was broken off */
};

struct ml_readers {
    struct ml_readers_options options;
    struct ml_io_scratch *scratches[ML_WORKERS_MAX]; /* one a worker */
    struct reader **batch;                           /* who is read now; room for all */
    uint32_t batch_count, batch_capacity;
    uint64_t recent_bytes; /* read in the last look or round */
    struct reader *buckets[BUCKETS_COUNT];
    uint32_t count;
    ev_io pipes;   /* some pipe has data; while we sleep on them */
    ev_timer look; /* time to poll; else */
    ev_timer timer;
    struct ml_poll_policy poll_policy;
    bool somebody_full;
    bool more;              /* the last turn left something in a pipe */
    uint64_t drain_next_ns; /* when ml_readers_drain or _empty reads again */
    double interval_s;
    uint64_t unapplied_bytes; /* read since the last round */
    bool full;                /* somebody's pipe was not read on */
    bool in_round;
};

static struct reader **find(struct ml_readers *readers, uint32_t id) {
    struct reader **at = &readers->buckets[id % BUCKETS_COUNT];
    while (*at != NULL && (*at)->io.id != id) {
        at = &(*at)->next;
    }
    return at;
}

static void remove_reader(struct ml_readers *readers, struct reader **at) {
    struct reader *reader = *at;
    *at = reader->next;
    readers->count--;
    free(reader);
}

/* Its process has ended, and it is wholly read or lost: remove it from the readers.
 */
static void finish(struct ml_readers *readers, struct reader **at) {
    struct reader *reader = *at;
    const enum ml_status status = ml_client_ended(reader->io.client, &reader->end);
    if (ml_status_family(status) == ML_FAMILY_BUG) {
        abort();
    }
    remove_reader(readers, at);
}

/* An error of this client alone: the others are not affected. */
static void lose(struct reader *reader, enum ml_status status) {
    if (ml_status_family(status) == ML_FAMILY_BUG) {
        abort();
    }
    ml_client_io_on(&reader->io, ML_IO_BROKEN);
    const char *loss = ml_client_loss(reader->io.client);
    const char *reason = loss != NULL ? loss : ml_status_text(status);
    ml_client_trouble(reader->io.client, reason);
    struct ml_readers *readers = reader->readers;
    readers->options.on_lost(readers->options.context, reader->io.id, reason);
}

/* ---- reading a batch of clients, by all workers when there is much data */

/* A share of its pipe. */
static void read_share(struct reader *reader, struct ml_io_scratch *scratch) {
    reader->status = ml_client_io_read_pipe(&reader->io, scratch, SHARE_BYTES);
}

/* Pipe and staging, as far as they go. */
static void read_round(struct reader *reader, struct ml_io_scratch *scratch) {
    reader->status = ml_client_io_round(&reader->io, scratch, &reader->active);
}

typedef void reading(struct reader *reader, struct ml_io_scratch *scratch);

struct batch {
    struct ml_readers *readers;
    reading *read;
};

static void read_one(void *context, uint32_t item, unsigned worker) {
    const struct batch *batch = context;
    struct reader *reader = batch->readers->batch[item];
    ml_client_take(reader->io.client, worker);
    const uint64_t before_bytes = reader->io.read_bytes;
    batch->read(reader, batch->readers->scratches[worker]);
    reader->bytes = reader->io.read_bytes - before_bytes;
    reader->stuffed = ml_client_stuffed(reader->io.client);
}

/* Continue the interrupted reads on this thread, which may apply surplus events. */
static void take_back(struct ml_readers *readers, struct reader *reader, reading *read) {
    ml_client_give_back(reader->io.client);
    if (reader->stuffed && reader->status == ML_OK) {
        const uint64_t before_bytes = reader->io.read_bytes;
        read(reader, readers->scratches[0]);
        reader->bytes += reader->io.read_bytes - before_bytes;
    }
}

/* Read the whole batch; each client keeps its result. */
static void read_batch(struct ml_readers *readers, reading *read) {
    struct batch batch = {.readers = readers, .read = read};
    const bool apart = readers->batch_count > 1 && readers->recent_bytes >= SHARED_OUT_BYTES &&
                       ml_workers_count(readers->options.workers) > 1;
    if (apart) {
        ml_session_apart(readers->options.session);
        ml_workers_run(readers->options.workers, read_one, &batch, readers->batch_count);
        ml_session_together(readers->options.session);
    }
    readers->recent_bytes = 0;
    for (uint32_t i = 0; i < readers->batch_count; i++) {
        struct reader *reader = readers->batch[i];
        if (apart) {
            take_back(readers, reader, read);
        } else {
            read_one(&batch, i, 0);
        }
        readers->recent_bytes += reader->bytes;
    }
}

/* Too many events of a client wait for a thread between stamp and publishing: do not read pipes
 * until the timer's next round. */
static bool somebody_full(const struct ml_readers *readers) {
    for (uint32_t i = 0; i < BUCKETS_COUNT; i++) {
        for (const struct reader *reader = readers->buckets[i]; reader != NULL;
             reader = reader->next) {
            const bool read_on = reader->io.state == ML_IO_STREAMING || reader->io.more;
            if (read_on && ml_client_full(reader->io.client)) {
                return true;
            }
        }
    }
    return false;
}

/* Read a share of each pipe that has data; returns whether any had. */
static bool read_ready(struct ml_readers *readers) {
    struct epoll_event ready[TURN_PIPES];
    const int count = epoll_wait(readers->options.pipes_fd, ready, TURN_PIPES, 0);
    readers->batch_count = 0;
    for (int i = 0; i < count; i++) {
        readers->batch[readers->batch_count++] = ready[i].data.ptr;
    }
    read_batch(readers, read_share);
    readers->more = count == TURN_PIPES;
    for (uint32_t i = 0; i < readers->batch_count; i++) {
        struct reader *reader = readers->batch[i];
        const bool full = ml_client_full(reader->io.client);
        const bool more = reader->bytes >= SHARE_BYTES || full;
        readers->more = readers->more || more;
        readers->unapplied_bytes += reader->bytes;
        readers->full = readers->full || full;
        ml_poll_policy_read(&readers->poll_policy, &reader->poll_policy, reader->bytes, more);
        if (reader->status != ML_OK) {
            lose(reader, reader->status);
        }
    }
    readers->poll_policy.urgent = readers->poll_policy.urgent || count == TURN_PIPES;
    return count > 0;
}

/* Sleep on the pipes, poll them by timer, or leave them alone. */
static void await_pipes(struct ml_readers *readers) {
    struct ev_loop *loop = readers->options.loop;
    const bool by_clock = readers->poll_policy.by_clock && !readers->somebody_full;
    if (by_clock || readers->somebody_full) {
        ev_io_stop(loop, &readers->pipes);
    } else {
        ev_io_start(loop, &readers->pipes);
    }
    if (by_clock) {
        ev_timer_start(loop, &readers->look);
    } else {
        ev_timer_stop(loop, &readers->look);
    }
}

static bool much_unapplied(const struct ml_readers *readers) {
    return readers->full ||
           readers->unapplied_bytes >= ROUND_BYTES + (uint64_t)readers->count * ROUND_BYTES_EACH;
}

static void look(struct ml_readers *readers) {
    const bool found = read_ready(readers);
    if (much_unapplied(readers)) {
        ml_readers_round(readers);
    } else if (found) {
        ml_readers_round_within(readers, active_interval_s);
    }
    ml_poll_policy_looked(&readers->poll_policy, ml_clock_monotonic_ns());
    await_pipes(readers);
}

static void on_pipes(struct ev_loop *loop, ev_io *watcher, int events) {
    (void)loop;
    (void)events;
    look(watcher->data);
}

static void on_look(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)loop;
    (void)events;
    look(watcher->data);
}

static void on_timer(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)loop;
    (void)events;
    ml_readers_round(watcher->data);
}

static void free_scratches(struct ml_readers *readers) {
    for (unsigned i = 0; i < ML_WORKERS_MAX; i++) {
        ml_io_scratch_free(readers->scratches[i]);
    }
}

struct ml_readers *ml_readers_new(const struct ml_readers_options *options) {
    struct ml_readers *readers = calloc(1, sizeof(*readers));
    if (readers == NULL) {
        return NULL;
    }
    readers->options = *options;
    readers->interval_s = idle_interval_s;
    for (unsigned i = 0; i < ml_workers_count(options->workers); i++) {
        readers->scratches[i] = ml_io_scratch_new();
        if (readers->scratches[i] == NULL) {
            free_scratches(readers);
            free(readers);
            return NULL;
        }
    }
    ev_io_init(&readers->pipes, on_pipes, options->pipes_fd, EV_READ);
    readers->pipes.data = readers;
    ev_io_start(options->loop, &readers->pipes);
    ev_timer_init(&readers->look, on_look, look_interval_s, look_interval_s);
    readers->look.data = readers;
    ev_timer_init(&readers->timer, on_timer, idle_interval_s, 0);
    readers->timer.data = readers;
    ev_timer_start(options->loop, &readers->timer);
    return readers;
}

void ml_readers_free(struct ml_readers *take_readers) {
    if (take_readers == NULL) {
        return;
    }
    ev_io_stop(take_readers->options.loop, &take_readers->pipes);
    ev_timer_stop(take_readers->options.loop, &take_readers->look);
    ev_timer_stop(take_readers->options.loop, &take_readers->timer);
    for (uint32_t i = 0; i < BUCKETS_COUNT; i++) {
        while (take_readers->buckets[i] != NULL) {
            struct reader *reader = take_readers->buckets[i];
            ml_client_io_on(&reader->io, ML_IO_BROKEN);
            remove_reader(take_readers, &take_readers->buckets[i]);
        }
    }
    free_scratches(take_readers);
    free(take_readers->batch);
    free(take_readers);
}

/* A batch may hold one more. */
static bool reserve_batch(struct ml_readers *readers) {
    if (readers->count < readers->batch_capacity) {
        return true;
    }
    const uint32_t wanted = readers->batch_capacity * 2 + TURN_PIPES;
    struct reader **batch = realloc(readers->batch, wanted * sizeof(struct reader *));
    if (batch == NULL) {
        return false;
    }
    readers->batch = batch;
    readers->batch_capacity = wanted;
    return true;
}

enum ml_status ml_readers_add(
    struct ml_readers *readers, struct ml_client *client, int take_pipe_fd, int take_staging_fd
) {
    struct reader *reader = reserve_batch(readers) ? calloc(1, sizeof(*reader)) : NULL;
    if (reader == NULL) {
        (void)close(take_pipe_fd);
        (void)close(take_staging_fd);
        return ML_ENV_MEMORY;
    }
    const uint32_t id = ml_client_face(client).id;
    const enum ml_status status = ml_client_io_open(
        &reader->io, client, id, readers->options.pipes_fd, take_pipe_fd, take_staging_fd
    );
    reader->readers = readers;
    reader->poll_policy.capacity_bytes = reader->io.pipe_bytes;
    reader->next = readers->buckets[id % BUCKETS_COUNT];
    readers->buckets[id % BUCKETS_COUNT] = reader;
    readers->count++;
    if (status == ML_OK) {
        ml_readers_round_within(readers, active_interval_s);
    }
    return status;
}

enum ml_status
ml_readers_end(struct ml_readers *readers, uint32_t id, const struct ml_client_end *end) {
    struct reader **at = find(readers, id);
    if (*at == NULL) {
        return ML_ENV_MISSING;
    }
    struct reader *reader = *at;
    reader->end = *end;
    ml_client_io_on(&reader->io, ML_IO_END);
    if (reader->io.state == ML_IO_ENDED) {
        finish(readers, at);
        return ML_OK;
    }
    /* Soon, not now: many ends that come together share a round. */
    ml_readers_round_within(readers, 0);
    return ML_OK;
}

/* Read all clients as far as possible; true when anything was new. */
static bool read_all(struct ml_readers *readers) {
    bool active = false;
    readers->batch_count = 0;
    for (uint32_t i = 0; i < BUCKETS_COUNT; i++) {
        for (struct reader *reader = readers->buckets[i]; reader != NULL; reader = reader->next) {
            if (reader->io.state != ML_IO_LOST) {
                reader->active = false;
                readers->batch[readers->batch_count++] = reader;
            }
        }
    }
    read_batch(readers, read_round);
    for (uint32_t i = 0; i < readers->batch_count; i++) {
        struct reader *reader = readers->batch[i];
        active = active || reader->active;
        if (reader->status != ML_OK) {
            const bool ending = reader->io.state == ML_IO_ENDING;
            lose(reader, reader->status);
            if (ending) {
                ml_client_io_on(&reader->io, ML_IO_END);
            }
        } else if (reader->io.state == ML_IO_ENDING && !reader->io.more) {
            ml_client_io_on(&reader->io, ML_IO_READ);
        }
    }
    return active;
}

/* Drop the clients whose events could not be applied. */
static void lose_refused(struct ml_readers *readers) {
    for (uint32_t i = 0; i < BUCKETS_COUNT; i++) {
        for (struct reader *reader = readers->buckets[i]; reader != NULL; reader = reader->next) {
            const enum ml_status status = ml_client_status(reader->io.client);
            if (status != ML_OK &&
                (reader->io.state == ML_IO_STREAMING || reader->io.state == ML_IO_SILENT)) {
                lose(reader, status);
            }
        }
    }
}

static void finish_ended(struct ml_readers *readers) {
    for (uint32_t i = 0; i < BUCKETS_COUNT; i++) {
        struct reader **at = &readers->buckets[i];
        while (*at != NULL) {
            if ((*at)->io.state == ML_IO_ENDED) {
                finish(readers, at);
            } else {
                at = &(*at)->next;
            }
        }
    }
}

static void schedule(struct ml_readers *readers, bool active) {
    readers->interval_s = active ? active_interval_s : readers->interval_s * 2;
    readers->somebody_full = somebody_full(readers);
    if (readers->somebody_full) {
        readers->interval_s = full_interval_s;
    }
    await_pipes(readers);
    if (readers->interval_s > idle_interval_s) {
        readers->interval_s = idle_interval_s;
    }
    ev_timer_stop(readers->options.loop, &readers->timer);
    ev_timer_set(&readers->timer, readers->interval_s, 0);
    ev_timer_start(readers->options.loop, &readers->timer);
}

void ml_readers_round(struct ml_readers *readers) {
    if (readers->in_round) {
        return;
    }
    readers->in_round = true;
    /* Taken first: events stamped before it and published are read below. The slack covers stores
     * that are not visible yet. */
    const uint64_t now_ticks = ml_clock_ticks(readers->options.clock);
    const uint64_t slack_ticks = ml_clock_ticks_of_ns(readers->options.clock, ML_STAGING_SLACK_NS);
    const uint64_t known_ticks = now_ticks > slack_ticks ? now_ticks - slack_ticks : 0;
    const bool active = read_all(readers);
    const enum ml_status status = ml_session_advance(readers->options.session, known_ticks);
    if (ml_status_family(status) == ML_FAMILY_BUG) {
        abort();
    }
    lose_refused(readers);
    finish_ended(readers);
    readers->unapplied_bytes = 0;
    readers->full = false;
    schedule(readers, active);
    readers->in_round = false;
    readers->options.on_round(readers->options.context, ml_session_known(readers->options.session));
}

void ml_readers_round_within(struct ml_readers *readers, double delay_s) {
    struct ev_loop *loop = readers->options.loop;
    if (ev_timer_remaining(loop, &readers->timer) > delay_s) {
        readers->interval_s = active_interval_s;
        ev_timer_stop(loop, &readers->timer);
        ev_timer_set(&readers->timer, delay_s, 0);
        ev_timer_start(loop, &readers->timer);
    }
}

/* Polls keep their usual interval, and busy clients are read further. But half of the time is left
 * to the other work, which ends however much is written. */
static void drain(struct ml_readers *readers, bool with_rounds) {
    const uint64_t begin_ns = ml_clock_monotonic_ns();
    if (begin_ns < readers->drain_next_ns) {
        return;
    }
    readers->more = true;
    for (int turn = 0; turn < DRAIN_TURNS && readers->more; turn++) {
        read_ready(readers);
        if (with_rounds && much_unapplied(readers)) {
            ml_readers_round(readers);
        }
    }
    const uint64_t end_ns = ml_clock_monotonic_ns();
    const uint64_t taken_ns = end_ns - begin_ns;
    readers->drain_next_ns = end_ns + (taken_ns > ML_POLL_LOOK_NS ? taken_ns : ML_POLL_LOOK_NS);
}

void ml_readers_drain(struct ml_readers *readers) {
    drain(readers, true);
}

void ml_readers_empty(struct ml_readers *readers) {
    drain(readers, false);
}

bool ml_readers_ends_read(const struct ml_readers *readers) {
    for (uint32_t i = 0; i < BUCKETS_COUNT; i++) {
        for (const struct reader *reader = readers->buckets[i]; reader != NULL;
             reader = reader->next) {
            if (reader->io.state == ML_IO_ENDING) {
                return false;
            }
        }
    }
    return true;
}

bool ml_readers_client_known(const struct ml_readers *readers, uint32_t id, uint64_t ticks) {
    const struct reader *reader = readers->buckets[id % BUCKETS_COUNT];
    while (reader != NULL && reader->io.id != id) {
        reader = reader->next;
    }
    if (reader == NULL || reader->io.state == ML_IO_LOST) {
        return true;
    }
    return ml_client_known(reader->io.client, ticks) >= ticks;
}
