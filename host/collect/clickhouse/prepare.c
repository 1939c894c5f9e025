#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/collect/clickhouse/internal.h"

/* ---- tables */

/* :db; and :reading_T, what all nodes' rows of T_local are read by: Distributed over the cluster
 * that is called as the database. */
static bool value(const void *context, const char *name, struct ml_click_sql *sql) {
    static const char reading[] = "reading_";
    const struct ml_click_nodes *nodes = context;
    const char *db = nodes->database;
    if (strcmp(name, "db") == 0) {
        ml_click_sql_put(sql, db);
        return true;
    }
    if (strncmp(name, reading, sizeof(reading) - 1) != 0) {
        return false;
    }
    const char *table = name + sizeof(reading) - 1;
    if (nodes->count > 1) {
        ml_click_sql_printf(sql, "Distributed(%s, %s, %s_local)", db, db, table);
    } else {
        ml_click_sql_printf(sql, "Merge(%s, '^%s_local$')", db, table);
    }
    return true;
}

/* Run the statements of the schema, which end with an empty line. */
static enum ml_status
make_tables(struct ml_click_nodes *nodes, size_t node, struct ml_error_message *error) {
    enum ml_status status = ML_OK;
    for (const char *at = strstr(ml_click_schema, "\n\n"); status == ML_OK && at != NULL;) {
        at += 2;
        const char *end = strstr(at, "\n\n");
        char *form = end != NULL ? strndup(at, (size_t)(end - at)) : strdup(at);
        struct ml_click_sql sql = {.text = NULL};
        if (form != NULL) {
            ml_click_sql_fill(&sql, form, value, nodes);
        }
        status = form == NULL || sql.is_failed ? ML_ENV_MEMORY
                                               : ml_click_do(nodes, node, sql.text, error);
        ml_click_sql_fini(&sql);
        free(form);
        at = end;
    }
    return status;
}

/* ---- tables of an older memlog */

/* Its reports do not say what they told: that is seen by their figures. A program that has live
 * blocks has a peak. */
#define TOLD_OF_OLD                                                                                \
    "toUInt8(1 + if(peak > 0 OR (live = 0 AND total = 0), 2, 0)"                                   \
    " + if(total > 0 OR (live = 0 AND peak = 0), 4, 0)"                                            \
    " + if(peak > 0 OR complete != 0 OR covered != 0, 8, 0))"

struct added {
    const char *column, *type;
};

static enum ml_status add_column(
    struct ml_click_nodes *nodes,
    size_t node,
    const char *table,
    struct added added,
    struct ml_error_message *error
) {
    struct ml_click_sql sql = {.text = NULL};
    uint64_t count = 0;
    ml_click_sql_printf(
        &sql,
        "SELECT count() FROM system.columns WHERE database = '%s' AND table = '%s'"
        " AND name = '%s'",
        nodes->database,
        table,
        added.column
    );
    enum ml_status status =
        sql.is_failed ? ML_ENV_MEMORY : ml_click_number(nodes, node, sql.text, &count, error);
    ml_click_sql_fini(&sql);
    ml_click_sql_printf(
        &sql, "ALTER TABLE %s.%s ADD COLUMN %s %s", nodes->database, table, added.column, added.type
    );
    if (status == ML_OK && count == 0) {
        status = sql.is_failed ? ML_ENV_MEMORY : ml_click_do(nodes, node, sql.text, error);
    }
    ml_click_sql_fini(&sql);
    return status;
}

/* A report that was on its way from an older memlog may lack it later, too. */
static enum ml_status
tell_old(struct ml_click_nodes *nodes, size_t node, struct ml_error_message *error) {
    struct ml_click_sql sql = {.text = NULL};
    struct ml_click_sql left = {.text = NULL};
    ml_click_sql_printf(
        &sql,
        "ALTER TABLE %s.dumps_local UPDATE told = " TOLD_OF_OLD " WHERE told = 0",
        nodes->database
    );
    ml_click_sql_printf(
        &left, "SELECT count() FROM %s.dumps_local WHERE told = 0", nodes->database
    );
    const enum ml_status status =
        sql.is_failed || left.is_failed
            ? ML_ENV_MEMORY
            : ml_click_change(
                  nodes, node, sql.text, left.text, "it renews its table of dumps", error
              );
    ml_click_sql_fini(&sql);
    ml_click_sql_fini(&left);
    return status;
}

static enum ml_status
renew_tables(struct ml_click_nodes *nodes, size_t node, struct ml_error_message *error) {
    static const struct added columns[] = {
        {"told", "UInt8"}, {"promised", "UInt32"}, {"cost", "UInt32"}};
    static const char *const tables[] = {"dumps_local", "dumps"};
    enum { COLUMNS = sizeof(columns) / sizeof(columns[0]), TABLES = 2 };
    enum ml_status status = ML_OK;
    for (size_t i = 0; status == ML_OK && i < (size_t)COLUMNS * TABLES; i++) {
        status = add_column(nodes, node, tables[i % TABLES], columns[i / TABLES], error);
    }
    return status == ML_OK ? tell_old(nodes, node, error) : status;
}

