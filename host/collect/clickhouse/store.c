#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "host/collect/clickhouse/internal.h"
#include "host/collect/crash_point.h"

enum {
    SENT_MAX = 2000000, /* ids that are remembered: 128 MiB at most */
    OPENING_MS = 5000   /* for an answer, before the collector has a thread that may wait */
};

/* ---- what is there already */

/* The lines TEAM/GUID of those of the items that this node has. Both are words without signs. */
static enum ml_status known_at(
    struct ml_click_store *store,
    size_t node,
    const struct ml_store_item *items,
    size_t count,
    struct ml_click_answer *out_answer,
    struct ml_error_message *error
) {
    struct ml_click_sql sql = {.text = NULL};
    ml_click_sql_put(&sql, "SELECT concat(team, '/', guid) FROM dumps_local WHERE kept IN (");
    for (size_t i = 0; i < count; i++) {
        ml_click_sql_put(&sql, i > 0 ? ", " : "");
        ml_click_sql_day(&sql, ml_click_kept(&items[i]));
    }
    ml_click_sql_put(&sql, ") AND guid IN (");
    for (size_t i = 0; i < count; i++) {
        ml_click_sql_put(&sql, i > 0 ? ", " : "");
        ml_click_sql_text(&sql, items[i].entry->guid);
    }
    ml_click_sql_put(&sql, ")");
    const enum ml_status status =
        sql.is_failed ? ML_ENV_MEMORY
                      : ml_click_ask(&store->nodes, node, sql.text, "", out_answer, error);
    ml_click_sql_fini(&sql);
    return status;
}

static bool has_line(const char *text, const struct ml_entry *entry) {
    char line[ML_TEAM_BYTES + ML_GUID_BYTES + 2];
    const int count = snprintf(line, sizeof(line), "%s/%s\n", entry->team, entry->guid);
    for (const char *at = text; at != NULL && count > 0;) {
        if (strncmp(at, line, (size_t)count) == 0) {
            return true;
        }
        at = strchr(at, '\n');
        at = at != NULL ? at + 1 : NULL;
    }
    return false;
}

static enum ml_status find_known(
    struct ml_click_store *store,
    const struct ml_store_item *items,
    size_t count,
    bool *out_is_known,
    struct ml_error_message *error
) {
    enum ml_status status = ML_OK;
    for (size_t node = 0; status == ML_OK && node < store->nodes.count; node++) {
        struct ml_click_answer answer = {.text = NULL};
        status = known_at(store, node, items, count, &answer, error);
        for (size_t i = 0; status == ML_OK && i < count; i++) {
            out_is_known[i] = out_is_known[i] || has_line(answer.text, items[i].entry);
        }
        free(answer.text);
    }
    return status;
}

/* ---- sending */

enum ml_status ml_click_send_to_all(
    struct ml_click_store *store,
    const char *table,
    const struct ml_click_block *block,
    struct ml_error_message *error
) {
    struct ml_click_bytes bytes;
    char query_id[ML_CLICK_QUERY_ID_BYTES];
    struct timespec now;
    if (block->rows == 0) {
        return ML_OK;
    }
    if (!ml_click_block_whole(block, &bytes)) {
        return ML_ENV_MEMORY;
    }
    (void)clock_gettime(CLOCK_REALTIME, &now);
    enum ml_status status = ML_OK;
    for (size_t i = 0; status == ML_OK && i < store->nodes.count; i++) {
        (void)snprintf(
            query_id,
            sizeof(query_id),
            "memlog-%s-%lld-%09ld",
            table,
            (long long)now.tv_sec,
            now.tv_nsec
        );
        status = ml_click_insert(&store->nodes, i, table, query_id, bytes.data, bytes.count, error);
    }
    free(bytes.data);
    return status;
}

/* Reports of one partition that go together. */
struct group {
    const struct ml_store_item *items[64];
    size_t count;
};

