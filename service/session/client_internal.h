/* The parts of a client. Room: service (private). Context: the session's thread, or the worker that
 * has taken the client. */
#ifndef MEMLOG_SERVICE_SESSION_CLIENT_INTERNAL_H
#define MEMLOG_SERVICE_SESSION_CLIENT_INTERNAL_H

#include "service/heap/first_words.h"
#include "service/heap/stack_store.h"
#include "service/heap/tracker.h"
#include "service/history/fork_log.h"
#include "service/history/fork_wait.h"
#include "service/limits/budget.h"
#include "service/memory/mappings.h"
#include "service/session/client.h"
#include "service/session/coverage.h"
#include "service/session/guard.h"
#include "service/session/leaving.h"
#include "service/snapshot/host_view.h"
#include "service/stream/reader.h"
#include "service/stream/sequencer.h"

struct ml_fold;
struct ml_hand;
struct ml_timeline_log;

/* The phases of a client's life. */
enum ml_client_phase {
    ML_CLIENT_RUNNING,
    ML_CLIENT_ENDED, /* the host said so; events may wait for their time */
    ML_CLIENT_DONE,  /* everything is applied; cells and nodes stay */
    ML_CLIENT_FOLDED /* another client has its figures; it leaves the session */
};

/* Sums of weights of queued events. A client chooses them, so they need the width. */
__extension__ typedef unsigned __int128 ml_wide_sum;

/* A file with names of generated code, as the host handed it over. */
struct ml_code_handed {
    int fd_plus_1;         /* 0: there is none to read */
    uint64_t read_bytes;   /* its length at the last reading ... */
    uint32_t left_unnamed; /* ... and how many nodes had no name after it */
};

struct ml_client_code {
    struct ml_code_handed files[ML_CODE_KINDS];
    struct ml_timestamp now; /* when the last one was handed over */
};

struct ml_client {
    struct ml_session *session;
    struct ml_hand *hand;          /* of the thread that works on it */
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
    struct memlog_service_overhead overhead; /* as the host says */
    struct ml_coverage coverage;
    uint64_t read_ticks;                 /* of the latest reading; 0: none yet */
    struct ml_host_view *view;           /* the latest; NULL: none yet */
    struct ml_host_view *largest_view;   /* the one with most private memory */
    struct ml_host_view *dumped_view;    /* that of its last dump; before that, the first */
    struct ml_host_view *tree_view;      /* of when all together were largest; NULL: none */
    struct ml_host_view *next_tree_view; /* of a reading not known to be larger; NULL: none */
    bool views_are_returned;             /* their room is the heap's already; they are freed soon */
    char trouble[ML_TROUBLE_MAX_BYTES];

    enum ml_client_phase phase;
    enum ml_leaving leaving;
    enum ml_status lost;
    struct ml_sampling_log sampling; /* begun: its START record has come, with the next two */
    uint32_t start_pid;
    uint64_t start_serial;

    struct ml_budget budget; /* its part of the session's budget, for everything below */
    bool over_quota;         /* it has used that up */
    uint64_t stuck_bytes;    /* its part of session->stuck_bytes */
    bool relieved;           /* it was lost for want of memory, and its tables are cut */
    struct ml_stack_store stacks;
    struct ml_client_code code;
    struct ml_tracker tracker;
    struct ml_first_words first_words; /* of its last reading, with --types */
    struct ml_mappings mappings;
    struct ml_sequencer sequencer;
    struct ml_stream_reader stream;
    struct ml_staging_reader staging;
    struct ml_fork_log forks;
    struct ml_fork_wait fork_wait; /* the tree waits for its children */
    uint64_t tree_ticks;           /* so far the tree had come when it was added */

