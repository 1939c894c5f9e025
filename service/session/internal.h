/* What session.c, slice.c, client.c, client_apply.c and snapshot*.c share. Room: service (private).
 * Context: the session's thread; of a client that is worked on apart, the worker that has it.
 *
 * One rule: whatever a client sends, only that client is lost. */
#ifndef MEMLOG_SERVICE_SESSION_INTERNAL_H
#define MEMLOG_SERVICE_SESSION_INTERNAL_H

#include "ipc/wire/last_words.h"
#include "service/heap/change_log.h"
#include "service/heap/stack_store.h"
#include "service/heap/tracker.h"
#include "service/heap/tree.h"
#include "service/history/fork_log.h"
#include "service/history/timeline.h"
#include "service/limits/budget.h"
#include "service/session/coverage.h"
#include "service/session/fold.h"
#include "service/session/guard.h"
#include "service/session/leaving.h"
#include "service/session/session.h"
#include "service/snapshot/host_view.h"
#include "service/stream/sequencer.h"
#include "service/stream/staging_reader.h"
#include "service/stream/reader.h"
#include "service/workers/workers.h"

enum { ML_SESSION_BUCKETS = 4096 /* of the id and pid tables; chains of 16 at most clients */ };

/* Where a client's life stands. */
enum ml_client_phase {
    ML_CLIENT_RUNNING,
    ML_CLIENT_ENDED, /* the host said so; events may wait for their place in time */
    ML_CLIENT_DONE,  /* everything is applied; cells and nodes remain */
    ML_CLIENT_FOLDED /* another one has its figures: it leaves the session */
};

/* Sums over queued events that a client may choose: wide enough for any of them. */
__extension__ typedef unsigned __int128 ml_wide_sum;

enum { ML_SESSION_EXPECTED_MAX = 64 };

/* What a worker has to itself while clients are worked on apart; hands[0] is the session's
 * thread's. Cache lines of its own: all workers write here with every event. */
struct ml_hand {
    _Alignas(128) struct ml_tree tree; /* stands in for the session's */
    struct ml_last_words *words;       /* where it says whose data it works on */
    struct ml_last_words own_words;    /* what only the session's thread can tell the host */
};

/* Memory for the changes of a slice that is noted (service/session/slice.c), kept for the next. */
struct ml_notes {
    struct ml_change *changes;
    uint64_t capacity;
    struct ml_change_log *logs; /* one a client */
    struct ml_change_log **heap;
    uint32_t logs_capacity;
    uint32_t idle_rounds; /* advances that made no notes, in a row */
};

struct ml_client {
    struct ml_session *session;
    struct ml_hand *hand;          /* of whoever works on it */
    struct ml_client *next;        /* in order of addition */
    struct ml_client *next_active; /* of those that are not ML_CLIENT_DONE */
    struct ml_client *next_by_id, *next_by_pid;
    struct ml_client *parent;
    struct ml_client *first_child, *next_sibling; /* children that have not left for good */
    uint32_t order;                               /* of addition, breaks ties in time */

    struct ml_client_setup setup;
    struct ml_client_end end;
    uint32_t role;
    char *name;       /* in command_line's block; NULL: not known */
    char *executable; /* NULL: not known */
    char **command_line;
    uint32_t command_line_count;
    uint64_t footprint_bytes, resident_bytes;
    struct ml_coverage coverage;
    uint64_t read_ticks;       /* of the latest reading; 0: none yet */
    struct ml_host_view *view; /* NULL: none yet */
    char trouble[ML_TROUBLE_MAX_BYTES];

    enum ml_client_phase phase;
    enum ml_leaving leaving;
    enum ml_status lost;
    bool started; /* its START record has come */
    uint32_t start_pid;
    uint64_t start_serial;
    struct ml_sampling_log sampling;

