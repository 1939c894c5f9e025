/* A process's definitions: stack nodes, modules, strings. Room: service. Context: whoever works on
 * the client.
 *
 * One rule: they hold from the moment they arrive, and the last one of an id wins. A missing one
 * makes nothing else fail: references to an undefined node keep its id, and a snapshot shows a
 * broken frame in its place. A parent's id is smaller than its child's (the decoder saw to it), so
 * there are no cycles. */
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
    uint32_t link; /* address frames: module id; named frames: string id */
    uint8_t frame; /* enum ml_frame_kind */
    bool defined;
};

struct ml_stored_module {
    uint64_t start, end;
    int64_t bias;
    uint32_t build_id_bytes, path_bytes;
    uint8_t bytes[]; /* build id, then path */
};

struct ml_stored_string {
    uint32_t count_bytes;
    uint8_t bytes[];
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
};

void ml_stack_store_init(struct ml_stack_store *store, struct ml_budget *budget);
void ml_stack_store_fini(struct ml_stack_store *store);

/* Keep a NODE, MODULE or STRING. Errors: ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status
ml_stack_store_define(struct ml_stack_store *store, const struct ml_event *event);

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
