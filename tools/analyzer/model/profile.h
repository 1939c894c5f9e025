/* A dump in memory: what every report and every format is made from. Room: tools. Context: one
 * thread.
 *
 * One rule: a profile is consistent. Node ids rise, parents exist and come first, and every
 * reference of a node or cell is in its table. Inconsistent data in the file is dropped, and
 * `damaged` is set. Texts are NUL-terminated and may hold any byte before. */
#ifndef MEMLOG_TOOLS_ANALYZER_MODEL_PROFILE_H
#define MEMLOG_TOOLS_ANALYZER_MODEL_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/uncovered.h"
#include "ipc/wire/event.h"
#include "mojom_like_idl/contracts/heap_service_mojom.h"
#include "tools/analyzer/model/deobfuscation.h"
#include "tools/analyzer/model/memory.h"

/* Text that is never NULL. */
struct ml_profile_text {
    const char *bytes;
    size_t count_bytes;
};

bool ml_profile_text_eq(struct ml_profile_text a, struct ml_profile_text b);

/* A build id in hex, cut if it is longer than ML_BUILD_ID_MAX_BYTES. Returns out_hex. */
enum { ML_PROFILE_HEX_BYTES = 2 * ML_BUILD_ID_MAX_BYTES + 1 };
const char *ml_profile_hex(struct ml_profile_text build_id, char out_hex[ML_PROFILE_HEX_BYTES]);

/* The six figures by name, in the order in which all forms have them. */
#define ML_PROFILE_FIGURES(x)                                                                      \
    x(live_bytes) x(live_blocks) x(peak_bytes) x(peak_blocks) x(total_bytes) x(total_blocks)

/* The six figures as numbers with a fraction: their variances, or their standard errors. */
struct ml_profile_spread {
    double live_bytes, live_blocks;
    double peak_bytes, peak_blocks;
    double total_bytes, total_blocks;
};

/* What live blocks hold of resident pages when the mappings were read, where that is known
 * (ml_profile_knows_pages); 0 where it is not. */
struct ml_profile_pages {
    uint64_t resident_bytes; /* of the blocks */
    uint64_t alone_bytes;    /* of whole pages on which blocks of one stack alone lie */
    uint64_t waste_bytes;    /* of the rest of these pages, shared by the blocks' bytes */
};

struct ml_profile_totals {
    uint64_t live_bytes, live_blocks;
    uint64_t peak_bytes, peak_blocks;
    uint64_t total_bytes, total_blocks;
    struct ml_profile_pages pages;
    struct ml_profile_spread variances; /* all 0: exact */
};

/* Standard errors as a dump has them, in 1/256. */
struct ml_profile_errors {
    uint64_t live_bytes, live_blocks;
    uint64_t peak_bytes, peak_blocks;
    uint64_t total_bytes, total_blocks;
};

/* Sums over several processes. */
struct ml_profile_holding {
    uint64_t bytes, blocks;
    double bytes_variance, blocks_variance;
};

struct ml_profile_timestamp {
    uint64_t ticks;
    uint64_t monotonic_ns, realtime_ns, boottime_ns;
};

struct ml_profile_module {
    uint32_t id; /* as in the stream, from 1 */
    uint64_t start, end;
    int64_t bias;
    struct ml_profile_text build_id; /* raw */
    struct ml_profile_text path;     /* as recorded; empty: the main program */
    /* ELF address and file offset of the first executable segment; both 0: not known. */
    uint64_t code_address, code_offset;
};

/* One mapping of a process as the kernel told it. Units: KiB; bytes for the figures of the heap. */
struct ml_profile_region {
    uint64_t start, end;            /* both 0: all mappings together that found no room */
    uint32_t permissions;           /* enum memlog_service_memory_permission */
    uint64_t offset, device, inode; /* of its file; inode 0: none */
    struct ml_profile_text name;
    uint64_t size_kb, resident_kb, proportional_kb;
    uint64_t private_clean_kb, private_dirty_kb, shared_clean_kb, shared_dirty_kb;
    uint64_t anonymous_kb, swap_kb;
    /* What live blocks hold of its resident pages. */
    uint64_t heap_blocks, heap_requested_bytes, heap_private_bytes, heap_shared_bytes;
    uint64_t heap_pages_private_bytes, heap_pages_shared_bytes; /* whole pages with a block */
};

