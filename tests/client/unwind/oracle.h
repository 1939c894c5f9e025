/* Holds the unwinder against others: every stack against a walk of the same unwinder that has no
 * cache (tables alone), what the memo says against both, and every Nth against libunwind. Room:
 * tests. Context: one thread each. */
#ifndef MEMLOG_TESTS_CLIENT_UNWIND_ORACLE_H
#define MEMLOG_TESTS_CLIENT_UNWIND_ORACLE_H

#include <stdbool.h>
#include <stdint.h>

#include "client/unwind/check.h"
#include "client/unwind/unwind.h"

enum { ML_ORACLE_DEPTH_MAX = 1 << 17, ML_ORACLE_NODES_MAX = 1 << 20 };

struct ml_oracle_node {
    uintptr_t pc;
    uint32_t parent;
    uint32_t module;
    uint32_t kind;
    uint32_t chain; /* next node of the same bucket */
};

struct ml_oracle {
    struct ml_unwind_process *process; /* may be shared by several oracles */
    struct ml_unwind_process *bare;    /* for ever inside a dlclose: nothing is cached */
    struct ml_unwind_thread *thread;
    struct ml_unwind_thread *bare_thread;
    struct ml_oracle_node *nodes;
    uint32_t *buckets;
    uint32_t node_count;
    struct ml_unwind_checker checker;
    uint32_t library_every; /* libunwind looks at every Nth stack; 0: at none */
    uint64_t events;
    uint64_t beside;        /* stacks whose cut alone lies elsewhere, where that may be, ... */
    uint64_t wrong;         /* stacks that differ from the walk without cache, ... */
    uint64_t wrong_nodes;   /* ... whose node is another path, ... */
    uint64_t wrong_library; /* ... that differ from libunwind's */
    uint64_t memo_hits;
    uint64_t wrong_memo; /* hits with another node than the walk's */
    uint64_t library_checked;
    uint64_t library_unjudged; /* of them: libunwind gave up early */
    uint64_t kept_frames;
    uint64_t all_frames;
    uint64_t full;
    uint64_t cut;
    uint64_t broken;
    uint32_t deepest;
    uint32_t modules_seen;
    bool quiet;          /* do not print the first difference */
    bool may_lie_beside; /* frames were jumped over unseen: the cut may be elsewhere, each frame
                            holds */
    bool quick; /* the walk without cache has the recipes, and lacks the last stack alone */
};

/* A new one that shares `process`, or has its own when NULL. */
struct ml_oracle *ml_oracle_new(struct ml_unwind_process *process, uint32_t library_every);
void ml_oracle_free(struct ml_oracle *oracle);

/* Stands for an allocator: its caller's stack is walked and compared. */
void ml_oracle_probe(struct ml_oracle *oracle);

/* Walk only, as a hook does, with nodes; for measuring. */
void ml_oracle_walk(struct ml_oracle *oracle);

/* The module id of the innermost frame of the last stack. */
uint32_t ml_oracle_caller_module(const struct ml_oracle *oracle);

/* Whether all invariants hold: of a thread's cached stack, and of its memo. */
bool ml_oracle_thread_holds(const struct ml_unwind_thread *thread);
bool ml_oracle_memo_holds(
    const struct ml_unwind_memo *memo, const struct ml_unwind_process *process
);

#endif
