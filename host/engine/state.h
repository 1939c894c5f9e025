/* Private to the engine: its parts, and what they call of one another. Room: host. */
#ifndef MEMLOG_HOST_ENGINE_STATE_H
#define MEMLOG_HOST_ENGINE_STATE_H

#include <stdio.h>

#include <ev.h>

#include "host/engine/dump_folder.h"
#include "host/engine/engine.h"
#include "host/engine/lifecycle.h"
#include "host/engine/processes/member.h"
#include "host/engine/service/link.h"
#include "host/engine/processes/unrecorded.h"
#include "host/policy/restart_policy.h"
#include "host/process/cgroup_info.h"
#include "host/process/events.h"
#include "host/sockets/endpoint.h"
#include "host/sockets/socket_directory.h"
#include "host/upload/uploader.h"
#include "ipc/channel/channel.h"
#include "mojom_like_idl/contracts/heap_client_mojom.h"
#include "mojom_like_idl/contracts/heap_host_mojom.h"

/* Programs that ran without memlog, as told to the report; more of them are only counted. */
enum { ML_NOT_PROFILED_MAX = 4096, ML_GAPS_MAX = 64 };

/* The service has this long to take in what ended processes have left, and to bring all clients to
 * one moment for a dump; behind it the guard waits for a service that hangs. */
enum { ML_DRAIN_DEADLINE_MS = 60000, ML_DUMP_DEADLINE_MS = 10000, ML_GUARD_EXTRA_S = 60 };

/* Dumps that may wait behind one another: they are asked for by people and timers, not by load. */
enum { ML_DUMPS_WAITING_MAX = 16 };

/* A dump that so many services die over is not taken. */
enum { ML_DUMP_TRIES_MAX = 3 };

/* Descriptors that stay free of members: for messages on their way with all that one may carry, for
 * a dump, for `memlog ps`. */
enum { ML_DESCRIPTORS_SPARE = 24 };

/* Whom the kernel names who has no number in our user namespace (DEFAULT_OVERFLOWUID). */
enum { ML_OVERFLOW_UID = 65534 };

struct ml_not_profiled {
    pid_t pid;
    pid_t parent_pid;
    char reason[256];
    char *path;
    bool has_other_profiler; /* another memlog had it already */
    bool is_listed;          /* the list of processes has it, too */
    uint64_t heard_ns;       /* CLOCK_MONOTONIC */
    bool begins_anew;        /* it is about to execute its own file once more, without memlog */
};

struct ml_gap {
    struct memlog_service_moment from;
    struct memlog_service_moment to;
    char reason[256];
};

struct ml_command_call;
struct ml_list;
struct ml_rates;
struct ml_targets;
struct ml_watch;

/* A connection to one of the two sockets. */
struct ml_engine_connection {
    struct ml_engine *engine;
    struct ml_channel *channel;
    uint32_t member_id;                   /* who said Hello on it; 0: nobody yet */
    bool is_silent;                       /* to the control socket, and nobody has said Hello yet */
    struct ml_command_call *pending;      /* a command that is being carried out; NULL: none */
    struct ml_member_allocator allocator; /* of whoever is about to say Hello */
    struct ml_engine_connection *next;
    struct ml_engine_connection *previous;
};

/* Why a dump is taken unasked, as the service has decided. */
struct ml_dump_trigger {
    bool is_set;
    enum memlog_service_trigger_kind kind;
    uint32_t id, node;
    uint64_t node_bytes;
    uint64_t checked_ns; /* monotonic: the look that it was decided at; 0: nobody looked */
    char reason[MEMLOG_SERVICE_DECISION_REASON_LIMIT + 1];
};

enum { ML_TRIGGER_KINDS = MEMLOG_SERVICE_TRIGGER_KIND_ASKED + 1 };

enum {
    ML_TRIGGER_DUMPED = MEMLOG_SERVICE_OBSERVATION_DUMPED_NS_LIMIT,
    /* Control groups of one tree, and the machine; more are not looked at. */
    ML_TRIGGER_MEMORIES = MEMLOG_SERVICE_OBSERVATION_MEMORIES_LIMIT,
};