/* ipc/trace/trace.proto, MemlogHoldingKind. */
enum ml_holding_kind {
    ML_HOLDING_MAPPED,    /* by the stack that mapped it */
    ML_HOLDING_ALLOCATOR, /* an allocator's own mapping */
    ML_HOLDING_STACK,     /* a thread's */
    ML_HOLDING_MEMLOG,    /* the profiler's */
    ML_HOLDING_KINDS
};

/* What an owner other than live blocks holds of a region. */
struct ml_profile_region_holding {
    uint32_t region; /* index into regions */
    uint32_t kind;   /* enum ml_holding_kind */
    uint32_t node;   /* id of its stack; 0: none */
    uint32_t string; /* index into strings: its name; 0: none */
    uint64_t mapped_bytes;
    uint64_t private_bytes, shared_bytes; /* resident, without pages on which live blocks lie */
};

struct ml_profile_node {
    uint32_t id;
    uint32_t parent; /* id; 0: root */
    uint32_t frame;  /* enum ml_frame_kind, ipc/wire/event.h */
    uint32_t module; /* id; 0: none */
    uint64_t address;
    uint32_t string; /* index into strings */
};

/* A heap that the program reported itself. Its figures are in none of the process's. */
struct ml_profile_heap {
    uint32_t id;     /* as in its cells, from 1 */
    uint32_t string; /* index into strings: its name; 0: none */
    struct ml_profile_totals own;
    uint64_t unknown_frees; /* of what had not been reported */
};

/* How a type of blocks is known. Blocks have the first that there is. */
enum ml_type_known {
    ML_TYPE_UNKNOWN,
    ML_TYPE_REGISTERED,     /* the program reported it (client/memlog.h) */
    ML_TYPE_BY_VTABLE,      /* their first word tells it: known of live blocks alone */
    ML_TYPE_BY_PYTHON,      /* the type that a Python object holds: likewise */
    ML_TYPE_BY_FRAMES,      /* the names of the allocating frames tell it */
    ML_TYPE_BY_CONSTRUCTOR, /* its constructor allocated them: parts of one */
};

/* A type of blocks. */
struct ml_profile_type {
    uint32_t id;     /* as in its cells, from 1; those that are no cell's behind them */
    uint32_t string; /* index into strings: its name */
    enum ml_type_known known;
};

/* Live blocks of one stack, of malloc's heap and without a type, that begin with the same word: the
 * address of something in a file's mapping. */
struct ml_profile_word {
    uint32_t node; /* id; 0: no stack */
    uint64_t word;
    uint64_t live_bytes, live_blocks;
    uint64_t live_bytes_error, live_blocks_error; /* in 1/256 */
};

/* What is known of blocks' type. */
struct ml_profile_typed {
    struct ml_profile_text name; /* "": nothing */
    enum ml_type_known known;
};

struct ml_profile_cell {
    uint32_t node; /* id; 0: no stack */
    uint16_t heap; /* id; 0: malloc's */
    uint16_t type; /* id; 0: none */
    uint8_t size_class;
    struct ml_profile_totals own;
    uint64_t tree_peak_bytes, tree_peak_blocks;
    uint64_t temporary_blocks;
    struct ml_profile_errors own_errors;
    uint64_t tree_peak_bytes_error, tree_peak_blocks_error;
    double tree_peak_bytes_variance, tree_peak_blocks_variance;
    /* Of its live blocks when the regions of the tree's peak were read. */
    uint64_t tree_private_bytes, tree_shared_bytes;
    /* Of its live blocks when the regions were read, if cells_were_laid. */
    uint64_t resident_private_bytes, resident_shared_bytes;
    uint64_t alone_bytes; /* of pages on which blocks of its stack alone lie */
    uint64_t waste_bytes; /* its share of what its pages hold beside blocks */
};

/* The account of a process's events; ipc/trace/trace.proto, MemlogAccounting. All 0: not in the
 * dump. */
struct ml_profile_accounting {
    uint64_t produced, received, in_flight;
    uint64_t overrun, no_lane, nested, no_pipe, refused, unaccounted;
    bool balanced;
    uint64_t waits, waited_ns, longest_wait_ns;
    uint64_t stream_bytes; /* of all records received */
};

