/* All clients that are being read, and the rounds that read them. Room: service. Context: one
 * thread, on its libev loop; with much data, workers read several clients at once.
 *
 * One rule: a round never waits for a client. A stopped, slow or hostile client is counted and
 * skipped, and costs the others only its share of one round.
 *
 * Pipes are read when they have something, or by the clock while they are busy
 * (service/ingest/poll_policy.h); a round (service/session/session.h) is made on a timer, faster
 * while there is activity, and when much was read since the last one. */
#ifndef MEMLOG_SERVICE_INGEST_READERS_H
#define MEMLOG_SERVICE_INGEST_READERS_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/wire/ml_status.h"
#include "service/ingest/clock.h"
#include "service/session/client.h"

struct ev_loop;
struct ml_readers;
struct ml_workers;

struct ml_readers_options {
    struct ev_loop *loop;
    int pipes_fd;                        /* an empty epoll, made before the sandbox; borrowed */
    struct ml_session *session;          /* outlives the readers */
    struct ml_workers *workers;          /* likewise; NULL: there are none */
    const struct ml_clock_source *clock; /* likewise */
    /* Called when a client is read no more; `reason` for people. */
    void (*on_lost)(void *context, uint32_t id, const char *reason);
    /* Called after a round: everything stamped up to known_ticks is applied, for clients that
     * settled. */
    void (*on_round)(void *context, uint64_t known_ticks);
    void *context;
};

/* NULL when there is no memory. */
struct ml_readers *ml_readers_new(const struct ml_readers_options *options);
void ml_readers_free(struct ml_readers *take_readers);

/* Read a client that the session has.
 *
 * Errors: ML_ENV_MEMORY; ML_PEER_HANDLE for descriptors that cannot be read this way.
 * Owner:  the descriptors are taken, also on failure. */
ML_NODISCARD enum ml_status ml_readers_add(
    struct ml_readers *readers, struct ml_client *client, int take_pipe_fd, int take_staging_fd
);

/* Its process has ended: read it to the end in the next round, at once. Errors: ML_ENV_MISSING
 * when no such client is read. */
ML_NODISCARD enum ml_status
ml_readers_end(struct ml_readers *readers, uint32_t id, const struct ml_client_end *end);

/* Make a round now; calls on_round. */
void ml_readers_round(struct ml_readers *readers);

/* Ask for a round in `delay_s` seconds, or earlier if one is due anyway. */
void ml_readers_round_within(struct ml_readers *readers, double delay_s);

/* Empty the pipes, and make a round when much was read: for long work between rounds, which calls
 * it often. ml_readers_empty makes no round, for work during which the state must not change:
 * events are queued, up to each client's bound. */
void ml_readers_drain(struct ml_readers *readers);
void ml_readers_empty(struct ml_readers *readers);

/* Whether all that ended are read to
 * their end. */
bool ml_readers_ends_read(const struct ml_readers *readers);

/* Whether one client was, with nothing missing up to `ticks`; true for one that is not read any
 * more. */
bool ml_readers_client_known(const struct ml_readers *readers, uint32_t id, uint64_t ticks);

#endif