/* triggers.c */
struct ml_engine_triggers {
    ev_timer look_timer, memory_timer, killed_timer;
    unsigned asked;                         /* looks that the service has not answered */
    bool killed_waits;                      /* somebody was, and it was not told yet */
    void (*on_flushed)(struct ml_engine *); /* the run's end waits for the decision */
    struct ml_dump_trigger last;            /* what the run's last dump is for, too */
    uint64_t oom_kills;                     /* the kernel's count at the last look, ... */
    uint64_t oom_ns;                        /* ... and when it was seen to rise; 0: never */
    struct ml_cgroup *groups;               /* of the members up to members_grouped; of one that is
                                               gone the folder is "" */
    unsigned groups_count;
    bool groups_left_out; /* there were more, and it was said */
    uint32_t members_grouped;
    uint32_t next_asked; /* who is asked for his group again */
    int log_fd;          /* -1: not made yet */
    uint64_t log_bytes;
    uint64_t decisions[ML_TRIGGER_KINDS][2]; /* [1]: for a dump */
    uint64_t dumps_count;
    /* What was dumped, for a service that follows on this one. */
    uint32_t memories_dumped[ML_TRIGGER_MEMORIES]; /* bits by kind; [0] is the machine, groups[]
                                                      follow */
    uint32_t observed[ML_TRIGGER_MEMORIES];        /* which of those stood where in the last look */
    uint64_t dumped_ns[ML_TRIGGER_DUMPED];
    uint32_t dumped_count;
};

/* peak.c */
struct ml_engine_peak {
    ev_timer look_timer;
    bool is_asking;        /* the service */
    bool is_dumping;       /* no second one meanwhile */
    uint64_t dumped_bytes; /* the tree's peak at the last of these dumps */
    uint64_t asked_ns;     /* when that was asked for; CLOCK_MONOTONIC */
    uint64_t free_ns;      /* no other before then */
};

/* How the run's last dump went. */
struct ml_final_dump {
    char path[PATH_MAX];
    bool complete;
    char trouble[ML_ERROR_MESSAGE_BYTES];
};

/* Why a dump of this run was taken, for people who look at the list. */
struct ml_dump_words {
    uint32_t number; /* 0: nothing is here */
    char text[MEMLOG_SERVICE_DECISION_REASON_LIMIT + 1];
};

/* More than anybody scrolls through. */
enum { ML_DUMP_WORDS_KEPT = 128 };

/* A dump that was asked for. */
struct ml_dump_job {
    enum memlog_service_dump_reason reason;
    uint32_t *ids;
    uint32_t ids_count;
    struct ml_dump_trigger trigger;
    ml_dump_done *on_done;
    void *context;
    struct ml_dump_file file;
    bool is_snapshot; /* into the asker's own file.fd, not into the folder */
    enum memlog_service_dump_content content;
    bool started;   /* the service writes it */
    unsigned tries; /* services that have died over it */
    struct ml_dump_job *next;
};

/* What people are told once a run. */
enum ml_said {
    ML_SAID_DESCRIPTORS, /* that they do not suffice */
    ML_SAID_STRANGERS,   /* that other users' processes are refused */
    ML_SAID_COARSER,     /* that the service, short of memory, has a process sampled */
    ML_SAID_DROPPED,     /* that it keeps totals alone of one */
    ML_SAID_QUOTA        /* that it does so for a process's own part of it */
};

