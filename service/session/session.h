/* All clients of one run, and the tree: bytes in, exact figures out. Room: service. Context: one
 * thread, the session's, which may share out the work (ml_session_workers); no I/O: the connection
 * reads pipes and staging and feeds what it read.
 *
 * One rule: nothing is applied before every lane of its process is known up to its time stamp (the
 * watermark), except what arrives late, which is applied on arrival and counted.
 *
 * A round, for the caller (service/control/connection.c):
 *   1. now = the stream's clock
 *   2. for each client: read the pipe until it is empty (or a fair share is read), ml_client_feed()
 *   3. for each client: copy the lane headers from staging, ml_client_lanes(); it answers which
 *      chunks to copy from staging; ml_client_tail() for each; ml_client_settled() says whether
 *      everything published is here. If not (a chunk went into the pipe meanwhile) read it again.
 *   4. ml_session_advance(session, now) applies what is known, over all clients: up to `now`, or
 *      to where the first lane is not known (of a client that is not left behind). A lane is known
 * up to `now` when it was read as not busy (ML_PUBLISHED_BUSY, ipc/wire/staging.h) with everything
 * in hand; else to just before its last event that is here, as stamps within a lane never fall: its
 * thread is between stamp and publishing, perhaps preempted there, or its chunks are still in the
 * pipe. One that stays so and does not move for ML_SESSION_BUSY_ROUNDS rounds and
 * ml_session_patience was abandoned there (siglongjmp, SIGSTOP, a lie) and is taken as known. */
#ifndef MEMLOG_SERVICE_SESSION_SESSION_H
#define MEMLOG_SERVICE_SESSION_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/wire/ml_status.h"

enum {
    /* For ml_session_workers: some 100 us of work. Waking a thread takes a fraction of that. */
    ML_SESSION_LEAST_EVENTS = 4096
};

struct ml_session;
struct ml_client;
struct ml_client_setup;
struct ml_last_words;
struct ml_timestamp;
struct ml_workers;

/* A session whose tables may take up to max_memory_bytes (0: no bound). NULL when there is no
 * memory. */
struct ml_session *ml_session_new(const struct ml_timestamp *start, uint64_t max_memory_bytes);
void ml_session_free(struct ml_session *take_session);

/* How long a lane may stand still in the middle of an event before it is given up, in ticks. It
 * should be well above the time that a scheduler keeps a thread waiting. 0 until set; holds for
 * clients that are added later. A client that lags by more than ML_SESSION_PATIENCES times this is
 * left behind: its events wait for their moment, and the others go on without it. Only the order
 * between it and them is then inexact, which the tree's peak depends on. */
void ml_session_patience(struct ml_session *session, uint64_t ticks);

/* Set the bound for the tables' memory (0: none). Memory that is in use stays, even beyond it. */
void ml_session_limit(struct ml_session *session, uint64_t max_memory_bytes);

/* The memory that one client may hold, for clients that are added later. 0: ML_GUARD_CLIENT_PERCENT
 * of the session's bound. A client beyond it loses its live blocks first, then it is lost. Other
 * clients are not affected. */
void ml_session_quota(struct ml_session *session, uint64_t max_client_bytes);

/* Keep the profiles of so many ended processes; further ones are folded: service/session/fold.h.
 * Without this call all are kept. */
void ml_session_keep(struct ml_session *session, uint32_t processes);

/* Where to name the client that is worked on, from now on; outlives the session. None is named
 * while several workers are at work: which of them died could not be told from it. */
void ml_session_say(struct ml_session *session, struct ml_last_words *words);

/* The workers for several clients at once, from now on; outlive the session. The outcome does not
 * depend on them, but late events are applied a little later. Slices of fewer than least_events
 * events are applied in the order of their stamps by the session's thread, which costs less. */
void ml_session_workers(
    struct ml_session *session, struct ml_workers *workers, uint64_t least_events
);

/* From here to ml_session_together clients are fed apart (service/session/client.h): each by one
 * worker at a time, which first calls ml_client_take with its number. Nothing else of the session
 * is called meanwhile. Afterwards ml_client_give_back is called for each client that was taken. */
void ml_session_apart(struct ml_session *session);
void ml_session_together(struct ml_session *session);

/* Add a client. Errors: ML_PEER_LIMIT too many; ML_PEER_STATE the id exists; ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status ml_session_add(
    struct ml_session *session, const struct ml_client_setup *setup, struct ml_client **out_client
);

/* The client of that id, NULL if there is none. */
struct ml_client *ml_session_find(struct ml_session *session, uint32_t id);

/* Apply everything stamped up to `ticks`, in the order of time over all settled clients. Where a
 * lane is busy, less far: events after its last one are unknown. An error in a client's events
 * loses that client, not the call: ml_client_status(). */
ML_NODISCARD enum ml_status ml_session_advance(struct ml_session *session, uint64_t ticks);

/* The moment up to which the last ml_session_advance() applied the events of all settled clients:
 * its `ticks`, or less if a lane was busy. */
uint64_t ml_session_known(const struct ml_session *session);

/* A forked child may be on its way whose events belong before what the tree goes on to. True: the
 * host is to be asked for all that came from children of client *out_id, then ml_session_heard is
 * called; call again. */
bool ml_session_ask(struct ml_session *session, uint32_t *out_id);

/* The host has added every child of that client that had reported itself before `ticks`. 0: it did
 * not answer. */
void ml_session_heard(struct ml_session *session, uint32_t id, uint64_t ticks);

/* Walk the clients: the first for NULL, else the next; NULL after the last. */
struct ml_client *ml_session_next(struct ml_session *session, struct ml_client *client);

/* ml_client_name_code for all clients: none has a file open afterwards. */
void ml_session_name_code(struct ml_session *session);

/* The time is `monotonic_ns`, between two rounds. It is for the series of live memory
 * (service/history/timeline.h), which begin with the first call. is_exact: a snapshot follows. */
void ml_session_note_time(struct ml_session *session, uint64_t monotonic_ns, bool is_exact);

#endif
