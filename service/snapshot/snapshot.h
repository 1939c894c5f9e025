/* One moment of all profiles, ready to be written: what the pipeline hands the dump writer. Room:
 * service.
 *
 * One rule: a snapshot is a copy. It stays true while the pipes go on being drained. What it points
 * to belongs to it and goes with ml_snapshot_free, unless its field says otherwise. */
#ifndef MEMLOG_SERVICE_SNAPSHOT_SNAPSHOT_H
#define MEMLOG_SERVICE_SNAPSHOT_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mojom_like_idl/contracts/heap_service_mojom.h"
#include "service/snapshot/accounting.h"
#include "service/snapshot/sampling_log.h"

struct ml_host_view;

/* Sums of one thing. Bytes are requested bytes; weighted when sampled. */
struct ml_totals {
    uint64_t live_bytes, live_blocks;
    uint64_t peak_bytes, peak_blocks;
    uint64_t total_bytes, total_blocks;
};

/* An amount of memory. */
struct ml_amount {
    uint64_t bytes, blocks;
};

/* One moment: by the stream's clock, and by the kernel's. */
struct ml_timestamp {
    uint64_t ticks;
    uint64_t monotonic_ns, realtime_ns, boottime_ns;
};

/* As a message has it. */
static inline struct ml_timestamp ml_timestamp_of(const struct memlog_service_moment *moment) {
    return (struct ml_timestamp
    ){.ticks = moment->ticks,
      .monotonic_ns = moment->monotonic_ns,
      .realtime_ns = moment->realtime_ns,
      .boottime_ns = moment->boottime_ns};
}

struct ml_snapshot_module {
    uint32_t id; /* as in the stream, from 1 */
    uint64_t start, end;
    int64_t bias;
    struct ml_string build_id, path;
    uint64_t code_address, code_offset; /* of the first executable segment; both 0: not known */
};

/* Stack nodes, sorted by id, parents before children. */
struct ml_snapshot_node {
    uint32_t id;
    uint32_t parent;  /* id; 0: root */
    uint32_t frame;   /* enum ml_frame_kind, ipc/wire/event.h */
    uint32_t module;  /* id; 0: none */
    uint64_t address; /* as mapped; module bias not taken off */
    uint32_t string;  /* index into strings; for THREAD and SCOPE frames */
};

/* A counter cell: everything allocated at one stack, on one heap, of one type, in one size class.
 */
struct ml_snapshot_cell {
    uint32_t node; /* id; 0: no stack */
    uint16_t heap, type;
    uint8_t size_class;   /* floor(log2(size)) + 1, 0 for size 0 */
    struct ml_totals own; /* peak_*: this cell's share at the moment of its process's peak */
    uint64_t tree_peak_bytes, tree_peak_blocks; /* its share at the moment of the tree's peak */
    uint64_t temporary_blocks; /* freed as the next event of the thread that allocated them */
    /* Standard errors of the figures above, in 1/256 of a byte or block; 0: exact. */
    struct ml_totals own_errors;
    uint64_t tree_peak_bytes_error, tree_peak_blocks_error;
    /* Of its live blocks at the moment of the process's view, if cells_were_laid. */
    uint64_t resident_private_bytes, resident_shared_bytes;
    uint64_t alone_bytes; /* of pages on which blocks of its stack alone lie */
    uint64_t waste_bytes; /* its share of what its pages hold beside blocks */
    /* The same at the moment of the tree's view, if tree_cells_were_laid. */
    uint64_t tree_private_bytes, tree_shared_bytes;
};

/* A heap of the program's own. */
struct ml_snapshot_heap {
    uint32_t id;
    uint32_t string; /* index into strings: its name; 0: it has none */
    struct ml_totals own;
    uint64_t unknown_frees; /* of what the program had not reported */
};

/* A type of blocks. */
struct ml_snapshot_type {
    uint32_t id;
    uint32_t string; /* likewise */
};

/* What was read of blocks' first words. */
struct ml_words_facts {
    bool were_read;
    bool are_cut;        /* not all of them: for want of time or room */
    uint64_t read_bytes; /* of memory that was looked at */
};

/* Live blocks of one stack that begin with the same word, the address of something in a file's
 * mapping: service/heap/first_words.h. */
struct ml_snapshot_word {
    uint32_t node; /* id; 0: no stack */
    uint64_t word;
    uint64_t live_bytes, live_blocks;
    uint64_t live_bytes_error, live_blocks_error; /* standard errors, in 1/256 */
};

/* A slot of a series (service/history/series.h): from the point before it to end_ms. */
struct ml_snapshot_point {
    uint64_t end_ms;                              /* CLOCK_MONOTONIC */
    uint64_t least_bytes, most_bytes, last_bytes; /* live */
    uint64_t total_bytes, total_blocks;           /* allocated until then; 0 of a stack */
};

struct ml_snapshot_series {
    uint32_t node; /* the stack's id; of a process's or the tree's own: 0 */
    bool is_stack;
    uint64_t from_ms; /* where the first point begins */
    struct ml_snapshot_point *points;
    uint32_t points_count;
};

