/* Addresses at which events arrived out of order. Room: service. Context: whoever works on the
 * client.
 *
 * One rule: a late event is recognized by its stamp, and does not change what later events did. Of
 * two addresses that share a place the later stays.
 *
 * A tracker has two: addresses that were given out again before the free of their block before was
 * seen (a free stamped before that is the missing one), and addresses that were freed before their
 * alloc was seen (an alloc stamped before that is dead already). */
#ifndef MEMLOG_SERVICE_HEAP_REUSE_LOG_H
#define MEMLOG_SERVICE_HEAP_REUSE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "service/limits/budget.h"

enum {
    ML_REUSE_LOG_ENTRIES = 4096, /* 96 KiB, of clients that miss frees */
    ML_EARLY_LOG_ENTRIES = 256   /* 6 KiB: every forked child frees what it did not allocate */
};

struct ml_reuse {
    uint64_t key;     /* ml_live_key; 0: none */
    uint64_t time;    /* stamp of the latest event there that came too early */
    uint64_t missing; /* events before it that were not seen so far */
};

struct ml_reuse_log {
    struct ml_budget *budget;
    struct ml_reuse *entries; /* NULL: nothing yet */
    uint32_t entries_count;
    uint64_t latest; /* the largest stamp ever added: what is stamped later needs no look */
};

void ml_reuse_log_init(struct ml_reuse_log *log, struct ml_budget *budget, uint32_t entries_count);
void ml_reuse_log_fini(struct ml_reuse_log *log);

/* An event at `key`, stamped `time`, arrived before its predecessor. Without memory that is not
 * noted. */
void ml_reuse_log_add(struct ml_reuse_log *log, uint64_t key, uint64_t time);

/* Whether an event stamped `time` precedes one that arrived at that address. *out_awaited: it was
 * missing.
 */
bool ml_reuse_log_outdates(
    struct ml_reuse_log *log, uint64_t key, uint64_t time, bool *out_awaited
);

#endif
