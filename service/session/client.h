/* One process of the run, in its session: what it sends, and what the host says of it. Room:
 * service. Context: the session's thread. Between ml_session_apart and ml_session_together a client
 * that was taken belongs to its worker.
 *
 * One rule: whatever a client sends, only that client is lost. */
#ifndef MEMLOG_SERVICE_SESSION_CLIENT_H
#define MEMLOG_SERVICE_SESSION_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/wire/ml_status.h"
#include "ipc/wire/staging.h"
#include "service/generated/naming.h"
#include "service/snapshot/snapshot.h"
#include "service/stream/staging_reader.h"

enum {
    ML_SESSION_CLIENTS_MAX = 65536, /* memlog.service.kMaxClients */
    ML_SESSION_PATIENCES = 5,       /* pipes of a megabyte each are read in that time */
    /* Events of one client that wait: 32 MiB. With more the client is full (ml_client_full), and
     * its pipe holds it back. The events of one that is fed on all the same are applied as they
     * are. */
    ML_SESSION_QUEUE_FULL_EVENTS = 1 << 20,
    /* Where little memory is left, no more of them wait than take that part of it. A queue doubles,
     * so it takes twice as much. */
    ML_SESSION_QUEUE_PART = 8,
    ML_SESSION_EVENT_LEAST_BYTES = 2, /* of a stream: op and dtime */
    ML_SESSION_QUEUE_MAX_EVENTS = 1 << 22,
    ML_TROUBLE_MAX_BYTES = 256 /* memlog.service.ClientFigures.trouble */
};

struct ml_client;
struct memlog_service_allocator_facts;
struct memlog_service_process_facts;
struct ml_rest;
struct ml_host_view;

/* What the host said of a client when it added it. */
struct ml_client_setup {
    uint32_t id, parent_id; /* the host's ids; parent_id 0: none known */
    uint32_t pid, parent_pid;
    uint32_t role;
    bool from_startup, forked;
    uint64_t fork_serial;
    uint64_t sampling_bytes;
    struct ml_timestamp start;
    uint32_t profile; /* the one that is read (ipc/wire/staging.h); others are ignored */
};

struct ml_client_end {
    uint32_t state; /* memlog.service.ProcessState */
    int32_t exit_code;
    uint32_t signal;
    struct ml_timestamp end;
};

/* Clients are fed apart (ml_session_apart). For a client that it has taken, a worker may call
 * ml_client_feed, _pipe_over, _lanes, _tail, _full, _stuffed and _settled. */
void ml_client_take(struct ml_client *client, unsigned worker);
void ml_client_give_back(struct ml_client *client);

/* Bytes from the client's pipe, cut anywhere. Errors: ML_PEER_* and ML_ENV_MEMORY. The client is
 * lost then: it is marked, its figures stay, and further bytes are ignored with the same status. */
ML_NODISCARD enum ml_status
ml_client_feed(struct ml_client *client, const uint8_t *bytes, size_t count_bytes);

/* The process has ended, and the rest of its pipe was fed. Chunks that should have come by pipe and
 * have not were dropped, whether or not a thread lived to count them. Staging is read after
 * this. */
void ml_client_pipe_over(struct ml_client *client);

/* The headers of lanes [0, count), copied from staging. Returns what to copy from there: at most
 * wants_capacity pieces. Errors: as ml_client_feed. */
ML_NODISCARD enum ml_status ml_client_lanes(
    struct ml_client *client,
    const struct ml_staging_header *header,
    const struct ml_staging_lane *lanes,
    uint32_t lanes_count,
    struct ml_client_want *wants,
    size_t wants_capacity,
    size_t *out_wants_count
);

/* One wanted piece, and the header of its lane, read again *after* the copy. A piece that was
 * overwritten meanwhile is ignored: it has gone down the pipe. */
ML_NODISCARD enum ml_status ml_client_tail(
    struct ml_client *client,
    const struct ml_client_want *want,
    const uint8_t *bytes,
    const struct ml_staging_lane *lane_after
);

/* How much its pipe holds; 0 until it is told. */
void ml_client_pipe(struct ml_client *client, uint64_t pipe_bytes);

/* Whether its pipe should not be read: so many of its events wait as memory permits, or the host is
 * about to have it sampled (guard.h). */
bool ml_client_full(const struct ml_client *client);

/* How many of its events may wait, and how many bytes may then be fed at once: at least a frame. */
uint64_t ml_client_full_events(const struct ml_client *client);
size_t ml_client_part_bytes(const struct ml_client *client);

/* Whether it holds all that it may while it is fed apart or a snapshot is copied, ending or not.
 * Nothing more may be fed then. False at other times. */
bool ml_client_stuffed(const struct ml_client *client);

/* Whether everything that was published before the last ml_client_lanes() was seen: by pipe, by
 * staging, or counted as lost. */
