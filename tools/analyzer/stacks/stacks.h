/* The stacks of all processes over one set of places, so that equal stacks of different processes
 * are one. Room: tools. Context: one thread.
 *
 * One rule: a place is told by its file (path and build id) and its address in that file, never by
 * where a process had it mapped. */
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

/* Beside the kinds of ipc/wire/event.h: what pruning left out (tools/analyzer/stacks/prune.h). */
enum { ML_PLACE_OTHER = 256 };

/* An ELF file that code lies in. */
struct ml_code_file {
    struct ml_profile_text path;
    struct ml_profile_text build_id; /* raw */
    /* As the first process had it mapped; for formats that want addresses. */
    uint64_t start, end;
    int64_t bias;
    uint32_t pid; /* of a process that had it, one that was running at the dump if any */
    uint64_t pid_start, pid_end; /* where that has it mapped */
    bool is_running;             /* that process was */
    const char *trouble;         /* why it has no symbols; NULL: it has */
    bool is_symbolized;          /* at least one name was found */
    struct ml_text_segment text; /* known if size_bytes > 0 */
};

/* A frame, whoever's. */
struct ml_place {
    uint32_t kind;               /* enum ml_frame_kind, or ML_PLACE_OTHER */
    uint32_t file;               /* ML_STACKS_NONE: none */
    uint64_t offset;             /* ELF address in the file; without a file the address itself */
    uint32_t process;            /* without a file: whose address (its place in the profile) + 1 */
    struct ml_profile_text name; /* of THREAD and SCOPE */
    size_t first_symbol, symbols_count; /* innermost first; 0: not known */
    bool is_brought;                    /* the dump itself names it */
};

/* A stack: its innermost place and the rest. */
struct ml_stack_node {
    uint32_t parent; /* ML_STACKS_NONE: outermost */
    uint32_t place;
};

struct ml_stacks {
    const struct ml_profile *profile; /* what they are of */
    struct ml_code_file *files;
    size_t files_count, files_capacity;
    struct ml_place *places;
    size_t places_count, places_capacity;
    struct ml_stack_node *nodes;
    size_t nodes_count, nodes_capacity;
    struct ml_symbol *symbols;
    size_t symbols_count, symbols_capacity;
    struct ml_stack_list *processes; /* as many as the profile has, in its order */
    size_t processes_count;
    struct ml_stack_list tree;
    uint32_t *series; /* the node of each of the profile's series, ML_STACKS_NONE: no stack; as
                         built: of no use when some were pruned or filtered */
    uint32_t guilty;  /* the node that the dump's trigger names; ML_STACKS_NONE: none */
    bool is_filtered; /* stacks or frames were left out by a wish
                         (tools/analyzer/stacks/frame_filter.h) */
    struct ml_index files_index, places_index, nodes_index;
};

/* Build them. The profile must outlive them (its texts are borrowed). Errors: ML_ENV_MEMORY; then
 * _fini is still allowed. */
ML_NODISCARD enum ml_status
ml_stacks_init(struct ml_stacks *stacks, const struct ml_profile *profile);
void ml_stacks_fini(struct ml_stacks *stacks);

/* The place's or node's number; a new one when there is none. ML_STACKS_NONE: no memory. */
uint32_t ml_stacks_place(struct ml_stacks *stacks, const struct ml_place *place);
uint32_t ml_stacks_node(struct ml_stacks *stacks, uint32_t parent, uint32_t place);

/* The tree's list, which is number 0, or that of the process before that number. */
struct ml_stack_list *ml_stacks_list(struct ml_stacks *stacks, size_t number);

/* Order numbers of places by file, then offset. */
void ml_stacks_sort_places(const struct ml_stacks *stacks, uint32_t *places, size_t count);

/* Know all places and nodes by what they are again, after their numbers have changed. False: no
 * memory. */
bool ml_stacks_reindex(struct ml_stacks *stacks);

/* Find names for all places. The symbolizer must outlive the stacks. Errors: ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status
ml_stacks_symbolize(struct ml_stacks *stacks, struct ml_symbolizer *symbolizer);

/* The thread's name at a stack's root, "" if there is none. */
struct ml_profile_text ml_stacks_thread(const struct ml_stacks *stacks, uint32_t node);

/* What a place without symbols is called; in `buffer` if it needs one (ADDRESS alone does). */
enum { ML_PLACE_NAME_BYTES = 64 };
const char *ml_place_name(const struct ml_place *place, char buffer[ML_PLACE_NAME_BYTES]);

#endif