    struct ml_budget budget; /* its part of the session's: everything below takes from it */
    bool over_quota;         /* it has used that up, and paid for it */
    uint64_t stuck_bytes;    /* of session->stuck_bytes */
    bool relieved;           /* lost for want of memory, it has given back what it can */
    struct ml_stack_store stacks;
    struct ml_tracker tracker;
    struct ml_sequencer sequencer;
    struct ml_stream_reader stream;
    struct ml_staging_reader staging;
    struct ml_fork_log forks;
    /* Forks whose children may stream soon: the tree waits for them, see ml_session_patience. Of
     * more than so many at once the oldest are waited for no longer. */
    struct {
        uint64_t serial, time;
    } expected[ML_SESSION_EXPECTED_MAX];
    uint32_t expected_count;

    uint64_t known_ticks;       /* in this advance, while it runs */
    uint64_t followed_ticks;    /* of the first advance that saw it; 0: none yet */
    uint64_t cut_ticks;         /* ml_client_stop: what is stamped behind it is dropped; 0: none */
    uint64_t applied_ticks;     /* everything up to here is applied; what comes below is late */
    bool has_late;              /* something late is queued */
    bool sampled;               /* a sampled block has come */
    uint64_t reaps_queued;      /* REAPED records, which concern other clients */
    uint64_t turns_queued;      /* END and REAPED records, which take clients out of the tree */
    uint64_t first_turn;        /* no such event that is queued is stamped before */
    ml_wide_sum queued_bytes;   /* weights of queued ALLOCs */
    ml_wide_sum resizing_bytes; /* weights of blocks that a CANCEL could bring back */
    bool inherited_known;
    uint64_t inherited_bytes, inherited_blocks;
    uint64_t events, late_events;
    struct ml_fold *fold; /* it stands for several: service/session/fold.h; NULL: it does not */
    uint64_t guard_sampling_bytes; /* what the guard has asked for; 0: nothing */
    bool drop_told;                /* the host knows that it keeps totals only */
    uint64_t unsure_frees;         /* of tracker.unknown_frees: no wonder that they are unknown */
    uint64_t loss[ML_LOSS_REASON_COUNT]; /* by LOSS records; saturating */
    struct ml_timeline_log *timeline;    /* NULL: nothing noted, or its place was needed */
    uint64_t profile_ns;                 /* CLOCK_MONOTONIC: from when on it is recorded */
};

/* A fork is about to happen; its child has come, by fork (its serial) or by an exec at once (0: the
 * oldest that is expected). */
void ml_client_expect(struct ml_client *client, uint64_t serial, uint64_t time);
void ml_client_expected(struct ml_client *client, uint64_t serial);

struct ml_session {
    uint64_t patience_ticks; /* ml_session_patience */
    struct ml_workers *workers;
    uint64_t least_events; /* of a slice that is worth waking them */
    bool apart;            /* several workers are at work: each client by itself */
    bool held;             /* a snapshot is being copied: nothing is applied */
    struct ml_hand hands[1 + ML_WORKERS_MAX];
    struct ml_notes notes;
    struct ml_budget budget;
    uint64_t max_client_bytes; /* ml_session_quota */
    /* Of the budget: what clients that were lost for want of memory keep, until they are freed.
     * Relaxed: a sum. */
    _Atomic uint64_t stuck_bytes;
    struct ml_tree tree;
    struct ml_timestamp start;
    struct ml_client *first, *last;
    struct ml_client *first_active;
    uint32_t clients_count, running_count;
    struct ml_guard guard;
    struct ml_timelines timelines;
    uint64_t high_bytes;      /* most of budget.used_bytes since it last gave back */
    uint32_t orders_count;    /* clients ever added */
    uint32_t keep_processes;  /* of done_count: ml_session_keep */
    uint32_t done_count;      /* clients that are ML_CLIENT_DONE, without entries of a fold */
    struct ml_client *others; /* the entry of programs that have none; NULL: not yet */
    uint32_t *folded_into;    /* by id: where it has gone; 0: nowhere */
    uint32_t folded_into_count;
    uint64_t known_ticks;     /* of the last advance */
    struct ml_client **merge; /* room for every client */
    uint32_t merge_capacity;
    struct ml_client *by_id[ML_SESSION_BUCKETS];
    struct ml_client *by_pid[ML_SESSION_BUCKETS]; /* that run */
};