/* Stacks that have just been sent may be of frames that got names before. */
static enum ml_status rename_sent(
    struct ml_click_store *store,
    const struct group *group,
    const struct ml_click_rows *rows,
    struct ml_error_message *error
) {
    uint64_t given = 0;
    enum ml_status status =
        ml_click_number(&store->nodes, 0, "SELECT count() FROM given", &given, error);
    for (size_t i = 0; status == ML_OK && given > 0 && i < group->count; i++) {
        const struct ml_store_item *item = group->items[i];
        bool is_known = false;
        for (size_t j = 0; j < i; j++) {
            is_known = is_known || strcmp(group->items[j]->entry->team, item->entry->team) == 0;
        }
        if (!is_known) {
            status = ml_click_rename_sent(store, item->entry->team, item->team_key, rows, error);
        }
    }
    return status;
}

static enum ml_status send_stacks(
    struct ml_click_store *store,
    const struct group *group,
    const struct ml_click_ids *ids,
    struct ml_click_rows *rows,
    struct ml_error_message *error
) {
    bool is_room = true;
    if (store->sent.count > SENT_MAX) {
        ml_id_map_fini(&store->sent);
    }
    for (size_t i = 0; is_room && i < group->count; i++) {
        is_room = ml_click_rows_of_stacks(rows, group->items[i], &ids[i], &store->sent);
    }
    if (!is_room) {
        return ML_ENV_MEMORY;
    }
    enum ml_status status = ml_click_send_to_all(store, "frames", &rows->frames, error);
    if (status == ML_OK) {
        ml_crash_point("frames-sent");
        status = ml_click_send_to_all(store, "stacks", &rows->stacks, error);
        ml_crash_point("stacks-sent");
    }
    if (status == ML_OK && rows->stacks.rows > 0) {
        status = rename_sent(store, group, rows, error);
    }
    for (size_t i = 0; status == ML_OK && i < rows->stacks_put.slots_count; i++) {
        if (!ml_id_map_put(&store->sent, rows->stacks_put.slots[i])) {
            break; /* they are sent again */
        }
    }
    return status;
}

/* The batch has its line. Whatever goes wrong from here on, ml_click_settle finds out. */
static enum ml_status send_batch(
    struct ml_click_store *store,
    size_t node,
    const struct ml_click_batch *batch,
    const struct ml_click_bytes *samples,
    struct ml_error_message *error
) {
    char query_id[ML_CLICK_QUERY_ID_BYTES];
    enum ml_status status = ML_OK;
    if (batch->samples > 0) {
        ml_crash_point("batch-noted");
        ml_click_query_id(batch, "samples_local", query_id);
        status = ml_click_insert(
            &store->nodes, node, "samples_local", query_id, samples->data, samples->count, error
        );
        ml_crash_point("samples-sent");
        if (status == ML_OK) {
            status = ml_click_batches_samples_there(&store->batches, batch->number);
        }
        ml_crash_point("samples-noted");
    }
    if (status == ML_OK) {
        ml_click_query_id(batch, "dumps_local", query_id);
        status = ml_click_insert(
            &store->nodes, node, "dumps_local", query_id, batch->body, batch->body_bytes, error
        );
        ml_crash_point("dumps-sent");
    }
    return status == ML_OK ? ml_click_batches_end(&store->batches, batch->number) : status;
}

static enum ml_status send_reports(
    struct ml_click_store *store,
    const struct group *group,
    const struct ml_click_ids *ids,
    struct ml_click_rows *rows,
    struct ml_error_message *error
) {
    struct ml_click_bytes samples = {.data = NULL};
    struct ml_click_bytes dumps = {.data = NULL};
    const uint64_t number = ml_click_batches_next(&store->batches);
    const size_t node = number % store->nodes.count;
    bool is_room = true;
    for (size_t i = 0; is_room && i < group->count; i++) {
        is_room = ml_click_rows_of_report(rows, group->items[i], &ids[i], number);
    }
    is_room = is_room && ml_click_block_whole(&rows->samples, &samples) &&
              ml_click_block_whole(&rows->dumps, &dumps);
    enum ml_status status = ML_ENV_MEMORY;
    if (is_room) {
        struct ml_click_batch batch = {
            .number = number,
            .kept = ml_click_kept(group->items[0]),
            .samples = rows->samples.rows,
            .dumps = rows->dumps.rows,
            .samples_are_there = rows->samples.rows == 0,
            .body = dumps.data,
            .body_bytes = dumps.count};
        (void)snprintf(batch.url, sizeof(batch.url), "%s", store->nodes.list[node].url);
        status = ml_click_batches_add(&store->batches, &batch);
        if (status == ML_OK) {
            status = send_batch(store, node, &batch, &samples, error);
        }
    }
    free(samples.data);
    free(dumps.data);
    return status;
}

