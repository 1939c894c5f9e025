/* Who mapped a process's address space, as its hooks have told. Room: service. Context: whoever
 * works on the client; no I/O.
 *
 * One rule: this is the process's own word. It counts only where the kernel shows a mapping
 * (service/memory/holdings.h), and a record that finds no room is dropped: its pages lose their
 * owner and nothing else. */
#ifndef MEMLOG_SERVICE_MEMORY_MAPPINGS_H
#define MEMLOG_SERVICE_MEMORY_MAPPINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/wire/event.h"
#include "service/limits/budget.h"

enum {
    ML_MAPPINGS_MAX = 1 << 17, /* pieces; the kernel allows a process 65,530 mappings mostly */
    ML_MAPPINGS_INHERITED_MAX = 4096, /* that a forked child takes: the first by address */
    ML_MAPPINGS_TAKEN_MAX = 8         /* pieces of the last UNMAP that a MOVED can bring back */
};

/* What is known of a piece of address space. */
enum ml_mapping_marks {
    ML_MAPPED_BY_ALLOCATOR = 1, /* to serve a call of the program's */
    ML_MAPPED_AS_STACK = 2,     /* of a thread; the node ends with its start routine */
    ML_MAPPED_UNSEEN = 4,       /* nobody is known to have mapped it, but it was named */
    ML_MAPPED_WHOLE = 8,        /* it is as long as the kernel's mapping that begins there */
    ML_MAPPED_BEFORE_FORK = 16, /* by a process that this one was forked from */
    ML_MAPPED_BY_MEMLOG = 32    /* the client's own memory */
};

/* A piece. Pieces do not overlap. */
struct ml_mapping {
    uint64_t start, end; /* whole pages */
    uint64_t born;       /* ticks: when it was mapped or moved */
    uint32_t node;       /* 0: no stack */
    uint32_t name;       /* string id; 0: none */
    uint32_t marks;      /* enum ml_mapping_marks */
};

struct ml_mappings {
    struct ml_budget *budget;
    void *tree; /* of struct ml_mapping, by address (tsearch) */
    uint32_t count;
    uint32_t dropped; /* records that found no room */
    /* What the last UNMAP took, for the MOVED behind it: the first pieces. */
    struct ml_mapping taken[ML_MAPPINGS_TAKEN_MAX];
    uint32_t taken_count;
    uint64_t taken_start;
    const void *taken_by;
};

/* A record and where it came from. */
struct ml_mapping_record {
    uint64_t ticks;
    const void *lane; /* told from others by its address; never read */
    struct ml_event_mapping mapping;
};

void ml_mappings_init(struct ml_mappings *mappings, struct ml_budget *budget);
void ml_mappings_fini(struct ml_mappings *mappings);

/* Apply the next record. */
void ml_mappings_apply(struct ml_mappings *mappings, const struct ml_mapping_record *record);

/* The client says that memory of its own lies there. Bytes that no process can have are passed
 * over. */
void ml_mappings_note_own(struct ml_mappings *mappings, uint64_t start, uint64_t count_bytes);

/* The process was forked at `ticks` from one with these mappings: take those that were there, but
 * not where it has mapped something itself. Stacks and names are its parent's, and stay behind. */
void ml_mappings_inherit(
    struct ml_mappings *mappings, const struct ml_mappings *parents, uint64_t ticks
);

/* All pieces by address: an array of mappings->count, which the caller frees. NULL: there are none,
 * or there is no memory. */
struct ml_mapping *ml_mappings_list(const struct ml_mappings *mappings);

#endif