struct ml_engine {
    struct ev_loop *loop;
    const struct ml_options *options;
    const struct ml_inherited *inherited;
    void (*on_notice)(void *context, const char *text);
    void *context;
    /* A member's process has ended, or runs an image that has not reported itself: for those who
     * keep what comes behind it. */
    void (*on_member_end)(struct ml_engine *engine, const struct ml_member *member);
    enum ml_engine_phase phase; /* by ml_engine_set_phase alone */
    enum ml_clock clock;
    struct memlog_service_moment start;
    char preload_path[PATH_MAX]; /* "": nothing is loaded by it */
    struct ml_socket_directory directory;
    ev_io client_watcher;
    ev_io command_watcher;
    struct ml_engine_connection *connections; /* the newest first */
    uint32_t silent_count;                    /* of them */
    uint32_t broken_count;                    /* of those that broke the contract, in all */
    char *service_path;
    struct ml_service_link link;
    enum ml_engine_service service_state;
    void (*on_service)(void *context, pid_t pid);
    int words_fd; /* ipc/wire/last_words.h */
    struct ml_restart_policy restart_policy;
    ev_timer restart_timer;
    struct memlog_service_moment serving_since; /* of the present service, or the last one */
    struct memlog_service_moment service_died;
    struct ml_ending service_ending; /* as its parent was told */
    char last_ending[64];            /* of the last service, in words */
    struct ml_members members;
    struct ml_unrecorded_table unrecorded;
    uint64_t descriptors_max; /* RLIMIT_NOFILE */
    bool has_all_users;       /* none of the machine is without a number in our user namespace */
    uint32_t said;            /* bits by enum ml_said */
    struct ml_pipe_budget budget;
    uint32_t fork_pipe_bytes; /* as all control pages say */
    int lease_fd;             /* ipc/wire/lease.h */
    struct ml_dumps dumps;    /* open once the program is known */
    pid_t root;
    char *const *root_argv;
    bool root_seen;   /* it has reported itself */
    bool is_profiled; /* this host is, by another one, and with it all that it starts */
    enum ml_image_kind root_image;
    struct ml_not_profiled *not_profiled;
    uint32_t not_profiled_count;
    struct ml_gap gaps[ML_GAPS_MAX];
    uint32_t gaps_count;
    struct ml_dump_job *jobs; /* the first is at work */
    struct ml_engine_triggers triggers;
    struct ml_engine_peak peak;
    struct ml_uploader *uploader;                        /* NULL: nothing leaves */
    struct ml_final_dump final;                          /* while its run's uploads settle */
    struct ml_dump_words dump_words[ML_DUMP_WORDS_KEPT]; /* a ring */
    uint32_t dump_words_next;
    uint64_t asked_to_ns; /* programs have asked for all dumps that they get up to this moment */
    ev_timer guard_timer;
    ev_timer interval_timer;
    ml_dump_done *on_finished;
    void *finished_context;
    /* Each is its own module's alone. */
    struct ml_list *list;
    struct ml_targets *targets;
    struct ml_rates *rates;
    struct ml_watch *watch;
};

/* Connections on which nobody has said Hello yet: beyond that the oldest gives way. A process says
 * Hello at once, so that who stays silent only takes descriptors from others. Connections that
 * broke the contract, of which people are told. */
enum { ML_SILENT_MAX = 1024, ML_BROKEN_TOLD_MAX = 16 };

__attribute__((format(printf, 2, 3))) void
ml_engine_notice(struct ml_engine *engine, const char *format, ...);

/* Whether that has not been said yet in this run; it has been from now on. */
static inline bool ml_engine_says_first(struct ml_engine *engine, enum ml_said what) {
    const uint32_t bit = UINT32_C(1) << (unsigned)what;
    const bool is_first = (engine->said & bit) == 0;
    engine->said |= bit;
    return is_first;
}

void ml_connection_close(struct ml_engine_connection *connection);

/* Somebody has said Hello on it. */
void ml_connection_heard(struct ml_engine_connection *connection);

/* Take the run through the table of lifecycle.c. An event that must not be there changes nothing,
 * and is counted. */
void ml_engine_set_phase(struct ml_engine *engine, enum ml_engine_phase_event event);

/* Now, where it is put among the processes' own events: for the start and the end of one. */
struct memlog_service_moment ml_engine_timestamp(struct ml_engine *engine);

/* Keep that a program ran without memlog. `path` may be NULL. */
void ml_engine_add_not_profiled(
    struct ml_engine *engine, pid_t pid, pid_t parent_pid, const char *reason, const char *path
);

/* Whether a process may be taken in whose descriptors reach up to that number. If not it is listed
 * as not profiled, and people are told once. */
