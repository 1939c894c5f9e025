/* A process's definitions: stack nodes, modules, strings, names of heaps and types. Room: service.
 * Context: whoever works on the client.
 *
 * One rule: they hold from the moment they arrive, and the last one of an id wins. A missing one
 * makes nothing else fail: references to an undefined node keep its id, and a snapshot shows a
 * broken frame in its place. A parent's id is smaller than its child's (the decoder saw to it), so
 * there are no cycles.
 *
 * Nodes of code outside all modules are listed until they have a name: service/generated finds it
 * in what a run-time wrote. A name that was found stays, whatever lies at the address later. */
#ifndef MEMLOG_SERVICE_HEAP_STACK_STORE_H
#define MEMLOG_SERVICE_HEAP_STACK_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/wire/event.h"
#include "ipc/wire/ml_status.h"
#include "service/limits/budget.h"

enum {
    ML_NODE_PAGE_NODES = 512 /* 12 KiB a page: the cost of one isolated id */
};

struct ml_stored_node {
    uint64_t address;
    uint32_t parent;
    uint32_t
        link; /* address frames: module id; named frames: string id, or index of a found name */
    uint8_t frame; /* enum ml_frame_kind */
    bool defined;
    bool is_found; /* the name was found: it is one of `found`, not of `strings` */
};

/* A node of code outside all modules, without a name yet. */
struct ml_stored_unnamed {
    uint32_t node;
    uint64_t ticks; /* of its first event; 0: not known */
};

struct ml_stored_module {
    uint64_t start, end;
    int64_t bias;
    uint64_t code_address, code_offset;
    uint32_t build_id_bytes, path_bytes;
    uint8_t bytes[]; /* build id, then path */
};

struct ml_stored_string {
    uint32_t count_bytes;
    uint8_t bytes[];
};

/* Of heaps or types: the string that is the name of each id; 0: it has none. */
struct ml_stored_names {
    uint32_t *strings;
    uint32_t end; /* one behind the largest id that has room */
};

struct ml_stack_store {
    struct ml_budget *budget;
    struct ml_stored_node **pages;
    uint32_t pages_count;
    uint32_t nodes_count; /* defined */
    uint32_t nodes_end;   /* one behind the largest id that was defined */
    struct ml_stored_module **modules;
    uint32_t modules_end; /* one behind the largest id; slots may be NULL */
    struct ml_stored_string **strings;
    uint32_t strings_end;
    struct ml_stored_names heaps, types;
    struct ml_stored_unnamed *unnamed;
    uint32_t unnamed_count, unnamed_capacity;
    uint32_t untimed_first, untimed_lane; /* from there on: the next event of the lane is theirs */
    struct ml_stored_string **found;      /* names, in the order in which they were found */
    uint32_t found_count, found_end;      /* entries; room for them */
};

void ml_stack_store_init(struct ml_stack_store *store, struct ml_budget *budget);
void ml_stack_store_fini(struct ml_stack_store *store);

/* Keep a NODE, MODULE, STRING, HEAP or TYPE. Errors: ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status
ml_stack_store_define(struct ml_stack_store *store, const struct ml_event *event);

/* Add a name that was found. Errors: ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status ml_stack_store_find_name(
    struct ml_stack_store *store, const void *bytes, uint32_t count_bytes, uint32_t *out_index
);

/* The node's frame is the function of that name from now on. */
void ml_stack_store_name_node(struct ml_stack_store *store, uint32_t id, uint32_t index);

/* The name of a node that has one, of whichever table; NULL: it is not defined. */
const struct ml_stored_string *
ml_stack_store_string_of(const struct ml_stack_store *store, const struct ml_stored_node *node);

/* Nodes from `first` of the list on were defined by that lane, and their event follows. */
static inline void
ml_stack_store_await(struct ml_stack_store *store, uint32_t lane, uint32_t first) {
    if (store->untimed_first == first || store->untimed_lane != lane) {
        store->untimed_first = first;
        store->untimed_lane = lane;
    }
}

/* An event of the lane, at that moment: nodes that were defined for it have it. */
static inline void
ml_stack_store_event(struct ml_stack_store *store, uint32_t lane, uint64_t ticks) {
    while (store->untimed_first < store->unnamed_count && store->untimed_lane == lane) {
        store->unnamed[store->untimed_first++].ticks = ticks;
    }
}

/* What the string of a name is; 0: the id has none. */
static inline uint32_t ml_stored_name(const struct ml_stored_names *names, uint32_t id) {
    return id < names->end ? names->strings[id] : 0;
}

/* Give the module of that id, which has no path, this one. Errors: ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status
ml_stack_store_name_module(struct ml_stack_store *store, uint32_t id, const char *path);

/* The node of that id, NULL from nodes_end on and perhaps below. Look at `defined`. */
static inline struct ml_stored_node *
ml_stack_store_node(const struct ml_stack_store *store, uint32_t id) {
    struct ml_stored_node *page =
        id < store->nodes_end ? store->pages[id / ML_NODE_PAGE_NODES] : NULL;
    return page == NULL ? NULL : &page[id % ML_NODE_PAGE_NODES];
}

#endif
