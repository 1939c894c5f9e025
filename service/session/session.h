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
#include <stddef.h>
#include <stdint.h>

#include "ipc/wire/event.h"
#include "ipc/wire/ml_status.h"
#include "ipc/wire/staging.h"
#include "service/session/coverage.h"
#include "service/snapshot/accounting.h"
#include "service/snapshot/snapshot.h"
#include "service/stream/staging_reader.h"

enum {
    ML_SESSION_CLIENTS_MAX = 65536, /* memlog.service.kMaxClients */
    ML_SESSION_PATIENCES = 5,       /* pipes of a megabyte each are read in that time */
    /* Events of one client that wait: 32 MiB. Beyond it the client is full (ml_client_full): its
     * pipe holds it back. One that is fed on all the same has its events applied as they are. */
    ML_SESSION_QUEUE_FULL_EVENTS = 1 << 20,
    ML_SESSION_QUEUE_MAX_EVENTS = 1 << 22,
    /* For ml_session_workers: some 100 us of work, several times what waking a thread takes. */
    ML_SESSION_LEAST_EVENTS = 4096,
    ML_TROUBLE_MAX_BYTES = 256 /* memlog.service.ClientFigures.trouble */
};

struct ml_session;
struct ml_client;
struct ml_last_words;
struct ml_workers;
struct memlog_service_allocator_facts;
struct memlog_service_process_facts;

/* What the host said of a client when it added it. Strings are copied. */
struct ml_client_setup {
    uint32_t id, parent_id; /* the host's ids; parent_id 0: none known */
    uint32_t pid, parent_pid;
    uint32_t role;
    bool from_startup, forked;
    uint64_t fork_serial;
    uint64_t sampling_bytes;
    struct ml_timestamp start;
    uint32_t profile; /* the one that is read, ipc/wire/staging.h; older ones' bytes are nobody's */
};

struct ml_client_end {
    uint32_t state; /* memlog.service.ProcessState */
    int32_t exit_code;
    uint32_t signal;
    struct ml_timestamp end;
};

/* Live figures of a client or (id 0) of the tree. */
struct ml_client_figures {
    struct ml_totals totals;
    struct ml_coverage_told coverage;
    struct ml_accounting accounting;
    uint64_t events, lost_events, unknown_frees, late_events;
    uint64_t truncated_stacks, broken_stacks;
    uint64_t inherited_bytes, inherited_blocks;
    uint64_t missed_frees; /* addresses given out again whose free was not seen */
    uint64_t lost_chunks;  /* as its threads say, or the service missed if that is more */
    uint32_t nodes_count;
    /* Of an entry that stands for several: how many, and who of them failed. 0: it is one process.
     */
    uint32_t folded_processes, folded_failed;
    uint64_t sampling_bytes; /* of its latest records; 1: every allocation */
    uint64_t exact_blocks;   /* live, and recorded while every allocation was */
    uint64_t held_at_tree_peak_bytes, held_at_tree_peak_blocks;
    bool left_tree; /* it has ended, or its recording was stopped */
    bool complete;
    const char *trouble; /* static text or owned by the client; "" if none */
};

/* A session whose tables may take up to max_memory_bytes (0: no bound). NULL when there is no
 * memory. */
struct ml_session *ml_session_new(const struct ml_timestamp *start, uint64_t max_memory_bytes);
void ml_session_free(struct ml_session *take_session);

/* How long a lane may stand still in the middle of an event before it is given up, in ticks: well
 * over what a scheduler keeps a thread waiting. 0 until set; for clients added from now on. A
 * client that is known less far than ML_SESSION_PATIENCES of it is left behind: its own events wait
 * for their moment, the others go on without it, and only the order between it and them, which the
 * tree's peak is made of, is no more exact. */
void ml_session_patience(struct ml_session *session, uint64_t ticks);

/* Another bound for the tables' memory (0: none). What is taken stays, though it be more. */
void ml_session_limit(struct ml_session *session, uint64_t max_memory_bytes);

/* What one client may hold of it at most, from the next one on that is added; 0:
 * ML_GUARD_CLIENT_PERCENT of the session's bound. Beyond it the client loses itself: its live
 * blocks first, then it is lost. Nobody else is asked for anything. */
void ml_session_quota(struct ml_session *session, uint64_t max_client_bytes);

/* Keep the profiles of so many ended processes, each on its own; what goes beyond is folded:
 * service/session/fold.h. All of them until this is called. */
void ml_session_keep(struct ml_session *session, uint32_t processes);

/* Where it says whose data it works on, from now on; outlives the session. Nothing is said while
 * several workers are at several clients: who of them dies of his could not be told from it. */
void ml_session_say(struct ml_session *session, struct ml_last_words *words);

/* Who works on several clients at once from now on; outlives the session. Nothing of the outcome
 * depends on it: what is late is applied a little later. Slices of fewer than least_events events
 * are applied in the order of their stamps by the session's thread: anything else costs more. */
