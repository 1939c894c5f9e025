/* What a session consists of, for whoever works on it. Room: service (private). Context: the
 * session's thread. */
#ifndef MEMLOG_SERVICE_SESSION_INTERNAL_H
#define MEMLOG_SERVICE_SESSION_INTERNAL_H

#include "ipc/wire/last_words.h"
#include "service/heap/change_log.h"
#include "service/heap/tree.h"
#include "service/history/timeline.h"
#include "service/limits/budget.h"
#include "service/session/client_internal.h"
#include "service/workers/workers.h"

enum { ML_SESSION_BUCKETS = 4096 /* of the id and pid tables; chains of 16 at most clients */ };

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

/* What the guard remembers of a session. */
struct ml_guard {
    bool fold_all;
    uint64_t coarser_ticks; /* when it last asked for it */
    uint32_t coarser_count; /* clients that were asked, ... */
    uint32_t dropped_count; /* ... and that it took the live blocks of */
};

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

/* What a new client may hold; UINT64_MAX: no bound. */
uint64_t ml_session_quota_bytes(const struct ml_session *session);

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