/* What the kernel told of a process's memory as a whole; ipc/trace/trace.proto, MemlogProcess. All
 * 0: not in the dump. */
struct ml_profile_status {
    bool was_read;
    bool is_unreadable; /* its mappings may not be read: this is all that is known */
    uint64_t anonymous_bytes, file_bytes, shared_bytes; /* resident, by kind */
    uint64_t swapped_bytes;
    uint64_t page_tables_bytes, kernel_stacks_bytes; /* beside its mappings */
    uint64_t held_ns; /* it was stopped while its mappings were read; 0: it ran */
};

enum { ML_PROFILE_SAMPLING_MAX = 64 };

enum ml_profile_recording {
    ML_PROFILE_RECORDED,
    ML_PROFILE_UNRECORDED, /* it ran in the tree without a profile: only memory's figures are known
                            */
    ML_PROFILE_IDLE        /* likewise, but hooked: it has not allocated since its fork */
};

struct ml_profile_process {
    uint32_t id, parent_id;
    uint32_t pid, parent_pid;
    uint32_t role;  /* enum memlog_service_role */
    uint32_t state; /* enum memlog_service_process_state */
    int32_t exit_code;
    uint32_t signal;
    bool from_startup;
    bool complete;
    bool partial; /* the file does not hold all of its tables */
    struct ml_profile_text trouble;
    struct ml_profile_text name;
    struct ml_profile_text exe_path;
    uint64_t footprint_bytes, resident_bytes;
    /* Live and private bytes at one moment; 0 if never read. */
    bool coverage_was_read;
    uint64_t coverage_heap_bytes, coverage_private_bytes;
    uint64_t coverage_mapped_bytes;   /* private memory beside the heap whose mapper is known */
    uint64_t coverage_files_bytes;    /* private memory of files' mappings, beside that */
    uint64_t coverage_shared_bytes;   /* private then, common with other processes since */
    uint32_t hooked_functions;        /* of its executable's own allocator, at their entries */
    struct ml_profile_text allocator; /* "glibc", ...; empty: the dump does not say */
    struct ml_profile_text unseen;    /* its memory known to be unrecorded; empty: none */
    uint64_t sampling_bytes;          /* the longest interval that held */
    struct {
        uint64_t ticks, interval_bytes; /* from then on */
    } sampling_changes[ML_PROFILE_SAMPLING_MAX];
    size_t sampling_changes_count;
    uint64_t sampling_left_out; /* changes between the last two */
    /* What memlog costs it, in millionths of the processor time that it takes. */
    struct {
        uint32_t promised_ppm; /* 0: nothing was promised, and all are 0 */
        uint32_t recording_ppm, passing_ppm;
        bool was_measured;
        uint64_t shortest_bytes; /* interval; 0: not known */
    } overhead;
    struct ml_profile_timestamp start, end;

    struct ml_profile_totals totals;
    bool left_tree; /* it has ended, or its recording was stopped: it counts as ended */
    uint64_t held_at_tree_peak_bytes, held_at_tree_peak_blocks;
    uint64_t peak_ticks;
    uint64_t inherited_bytes, inherited_blocks;
    uint64_t events, lost_events, unknown_frees, late_events;
    struct ml_profile_accounting accounting;
    uint64_t truncated_stacks, broken_stacks;
    uint64_t unwind_checked, unwind_differed;
    uint32_t folded_processes, folded_failed; /* it stands for so many; 0: it is one */

    enum ml_profile_recording recording;
    struct ml_profile_text not_recorded_reason;

