/* One process of the run, in its session: what is fed of it, and what the host says of it. Room:
 * service. Context: the session's thread; between ml_session_apart and ml_session_together, of a
 * client that was taken, its worker.
 *
 * One rule: whatever a client sends, only that client is lost. */
#ifndef MEMLOG_SERVICE_SESSION_CLIENT_H
#define MEMLOG_SERVICE_SESSION_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/wire/ml_status.h"
#include "ipc/wire/staging.h"
#include "service/snapshot/snapshot.h"
#include "service/stream/staging_reader.h"

enum {
    ML_SESSION_CLIENTS_MAX = 65536, /* memlog.service.kMaxClients */
    ML_SESSION_PATIENCES = 5,       /* pipes of a megabyte each are read in that time */
    /* Events of one client that wait: 32 MiB. Beyond it the client is full (ml_client_full): its
     * pipe holds it back. One that is fed on all the same has its events applied as they are. */
    ML_SESSION_QUEUE_FULL_EVENTS = 1 << 20,
    ML_SESSION_QUEUE_MAX_EVENTS = 1 << 22,
    ML_TROUBLE_MAX_BYTES = 256 /* memlog.service.ClientFigures.trouble */
};

struct ml_client;
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

/* Clients that are fed apart (ml_session_apart): a worker may call ml_client_feed, _pipe_over,
 * _lanes, _tail, _full, _stuffed and _settled of the one that it has taken. */
void ml_client_take(struct ml_client *client, unsigned worker);
void ml_client_give_back(struct ml_client *client);

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

/* Who it is, as the host has said. */
struct ml_client_face {
    uint32_t id, pid, role;
    const char *name; /* the client's, until it is described anew */
    bool running;
};
struct ml_client_face ml_client_face(const struct ml_client *client);

#endif
