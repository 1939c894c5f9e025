/* The stacks of all processes over one set of places: equal stacks of two processes are one node.
 * Room: tools. Context: one thread.
 *
 * One rule: equal places have equal files (path and build id) and addresses within the file. Where
 * a process has the file mapped does not matter. */
#ifndef MEMLOG_TOOLS_ANALYZER_STACKS_STACKS_H
#define MEMLOG_TOOLS_ANALYZER_STACKS_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/model/index.h"
#include "tools/analyzer/model/profile.h"
#include "tools/analyzer/stacks/stack_list.h"
#include "tools/analyzer/symbols/symbolizer.h"

/* Kinds of places beside those of ipc/wire/event.h. */
enum {
    ML_PLACE_OTHER = 256,    /* stacks that pruning folded */
    ML_PLACE_FUNCTION = 257, /* the name that pruning left of a function's places */
    ML_PLACE_GROUP = 258     /* a type or heap, tools/analyzer/stacks/regroup.h */
};

/* An ELF file with code. */
struct ml_code_file {
    struct ml_profile_text path;
    struct ml_profile_text build_id; /* raw */
    /* The first process's mapping, for formats that need addresses. */
    uint64_t start, end;
    int64_t bias;
    uint64_t code_address, code_offset; /* of the first executable segment; both 0: not known */
    uint32_t pid;                /* of a process that has it, preferably one that ran at the dump */
    uint64_t pid_start, pid_end; /* its mapping there */
    bool is_running;             /* that process ran at the dump */
    const char *trouble;         /* why it has no symbols; NULL: it has some */
    struct ml_lack lack;         /* likewise, of files that are not found */
    bool is_lack_told;           /* the dump has a word on that */
    bool is_symbolized;          /* at least one name is known */
    struct ml_text_segment text; /* known if size_bytes > 0 */
};

/* A frame of any stack. */
struct ml_place {
    uint32_t kind;               /* enum ml_frame_kind, or ML_PLACE_* */
    uint32_t file;               /* ML_STACKS_NONE: none */
    uint64_t offset;             /* ELF address in the file; without a file the address itself */
    uint32_t process;            /* without a file: 1 + the index of the address's process */
    struct ml_profile_text name; /* of THREAD, SCOPE, SCRIPT, FUNCTION, GROUP */
    size_t first_symbol, symbols_count; /* innermost first; 0: not known */
    bool is_brought;                    /* the dump itself has its names */
};

/* A stack is its innermost place and the node of its callers. */
struct ml_stack_node {
    uint32_t parent; /* ML_STACKS_NONE: outermost */
    uint32_t place;
};

struct ml_stacks {
    const struct ml_profile *profile;
    struct ml_code_file *files;
    size_t files_count, files_capacity;
    struct ml_place *places;
    size_t places_count, places_capacity;
    struct ml_stack_node *nodes;
    size_t nodes_count, nodes_capacity;
    struct ml_symbol *symbols;
    size_t symbols_count, symbols_capacity;
    struct ml_stack_list *processes; /* in the profile's order */
    size_t processes_count;
    struct ml_stack_list *details; /* of each: by heap and type, too; empty where malloc's, without
                                      types, is all there is */
    bool is_detailed; /* the processes' lists are by heap and type, and details are empty */
    struct ml_stack_list tree;
    uint32_t *series;  /* the node of each series of the profile, ML_STACKS_NONE: no stack; not
                          valid any more after pruning or filtering */
    uint32_t **merged; /* of each process, the number of each of its nodes, likewise */
    uint32_t guilty;   /* the node that the dump's trigger names, or ML_STACKS_NONE */
    bool is_filtered;  /* stacks or frames were left out (tools/analyzer/stacks/frame_filter.h) */
    struct ml_index files_index, places_index, nodes_index;
};

/* Build the stacks. The profile must outlive them, as its texts are borrowed. Errors:
 * ML_ENV_MEMORY; _fini is needed even then. */
ML_NODISCARD enum ml_status
ml_stacks_init(struct ml_stacks *stacks, const struct ml_profile *profile);
void ml_stacks_fini(struct ml_stacks *stacks);

/* The number of a place or node, which is added when it is missing. ML_STACKS_NONE: no memory. */
uint32_t ml_stacks_place(struct ml_stacks *stacks, const struct ml_place *place);
uint32_t ml_stacks_node(struct ml_stacks *stacks, uint32_t parent, uint32_t place);

/* The tree's list is number 0, that of processes[i] is number i + 1. Behind them come those of
 * details, as many as there are processes. */
struct ml_stack_list *ml_stacks_list(struct ml_stacks *stacks, size_t number);
size_t ml_stacks_lists(const struct ml_stacks *stacks);

/* Make the details the processes' own lists, for forms that know heaps and types. Without
 * `takes_heaps` only those of the heap that is shown stay. The tree's list stays as it is. */
void ml_stacks_take_details(struct ml_stacks *stacks, bool takes_heaps);

/* Finish the tree's list of lists of processes, as many as the stacks have: each with its share of
 * the tree's peak, and its live blocks if they are shown. False: no memory. */
bool ml_stacks_add_up(
    const struct ml_stacks *stacks,
    const struct ml_stack_list *processes,
    struct ml_stack_list *out_tree
);

/* Order numbers of places by file, then offset. */
void ml_stacks_sort_places(const struct ml_stacks *stacks, uint32_t *places, size_t count);

/* Build the indices again after the numbers of places and nodes have changed. False: no memory. */
bool ml_stacks_reindex(struct ml_stacks *stacks);

/* Find the names of all places. The symbolizer must outlive the stacks. Errors: ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status
ml_stacks_symbolize(struct ml_stacks *stacks, struct ml_symbolizer *symbolizer);

/* Open one of the files (ml_symbolizer_open). */
struct ml_symbol_file *ml_stacks_open_file(
    const struct ml_code_file *code, struct ml_symbolizer *symbolizer, const char **out_trouble
);

/* Whether it is a function of code that a run-time made, whose name is known. */
bool ml_place_is_script(const struct ml_place *place);

/* The thread's name at the root of a stack; "": none. */
struct ml_profile_text ml_stacks_thread(const struct ml_stacks *stacks, uint32_t node);

/* The name of a place without symbols. Only that of ADDRESS is written to `buffer`. */
enum { ML_PLACE_NAME_BYTES = 64 };
const char *ml_place_name(const struct ml_place *place, char buffer[ML_PLACE_NAME_BYTES]);

#endif
