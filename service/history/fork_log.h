/* What a process held at each of its forks, for its children. Room: service. Context: whoever works
 * on the client.
 *
 * One rule: a fork is found by its serial, whether the parent's FORK record or the child comes
 * first. Of very many forks the oldest are forgotten. */
#ifndef MEMLOG_SERVICE_HISTORY_FORK_LOG_H
#define MEMLOG_SERVICE_HISTORY_FORK_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/wire/ml_status.h"
#include "service/limits/budget.h"

enum { ML_FORK_LOG_MAX = 1 << 16 /* 2 MiB; children that have not begun to stream are few */ };

struct ml_fork {
    uint64_t serial; /* 0: empty */
    uint64_t ticks;
    uint64_t live_bytes, live_blocks;
};

struct ml_fork_log {
    struct ml_budget *budget;
    struct ml_fork *forks; /* serial % capacity */
    uint32_t capacity;     /* a power of two */
};

void ml_fork_log_init(struct ml_fork_log *log, struct ml_budget *budget);
void ml_fork_log_fini(struct ml_fork_log *log);

/* Errors: ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status ml_fork_log_add(struct ml_fork_log *log, const struct ml_fork *fork);

/* NULL: that fork is not known yet, or forgotten. */
const struct ml_fork *ml_fork_log_find(const struct ml_fork_log *log, uint64_t serial);

#endif
