/* Addresses that were given out again before the free of their block before was seen. Room:
 * service. Context: the session's one thread.
 *
 * One rule: a free that is stamped before the address was given out again is the missing one, and
 * leaves what lives there now alone. Of two addresses that share a place the later stays. */
#ifndef MEMLOG_SERVICE_REUSE_LOG_H
#define MEMLOG_SERVICE_REUSE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "service/budget.h"

enum { ML_REUSE_LOG_ENTRIES = 4096 /* 96 KiB, of clients that miss frees; a power of two */ };

struct ml_reuse {
    uint64_t key;     /* ml_live_key; 0: none */
    uint64_t time;    /* stamp of the latest ALLOC there that found a block alive */
    uint64_t missing; /* frees not seen so far */
};

struct ml_reuse_log {
    struct ml_budget *budget;
    struct ml_reuse *entries; /* NULL: nothing yet */
};

void ml_reuse_log_init(struct ml_reuse_log *log, struct ml_budget *budget);
void ml_reuse_log_fini(struct ml_reuse_log *log);

/* The block at `key` was still alive when an ALLOC stamped `time` gave it out again. Without memory
 * it is forgotten. */
void ml_reuse_log_add(struct ml_reuse_log *log, uint64_t key, uint64_t time);

/* Whether a free stamped `time` means a block that was there before. *out_awaited: it was missing.
 */
bool ml_reuse_log_outdates(
    struct ml_reuse_log *log, uint64_t key, uint64_t time, bool *out_awaited
);

#endif
