/* The client's one global and its memory. Room: client (private). Context:
 * every thread of the profiled process, inside malloc.
 *
 * One rule: everything that must not survive a fork lies in the *arena*, which the kernel wipes in
 * a child (MADV_WIPEONFORK). So a child starts empty without running code of ours. It notices at
 * its first event, because `gate` reads zero.
 *
 *   arena = gate page | unwinder | addresses of sampled blocks, first level | ... lanes' private
 *           parts, hash tables of the stack table, memo blocks, further levels, skipped blocks:
 *           one behind the other, as they are needed
 *   nodes = the stack table's, in order
 *
 * Both, and the part of staging that is mapped, grow where they lie (client/state/region.h). */
#ifndef MEMLOG_CLIENT_STATE_PROCESS_H
#define MEMLOG_CLIENT_STATE_PROCESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/sampling/sampled_set.h"
#include "client/state/region.h"
#include "client/state/sys.h"
#include "client/state/thread.h"
#include "client/state/visible.h"
#include "ipc/wire/event.h"
#include "ipc/wire/lease.h"
#include "ipc/wire/staging.h"

#define ml_likely(x) __builtin_expect(!!(x), 1)
#define ml_unlikely(x) __builtin_expect(!!(x), 0)

/* What the process does. FRESH is 0: a wiped page, or nothing has run yet. */
enum ml_gate_state {
    ML_GATE_FRESH = 0,
    ML_GATE_DORMANT = 1,
    ML_GATE_RECORDING = 2,
    ML_GATE_OFF = 3 /* for good: no host, no memory, or a broken contract */
};

/* How a stamp is taken: ml_process_ticks. */
enum ml_stamps {
    ML_STAMPS_ALONE = 0,   /* the TSC; one lane alone was ever taken */
    ML_STAMPS_SEVERAL = 1, /* the TSC, in order; more than one was */
    ML_STAMPS_MONOTONIC = 2
};

enum { ML_TABLES_MAX = 13 };

struct ml_thread;

/* First page of the arena. `gate` = stirs << 40 | generation << 2 | state. A thread whose copy
 * differs takes the slow path. Counters that many threads write have cache lines of their own. */
struct ml_gate_page {
    _Atomic uint64_t gate;
    _Atomic uint32_t stamps; /* enum ml_stamps; only grows */
    uint8_t gate_line[52];
    _Atomic uint64_t free_lanes;  /* stack of free lanes: version << 32 | name */
    _Atomic uint64_t next_string; /* profile << 32 | string ids given out in it */
    _Atomic uint32_t lanes_used;  /* lanes [0, lanes_used) were ever handed out */
    _Atomic uint32_t fork_serial; /* FORK records written */
    _Atomic uint32_t profile;     /* the latest that has its START record */
    uint8_t lanes_line[36];
    _Atomic uint32_t table_shift; /* log2 of the present hash table's slots */
    _Atomic uint32_t table_growing;
    _Atomic uint32_t table_used; /* its slots, not quite exactly */
    uint8_t table_line[52];
    /* Hash tables of doubling size, stack_table.c; NULL: not needed yet. */
    _Atomic(_Atomic uint32_t *) tables[ML_TABLES_MAX];
    _Atomic(_Atomic uint64_t *) skipped; /* skipped blocks, overrun.h; likewise */
    _Atomic uint64_t arena_used;         /* bytes of the arena that are taken */
    uint8_t arena_line[8];
    _Atomic uint32_t node_count; /* ids handed out: 1 .. node_count */
    uint8_t node_line[60];
    _Atomic uint64_t full_since_ns; /* the pipe was found full and has taken nothing since; 0: no */
    /* --memlog-overrun=sample, client/stream/overrun.h. */
    _Atomic uint64_t overrun_bytes; /* the interval that the pipe has room for; 0: the host's */
    _Atomic uint64_t overrun_fill_bytes; /* of the pipe, when the last chunk was put */
    _Atomic uint64_t overrun_calm_ns;    /* nearly empty since then; 0: it is not */
    _Atomic uint32_t overrun_records;    /* of sampled blocks, while the pipe sets the interval */
    uint8_t full_line[28];
    _Atomic uint32_t sampled;         /* 1: a thread of the process has sampled */
    _Atomic uint64_t stream_interval; /* sampling_bytes of the START record */
    /* A forked child's first event, which makes its stream. */
    _Atomic uint32_t start;                  /* enum ml_start_state */
    _Atomic uint32_t start_lost;             /* events that could not wait for it */
    const struct ml_thread *_Atomic starter; /* who makes it */
};

enum ml_start_state { ML_START_NOT = 0, ML_START_GOING_ON = 1, ML_START_OVER = 2 };

