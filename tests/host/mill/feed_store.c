/* Dumps straight into a store. Room: tests. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "host/collect/clickhouse/opening.h"
#include "host/collect/ledger.h"
#include "host/collect/store.h"
#include "tests/host/mill/feed.h"

/* What is alive until its batch is in the store. */
struct slot {
    struct fleet_dump dump;
    struct ml_entry entry;
    struct ml_collect_report report;
    char host[FLEET_WORD_BYTES], version[FLEET_WORD_BYTES];
};

/* Frames of a build of a program; the same in all its dumps. */
struct built {
    char id[FLEET_WORD_BYTES];
    struct memlog_fleet_frame *frames;
};

struct feeding {
    const struct fleet *fleet;
    const struct fleet_plan *plan;
    struct ml_store *store;
    struct slot *slots;
    struct ml_store_item *items;
    struct built *built; /* by program and build */
    uint8_t team_key[ML_TEAM_KEY_BYTES];
};

static const char team[] = "default";

static const struct built *built_of(struct feeding *feeding, size_t program, uint64_t build) {
    struct built *built = &feeding->built[program * feeding->plan->builds + build];
    if (built->frames == NULL) {
        fleet_build_id(program, build, built->id);
        built->frames = fleet_frames(&feeding->fleet->programs[program], build, built->id);
    }
    return built;
}

static void make_item(struct feeding *feeding, struct slot *slot, struct ml_store_item *out_item) {
    const struct fleet_dump *dump = &slot->dump;
    const struct fleet_program *program = &feeding->fleet->programs[dump->program];
    const struct built *built = built_of(feeding, dump->program, dump->build);
    fleet_host_name(dump->host, slot->host);
    (void)snprintf(slot->version, sizeof(slot->version), "1.%u", (unsigned)dump->build);
    slot->entry = (struct ml_entry){.received_ms = dump->time_ms + 1000};
    memcpy(slot->entry.team, team, sizeof(team));
    (void)snprintf(slot->entry.guid, sizeof(slot->entry.guid), "%s", dump->guid);
    slot->report = (struct ml_collect_report){
        .state = ML_COLLECT_REPORT_WHOLE,
        .head =
            {
                .version = MEMLOG_FLEET_FLEET_VERSION,
                .program = ml_string_of(program->name),
                .build_id = ml_string_of(built->id),
                .host = ml_string_of(slot->host),
                .program_version = ml_string_of(slot->version),
                .time_ns = dump->time_ms * 1000000,
                .reason = ml_string_of("threshold"),
                .trigger = ml_string_of(dump->control ? "control" : "live"),
                .weight = 1,
                .complete = true,
                .covered = true,
                .sampling_bytes = 1,
                .processes = 1,
                .private_bytes = dump->sums.live_bytes,
                .told = MEMLOG_FLEET_TOLD_LIVE | MEMLOG_FLEET_TOLD_PEAK | MEMLOG_FLEET_TOLD_TOTAL |
                        MEMLOG_FLEET_TOLD_COMPLETE,
            },
        .frames = built->frames,
        .frames_count = program->frames_count,
        .stacks = program->stacks,
        .stacks_count = program->stacks_count,
        .rows = dump->rows,
        .rows_count = dump->count,
        .sums = dump->sums,
    };
    *out_item = (struct ml_store_item
    ){.entry = &slot->entry, .report = &slot->report, .team_key = feeding->team_key};
}

static enum ml_status feed(
    struct feeding *feeding,
    uint64_t from,
    uint64_t until,
    size_t batch,
    struct fed *fed,
    struct ml_error_message *error
) {
    enum ml_status status = ML_OK;
    while (status == ML_OK && from < until) {
        size_t count = 0;
        for (; count < batch && from < until; count++, from++) {
            struct slot *slot = &feeding->slots[count];
            if (!fleet_make(feeding->fleet, feeding->plan, from, &slot->dump)) {
                return ML_ENV_MEMORY;
            }
            make_item(feeding, slot, &feeding->items[count]);
            fed->rows += slot->dump.count;
        }
        status = ml_store_add(feeding->store, feeding->items, count, error);
        fed->dumps += count;
    }
    return status;
}

/* The store's ids of stacks are the team's, whose key the ledger keeps. */
static enum ml_status
read_key(const char *spool, uint8_t *out_key, struct ml_error_message *error) {
    struct ml_ledger *ledger = NULL;
    enum ml_status status = ml_ledger_open(spool, &ledger, error);
    if (status == ML_OK) {
        status = ml_ledger_team_key(ledger, team, out_key);
        ml_ledger_close(ledger);
    }
    return status;
}

/* A store as the collector's --store names it, or the path of SQLite's file. */
static enum ml_status open_store(
    const char *place,
    const char *spool,
    struct ml_store **out_store,
    struct ml_error_message *error
) {
    static const char click[] = "clickhouse:";
    if (strncmp(place, click, sizeof(click) - 1) != 0) {
        return ml_store_open(place, out_store, error);
    }
    char batches[PATH_MAX];
    (void)snprintf(batches, sizeof(batches), "%s/batches.db", spool);
    const struct ml_click_place at = {
        .urls = place + sizeof(click) - 1,
        .batches_path = batches,
    };
    return ml_click_store_open(&at, out_store, error);
}

enum ml_status feed_store(
    const struct fleet *fleet,
    const struct fleet_plan *plan,
    uint64_t from,
    uint64_t until,
    size_t batch,
    const char *store,
    const char *spool,
    struct fed *out_fed,
    struct ml_error_message *error
) {
    struct feeding feeding = {
        .fleet = fleet,
        .plan = plan,
        .slots = calloc(batch, sizeof(struct slot)),
        .items = calloc(batch, sizeof(struct ml_store_item)),
        .built = calloc(fleet->count * plan->builds, sizeof(struct built)),
    };
    const bool is_room = feeding.slots != NULL && feeding.items != NULL && feeding.built != NULL;
    enum ml_status status = is_room ? read_key(spool, feeding.team_key, error) : ML_ENV_MEMORY;
    *out_fed = (struct fed){.dumps = 0};
    if (status == ML_OK) {
        status = open_store(store, spool, &feeding.store, error);
    }
    if (status == ML_OK) {
        status = feed(&feeding, from, until, batch, out_fed, error);
        ml_store_close(feeding.store);
    }
    for (size_t i = 0; feeding.slots != NULL && i < batch; i++) {
        fleet_dump_fini(&feeding.slots[i].dump);
    }
    for (size_t i = 0; feeding.built != NULL && i < fleet->count * plan->builds; i++) {
        free(feeding.built[i].frames);
    }
    free(feeding.slots);
    free(feeding.items);
    free(feeding.built);
    return status;
}
