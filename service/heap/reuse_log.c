#include "service/heap/reuse_log.h"

#include <stddef.h>

void ml_reuse_log_init(struct ml_reuse_log *log, struct ml_budget *budget, uint32_t entries_count) {
    *log = (struct ml_reuse_log){.budget = budget, .entries_count = entries_count};
}

void ml_reuse_log_fini(struct ml_reuse_log *log) {
    ml_budget_free(log->budget, log->entries, log->entries_count * sizeof(*log->entries));
    *log = (struct ml_reuse_log){.budget = log->budget, .entries_count = log->entries_count};
}

static struct ml_reuse *place_of(const struct ml_reuse_log *log, uint64_t key) {
    const uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15);
    return &log->entries[(hash >> 40) % log->entries_count];
}

void ml_reuse_log_add(struct ml_reuse_log *log, uint64_t key, uint64_t time) {
    if (log->entries == NULL) {
        log->entries = ml_budget_new(log->budget, log->entries_count * sizeof(*log->entries));
        if (log->entries == NULL) {
            return;
        }
    }
    log->latest = time > log->latest ? time : log->latest;
    struct ml_reuse *place = place_of(log, key);
    const uint64_t missing = place->key == key ? place->missing : 0;
    const uint64_t latest = place->key == key && place->time > time ? place->time : time;
    *place = (struct ml_reuse){.key = key, .time = latest, .missing = missing + 1};
}

bool ml_reuse_log_outdates(
    struct ml_reuse_log *log, uint64_t key, uint64_t time, bool *out_awaited
) {
    *out_awaited = false;
    if (time >= log->latest) {
        return false;
    }
    struct ml_reuse *place = place_of(log, key);
    if (place->key != key || time >= place->time) {
        return false;
    }
    *out_awaited = place->missing > 0;
    place->missing -= *out_awaited;
    return true;
}
