/* Private to the engine: its parts, and what they call of one another. Room: host. */
#ifndef MEMLOG_HOST_ENGINE_STATE_H
#define MEMLOG_HOST_ENGINE_STATE_H

#include <limits.h>

#include <ev.h>

#include "host/engine/engine.h"
#include "host/engine/lifecycle.h"
#include "host/engine/processes/member.h"
#include "host/engine/service/link.h"
#include "host/engine/processes/unrecorded.h"
#include "host/policy/restart_policy.h"
#include "host/process/events.h"
#include "host/sockets/endpoint.h"
#include "host/sockets/socket_directory.h"
#include "host/upload/uploader.h"
#include "ipc/channel/channel.h"
#include "mojom_like_idl/contracts/heap_client_mojom.h"
#include "mojom_like_idl/contracts/heap_host_mojom.h"

/* Programs that ran without memlog, as told to the report; more of them are only counted. */
enum { ML_NOT_PROFILED_MAX = 4096, ML_GAPS_MAX = 64 };

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
struct ml_cgroups;
struct ml_dump_jobs;
struct ml_dump_requests;
struct ml_finish;
struct ml_list;
struct ml_peak;
struct ml_rates;
struct ml_targets;
struct ml_engine_triggers;
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
    pid_t root;
    char *const *root_argv;
    bool root_seen;   /* it has reported itself */
    bool is_profiled; /* this host is, by another one, and with it all that it starts */
    enum ml_image_kind root_image;
    struct ml_not_profiled *not_profiled;
    uint32_t not_profiled_count;
    struct ml_gap gaps[ML_GAPS_MAX];
    uint32_t gaps_count;
    struct ml_uploader *uploader; /* NULL: nothing leaves */
    /* Each is its own module's alone. */
    struct ml_cgroups *cgroups;
    struct ml_dump_jobs *jobs;
    struct ml_dump_requests *requests;
    struct ml_finish *finish;
    struct ml_list *list;
    struct ml_peak *peak;
    struct ml_targets *targets;
    struct ml_engine_triggers *triggers;
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

/* server.c: the handlers of the command socket; the context is a struct
 * ml_engine_connection. */
extern const struct memlog_host_host_handlers ml_engine_command_handlers;

/* Whoever waits for an answer on that connection is gone. */
void ml_command_forget(struct ml_engine_connection *connection);

#endif