bool ml_client_settled(const struct ml_client *client);

/* The moment up to which every event of this client is known, at most `ticks`. Less: it holds the
 * session back. */
uint64_t ml_client_known(const struct ml_client *client, uint64_t ticks);

/* The process has ended, and its pipe and staging are read to the end. Its remaining events are
 * applied, whatever their stamps. It leaves the tree's total at the stamp of its END record, or
 * else at end->end, or earlier if its parent's REAPED record says so.
 *
 * This happens in its place in time: with the next ml_session_advance() that reaches end->end, with
 * the next snapshot, or at once if no client runs any more. Then its live map and queues are freed;
 * its cells stay.
 *
 * A process may send events after its END: from threads that run while it exits, or after a failed
 * exec. After an END of kind EXIT each event moves the moment at which it leaves. An END of kind
 * EXEC is void with the next event. */
ML_NODISCARD enum ml_status
ml_client_ended(struct ml_client *client, const struct ml_client_end *end);

/* Stop recording the process: events stamped after this moment are dropped, and it leaves the
 * tree's total. Its figures stay. `ticks` is now. The host tells the process afterwards, so that
 * every event up to here comes. */
void ml_client_stop(struct ml_client *client, uint64_t ticks);

/* Forget its profile and read another one, from nothing. Its share of the tree's peak goes too.
 * Errors: ML_PEER_STATE: it has ended or is lost. */
ML_NODISCARD enum ml_status ml_client_begin(struct ml_client *client, uint32_t profile);

/* What the host learnt of it (copied). It replaces what was known. An empty executable means that
 * the host could not see it, an empty trouble that it knows of none. Without memory the client gets
 * a trouble, and keeps its profile. */
void ml_client_describe(struct ml_client *client, const struct memlog_service_process_facts *facts);

/* What its constructor found out about its allocator (copied). */
void ml_client_allocator(
    struct ml_client *client, const struct memlog_service_allocator_facts *facts
);

/* The host hands over a file in which the process's run-time tells of the code that it makes, at
 * that moment. It replaces an earlier one of its kind. Owner: the descriptor is taken. */
void ml_client_take_code(
    struct ml_client *client, enum ml_code_kind kind, int take_fd, const struct ml_timestamp *now
);

/* Look for names in the files that were handed over, and close them. While `rest` is taken, clients
 * may be fed as in ml_session_copy_tables; NULL: no rest. */
void ml_client_name_code(struct ml_client *client, const struct ml_rest *rest);

/* The host has read its private memory at that moment of the stream's clock, and how much of it at
 * least is pages of files. Two readings with the same ticks are one. The heap beside it is that of
 * the moment, unless later events have been applied: then the heap as it is now. */
void ml_client_read(
    struct ml_client *client, uint64_t ticks, uint64_t private_bytes, uint64_t files_bytes
);

/* Lay the client's live blocks over what the host saw of it, if all of them are known. Meanwhile
 * the session holds still, and `rest` may feed clients as it may in ml_session_copy_tables. NULL:
 * no rest. */
void ml_client_lay(struct ml_client *client, struct ml_host_view *view, const struct ml_rest *rest);

/* Keep the first words of its live blocks, of those that the host has read, instead of earlier
 * ones. Meanwhile the session holds still, as in ml_client_lay. */
void ml_client_take_words(
    struct ml_client *client,
    const struct memlog_service_process_view *view,
    const struct ml_rest *rest
);

/* What the host saw of it, for dumps alone. It replaces an earlier view. */
void ml_client_show(struct ml_client *client, struct ml_host_view *take_view);

/* That view (borrowed) is in a dump: the next dump that a trigger takes says what grew since. */
void ml_client_note_dumped(struct ml_client *client, struct ml_host_view *view);

/* Forget what was seen. */
void ml_client_show_nothing(struct ml_client *client);

/* Its heap needs room: give it that of the views, which nobody has asked for yet. False: there is
 * none. May be called by whoever works on the client. They are freed by ml_client_free_returned, on
 * the session's thread. */
bool ml_client_return_views(struct ml_client *client);
void ml_client_free_returned(struct ml_client *client);

/* ML_OK, or why the client is lost. */
enum ml_status ml_client_status(const struct ml_client *client);

/* Why it is lost, for people: a text of the client or a static one. NULL: it is not lost. */
const char *ml_client_loss(const struct ml_client *client);

/* Mark it incomplete, with a reason for people (copied). The first reason stays. */
void ml_client_trouble(struct ml_client *client, const char *reason);

/* Which process it is, as the host said. */
struct ml_client_face {
    uint32_t id, pid, role;
    const char *name; /* valid until the client is described again */
    bool running;
};
struct ml_client_face ml_client_face(const struct ml_client *client);

#endif