    /* The *_expected counts are what the process's head announced. */
    struct ml_profile_text *arguments;
    size_t arguments_count, arguments_capacity, arguments_expected;
    struct ml_profile_module *modules;
    size_t modules_count, modules_capacity, modules_expected;
    struct ml_profile_region *regions; /* by address */
    size_t regions_count, regions_capacity, regions_expected;
    uint64_t regions_boottime_ns;  /* when they were read */
    bool heap_was_laid;            /* the heap's figures in them are known */
    bool heap_is_estimated;        /* the resident pages of some region are not known */
    bool cells_were_laid;          /* the cells' figures of it are known */
    uint64_t heap_elsewhere_bytes; /* of live blocks in no region */
    /* Of the process that a trigger names: the same at an earlier reading, regions and holdings
     * alone (regions_count 0: it is not there). NULL: there was none. */
    struct ml_profile_process *earlier;
    uint64_t earlier_boottime_ns;
    bool earlier_heap_was_laid;
    /* It ran when all together had most private memory. What it was made of then: what is said of
     * its memory here (NULL), or there in the same members. */
    bool was_at_tree_peak;
    struct ml_profile_process *at_tree_peak;
    struct ml_profile_status status;
    struct ml_profile_text memory_trouble; /* why its mappings are not of one moment, or unread */
    struct ml_profile_region_holding *holdings; /* by region; none in older dumps */
    size_t holdings_count, holdings_capacity, holdings_expected;
    struct ml_profile_text *strings;
    size_t strings_count, strings_capacity, strings_expected;
    struct ml_profile_node *nodes;
    size_t nodes_count, nodes_capacity, nodes_expected;
    struct ml_profile_heap *heaps; /* by id; none in older dumps */
    size_t heaps_count, heaps_capacity;
    struct ml_profile_type *types; /* by id */
    size_t types_count, types_capacity;
    bool words_were_read, words_are_cut; /* cut: not all of them, for want of time or room */
    uint64_t words_read_bytes;           /* of its memory that was looked at */
    struct ml_profile_word *words;
    size_t words_count, words_capacity, words_expected;
    struct ml_profile_cell *cells; /* of malloc's heap, or the chosen one */
    size_t cells_count, cells_capacity, cells_expected;
    size_t apart_count;                /* cells of all other heaps, behind those */
    size_t series_first, series_count; /* of the profile's series */
};

struct ml_profile_gap {
    uint32_t process_id; /* 0: the whole tree */
    struct ml_profile_timestamp from, to;
    struct ml_profile_text reason;
};

struct ml_profile_not_profiled {
    uint32_t pid, parent_pid;
    bool is_listed; /* it is among the processes, too */
    struct ml_profile_text reason, path;
};

/* A slot of a series: from the end of the one before it to end_ms. */
struct ml_profile_point {
    uint64_t end_ms;                              /* CLOCK_MONOTONIC */
    uint64_t least_bytes, most_bytes, last_bytes; /* live; least <= last <= most */
    uint64_t total_bytes, total_blocks;           /* allocated until then; 0 of a stack */
};

/* Live bytes over time of a process, one of its stacks or the tree. Points rise in time; there is
 * at least one. */
struct ml_profile_series {
    uint32_t process_id; /* 0: the tree */
    uint32_t node;       /* of a stack: id; 0: no stack */
    bool is_stack;
    uint64_t from_ms; /* where the first point begins */
    struct ml_profile_point *points;
    size_t points_count, points_capacity;
};

/* A function that the dump itself names. */
struct ml_profile_line {
    struct ml_profile_text function, source;
    uint32_t number; /* 0: not known */
};

struct ml_profile_symbol_file {
    struct ml_profile_text path;
    struct ml_profile_text build_id; /* raw */
    uint32_t lack; /* why it has no names, tools/analyzer/symbols/lack.h; 0: not said */
    int32_t lack_error;
};

/* An ELF address of a file, and its functions. */
struct ml_profile_symbolized {
    uint32_t file; /* index into files */
    uint64_t address;
    size_t first_line, lines_count;
};

/* The names that a dump brings (tools/analyzer/model/trace_symbols.h). */
struct ml_profile_symbols {
    struct ml_profile_symbol_file *files;
    size_t files_count, files_capacity;
    struct ml_profile_symbolized *symbolized;
    size_t symbolized_count, symbolized_capacity;
    struct ml_profile_line *lines;
    size_t lines_count, lines_capacity;
    struct ml_profile_symbol_file *lacks; /* of the files, those with a lack */
    size_t lacks_count, lacks_capacity;
    struct ml_arena arena; /* the texts */
};

/* The kind of a dump that was requested. `reason` is the text of the request. */
enum { ML_PROFILE_TRIGGER_ASKED = MEMLOG_SERVICE_TRIGGER_KIND_ASKED + 1 };

