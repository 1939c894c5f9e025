/* Private to the engine: its parts, and what they call of one another. Room: host. */
#ifndef MEMLOG_HOST_ENGINE_STATE_H
#define MEMLOG_HOST_ENGINE_STATE_H

#include <limits.h>

#include <ev.h>

#include "host/analysis/roots.h"
#include "host/engine/engine.h"
#include "host/engine/lifecycle.h"
#include "host/engine/processes/member.h"
#include "host/engine/service/link.h"
#include "host/engine/processes/unrecorded.h"
#include "host/memory/history.h"
#include "host/sockets/socket_directory.h"
#include "host/upload/uploader.h"
#include "ipc/channel/channel.h"
#include "mojom_like_idl/contracts/heap_client_mojom.h"
#include "mojom_like_idl/contracts/heap_host_mojom.h"

/* Programs that ran without memlog. More of them are only counted. */
enum { ML_NOT_PROFILED_MAX = 4096, ML_GAPS_MAX = 64 };

/* What a report speaks of. */
enum ml_told_of {
    ML_TOLD_OF_PROGRAM = 0,
    ML_TOLD_OF_PROFILED,  /* a program that another memlog had already */
    ML_TOLD_OF_ANEW,      /* a program that executes its own file again, without memlog */
    ML_TOLD_OF_LOST_FORK, /* the forked child of a process that is recorded */
};

struct ml_not_profiled {
    pid_t pid;
    pid_t parent_pid;
    char reason[256];
    char *path;
    enum ml_told_of told_of;
    bool is_listed;    /* the list of processes has it, too */
    uint64_t heard_ns; /* CLOCK_MONOTONIC */
};

struct ml_gap {
    struct memlog_service_moment from;
    struct memlog_service_moment to;
    char reason[256];
};

/* What the modules of the engine keep of it, each for itself alone. */
#define ML_ENGINE_PARTS(PART)                                                                      \
    PART(ml_attaches, attaches)                                                                    \
    PART(ml_cgroups, cgroups)                                                                      \
    PART(ml_connections, connections)                                                              \
    PART(ml_dump_jobs, jobs)                                                                       \
    PART(ml_finish, finish)                                                                        \
    PART(ml_governor, governor)                                                                    \
    PART(ml_list, list)                                                                            \
    PART(ml_dump_names, names)                                                                     \
    PART(ml_peak, peak)                                                                            \
    PART(ml_rates, rates)                                                                          \
    PART(ml_supervisor, supervisor)                                                                \
    PART(ml_targets, targets)                                                                      \
    PART(ml_engine_triggers, triggers)                                                             \
    PART(ml_views, views)                                                                          \
    PART(ml_watch, watch)

/* What is said once a run. */
enum ml_said {
    ML_SAID_DESCRIPTORS, /* there are too few */
    ML_SAID_STRANGERS,   /* other users' processes are refused */
    ML_SAID_COARSER,     /* the service is short of memory and has a process sampled */
    ML_SAID_DROPPED,     /* the service keeps only the totals of a process */
    ML_SAID_QUOTA,       /* the same, as a process uses more than its share */
    ML_SAID_OVERHEAD,    /* a process costs more than was promised */
    ML_SAID_NAMES,       /* names of containers' code do not get into dumps */
    ML_SAID_FOOTPRINT,   /* thresholds look at nothing */
    ML_SAID_PYTHON       /* --frames=python does not read a Python */
};

struct ml_engine {
    struct ev_loop *loop;
    const struct ml_options *options;
    const struct ml_inherited *inherited;
    void (*on_notice)(void *context, const char *text);
    void *context;
    /* A member's process has ended, or runs an image that has not reported itself. The list and the
     * triggers want to know. */
    void (*on_member_end)(struct ml_engine *engine, const struct ml_member *member);
    /* Serve the connection of a process that a tracer has attached memlog to. The descriptor is
     * taken. */
    void (*serve_attached)(struct ml_engine *engine, int take_fd, pid_t pid);
    enum ml_engine_phase phase; /* by ml_engine_set_phase alone */
    enum ml_clock clock;
    struct memlog_service_moment start;
    char preload_path[PATH_MAX]; /* "": nothing is loaded by it */
    struct ml_socket_directory directory;
    struct ml_service_link link;
    enum ml_engine_service service_state;
    void (*on_service)(void *context, pid_t pid);
    struct ml_members members;
    struct ml_roots roots; /* that members have, or had at the last dump */
    struct ml_unrecorded_table unrecorded;
    uint32_t said; /* bits by enum ml_said */
    struct ml_pipe_budget budget;
    uint32_t fork_pipe_bytes; /* as all control pages say */
    int lease_fd;             /* ipc/wire/lease.h */
    pid_t root;
    char *const *root_argv;
    bool root_seen;   /* it has reported itself */
    bool is_profiled; /* another memlog profiles this host and all that it starts */
    enum ml_image_kind root_image;
    struct ml_not_profiled *not_profiled;
    uint32_t not_profiled_count;
    uint64_t lost_forks; /* forked children of recorded processes that could not be recorded */
    struct ml_gap gaps[ML_GAPS_MAX];
    uint32_t gaps_count;
    struct ml_memory_room memory_room; /* of the histories of all processes and of the tree */
    struct ml_memory_history tree_memory;
    uint64_t memory_noted_ms;     /* CLOCK_MONOTONIC, the tree's last note */
    uint32_t memory_dropped;      /* members below have given their histories up */
    struct ml_uploader *uploader; /* NULL: nothing leaves */
#define POINTER(type, name) struct type *name;
    ML_ENGINE_PARTS(POINTER)
#undef POINTER
};

__attribute__((format(printf, 2, 3))) void
ml_engine_notice(struct ml_engine *engine, const char *format, ...);

/* Whether that has not been said yet in this run; it has been from now on. */
static inline bool ml_engine_says_first(struct ml_engine *engine, enum ml_said what) {
    const uint32_t bit = UINT32_C(1) << (unsigned)what;
    const bool is_first = (engine->said & bit) == 0;
    engine->said |= bit;
    return is_first;
}

/* Change the run's phase by the table of lifecycle.c. A forbidden event changes nothing and is
 * counted. */
void ml_engine_set_phase(struct ml_engine *engine, enum ml_engine_phase_event event);

/* The time of a start or an end, in order with the processes' own events. */
struct memlog_service_moment ml_engine_timestamp(struct ml_engine *engine);

/* Note what was read of a process's memory, in its history and in the tree's, which is what all
 * that run held when last read. Where the histories fill their room, that of the earliest ended
 * member goes. */
void ml_engine_note_memory(
    struct ml_engine *engine,
    struct ml_memory_history *history,
    uint64_t resident_bytes,
    uint64_t private_bytes
);

/* Note that a program ran without memlog. `path` may be NULL. */
void ml_engine_add_not_profiled(
    struct ml_engine *engine, pid_t pid, pid_t parent_pid, const char *reason, const char *path
);

#endif