/* Of `filters`: what the program's own sandbox does not let through;
 * client/startup/seccomp_probe.h. */
enum {
    ML_FILTERS_NO_HOST = 1,    /* neither a forked child nor another program can come to the host */
    ML_FILTERS_NO_PID = 2,     /* getpid */
    ML_FILTERS_NO_NAME = 4,    /* a thread's name */
    ML_FILTERS_NO_GROWTH = 8,  /* mremap: the client's memory stays as it is */
    ML_FILTERS_NO_LIMITS = 16, /* prlimit: limits are as they were */
    ML_FILTERS_CLOSED = 32,    /* what recording needs: the process is off from its next event on */
    ML_FILTERS_NO_PRELOAD = 64,  /* another program cannot come to the host; a forked child can */
    ML_FILTERS_NO_PENDING = 128, /* rt_sigpending */
    ML_FILTERS_NO_CONSUME = 256, /* rt_sigtimedwait: a SIGPIPE of ours could not be consumed */
    ML_FILTERS_NO_SILENCE = 512, /* pwritev2, which raises no SIGPIPE */
    ML_FILTERS_NO_PIPE_SIZE = 1024, /* how many bytes a pipe holds */
    ML_FILTERS_NO_LENDING = 2048,   /* another program cannot come to the host by this connection */
    ML_FILTERS_NO_RESTART = 4096,   /* restart_syscall: no wait of ours may be in the kernel */
    ML_FILTERS_GROWTH_ENDS = 8192,  /* mremap, and whoever calls it is not just refused */
    ML_FILTERS_NAME_ENDS = 16384    /* a thread's name, likewise */
};

/* What tells an open file from every other one. */
struct ml_file {
    uint64_t device, inode;
};

struct ml_lane;
struct ml_table_node;
struct ml_unwind_process;

/* Where the process's parts lie, and what it may write to. Set by the constructor, again by a
 * forked child at its first event; constant between, but for the atomics. */
struct ml_process {
    /* What every event reads lies on one cache line. In a program whose data fill the caches, each
     * line of ours is a miss. */
    _Alignas(64) struct ml_gate_page *gate_page; /* arena; never NULL */
    const struct ml_control_page *control;       /* shared with the host, read only; never NULL */
    struct ml_unwind_process *unwind;            /* arena */
    struct ml_table_node *stack_nodes;           /* [nodes_max], stack_table.h */
    struct ml_lease_page *lease;   /* shared with all processes of the run; never NULL */
    struct ml_sampled_set sampled; /* arena; of it the glances */
    /* To here; slow paths read the rest. */
    uint32_t clock;        /* enum ml_clock; `stamps` of the gate page is what events go by */
    uint32_t check_every;  /* every Nth stack of a lane is compared, check.h; 0: none */
    uint64_t lease_number; /* this process's, ipc/wire/lease.h */
    uint8_t *staging;      /* shared with the service: the memfd; arena.h says how much of it */
    _Atomic uint32_t nodes_max; /* nodes that have memory; grows */
    uint32_t slots;
    struct ml_memory {
        struct ml_region arena, nodes, staging; /* the same in a forked child */
        struct ml_region names; /* what the program has named; never grows, copied by forks */
        _Atomic uint64_t refused_bytes; /* the least that was refused; 0: nothing was */
        _Atomic uint32_t refusals;
        _Atomic uint64_t limits[2]; /* RLIMIT_AS and RLIMIT_DATA, when they were last asked for */
    } memory;
    /* What a call that sampling passes over takes, client/stream/cost.h; 0: not measured yet. */
    _Atomic uint32_t pass_ticks_256;
    _Atomic uint32_t clock_ticks; /* what reading the clock takes, measured with it */
    uint32_t generation;          /* grows with each fork; the upper part of `gate` */
    uint32_t pid;
    uint32_t title_bytes;
    const uint8_t *title; /* the program's argument memory, read by forked children only */
    bool connected;       /* all of the above is set: the process has a host */
    bool no_sigpipe;      /* the kernel takes RWF_NOSIGNAL, and the program's sandbox pwritev2 */
    uint32_t filters;     /* ML_FILTERS_*; stays through forks, as filters do */
    /* Our descriptors, -1: none; and the files that they must still be when they are used. */
    _Atomic int pipe_fd;
    _Atomic int socket_fd;
    struct ml_file pipe, socket;
    uint64_t pipe_bytes; /* what the pipe held when it came */
};

/* The one global of the client; listed in client/README.md. */
extern ML_OURS struct ml_process ml_process;

enum { ML_GATE_STIRS_SHIFT = 40 };