bool ml_engine_has_descriptors(struct ml_engine *engine, int last_fd, pid_t pid, pid_t parent_pid);

/* clients.c: the handlers of the control socket; the context is a struct
 * ml_engine_connection. */
extern const struct memlog_client_host_for_client_handlers ml_engine_client_handlers;

/* service.c: the service's birth, death and successor. */

/* Start the first one. Errors: ML_ENV_* with an error message. */
ML_NODISCARD enum ml_status
ml_engine_service_open(struct ml_engine *engine, const char *path, struct ml_error_message *error);
void ml_engine_service_close(struct ml_engine *engine);

/* jobs.c */

/* A new service serves, or there will be none: what waits for one goes on. */
void ml_engine_dumps_resume(struct ml_engine *engine);
void ml_engine_dumps_init(struct ml_engine *engine);
void ml_engine_dumps_fini(struct ml_engine *engine);

/* A dump of everything, for that cause. As ml_engine_dump. */
void ml_engine_dump_as(
    struct ml_engine *engine,
    enum memlog_service_dump_reason reason,
    const struct ml_dump_trigger *trigger,
    ml_dump_done *on_done,
    void *context
);

/* A job for a dump of everything; NULL: there is no memory, and on_done was called. Owner:
 * ml_dump_job_queue or ml_dump_job_free. */
struct ml_dump_job *
ml_dump_job_new(enum memlog_service_dump_reason reason, ml_dump_done *on_done, void *context);

/* Say that a dump which nobody waits for is written; `why` may be "". */
void ml_dump_notice(
    struct ml_engine *engine, const char *path, const char *why, bool complete, const char *trouble
);

/* Put a job behind the others; its on_done is called once, perhaps before this returns. */
void ml_dump_job_queue(struct ml_engine *engine, struct ml_dump_job *take_job);
void ml_dump_job_free(struct ml_dump_job *take_job);

/* peak.c: dumps at the tree's peaks. */
void ml_engine_peak_init(struct ml_engine *engine);
void ml_engine_peak_fini(struct ml_engine *engine);

/* dump_requests.c: dumps that somebody asks for. */

/* A process asks for a dump: the control socket's message. */
void ml_engine_on_dump_asked(
    void *context,
    const struct ml_call *call,
    const struct memlog_client_dump_asked_request *request
);

/* The dump that was begun last is written: remember why it was taken, if anybody said. */
void ml_engine_keep_words(struct ml_engine *engine, const struct ml_dump_trigger *trigger);

/* cgroups.c: every memory that has a limit, if a rule wants them looked at; their number.
 * *out_ids: what their lists point into, for the caller to free. */
uint32_t ml_engine_look_at_cgroups(
    struct ml_engine *engine,
    struct memlog_service_observed_memory out_memories[ML_TRIGGER_MEMORIES],
    uint32_t **out_ids
);

/* triggers.c: looks, and what the service makes of them. */
void ml_engine_triggers_init(struct ml_engine *engine);
void ml_engine_triggers_fini(struct ml_engine *engine);

/* A member was ended by a signal. */
void ml_engine_member_killed(struct ml_engine *engine, const struct ml_member *member);

/* The run ends: have decided what waits for it. False: nothing does, and on_flushed is not called.
 */
bool ml_engine_triggers_flush(
    struct ml_engine *engine, void (*on_flushed)(struct ml_engine *engine)
);

/* A line for triggers.log; without `must` none comes any more once the log has its size. */
void ml_engine_write_log(
    struct ml_engine *engine, bool must, const char *kind, const char *what, const char *why
);

/* "footprint". */
const char *ml_engine_trigger_name(enum memlog_service_trigger_kind kind);

/* A decision that outlives its message. */
void ml_dump_trigger_of(
    const struct memlog_service_decision *decision, struct ml_dump_trigger *out_trigger
);

/* server.c: the handlers of the command socket; the context is a struct
 * ml_engine_connection. */
extern const struct memlog_host_host_handlers ml_engine_command_handlers;

/* Whoever waits for an answer on that connection is gone. */
void ml_command_forget(struct ml_engine_connection *connection);

#endif