void ml_session_workers(
    struct ml_session *session, struct ml_workers *workers, uint64_t least_events
);

/* From here to ml_session_together clients are fed apart: workers may call ml_client_feed,
 * _pipe_over, _lanes, _tail, _full, _stuffed and _settled, each client by one of them at a time,
 * which first calls ml_client_take with its number. Nothing else of the session is called
 * meanwhile, and behind it ml_client_give_back for each client that was taken. */
void ml_session_apart(struct ml_session *session);
void ml_client_take(struct ml_client *client, unsigned worker);
void ml_session_together(struct ml_session *session);
void ml_client_give_back(struct ml_client *client);

/* Add a client. Errors: ML_PEER_LIMIT too many; ML_PEER_STATE the id exists; ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status ml_session_add(
    struct ml_session *session, const struct ml_client_setup *setup, struct ml_client **out_client
);

/* The client of that id, NULL if there is none. */
struct ml_client *ml_session_find(struct ml_session *session, uint32_t id);

/* Bytes from the client's pipe, cut anywhere. Errors: ML_PEER_*: the client is lost from here on
 * (marked, the figures stay; further bytes are ignored and answered with the same status);
 * ML_ENV_MEMORY likewise. */
ML_NODISCARD enum ml_status
ml_client_feed(struct ml_client *client, const uint8_t *bytes, size_t count_bytes);

/* The process has ended, and what was in its pipe then has been fed: the chunks that should have
 * come that way and have not were dropped, whether its threads lived to count them or not. Staging
 * is looked at behind this. */
void ml_client_pipe_over(struct ml_client *client);

/* The lane headers as copied from staging (a first time), lanes [0, count). Answers what to copy:
 * at most wants_capacity pieces into wants. Errors: as ml_client_feed. */
ML_NODISCARD enum ml_status ml_client_lanes(
    struct ml_client *client,
    const struct ml_staging_header *header,
    const struct ml_staging_lane *lanes,
    uint32_t lanes_count,
    struct ml_client_want *wants,
    size_t wants_capacity,
    size_t *out_wants_count
);

/* One wanted piece, copied, together with the lane's header as it was read again *after* the copy.
 * A piece that was overwritten meanwhile is dropped here (it has gone down the pipe). */
ML_NODISCARD enum ml_status ml_client_tail(
    struct ml_client *client,
    const struct ml_client_want *want,
    const uint8_t *bytes,
    const struct ml_staging_lane *lane_after
);

/* Whether so many of its events wait for their turn that its pipe is better left alone. */
bool ml_client_full(const struct ml_client *client);

/* Fed apart or while a snapshot is copied, it holds all that it may, ending or not: whatever is fed
 * now is one part too much. Never so at other times. */
bool ml_client_stuffed(const struct ml_client *client);

/* Whether everything published before the last ml_client_lanes() was seen: by pipe, by staging, or
 * counted as lost. */
bool ml_client_settled(const struct ml_client *client);

/* Apply, in time order over all clients that are settled, everything stamped up to `ticks`; less
 * far where a lane is busy (nothing behind its last event is known of it). What is wrong with a
 * client's events makes that client lost, not the call fail: ml_client_status(). */
ML_NODISCARD enum ml_status ml_session_advance(struct ml_session *session, uint64_t ticks);

/* The moment up to which the last ml_session_advance() applied everything, of all settled clients:
 * its `ticks`, or less where some lane was busy. */
uint64_t ml_session_known(const struct ml_session *session);

/* The moment up to which every event of this client is known, at most `ticks`: who holds the
 * session back? */
uint64_t ml_client_known(const struct ml_client *client, uint64_t ticks);

/* The process has ended and its pipe and staging are read to the end; its remaining events are
 * applied, whatever their stamps, and it leaves the tree's total at its END record's stamp, else at
 * end->end (or when its parent's REAPED record says, if that is earlier). All that is done in its
 * place in time: with the next ml_session_advance() that reaches end->end, the next snapshot, or
 * at once if no client runs any more. Then its live map and queues go; its cells stay.
 *
 * A process may send events behind its END: threads that ran on while it exited, or an exec that
 * failed. Behind an END of kind EXIT each moves the moment at which it leaves; an END of kind EXEC
 * is void with the first event behind it. */
ML_NODISCARD enum ml_status
ml_client_ended(struct ml_client *client, const struct ml_client_end *end);

/* The process shall be recorded no more: what is stamped behind this moment is dropped, and it
 * leaves the tree's total. Its figures stay. `ticks` is now; the host tells the process afterwards,
 * so that every event up to here comes. */
void ml_client_stop(struct ml_client *client, uint64_t ticks);

/* Forget its profile and read another one, from nothing; what the former one had in the tree's peak
 * goes with it. Errors: ML_PEER_STATE: it has ended or is lost. */
ML_NODISCARD enum ml_status ml_client_begin(struct ml_client *client, uint32_t profile);