static inline uint64_t ml_gate_value(uint32_t generation, enum ml_gate_state state) {
    return (uint64_t)generation << 2 | (uint64_t)state;
}

/* Let every thread that records exactly take the slow path at its next event. */
static inline void ml_process_stir(void) {
    (void)atomic_fetch_add_explicit(
        &ml_process.gate_page->gate, (uint64_t)1 << ML_GATE_STIRS_SHIFT, memory_order_relaxed
    );
}

static inline enum ml_gate_state ml_process_state(void) {
    return (enum ml_gate_state
    )(atomic_load_explicit(&ml_process.gate_page->gate, memory_order_relaxed) & 3);
}

static inline uint32_t ml_process_control_generation(void) {
    return __atomic_load_n(&ml_process.control->generation, __ATOMIC_RELAXED);
}

/* The profile that the host wants. */
static inline uint32_t ml_process_profile(void) {
    return __atomic_load_n(&ml_process.control->profile, __ATOMIC_ACQUIRE);
}

/* enum ml_stack_mode. */
static inline uint32_t ml_process_stack_mode(void) {
    return __atomic_load_n(&ml_process.control->stack_mode, __ATOMIC_RELAXED);
}

/* Now, by the tree's clock.
 *
 * While only one lane was ever taken, this thread cannot have seen an event of another one. Its
 * stamps need no order, and the cheaper reading suffices. The thread of a second lane sets `stamps`
 * before its first event. A thread that sees an effect of that event (a block handed over, freed
 * memory) reads `stamps` later in program order. So it sees `stamps` set: x86 keeps stores in
 * order, and loads too. */
static inline uint64_t ml_process_ticks(void) {
    const uint32_t stamps =
        atomic_load_explicit(&ml_process.gate_page->stamps, memory_order_relaxed);
    if (ml_likely(stamps == ML_STAMPS_ALONE)) {
        return ml_sys_tsc();
    }
    return ml_likely(stamps == ML_STAMPS_SEVERAL)
               ? ml_sys_tsc_ordered()
               : ml_lease_stamp(ml_process.lease, ml_sys_monotonic_ns());
}

/* The same, ordered behind a store that other threads must see first. */
static inline uint64_t ml_process_ticks_ordered(void) {
    return ml_process.clock == ML_CLOCK_TSC
               ? ml_sys_tsc_ordered()
               : ml_lease_stamp(ml_process.lease, ml_sys_monotonic_ns());
}

static inline struct ml_staging_header *ml_process_staging_header(void) {
    return (struct ml_staging_header *)(void *)ml_process.staging;
}

/* The header of that lane in a staging. */
static inline struct ml_staging_lane *ml_process_staging_lane(uint8_t *staging, uint32_t index) {
    void *headers = staging + ML_STAGING_LANES_OFFSET;
    return (struct ml_staging_lane *)headers + index;
}

/* A message that the host did not take is counted where the service sees it. A forked child without
 * a staging of its own counts it in its parent's. */
static inline void ml_process_lost_message(void) {
    (void)__atomic_fetch_add(&ml_process_staging_header()->lost_messages, 1, __ATOMIC_RELAXED);
}

/* A program is about to run unrecorded, by that NotProfiledReason, and no message says so.
 * Async-signal-safe; also between vfork and exec. */
static inline void ml_process_leave_out(uint32_t reason) {
    const bool may_ask = (ml_process.filters & ML_FILTERS_NO_PID) == 0;
    const uint32_t pid = may_ask ? (uint32_t)ml_sys0(SYS_getpid) : 0;
    __atomic_store_n(
        &ml_process_staging_header()->left_out, ml_left_out(pid, reason), __ATOMIC_RELAXED
    );
}

/* Whether to wait for the host: not after one wait in vain. */
static inline bool ml_process_host_listens(void) {
    return __atomic_load_n(&ml_process_staging_header()->lost_messages, __ATOMIC_RELAXED) == 0;
}

/* What the process does from now on, in its present generation. */
void ml_process_set_state(enum ml_gate_state state);

/* Stop recording for good, as after a broken contract of our own. */
void ml_process_off(void);

/* There is no host, as before the first one. */
void ml_process_forget(void);

/* The file behind a descriptor; false when it is not open. */
bool ml_process_file(int fd, struct ml_file *out_file);

/* Whether that is the file behind a descriptor: programs close every number and use it again. */
bool ml_process_is_file(int fd, const struct ml_file *file);

/* The process is about to exit or to exec (enum ml_end_kind): a record in the calling thread's
 * lane, if the process is being recorded. In lifecycle.c. */
void ml_lifecycle_end(uint32_t kind);

#endif