/* ---- whose it is */

static enum ml_status
claim(struct ml_click_store *store, size_t node, struct ml_error_message *error) {
    struct ml_click_nodes *nodes = &store->nodes;
    struct ml_click_sql sql = {.text = NULL};
    uint64_t others = 0;
    uint64_t known = 0;
    ml_click_sql_printf(
        &sql, "SELECT count() FROM nodes_local WHERE owner != %" PRId64, store->batches.owner
    );
    enum ml_status status =
        sql.is_failed ? ML_ENV_MEMORY : ml_click_number(nodes, node, sql.text, &others, error);
    ml_click_sql_fini(&sql);
    if (status == ML_OK && others > 0) {
        ml_error_set(
            error,
            "%s: database %s is filled by a collector with another spool; drop it, or name another",
            nodes->list[node].url,
            nodes->database
        );
        return ML_ENV_REFUSED;
    }
    ml_click_sql_put(&sql, "SELECT count() FROM nodes_local WHERE url = ");
    ml_click_sql_text(&sql, nodes->list[node].url);
    if (status == ML_OK) {
        status =
            sql.is_failed ? ML_ENV_MEMORY : ml_click_number(nodes, node, sql.text, &known, error);
    }
    ml_click_sql_fini(&sql);
    if (status != ML_OK || known > 0) {
        return status;
    }
    ml_click_sql_put(&sql, "INSERT INTO nodes_local (url, owner) VALUES (");
    ml_click_sql_text(&sql, nodes->list[node].url);
    ml_click_sql_printf(&sql, ", %" PRId64 ")", store->batches.owner);
    status = sql.is_failed ? ML_ENV_MEMORY
                           : ml_click_do(nodes, node, "TRUNCATE TABLE nodes_local", error);
    if (status == ML_OK) {
        status = ml_click_do(nodes, node, sql.text, error);
    }
    ml_click_sql_fini(&sql);
    return status;
}

/* ---- whether they are one cluster */

static enum ml_status
check_cluster(struct ml_click_nodes *nodes, size_t node, struct ml_error_message *error) {
    struct ml_click_sql sql = {.text = NULL};
    uint64_t shards = 0;
    ml_click_sql_printf(
        &sql,
        "SELECT uniqExact(shard_num) FROM system.clusters WHERE cluster = '%s'",
        nodes->database
    );
    const enum ml_status status =
        sql.is_failed ? ML_ENV_MEMORY : ml_click_number(nodes, node, sql.text, &shards, error);
    ml_click_sql_fini(&sql);
    if (status == ML_OK && shards != nodes->count) {
        ml_error_set(
            error,
            "%s: its cluster '%s' has %" PRIu64
            " shards, and --store names %zu nodes: list them in "
            "<remote_servers><%s> of its configuration, each a shard",
            nodes->list[node].url,
            nodes->database,
            shards,
            nodes->count,
            nodes->database
        );
        return ML_ENV_REFUSED;
    }
    return status;
}

/* Each node sees all of them by its cluster. */
static enum ml_status
check_reading(struct ml_click_nodes *nodes, size_t node, struct ml_error_message *error) {
    uint64_t seen = 0;
    const enum ml_status status =
        ml_click_number(nodes, node, "SELECT uniqExact(url) FROM nodes", &seen, error);
    if (status == ML_OK && seen != nodes->count) {
        ml_error_set(
            error,
            "%s: its cluster '%s' is of other servers than --store names",
            nodes->list[node].url,
            nodes->database
        );
        return ML_ENV_REFUSED;
    }
    return status;
}

enum ml_status ml_click_prepare(struct ml_click_store *store, struct ml_error_message *error) {
    struct ml_click_nodes *nodes = &store->nodes;
    enum ml_status status = ML_OK;
    bool is_new = false;
    for (size_t i = 0; status == ML_OK && i < nodes->count; i++) {
        if (nodes->list[i].is_prepared) {
            continue;
        }
        is_new = true;
        if (nodes->count > 1) {
            status = check_cluster(nodes, i, error);
        }
        if (status == ML_OK) {
            status = make_tables(nodes, i, error);
        }
        if (status == ML_OK) {
            status = renew_tables(nodes, i, error);
        }
        nodes->list[i].is_prepared = status == ML_OK;
        if (status == ML_OK) {
            status = claim(store, i, error);
        }
        nodes->list[i].is_prepared = status == ML_OK;
    }
    for (size_t i = 0; is_new && status == ML_OK && i < nodes->count; i++) {
        status = check_reading(nodes, i, error);
        nodes->list[i].is_prepared = status == ML_OK;
    }
    return status;
}
