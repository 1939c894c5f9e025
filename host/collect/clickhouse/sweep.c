/* Takes stacks and frames out of all nodes that no report has any more. Room: host.
 *
 * One rule: a stack goes by its id, from what is there when the nodes are told, and from then on
 * the collector sends it again with the next report that has it. Nothing is added in between: one
 * thread does both. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host/collect/clickhouse/internal.h"

enum { STEP = 4000 /* ids of one statement, which a server bounds at 256 KiB */, EVERY_S = 3600 };

/* Ids of a table's rows that nothing has, as many as fit. */
static enum ml_status find(
    struct ml_click_store *store,
    size_t node,
    const char *table,
    const char *used,
    int64_t *out_ids,
    size_t *out_count,
    struct ml_error_message *error
) {
    struct ml_click_answer answer = {.text = NULL};
    struct ml_click_sql sql = {.text = NULL};
    ml_click_sql_printf(
        &sql, "SELECT DISTINCT id FROM %s WHERE id NOT IN (%s) LIMIT %d", table, used, STEP
    );
    const enum ml_status status =
        sql.is_failed ? ML_ENV_MEMORY
                      : ml_click_ask(&store->nodes, node, sql.text, "", &answer, error);
    ml_click_sql_fini(&sql);
    *out_count = 0;
    for (char *at = answer.text; status == ML_OK && at != NULL && *at != '\0' && *out_count < STEP;
         at = strchr(at, '\n'), at = at != NULL ? at + 1 : NULL) {
        out_ids[(*out_count)++] = strtoll(at, NULL, 10);
    }
    free(answer.text);
    return status;
}

/* A step at one node. `io_is_any`: there was something. */
static enum ml_status sweep_at(
    struct ml_click_store *store,
    size_t node,
    const char *table,
    const char *used,
    bool *io_is_any,
    struct ml_error_message *error
) {
    int64_t *ids = calloc(STEP, sizeof(*ids));
    size_t count = 0;
    struct ml_click_sql where = {.text = NULL};
    enum ml_status status =
        ids != NULL ? find(store, node, table, used, ids, &count, error) : ML_ENV_MEMORY;
    if (status == ML_OK && count > 0) {
        *io_is_any = true;
        ml_id_map_fini(&store->sent);
        ml_click_sql_put(&where, "id IN (");
        ml_click_sql_ids(&where, ids, count);
        ml_click_sql_put(&where, ")");
        status = where.is_failed ? ML_ENV_MEMORY
                                 : ml_click_delete(&store->nodes, node, table, where.text, error);
    }
    ml_click_sql_fini(&where);
    free(ids);
    return status;
}

enum ml_status
ml_click_sweep(struct ml_click_store *store, bool *out_more, struct ml_error_message *error) {
    const int64_t now_s = (int64_t)time(NULL);
    enum ml_status status = ML_OK;
    *out_more = false;
    if (!ml_click_batches_is_sweep_due(&store->batches, now_s - EVERY_S)) {
        return ML_OK;
    }
    for (size_t i = 0; status == ML_OK && i < store->nodes.count; i++) {
        status = sweep_at(store, i, "stacks", "SELECT stack FROM samples", out_more, error);
    }
    /* A frame is nobody's when its stacks have gone. */
    for (size_t i = 0; status == ML_OK && !*out_more && i < store->nodes.count; i++) {
        status =
            sweep_at(store, i, "frames", "SELECT arrayJoin(frames) FROM stacks", out_more, error);
    }
    /* So is what was called later, of either. */
    for (size_t i = 0; status == ML_OK && !*out_more && i < store->nodes.count; i++) {
        status = sweep_at(store, i, "renamed", "SELECT id FROM stacks", out_more, error);
    }
    for (size_t i = 0; status == ML_OK && !*out_more && i < store->nodes.count; i++) {
        status = sweep_at(store, i, "given", "SELECT id FROM frames", out_more, error);
    }
    return status == ML_OK && !*out_more ? ml_click_batches_swept(&store->batches, now_s) : status;
}
