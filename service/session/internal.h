/* The parts of a session. Room: service (private). Context: the session's thread. */
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

/* What each worker has to itself while clients are worked on apart. hands[0] is that of the
 * session's thread. It has cache lines of its own, as every event writes here. */
struct ml_hand {
    _Alignas(128) struct ml_tree tree; /* stands in for the session's */
    struct ml_last_words *words;       /* where it names the client that it works on */
    struct ml_last_words own_words;    /* used where only the session's thread tells the host */
};

/* Memory for the changes of a noted slice (service/session/slice.c), kept for the next one. */
struct ml_notes {
    struct ml_change *changes;
    uint64_t capacity;
    struct ml_change_log *logs; /* one a client */
    struct ml_change_log **heap;
    uint32_t logs_capacity;
    uint32_t idle_rounds; /* advances that made no notes, in a row */
};

/* The guard's state. */
struct ml_guard {
    bool fold_all;
    uint32_t coarser_count; /* clients that were asked, ... */
    uint32_t dropped_count; /* ... and that lost their live blocks to it */
};

/* Readings of all processes, because together they had more private memory than ever. */
struct ml_tree_views {
    uint32_t reading; /* whose views are the clients' `tree_view`; 0: none yet */
    uint32_t next;    /* whose are their `next_tree_view`; 0: none */
    uint32_t dropped; /* of the first, views that had to go for want of room */
};

struct ml_session {
    uint64_t patience_ticks; /* ml_session_patience */
    uint64_t advanced_ticks; /* of the latest ml_session_advance; known_ticks may be less */
    struct ml_workers *workers;
    uint64_t least_events; /* the smallest slice for which workers are woken */
    bool apart;            /* clients are worked on by several workers, each by itself */
    bool held;             /* a snapshot is being copied, so nothing is applied */
    struct ml_hand hands[1 + ML_WORKERS_MAX];
    struct ml_notes notes;
    struct ml_budget budget;
    uint64_t max_client_bytes; /* ml_session_quota */
    /* Of the budget: what clients that were lost for want of memory hold until they are freed.
     * Relaxed: a sum. */
    _Atomic uint64_t stuck_bytes;
    _Atomic uint32_t late_children; /* relaxed: added when the tree had passed their first event */
    struct ml_tree tree;
    struct ml_tree_views tree_views;
    struct ml_timestamp start;
    struct ml_client *first, *last;
    struct ml_client *first_active;
    uint32_t clients_count, running_count;
    struct ml_guard guard;
    struct ml_timelines timelines;
    uint64_t high_bytes;      /* the most of budget.used_bytes since memory was last given back */
    uint32_t orders_count;    /* clients ever added */
    uint32_t keep_processes;  /* of done_count: ml_session_keep */
    uint32_t done_count;      /* clients that are ML_CLIENT_DONE, without entries of a fold */
    struct ml_client *others; /* the entry of programs without one of their own; NULL: none yet */
    uint32_t *folded_into;    /* by id: its entry; 0: it has none */
    uint32_t folded_into_count;
    uint64_t known_ticks;     /* of the last advance */
    struct ml_client **merge; /* room for every client */
    uint32_t merge_capacity;
    struct ml_client *by_id[ML_SESSION_BUCKETS];
    struct ml_client *by_pid[ML_SESSION_BUCKETS]; /* of running clients */
};

/* Name the client that is worked on; 0: none. Returns the one before, to be named again. Volatile:
 * the host reads it when this process has died. */
static inline uint32_t ml_hand_work_on(struct ml_hand *hand, uint32_t id) {
    volatile uint32_t *client = &hand->words->client;
    const uint32_t before = *client;
    *client = id;
    return before;
}

/* The hand of a worker. */
static inline struct ml_hand *ml_session_hand(struct ml_session *session, unsigned worker) {
    const bool several = session->apart && ml_workers_count(session->workers) > 1;
    return &session->hands[several ? 1 + worker : 0];
}

/* The memory that a new client may hold; UINT64_MAX: no bound. */
uint64_t ml_session_quota_bytes(const struct ml_session *session);

/* Apply the ready events of all clients up to `until`. */
void ml_session_apply_ready(struct ml_session *session, uint64_t until);

/* Called after an advance: free the memory for notes if it was not used for some of them. */
void ml_notes_round(struct ml_notes *notes, struct ml_budget *budget);
void ml_notes_fini(struct ml_notes *notes, struct ml_budget *budget);

/* Give memory back to the system, if clients have finished and it is much. malloc keeps what lies
 * below a block in use. */
void ml_session_give_back(struct ml_session *session, bool finished);

/* From here on nothing is applied: what is fed waits. Then what came meanwhile and cannot wait any
 * longer is applied. */
void ml_session_hold(struct ml_session *session);
void ml_session_release(struct ml_session *session);

/* Before a snapshot: a later reading of all processes that has more by now takes the place of the
 * one before. */
void ml_session_settle_tree_views(struct ml_session *session);

/* Apply the ended clients to their last event, in any order. */
void ml_session_flush_ended(struct ml_session *session);

#endif
