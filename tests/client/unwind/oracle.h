/* Compares the unwinder with others. Each stack is compared with a walk without a cache (by tables
 * alone), and with the memo's answer. Each Nth is compared with libunwind's too. Room: tests.
 * Context: one thread each. */
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
    uint32_t library_every; /* every Nth stack is compared with libunwind's; 0: none */
    uint64_t events;
    uint64_t beside;        /* stacks of which only the cut differs, where that is permitted, ... */
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
    bool may_lie_beside; /* frames were jumped over unseen: the cut may lie elsewhere, all frames
                            must match */
    bool quick;          /* the walk without a cache uses recipes: it lacks the last stack alone */
};

/* A new one that shares `process`, or has its own when NULL. */
struct ml_oracle *ml_oracle_new(struct ml_unwind_process *process, uint32_t library_every);
void ml_oracle_free(struct ml_oracle *oracle);

/* In place of an allocator: walk and compare the caller's stack. */
void ml_oracle_probe(struct ml_oracle *oracle);

/* Only walk, as a hook does, with nodes; for measurements. */
void ml_oracle_walk(struct ml_oracle *oracle);

/* The module id of the innermost frame of the last stack. */
uint32_t ml_oracle_caller_module(const struct ml_oracle *oracle);

/* Whether all invariants hold: of a thread's cached stack, and of its memo. */
bool ml_oracle_thread_holds(const struct ml_unwind_thread *thread);
bool ml_oracle_memo_holds(
    const struct ml_unwind_memo *memo, const struct ml_unwind_process *process
);

#endif
