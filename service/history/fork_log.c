#include "service/history/fork_log.h"

#include <stddef.h>

void ml_fork_log_init(struct ml_fork_log *log, struct ml_budget *budget) {
    *log = (struct ml_fork_log){.budget = budget};
}

void ml_fork_log_fini(struct ml_fork_log *log) {
    ml_budget_free(log->budget, log->forks, log->capacity * sizeof(*log->forks));
    *log = (struct ml_fork_log){.budget = log->budget};
}

static enum ml_status grow(struct ml_fork_log *log) {
    const uint32_t capacity = log->capacity == 0 ? 8 : log->capacity * 2;
    struct ml_fork *forks = ml_budget_new(log->budget, capacity * sizeof(*forks));
    if (forks == NULL) {
        return ML_ENV_MEMORY;
    }
    for (uint32_t i = 0; i < log->capacity; i++) {
        if (log->forks[i].serial != 0) {
            forks[log->forks[i].serial & (capacity - 1)] = log->forks[i];
        }
    }
    ml_budget_free(log->budget, log->forks, log->capacity * sizeof(*forks));
    log->forks = forks;
    log->capacity = capacity;
    return ML_OK;
}

enum ml_status ml_fork_log_add(struct ml_fork_log *log, const struct ml_fork *fork) {
    while (log->capacity == 0 ||
           (log->capacity < ML_FORK_LOG_MAX &&
            log->forks[fork->serial & (log->capacity - 1)].serial != 0 &&
            log->forks[fork->serial & (log->capacity - 1)].serial != fork->serial)) {
        const enum ml_status status = grow(log);
        if (status != ML_OK) {
            return status;
        }
    }
    log->forks[fork->serial & (log->capacity - 1)] = *fork;
    return ML_OK;
}

const struct ml_fork *ml_fork_log_find(const struct ml_fork_log *log, uint64_t serial) {
    if (log->capacity == 0 || serial == 0) {
        return NULL;
    }
    const struct ml_fork *fork = &log->forks[serial & (log->capacity - 1)];
    return fork->serial == serial ? fork : NULL;
}
