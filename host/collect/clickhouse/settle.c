#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host/collect/clickhouse/internal.h"

void ml_click_query_id(
    const struct ml_click_batch *batch, const char *table, char out_id[ML_CLICK_QUERY_ID_BYTES]
) {
    (void)snprintf(out_id, ML_CLICK_QUERY_ID_BYTES, "memlog-%" PRIu64 "-%s", batch->number, table);
}

enum ml_status ml_click_wait_gone(
    struct ml_click_nodes *nodes, size_t node, const char *query_id, struct ml_error_message *error
) {
    /* A request that was sent a moment ago may lie in the server's socket and not be a query yet:
     * it counts as gone when it was not seen for a while. */
    enum { LOOKS = 600, QUIET_LOOKS = 10, PAUSE_NS = 100000000 };
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    struct ml_click_sql sql = {.text = NULL};
    unsigned quiet = 0;
    ml_click_sql_put(&sql, "SELECT count() FROM system.processes WHERE query_id = ");
    ml_click_sql_text(&sql, query_id);
    enum ml_status status = sql.is_failed ? ML_ENV_MEMORY : ML_OK;
    for (unsigned i = 0; status == ML_OK && quiet < QUIET_LOOKS; i++) {
        uint64_t count = 0;
        if (i == LOOKS) {
            ml_error_set(error, "%s: it works on %s still", nodes->list[node].url, query_id);
            status = ML_ENV_SYSTEM;
            break;
        }
        status = ml_click_number(nodes, node, sql.text, &count, error);
        quiet = count == 0 ? quiet + 1 : 0;
        (void)nanosleep(&pause, NULL);
    }
    ml_click_sql_fini(&sql);
    return status;
}

enum ml_status ml_click_delete(
    struct ml_click_nodes *nodes,
    size_t node,
    const char *table,
    const char *where,
    struct ml_error_message *error
) {
    struct ml_click_sql sql = {.text = NULL};
    struct ml_click_sql left = {.text = NULL};
    ml_click_sql_printf(&sql, "ALTER TABLE %s DELETE WHERE ", table);
    ml_click_sql_put(&sql, where);
    ml_click_sql_printf(&left, "SELECT count() FROM %s WHERE ", table);
    ml_click_sql_put(&left, where);
    const enum ml_status status =
        sql.is_failed || left.is_failed
            ? ML_ENV_MEMORY
            : ml_click_change(nodes, node, sql.text, left.text, "it deletes still", error);
    ml_click_sql_fini(&sql);
    ml_click_sql_fini(&left);
    return status;
}

/* How many rows of a batch a table has: all or none. */
static enum ml_status look(
    struct ml_click_nodes *nodes,
    size_t node,
    const struct ml_click_batch *batch,
    bool is_samples,
    bool *out_is_there,
    struct ml_error_message *error
) {
    const char *table = is_samples ? "samples_local" : "dumps_local";
    const uint64_t wanted = is_samples ? batch->samples : batch->dumps;
    char query_id[ML_CLICK_QUERY_ID_BYTES];
    struct ml_click_sql sql = {.text = NULL};
    uint64_t count = 0;
    ml_click_query_id(batch, table, query_id);
    ml_click_sql_printf(
        &sql, "SELECT count() FROM %s WHERE batch = %" PRIu64, table, batch->number
    );
    ml_click_sql_put(&sql, " AND kept = ");
    ml_click_sql_day(&sql, batch->kept);
    enum ml_status status = sql.is_failed ? ML_ENV_MEMORY : ML_OK;
    if (status == ML_OK) {
        status = ml_click_wait_gone(nodes, node, query_id, error);
    }
    if (status == ML_OK) {
        status = ml_click_number(nodes, node, sql.text, &count, error);
    }
    ml_click_sql_fini(&sql);
    if (status == ML_OK && count != 0 && count != wanted) {
        ml_error_set(
            error,
            "%s: of batch %" PRIu64 " %s has %" PRIu64 " rows, not %" PRIu64
            ": drop the database and fill it again by --rebuild",
            nodes->list[node].url,
            batch->number,
            table,
            count,
            wanted
        );
        return ML_ENV_SYSTEM;
    }
    *out_is_there = count != 0;
    return status;
}

static enum ml_status settle_dumps(
    struct ml_click_store *store,
    size_t node,
    const struct ml_click_batch *batch,
    struct ml_error_message *error
) {
    char query_id[ML_CLICK_QUERY_ID_BYTES];
    bool is_there = false;
    enum ml_status status = look(&store->nodes, node, batch, false, &is_there, error);
    if (status == ML_OK && !is_there) {
        ml_click_query_id(batch, "dumps_local", query_id);
        status = ml_click_insert(
            &store->nodes, node, "dumps_local", query_id, batch->body, batch->body_bytes, error
        );
    }
    return status;
}

static enum ml_status settle_one(
    struct ml_click_store *store, const struct ml_click_batch *batch, struct ml_error_message *error
) {
    size_t node = 0;
    while (node < store->nodes.count && strcmp(store->nodes.list[node].url, batch->url) != 0) {
        node++;
    }
    if (node == store->nodes.count) {
        ml_error_set(
            error, "reports were on their way to %s: name it in --store once more", batch->url
        );
        return ML_ENV_SYSTEM;
    }
    bool are_there = batch->samples_are_there;
    enum ml_status status = ML_OK;
    if (!are_there && batch->samples > 0) {
        status = look(&store->nodes, node, batch, true, &are_there, error);
        if (status == ML_OK && are_there) {
            status = ml_click_batches_samples_there(&store->batches, batch->number);
        }
    }
    if (status == ML_OK && are_there) {
        status = settle_dumps(store, node, batch, error);
    }
    return status == ML_OK ? ml_click_batches_end(&store->batches, batch->number) : status;
}

enum ml_status ml_click_settle(struct ml_click_store *store, struct ml_error_message *error) {
    struct ml_click_batch batch;
    enum ml_status status = ML_OK;
    while (status == ML_OK && ml_click_batches_first(&store->batches, &batch)) {
        status = batch.body != NULL ? settle_one(store, &batch, error) : ML_ENV_MEMORY;
        free(batch.body);
    }
    if (status != ML_OK) {
        ml_error_set(error, "the list of batches cannot be written");
    }
    return status;
}
