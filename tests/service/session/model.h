/* The figures that the session should report, worked out the slow and obvious way. Room: tests.
 *
 * One rule: the model uses none of the session's tricks. It sorts all events by stamp, applies them
 * one by one, and copies every cell at each new maximum. */
#ifndef MEMLOG_TESTS_SERVICE_SESSION_MODEL_H
#define MEMLOG_TESTS_SERVICE_SESSION_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/wire/event.h"
#include "service/snapshot/snapshot.h"

enum {
    MODEL_CLIENTS = 6,
    MODEL_CELLS = 512,
    MODEL_BLOCKS = 1024,
    MODEL_LANES = 9,
    MODEL_HOST_LANE = 8, /* events that the host tells come behind the threads' of the same stamp */
    MODEL_FORKS = 64,
    MODEL_FIRST_PID = 100
};

struct model_cell {
    uint32_t node, heap, type, size_class;
    struct ml_totals own;
    uint64_t tree_bytes, tree_blocks;
    uint64_t temporary_blocks;
    struct {
        struct ml_totals own;
        uint64_t tree_bytes, tree_blocks;
    } variances;
};

struct model_block {
    bool live;
    uint64_t address;
    uint32_t heap;
    uint64_t bytes, blocks;
    uint64_t bytes_variance, blocks_variance;
    uint32_t cell;
};

struct model_lane {
    bool resizing;
    struct model_block resized;
    uint64_t last_address; /* of the lane's last event, if it was an ALLOC */
    uint32_t last_heap;
};

struct model_client {
    bool in_tree;
    uint32_t left;           /* 0: not, 1: for good, 2: by exec */
    struct ml_totals totals; /* of malloc's heap */
    struct ml_totals heaps[ML_HEAPS_MAX];
    uint64_t heaps_unknown_frees[ML_HEAPS_MAX];
    uint64_t peak_ticks;
    uint64_t events, unknown_frees, missed_frees;
    struct model_cell cells[MODEL_CELLS];
    uint32_t cells_count;
    struct model_block blocks[MODEL_BLOCKS];
    struct model_lane lanes[MODEL_LANES];
    struct {
        uint64_t serial, bytes, blocks;
    } forks[MODEL_FORKS];
    uint32_t forks_count;
};

struct model_event {
    uint32_t client; /* index; in order of addition */
    uint32_t lane;
    uint64_t order; /* of generation */
    struct ml_event event;
};

struct model {
    struct model_client clients[MODEL_CLIENTS];
    uint32_t clients_count;
    struct ml_totals tree; /* live: of those that run; peak */
    uint64_t tree_peak_ticks;
    bool repeats_stamps;        /* moments are told as of the last stamp, and may have been later */
    struct model_event *events; /* [0, count) not applied yet */
    uint32_t events_count, events_capacity;
};

void model_init(struct model *model);
void model_fini(struct model *model);

/* A client begins; returns its index. */
uint32_t model_add_client(struct model *model);

/* Add an event. An END in MODEL_HOST_LANE comes from the host. A REAPED event's pid is the child's
 * index + MODEL_FIRST_PID. NONE is a hole: records of the lane were lost. */
void model_add(
    struct model *model,
    uint32_t client,
    uint32_t lane,
    uint64_t order,
    const struct ml_event *event
);

/* Apply everything stamped up to `ticks`. */
void model_apply(struct model *model, uint64_t ticks);

#endif