static enum ml_status send_group(
    struct ml_click_store *store, const struct group *group, struct ml_error_message *error
) {
    struct ml_click_ids ids[sizeof(group->items) / sizeof(group->items[0])];
    struct ml_click_rows rows;
    memset(ids, 0, sizeof(ids));
    ml_click_rows_init(&rows);
    enum ml_status status = ML_OK;
    for (size_t i = 0; status == ML_OK && i < group->count; i++) {
        status = ml_click_ids_of(group->items[i], &ids[i]) ? ML_OK : ML_ENV_MEMORY;
    }
    if (status == ML_OK) {
        status = send_stacks(store, group, ids, &rows, error);
    }
    if (status == ML_OK) {
        status = send_reports(store, group, ids, &rows, error);
    }
    ml_click_rows_fini(&rows);
    for (size_t i = 0; i < group->count; i++) {
        ml_click_ids_fini(&ids[i]);
    }
    return status;
}

/* The first that is not there, and what goes with it. False: all are there. */
static bool next_group(
    const struct ml_store_item *items, size_t count, bool *is_known, struct group *out_group
) {
    uint64_t rows = 0;
    *out_group = (struct group){.count = 0};
    for (size_t i = 0; i < count; i++) {
        const size_t most = sizeof(out_group->items) / sizeof(out_group->items[0]);
        const uint64_t more = items[i].report->rows_count;
        const bool fits = out_group->count == 0 ||
                          (out_group->count < most && rows + more <= ML_CLICK_ROWS_MAX &&
                           ml_click_kept(&items[i]) == ml_click_kept(out_group->items[0]));
        if (!is_known[i] && fits) {
            out_group->items[out_group->count++] = &items[i];
            is_known[i] = true;
            rows += more;
        }
    }
    return out_group->count > 0;
}

static enum ml_status
add(struct ml_store *head,
    const struct ml_store_item *items,
    size_t count,
    struct ml_error_message *error) {
    struct ml_click_store *store = (struct ml_click_store *)head;
    bool *is_known = calloc(count + 1, sizeof(*is_known));
    struct group group;
    enum ml_status status = is_known != NULL ? ml_click_prepare(store, error) : ML_ENV_MEMORY;
    if (status == ML_OK) {
        status = ml_click_settle(store, error);
    }
    if (status == ML_OK) {
        status = find_known(store, items, count, is_known, error);
    }
    while (status == ML_OK && next_group(items, count, is_known, &group)) {
        status = send_group(store, &group, error);
    }
    free(is_known);
    if (status != ML_OK) {
        ml_error_set(error, "memory ran out, or the list of batches cannot be written");
        return ML_ENV_SYSTEM; /* the reports wait */
    }
    return ML_OK;
}

/* ---- removing */

static enum ml_status delete_at(
    struct ml_click_store *store,
    size_t node,
    const char *table,
    const char *team,
    const char *guid,
    struct ml_error_message *error
) {
    struct ml_click_sql where = {.text = NULL};
    ml_click_sql_put(&where, "team = ");
    ml_click_sql_text(&where, team);
    ml_click_sql_put(&where, " AND guid = ");
    ml_click_sql_text(&where, guid);
    const enum ml_status status =
        where.is_failed ? ML_ENV_MEMORY
                        : ml_click_delete(&store->nodes, node, table, where.text, error);
    ml_click_sql_fini(&where);
    return status;
}