/* Why the dump was taken. */
struct ml_profile_trigger {
    uint32_t kind;       /* memlog.service.TriggerKind + 1; 0: not in the dump */
    uint32_t process_id; /* 0: none in particular */
    uint32_t node;       /* the guilty stack, in that process; 0: not known */
    uint64_t node_bytes;
    uint64_t checked_ns; /* monotonic: the measurement that fired it; 0: none */
    struct ml_profile_text reason;
};

struct ml_profile {
    struct ml_profile_timestamp run_start, now;
    uint32_t reason;
    struct ml_profile_trigger trigger;
    struct ml_profile_text program;
    struct ml_profile_totals tree;     /* live: what is shown, ml_profile_show_ended */
    struct ml_profile_holding running; /* of the processes that are in the tree: never above peak */
    struct ml_profile_holding left;    /* what the others held when they left it */
    bool is_ended_shown;
    uint64_t tree_peak_ticks;
    bool complete; /* as recorded */
    struct ml_profile_text sandbox_missing;
    struct ml_profile_text heap;      /* the heap that all figures are of; NULL: malloc's */
    struct ml_profile_text uncovered; /* whose memory was not recorded, and why; empty: none */
    struct ml_profile_text service_trouble; /* its measures when memory ran short; empty: none */
    struct ml_profile_text list_source; /* how the host knew of the processes; empty: not said */
    struct ml_profile_text whole; /* how mappings were read: run, stop, off; empty: not said */
    uint64_t tree_views_dropped;  /* processes that are not known to have run at the tree's peak of
                                     private memory, for want of room */
    bool is_at_tree_peak;         /* ml_profile_move_to_tree_peak() */
    uint64_t list_blind_ns, list_missed;
    uint64_t lost_forks; /* forked children of recorded processes whose events are missing */
    struct ml_profile_process *processes;
    size_t processes_count, processes_capacity, processes_expected; /* expected: including others */
    /* Processes of the tree without a profile (not ML_PROFILE_RECORDED), in the same shape and
     * without tables. They are not in `processes`, so loops over heaps skip them. */
    struct ml_profile_process *others;
    size_t others_count, others_capacity, others_at; /* at: the one that was found last */
    struct ml_profile_gap *gaps;
    size_t gaps_count, gaps_capacity, gaps_expected;
    struct ml_profile_not_profiled *not_profiled;
    size_t not_profiled_count, not_profiled_capacity, not_profiled_expected;
    struct ml_profile_series *series; /* the tree's, then each process's beside each other */
    size_t series_count, series_capacity;

    struct ml_profile_symbols symbols;     /* of the whole file */
    struct ml_deobfuscation deobfuscation; /* likewise, and what the environment adds */
    uint32_t dumps_count;                  /* in the file; this is one of them */

    bool has_run;         /* the run's head was read: all above but the symbols is set */
    bool truncated;       /* the file ends before its end mark */
    bool damaged;         /* something in it contradicts itself or its checksum */
    uint64_t bad_at;      /* file offset of the first trouble */
    const char *bad_is;   /* static text: what it was; NULL if there was none */
    uint64_t whole_bytes; /* so many bytes of the file are whole packets */

    struct ml_arena arena; /* every text */
};

/* An empty profile is all zero. */
void ml_profile_fini(struct ml_profile *profile);

/* Drop the dump, keep the file's symbols and troubles. */
void ml_profile_restart(struct ml_profile *profile);

/* Keep only the process images with that pid, recorded or not, as if they were the whole tree. The
 * tree's peak is that of the image that held most: images of one pid never run at the same time.
 * False: there is none; nothing was changed. */
bool ml_profile_select(struct ml_profile *profile, uint32_t pid);

/* Keep only the processes with one of these pids, recorded or not. The tree's peak is their share
 * of the whole tree's. False: there is none; nothing was changed. */
bool ml_profile_select_pids(struct ml_profile *profile, const uint32_t *pids, size_t count);

/* Keep only the processes of that role (its name). The tree's peak is their share of the whole
 * tree's. False: there is none, or no such role; nothing was changed. */
bool ml_profile_select_role(struct ml_profile *profile, const char *role);

/* Put the cells of other heaps than malloc's apart. After reading, once. */
void ml_profile_part_heaps(struct ml_profile *profile);