/* What an owner other than live blocks holds of a mapping: service/memory/holdings.h. */
struct ml_snapshot_holding {
    uint32_t region; /* index in the view */
    uint32_t kind;   /* enum ml_owner_kind */
    uint32_t node;   /* id; 0: no stack */
    uint32_t string; /* index into strings: its name; 0: none */
    uint64_t mapped_bytes;
    uint64_t private_bytes, shared_bytes; /* resident */
};

struct ml_snapshot_process {
    uint32_t id, parent_id;
    uint32_t pid, parent_pid;
    uint32_t role;  /* memlog.service.Role */
    uint32_t state; /* memlog.service.ProcessState */
    int32_t exit_code;
    uint32_t signal;
    bool from_startup;
    bool forked;
    bool complete;
    struct ml_string trouble; /* why it is not complete */
    struct ml_string name;
    struct ml_string exe_path; /* what /proc/PID/exe links to; empty: not known */
    struct ml_string *command_line;
    uint32_t command_line_count;
    uint64_t footprint_bytes, resident_bytes;
    struct memlog_service_overhead overhead;
    /* Of one moment; both 0: its memory was never read. */
    bool coverage_was_read; /* false: its memory never was, and both are 0 */
    uint64_t coverage_heap_bytes, coverage_private_bytes;
    uint64_t coverage_mapped_bytes, coverage_files_bytes, coverage_shared_bytes;
    uint32_t hooked_functions;  /* of its executable's own allocator, hooked at their entries */
    struct ml_string allocator; /* "glibc", ... */
    struct ml_string unseen;    /* what of its memory is known to go unseen; empty: nothing */
    struct ml_sampling_log sampling;
    struct ml_timestamp start, end;    /* end: all 0 while it runs */
    bool stream_ended;                 /* it has, or its stream was given up */
    struct ml_host_view *earlier_view; /* to compare with, a reference; NULL: none is wanted */
    struct ml_host_view *view; /* what the host saw of it last, a reference; NULL: nothing */
    bool cells_were_laid;      /* the cells have what they hold of the view's pages */
    /* Of when all processes together had most private memory, a reference; NULL: it did not run
     * then, or that was never read. */
    struct ml_host_view *tree_view;
    bool tree_cells_were_laid;

    struct ml_totals totals; /* of malloc's heap */
    bool left_tree; /* it has ended, or its recording was stopped: tree.live is without it */
    uint64_t held_at_tree_peak_bytes, held_at_tree_peak_blocks;
    uint64_t peak_ticks;
    uint64_t inherited_bytes, inherited_blocks;
    struct ml_accounting accounting;
    uint64_t events, lost_events, unknown_frees, late_events;
    uint64_t truncated_stacks, broken_stacks;
    uint64_t unwind_checked, unwind_differed;
    /* It stands for so many processes of one program, of which so many failed; 0: it is one. */
    uint32_t folded_processes, folded_failed;

    struct ml_snapshot_module *modules;
    uint32_t modules_count;
    struct ml_string *strings;
    uint32_t strings_count;
    struct ml_snapshot_node *nodes;
    uint32_t nodes_count;
    struct ml_snapshot_cell *cells;
    uint32_t cells_count;
    struct ml_snapshot_heap *heaps; /* beside malloc's */
    uint32_t heaps_count;
    struct ml_snapshot_type *types;
    uint32_t types_count;
    struct ml_words_facts words_facts;
    struct ml_snapshot_word *words; /* by node, then word */
    uint32_t words_count;
    struct ml_snapshot_holding *holdings; /* of the view's mappings */
    uint32_t holdings_count;
    struct ml_snapshot_holding *tree_holdings; /* of the tree's view's; none if it is the view */
    uint32_t tree_holdings_count;
    struct ml_snapshot_series *series; /* its own, then its stacks' */
    uint32_t series_count;
};

struct ml_snapshot {
    /* The request, with what only the host knows. What it points to belongs to the request, which
     * outlives the snapshot. */
    struct memlog_service_dump_order order;
    struct ml_timestamp run_start;
    struct ml_totals tree; /* live and peak: of the running processes together; total: of all */
    uint64_t left_bytes, left_blocks; /* what processes held when they left the tree */
    uint64_t tree_peak_ticks;
    uint32_t tree_views_dropped;      /* processes that lack a tree_view for want of room */
    struct ml_snapshot_series series; /* the tree's: live of the running ones together, allocated by
                                         all; no points: none */
    bool complete;
    struct ml_snapshot_process *processes;
    uint32_t processes_count;
    struct ml_string uncovered;       /* whose memory went unseen, and why; empty: nobody's */
    struct ml_string service_trouble; /* what its guard did, service/session/guard.h; or empty */
    /* What the kernel did not permit, as `order` not the snapshot's own; empty: everything is on.
     */
    struct ml_string sandbox_missing;
};

/* Free it and everything in it; NULL is allowed. */
void ml_snapshot_free(struct ml_snapshot *take_snapshot);

#endif