/* The sums of all weeks that have it are made again. */
static enum ml_status forget_weeks(struct ml_click_store *store) {
    int64_t *weeks = calloc(ML_CLICK_WEEKS_MAX, sizeof(*weeks));
    const size_t count = weeks != NULL ? ml_click_weeks(&store->batches, weeks) : 0;
    enum ml_status status = weeks != NULL ? ML_OK : ML_ENV_MEMORY;
    for (size_t i = 0; status == ML_OK && i < count; i++) {
        status = ml_click_weeks_remove(&store->batches, weeks[i]);
    }
    free(weeks);
    return status;
}

static enum ml_status take_away(
    struct ml_store *head, const char *team, const char *guid, struct ml_error_message *error
) {
    struct ml_click_store *store = (struct ml_click_store *)head;
    enum ml_status status = ml_click_prepare(store, error);
    if (status == ML_OK) {
        status = ml_click_settle(store, error);
    }
    if (status == ML_OK) {
        status = forget_weeks(store);
    }
    if (status == ML_OK) {
        status = ml_click_batches_sweep_is_due(&store->batches);
    }
    for (size_t i = 0; status == ML_OK && i < store->nodes.count; i++) {
        status = delete_at(store, i, "samples_local", team, guid, error);
        ml_crash_point("samples-removed");
        if (status == ML_OK) {
            status = delete_at(store, i, "dumps_local", team, guid, error);
        }
    }
    if (status != ML_OK) {
        ml_error_set(error, "memory ran out, or the list of batches cannot be written");
        return ML_ENV_SYSTEM;
    }
    return ML_OK;
}

static void interrupt(struct ml_store *head) {
    atomic_store(&((struct ml_click_store *)head)->nodes.is_interrupted, true);
}

/* ---- open and close */

static void close_store(struct ml_store *take_store) {
    struct ml_click_store *store = (struct ml_click_store *)take_store;
    ml_click_nodes_fini(&store->nodes);
    ml_click_batches_close(&store->batches);
    ml_id_map_fini(&store->sent);
    if (store->names_lock_fd >= 0) {
        (void)close(store->names_lock_fd);
    }
    free(store->urls);
    free(store->login_path);
    free(store->batches_path);
    free(store);
}

enum ml_status ml_click_store_open(
    const struct ml_click_place *place, struct ml_store **out_store, struct ml_error_message *error
) {
    static const struct ml_store_engine engine = {
        .close = close_store,
        .add = add,
        .remove = take_away,
        .upkeep = ml_click_upkeep,
        .interrupt = interrupt,
        .nameless = ml_click_nameless,
        .name = ml_click_name,
        .ask_open = ml_click_ask_open,
    };
    struct ml_click_store *store = calloc(1, sizeof(*store));
    if (store == NULL) {
        return ML_ENV_MEMORY;
    }
    store->head.engine = &engine;
    store->names_lock_fd = -1;
    store->urls = strdup(place->urls);
    store->login_path = place->login_path != NULL ? strdup(place->login_path) : NULL;
    store->batches_path = strdup(place->batches_path);
    enum ml_status status =
        store->urls != NULL && store->batches_path != NULL ? ML_OK : ML_ENV_MEMORY;
    if (status == ML_OK) {
        status = ml_click_nodes_init(&store->nodes, store->urls, store->login_path, error);
    }
    if (status == ML_OK) {
        status = ml_click_batches_open(&store->batches, store->batches_path, error);
    }
    if (status == ML_OK) {
        /* Nodes that are away now, or say nothing, are asked again when reports come. */
        struct ml_error_message why = {.text = ""};
        store->nodes.whole_ms = OPENING_MS;
        status = ml_click_prepare(store, &why);
        store->nodes.whole_ms = 0;
        if (status == ML_ENV_REFUSED) {
            *error = why;
        } else {
            status = ML_OK;
        }
    }
    if (status != ML_OK) {
        close_store(&store->head);
        return status;
    }
    *out_store = &store->head;
    return ML_OK;
}