/* Say whose data is worked on, 0: nobody's; answers what was said before, to be said again.
 * Volatile: it is read by others, once we are dead. */
static inline uint32_t ml_hand_work_on(struct ml_hand *hand, uint32_t id) {
    volatile uint32_t *client = &hand->words->client;
    const uint32_t before = *client;
    *client = id;
    return before;
}

/* A worker's, while clients are worked on apart or not. */
static inline struct ml_hand *ml_session_hand(struct ml_session *session, unsigned worker) {
    const bool several = session->apart && ml_workers_count(session->workers) > 1;
    return &session->hands[several ? 1 + worker : 0];
}

/* A client of a session, empty; NULL when there is no memory. */
struct ml_client *ml_client_new(struct ml_session *session, const struct ml_client_setup *setup);
void ml_client_free(struct ml_client *take_client);

/* Role, name, command line and memory of these; false: no memory, it keeps what it has. */
bool ml_client_take_name(
    struct ml_client *client, const struct memlog_service_process_facts *facts
);

/* Where what is decoded of its stream goes: client_stream.c. */
struct ml_stream_sink ml_client_sink(struct ml_client *client);

/* An END or REAPED record is queued. */
void ml_client_turn_queued(struct ml_client *client, uint64_t ticks);

/* Forget what is queued. */
void ml_client_drop_queue(struct ml_client *client);

/* Apply what was fed apart and cannot wait. */
void ml_client_digest(struct ml_client *client);

/* What a new client may hold; UINT64_MAX: no bound. */
uint64_t ml_session_quota_bytes(const struct ml_session *session);

/* The client is lost from here on; what it has queued goes. */
void ml_client_lose(struct ml_client *client, enum ml_status status);

/* Of one that was lost for want of memory most stacks go, once; its sums stay. */
void ml_client_relieve(struct ml_client *client);

/* Apply what is queued up to `until`, in order. A client whose events cannot be applied is lost. */
void ml_client_apply(struct ml_client *client, uint64_t until);

/* Queue that the process ended at `ticks`. */
void ml_client_queue_leave(struct ml_client *client, uint64_t ticks);

/* A reading whose moment has come. */
void ml_client_note_reading(struct ml_client *client, uint64_t private_bytes);

/* It is counted in the tree no more, for good; its children stay its children. */
void ml_client_left(struct ml_client *client);

/* What it inherited, if that can be told by now. */
void ml_client_inherit(struct ml_client *client);

/* Everything is applied, nothing more will come: keep cells and nodes, give back the rest. */
void ml_client_finish(struct ml_client *client);

/* Its series ends as it is now, at `ns`; nothing before the session has been told the time. */
void ml_client_end_timeline(struct ml_client *client, uint64_t ns);
void ml_client_free_timeline(struct ml_client *client);

/* Running and listened to. */
bool ml_client_follows(const struct ml_client *client);

/* Apply what is ready up to `until`, of all clients. */
void ml_session_apply_ready(struct ml_session *session, uint64_t until);

/* An advance is over: memory for notes is given back when nothing was noted for some of them. */
void ml_notes_round(struct ml_notes *notes, struct ml_budget *budget);
void ml_notes_fini(struct ml_notes *notes, struct ml_budget *budget);

/* Clients have finished: what they took goes back to the system, if it was much. malloc keeps what
 * lies below a block that is still used. */
void ml_session_give_back(struct ml_session *session, bool finished);

/* Ended clients are applied to their last event, in whatever order. */
void ml_session_flush_ended(struct ml_session *session);

#endif