/* Let all figures be of the heap of that name, and those of all others be gone: as if it were the
 * only one. The tree's peak is the heap's own where one process has it, else what it held at the
 * peak of malloc's. "malloc" changes nothing. False: no process has it, and all figures are 0. */
bool ml_profile_choose_heap(struct ml_profile *profile, const char *name);

/* The name of a process's heap; "malloc" for heap 0. */
struct ml_profile_text
ml_profile_heap_name(const struct ml_profile_process *process, uint32_t heap);

/* The type of a cell or a stack, by its number in the process, and how it is known. */
struct ml_profile_typed ml_profile_type_of(const struct ml_profile_process *process, uint32_t type);

/* Its name alone. */
struct ml_profile_text
ml_profile_type_name(const struct ml_profile_process *process, uint32_t type);

/* How a type is known, in a word; "" if it is not. */
const char *ml_profile_known_word(enum ml_type_known known);

/* All types of the process have lower numbers, and so have those of cells whose type has no name.
 */
uint32_t ml_profile_types_end(const struct ml_profile_process *process);

/* Give a process a further type, whose name is copied. 0: no memory. */
uint32_t ml_profile_add_type(
    struct ml_profile *profile, struct ml_profile_process *process, struct ml_profile_typed type
);

/* Compute the tree's figures from those of the remaining processes; its peak is the sum of what
 * their cells held at it. */
void ml_profile_sum_shares(struct ml_profile *profile);

/* Drop the tree's series and those of removed processes. */
void ml_profile_match_series(struct ml_profile *profile);

/* Keep only the nodes of each process that the stacks of its series need, and no cells. False: no
 * memory; some were dropped. */
bool ml_profile_keep_series(struct ml_profile *profile);

/* Time of day of a time by CLOCK_MONOTONIC. Units: ms. */
uint64_t ml_profile_realtime_ms(const struct ml_profile *profile, uint64_t monotonic_ms);

/* Whether what a process left is shown as live in the tree. */
enum ml_ended {
    ML_ENDED_ALONE, /* only where nothing runs any more */
    ML_ENDED_SHOWN, /* always */
    ML_ENDED_HIDDEN /* never */
};

/* Choose it: the tree's live figures are those of the shown processes. Call before stacks are
 * built. */
void ml_profile_show_ended(struct ml_profile *profile, enum ml_ended ended);

/* Whether a process's live figures are in the tree's. */
bool ml_profile_is_shown(
    const struct ml_profile *profile, const struct ml_profile_process *process
);

/* Clear the live figures of processes that are not shown, as if they had freed everything: for
 * formats that cannot express "left". */
void ml_profile_forget_hidden(struct ml_profile *profile);

/* Compute live and left, which older dumps do not separate, and what each process held at the
 * tree's peak. Call once, after ml_profile_spread_errors. */
void ml_profile_settle_live(struct ml_profile *profile);

/* The same from the remaining processes, after some were removed. */
void ml_profile_count_live(struct ml_profile *profile);

/* Turn the dump's standard errors of cells into variances, of cells, processes and tree. After
 * reading, once. */
void ml_profile_spread_errors(struct ml_profile *profile);

/* The standard errors: the variances' roots. False, and all 0: the figures are exact. */
bool ml_profile_standard_errors(
    const struct ml_profile_totals *totals, struct ml_profile_spread *out_errors
);

/* Whether it is known of some process that is shown what its live blocks hold of pages. */
bool ml_profile_knows_pages(const struct ml_profile *profile);

/* The same of what pages hold beside blocks, and whose they are alone; and of that process. In a
 * forked child nobody knows where the blocks of its parent lie that it inherited. */
bool ml_profile_knows_waste(const struct ml_profile *profile);
bool ml_profile_process_knows_waste(const struct ml_profile_process *process);

/* Add the six figures, those of pages, and the variances. */
void ml_profile_totals_add(struct ml_profile_totals *sum, const struct ml_profile_totals *one);

/* Clear the live figures, as if all was freed. */
void ml_profile_totals_forget_live(struct ml_profile_totals *totals);

/* The number of its processes, recorded or not, and of program images. An image that was left by
 * exec is not counted as a process, since its successor is the same one; a folded entry counts as
 * several. */
uint64_t ml_profile_processes(const struct ml_profile *profile);
uint64_t ml_profile_images(const struct ml_profile *profile);