/* What the host learnt of it (copied): replaces what was known, but an empty executable says that
 * the host could not see it, an empty trouble that it knows of none. Costs no profile: what finds
 * no memory is noted as the client's trouble. */
void ml_client_describe(struct ml_client *client, const struct memlog_service_process_facts *facts);

/* What its constructor found of its allocator (copied). */
void ml_client_allocator(
    struct ml_client *client, const struct memlog_service_allocator_facts *facts
);

/* The host has read its private memory at that moment of the stream's clock. Two such moments with
 * the same ticks are one. The heap that belongs to it is that of the moment, if events behind it
 * have not been applied yet; else the heap as it is now. */
void ml_client_read(struct ml_client *client, uint64_t ticks, uint64_t private_bytes);

/* What the host saw of it, for the dump alone: replaces what was seen before. */
void ml_client_show(struct ml_client *client, struct ml_host_view *take_view);

/* ML_OK, or why the client is lost. */
enum ml_status ml_client_status(const struct ml_client *client);

/* Why it is lost, for people: its quota or the status' text, the client's or for ever. NULL: it is
 * not lost. */
const char *ml_client_loss(const struct ml_client *client);

/* Mark it incomplete, with the reason for people (copied). The first reason stays. */
void ml_client_trouble(struct ml_client *client, const char *reason);

struct ml_client_figures ml_client_figures(const struct ml_client *client);

/* The tree: what the running processes hold now and held at their peak, and what all of them ever
 * allocated. So live is never more than peak. */
struct ml_totals ml_session_totals(const struct ml_session *session);

/* What processes held when they left the tree: at their end, or when their recording was stopped.
 */
struct ml_left {
    uint64_t bytes, blocks;
};
struct ml_left ml_session_left(const struct ml_session *session);

/* Walk the clients: the first for NULL, the next else, NULL behind the last. */
struct ml_client *ml_session_next(struct ml_session *session, struct ml_client *client);
uint32_t ml_client_id(const struct ml_client *client);

/* It stands for several ended processes, by the id of one of them (service/session/fold.h). */
bool ml_client_is_fold(const struct ml_client *client);

/* Who it is, as the host has said. */
struct ml_client_face {
    uint32_t id, pid, role;
    const char *name; /* the client's, until it is described anew */
    bool running;
};
struct ml_client_face ml_client_face(const struct ml_client *client);

/* What is live at each of its stack nodes, by id; [0] is what has no stack. An array of *out_count,
 * for the caller to free. NULL when there is no memory. */
uint64_t *ml_client_live_by_node(const struct ml_client *client, uint32_t *out_count);

/* It is `monotonic_ns`, between two rounds: for the series of what was live when
 * (service/history/timeline.h), which are made from the first call on. is_exact: somebody is about
 * to take a snapshot. */
void ml_session_note_time(struct ml_session *session, uint64_t monotonic_ns, bool is_exact);

/* Copy the present state. ids_count 0: all clients. O(stacks), not O(live blocks). The caller fills
 * in gaps, not_profiled, reason, program, now, sandbox_missing. Errors: ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status ml_session_snapshot(
    struct ml_session *session,
    const uint32_t *ids,
    size_t ids_count,
    struct ml_snapshot **out_snapshot
);

/* The same in two steps, for a caller who has other work to do while tables are copied: now
 * everything that is one figure a process, and from here on the session holds still, ...
 *
 * Errors: ML_ENV_MEMORY; it does not hold still then. */
ML_NODISCARD enum ml_status ml_session_begin_snapshot(
    struct ml_session *session,
    const uint32_t *ids,
    size_t ids_count,
    struct ml_snapshot **out_snapshot
);

struct ml_rest {
    void (*take)(void *context);
    void *context;
    uint32_t steps; /* things copied between two rests; 0: some 100 us of them */
};

/* ... and now the tables, as far as snapshot->content asks for them (the caller's choice; of the
 * series alone it is O(processes)). Meanwhile `rest` may feed clients (ml_client_feed, _lanes,
 * _tail, by workers or not) and nothing else: what it brings is queued, and the snapshot is of the
 * moment when it was begun. Then the session goes on, also after an error. NULL: no rest.
 *
 * Errors: ML_ENV_MEMORY; the snapshot is good for nothing but to be freed. */
ML_NODISCARD enum ml_status ml_session_copy_tables(
    struct ml_session *session, struct ml_snapshot *snapshot, const struct ml_rest *rest
);

/* Where the session's memory is, by what it holds; used_bytes is everything. O(lanes). */
struct ml_session_memory {
    uint64_t used_bytes;
    uint64_t blocks, blocks_bytes; /* live ones */
    uint64_t cells, cells_bytes;
    uint64_t nodes, nodes_bytes;
    uint64_t queues_bytes; /* events that wait for their turn, and room for them */
};
struct ml_session_memory ml_session_memory(const struct ml_session *session);

#endif