    uint64_t known_ticks;       /* of this advance, while it runs */
    uint64_t followed_ticks;    /* of the first advance that saw it; 0: none yet */
    uint64_t cut_ticks;         /* ml_client_stop: what is stamped behind it is dropped; 0: none */
    uint64_t applied_ticks;     /* everything up to here is applied; an earlier event is late */
    bool has_late;              /* a late event is queued */
    bool sampled;               /* it has sent a sampled block */
    bool has_heaps;             /* it has reported of a heap of its own */
    uint64_t reaps_queued;      /* REAPED records, which concern other clients */
    uint64_t turns_queued;      /* END and REAPED records, which take clients out of the tree */
    uint64_t first_turn;        /* the least stamp that such a queued event may have */
    ml_wide_sum queued_bytes;   /* weights of queued ALLOCs */
    ml_wide_sum resizing_bytes; /* weights of blocks that a CANCEL could bring back */
    bool inherited_known;
    uint64_t inherited_bytes, inherited_blocks;
    uint64_t events, late_events;
    struct ml_fold *fold; /* it stands for several: service/session/fold.h; NULL: for one */
    uint64_t guard_sampling_bytes; /* the interval that the guard asked for; 0: none */
    enum ml_guard_step told;       /* the last step of the guard that the host was told of */
    uint64_t coarser_ticks;        /* when the guard last asked for an interval; 0: never */
    bool awaits_sampling;          /* the host has not said yet that it has set that */
    uint64_t pipe_bytes;           /* what its pipe holds; 0: not known */
    uint64_t unsure_frees;         /* unknown frees of blocks that may not have been recorded */
    uint64_t loss[ML_LOSS_REASON_COUNT]; /* by LOSS records, saturating */
    struct ml_timeline_log *timeline;    /* NULL: nothing noted yet, or freed for want of room */
    uint64_t profile_ns;                 /* CLOCK_MONOTONIC: the beginning of its recording */
};

/* A fork of it is about to happen. */
void ml_client_expect(struct ml_client *client, uint64_t serial, uint64_t time);

/* A client without events; NULL when there is no memory. */
struct ml_client *ml_client_new(struct ml_session *session, const struct ml_client_setup *setup);
void ml_client_free(struct ml_client *take_client);

/* Take over role, name, command line and memory. False: no memory, nothing has changed. */
bool ml_client_take_name(
    struct ml_client *client, const struct memlog_service_process_facts *facts
);

/* The receiver of its decoded stream: client_stream.c. */
struct ml_stream_sink ml_client_sink(struct ml_client *client);

/* Queue a MAPPING record, and apply what was queued of it. `lane` is told from others by its
 * address. */
enum ml_status
ml_client_queue_mapping(struct ml_client *client, uint32_t lane, const struct ml_event *event);
void ml_client_apply_mapping(
    struct ml_client *client, const struct ml_timed *timed, const void *lane
);

/* An END or REAPED record is queued. */
void ml_client_turn_queued(struct ml_client *client, uint64_t ticks);

/* Close the files with names of code. */
void ml_client_drop_code(struct ml_client *client);

/* Let go of one of its views and its room; *view is NULL then. */
void ml_client_drop_view(struct ml_client *client, struct ml_host_view **view);

/* Where the client keeps a view that belongs to a reading of all processes, by its number. NULL: it
 * belongs to none. On the session's thread, as the next one. */
struct ml_host_view **ml_client_tree_place(struct ml_client *client, uint32_t reading);

/* Drop its views of such readings, for want of room or because it stands for several. */
void ml_client_forget_tree(struct ml_client *client);

/* Forget what is queued. */
void ml_client_drop_queue(struct ml_client *client);

/* Apply queued events that cannot wait. */
void ml_client_digest(struct ml_client *client);

/* "it is over its quota of memory in memlog-service, 8 MiB (--client-memory): OUTCOME" */
void ml_client_quota_text(
    const struct ml_client *client, const char *outcome, char out_text[ML_TROUBLE_MAX_BYTES]
);

/* The client is lost from here on. For want of memory its queued events go as well. */
void ml_client_lose(struct ml_client *client, enum ml_status status);

/* Cut a client that was lost for want of memory down to its largest stacks, once. Its sums stay. */
void ml_client_relieve(struct ml_client *client);

/* Apply queued events up to `until`, in order. A client whose events cannot be applied is lost. */
void ml_client_apply(struct ml_client *client, uint64_t until);

/* Queue that the process ended at `ticks`. */
void ml_client_queue_leave(struct ml_client *client, uint64_t ticks);

/* It leaves the tree for good. Its children stay its children. */
void ml_client_left(struct ml_client *client);

/* Find out what it inherited, if that is known by now. */
void ml_client_inherit(struct ml_client *client);

/* Everything is applied and nothing more will come: keep cells and nodes, free the rest. */
void ml_client_finish(struct ml_client *client);

/* End its series at `ns` with the present figures. Does nothing before the session's first note of
 * time. */
void ml_client_end_timeline(struct ml_client *client, uint64_t ns);
void ml_client_free_timeline(struct ml_client *client);

/* It runs, is read and is not lost. */
bool ml_client_follows(const struct ml_client *client);

#endif
