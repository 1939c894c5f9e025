/* One process's stacks and figures added to another's. Room: service. Context: the session's one
 * thread.
 *
 * One rule: two stacks are the same if their frames are at the same places of the same files. Every
 * process has its own addresses, module numbers and node ids; the entry keeps those of its first
 * process.
 *
 * The entry's shares at the tree's peak are kept as every process's, by the tree's epoch: a new
 * maximum makes them all zero at no cost. Its peak is the sum of the processes' own peaks. */
#ifndef MEMLOG_SERVICE_SESSION_FOLD_TABLES_H
#define MEMLOG_SERVICE_SESSION_FOLD_TABLES_H

#include "service/heap/stack_store.h"
#include "service/heap/tracker.h"

enum {
    /* Of one entry: 6 MiB with their index. Deeper frames count as the last known one. Programs
     * whose code is generated while they run never repeat an address. */
    ML_FOLD_NODES_MAX = 1 << 18
};

/* The cells that keep their stacks. The sums of the others go to one node of the entry, by heap and
 * size class. */
struct ml_fold_choice {
    const uint8_t *kept;  /* one byte a cell */
    uint32_t others_node; /* of the entry */
};

/* What an entry needs to find its own nodes again. */
struct ml_fold_tables {
    struct ml_stack_store *stacks;
    struct ml_tracker *tracker;
    uint32_t *index;         /* of nodes, by what they are; open addressing, 0: empty */
    uint32_t index_capacity; /* a power of two */
    uint32_t indexed;        /* entries in it */
    uint32_t next_node;      /* ids from here on are unused, also as references */
};

/* An ended process becomes an entry: from now on its figures are sums. Errors: ML_ENV_MEMORY:
 * nothing has changed. */
ML_NODISCARD enum ml_status ml_fold_tables_init(
    struct ml_fold_tables *tables, struct ml_stack_store *stacks, struct ml_tracker *tracker
);
void ml_fold_tables_fini(struct ml_fold_tables *tables);

/* Add the figures of an ended process, whose tables stay as they are. `main_path` is the file of
 * its main program if that is not the entry's own, else NULL. `choice` names the cells whose stacks
 * stay; NULL: all. Errors: ML_ENV_MEMORY, ML_PEER_LIMIT: the entry's figures are as before. */
ML_NODISCARD enum ml_status ml_fold_tables_add(
    struct ml_fold_tables *tables,
    const struct ml_stack_store *stacks,
    const struct ml_tracker *tracker,
    const char *main_path,
    const struct ml_fold_choice *choice
);

#endif