/* How many processes an entry stands for: a folded one for several. */
uint64_t ml_profile_stands_for(const struct ml_profile_process *process);

/* Whether any process was in the tree at the dump. */
bool ml_profile_anyone_runs(const struct ml_profile *profile);

/* The longest sampling interval of any process; 1: everything is exact. */
uint64_t ml_profile_sampling_bytes(const struct ml_profile *profile);

/* What memlog costs the process, of the processor time that it takes, in millionths. */
static inline uint32_t ml_profile_cost_ppm(const struct ml_profile_process *process) {
    return process->overhead.recording_ppm + process->overhead.passing_ppm;
}

/* What --overhead promised; 0: nothing. */
uint32_t ml_profile_promised_ppm(const struct ml_profile *profile);

/* The process that memlog costs most of those whose cost was measured. NULL: none was. */
const struct ml_profile_process *ml_profile_costliest(const struct ml_profile *profile);

/* Whether nothing was lost, in recording or in the file. */
bool ml_profile_is_complete(const struct ml_profile *profile);

/* Whether no memory is known to be unrecorded: every process of the tree was recorded, and every
 * allocator in it. A dump without this information is not covered. */
bool ml_profile_is_covered(const struct ml_profile *profile);

/* Whether a process without a profile may hide allocations. A fork that allocated nothing and has
 * little memory of its own does not. */
bool ml_profile_hides(const struct ml_profile_process *other);

/* Private memory of a process; for a recorded one as read together with its heap. 0: never read. */
uint64_t ml_profile_private_bytes(const struct ml_profile_process *process);

/* One line on the unrecorded memory; "" when all is covered. Returns out_text. */
const char *
ml_profile_uncovered(const struct ml_profile *profile, char out_text[ML_UNCOVERED_BYTES]);

/* The process with that id, recorded or not; NULL if there is none. */
struct ml_profile_process *ml_profile_find(struct ml_profile *profile, uint32_t id);

/* Position of the node or module with that id; SIZE_MAX: none. */
size_t ml_profile_node_at(const struct ml_profile_process *process, uint32_t id);
size_t ml_profile_module_at(const struct ml_profile_process *process, uint32_t id);

/* The file of a module: its own path, or the program's when that is empty. */
struct ml_profile_text ml_profile_module_path(
    const struct ml_profile_process *process, const struct ml_profile_module *module
);

/* Time of day of a time by the stream's clock, linear between the run's start and the dump. Units:
 * ns; 0 for 0. */
uint64_t ml_profile_realtime_ns(const struct ml_profile *profile, uint64_t ticks);

/* The process with what it was made of when all together had most private memory, without cells.
 * False: it did not run then, or that was never read. Borrowed: *out goes with the process. */
bool ml_profile_at_tree_peak(
    const struct ml_profile_process *process, struct ml_profile_process *out
);

/* Time of day of that moment; 0: it was never read. Units: ns. */
uint64_t ml_profile_tree_peak_ns(const struct ml_profile *profile);

/* Go back to that moment as far as mappings and the heap's pages are concerned. The processes that
 * ran then run, all others are not shown. All else stays as it is in the dump. Call before stacks
 * are built. False: it was never read; nothing was changed. */
bool ml_profile_move_to_tree_peak(struct ml_profile *profile);

/* Time of day at which a process's mappings were read; 0: never. Units: ns. */
uint64_t
ml_profile_regions_ns(const struct ml_profile *profile, const struct ml_profile_process *process);

/* Time of day of a timestamp, by the clock as it stood at the dump. The clock may have been set
 * after the timestamp. */
uint64_t ml_profile_timestamp_ns(
    const struct ml_profile *profile, const struct ml_profile_timestamp *timestamp
);

/* Names as in the interface: "browser", "exited", "exit". */
const char *ml_profile_role_name(uint32_t role);
const char *ml_profile_state_name(uint32_t state);
const char *ml_profile_reason_name(uint32_t reason);
const char *ml_profile_trigger_name(uint32_t kind); /* of struct ml_profile_trigger */

/* The build id of the first process's own program, in hex: which build this was. "": not known.
 * Returns out_hex. */
const char *
ml_profile_build_id(const struct ml_profile *profile, char out_hex[ML_PROFILE_HEX_BYTES]);

#endif
