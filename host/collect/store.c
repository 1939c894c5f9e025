#include "host/collect/store.h"

#include <stdlib.h>
#include <string.h>

#include "host/collect/crash_point.h"
#include "host/collect/engine.h"

enum ml_status
ml_store_open(const char *path, struct ml_store **out_store, struct ml_error_message *error) {
    return ml_sqlite_store_open(path, out_store, error);
}

void ml_store_close(struct ml_store *take_store) {
    if (take_store != NULL) {
        take_store->engine->close(take_store);
    }
}

enum ml_status ml_store_add(
    struct ml_store *store,
    const struct ml_store_item *items,
    size_t count,
    struct ml_error_message *error
) {
    const enum ml_status status = store->engine->add(store, items, count, error);
    ml_crash_point("inserted");
    return status;
}

enum ml_status ml_store_remove(
    struct ml_store *store, const char *team, const char *guid, struct ml_error_message *error
) {
    const enum ml_status status = store->engine->remove(store, team, guid, error);
    ml_crash_point("store-removed");
    return status;
}

enum ml_status ml_store_upkeep(
    struct ml_store *store,
    uint64_t before_ms,
    struct ml_store_kept *out_kept,
    struct ml_error_message *error
) {
    *out_kept = (struct ml_store_kept){.gone_ms = 0};
    return store->engine->upkeep(store, before_ms, out_kept, error);
}

void ml_store_interrupt(struct ml_store *store) {
    store->engine->interrupt(store);
}

/* ---- names that come later */

void ml_nameless_fini(struct ml_nameless *nameless) {
    free(nameless->ids);
    free(nameless->places);
    *nameless = (struct ml_nameless){.count = 0};
}

bool ml_nameless_add(struct ml_nameless *nameless, size_t *capacity, int64_t id, uint64_t place) {
    enum { FIRST = 1024 };
    if (nameless->count == *capacity) {
        const size_t wanted = *capacity > 0 ? *capacity * 2 : FIRST;
        int64_t *ids = reallocarray(nameless->ids, wanted, sizeof(*ids));
        nameless->ids = ids != NULL ? ids : nameless->ids;
        uint64_t *places = reallocarray(nameless->places, wanted, sizeof(*places));
        nameless->places = places != NULL ? places : nameless->places;
        if (ids == NULL || places == NULL) {
            return false;
        }
        *capacity = wanted;
    }
    nameless->ids[nameless->count] = id;
    nameless->places[nameless->count++] = place;
    return true;
}

enum ml_status ml_store_nameless(
    struct ml_store *store,
    const char *build_id,
    struct ml_nameless *out_nameless,
    struct ml_error_message *error
) {
    return store->engine->nameless(store, build_id, out_nameless, error);
}

enum ml_status ml_store_name(
    struct ml_store *store,
    const struct ml_nameless *nameless,
    const char *const *names,
    const struct ml_team_keys *keys,
    struct ml_named *out_named,
    struct ml_error_message *error
) {
    const enum ml_status status =
        store->engine->name(store, nameless, names, keys, out_named, error);
    ml_crash_point("named");
    return status;
}

/* ---- what all engines say of a report */

int64_t ml_week_of(uint64_t time_ms) {
    enum { DAY_MS = 86400000, THURSDAY = 3, WEEK = 7 };
    const int64_t day = (int64_t)(time_ms / DAY_MS) + THURSDAY;
    return day - day % WEEK >= THURSDAY ? day - day % WEEK - THURSDAY : 0;
}

bool ml_store_is_control(const struct ml_store_item *item) {
    static const char name[] = "control";
    const struct ml_string trigger = item->report->head.trigger;
    return trigger.count_bytes == sizeof(name) - 1 &&
           memcmp(trigger.data, name, sizeof(name) - 1) == 0;
}

uint64_t ml_store_time_ms(const struct ml_store_item *item) {
    const uint64_t told_ms = item->report->head.time_ns / 1000000;
    return told_ms > 0 && told_ms < item->entry->received_ms ? told_ms : item->entry->received_ms;
}

uint32_t ml_store_told(const struct ml_store_item *item) {
    const uint32_t told = item->report->head.told;
    return MEMLOG_FLEET_TOLD_LIVE | (told & (MEMLOG_FLEET_TOLD_PEAK | MEMLOG_FLEET_TOLD_TOTAL |
                                             MEMLOG_FLEET_TOLD_COMPLETE | MEMLOG_FLEET_TOLD_COST));
}

struct ml_string ml_store_host(const struct ml_store_item *item) {
    return item->entry->host[0] != '\0' ? ml_string_of(item->entry->host) : item->report->head.host;
}
