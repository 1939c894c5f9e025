#include "host/collect/clickhouse/batches.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS self (owner INTEGER NOT NULL);"
    "CREATE TABLE IF NOT EXISTS batches (id INTEGER PRIMARY KEY AUTOINCREMENT, url TEXT NOT NULL,"
    " kept INTEGER NOT NULL, samples INTEGER NOT NULL, dumps INTEGER NOT NULL,"
    " samples_are_there INTEGER NOT NULL, body BLOB NOT NULL);"
    "CREATE TABLE IF NOT EXISTS weeks (kept INTEGER PRIMARY KEY);"
    "CREATE TABLE IF NOT EXISTS swept (is_due INTEGER NOT NULL, at_s INTEGER NOT NULL);"
    "INSERT INTO swept SELECT 0, 0 WHERE NOT EXISTS (SELECT 1 FROM swept);";

/* Run one with a number. */
static enum ml_status run(const struct ml_click_batches *batches, const char *sql, int64_t one) {
    struct ml_error_message unused = {.text = ""};
    sqlite3_stmt *statement = ml_db_prepare(&batches->db, sql, &unused);
    if (statement == NULL) {
        return ML_ENV_SYSTEM;
    }
    ml_db_bind_number(statement, ":one", one);
    const enum ml_status status = ml_db_run(statement);
    (void)sqlite3_finalize(statement);
    return status;
}

static int64_t number(const struct ml_click_batches *batches, const char *sql) {
    struct ml_error_message unused = {.text = ""};
    sqlite3_stmt *statement = ml_db_prepare(&batches->db, sql, &unused);
    if (statement == NULL) {
        return 0;
    }
    const int64_t found = ml_db_number(statement, 0);
    (void)sqlite3_finalize(statement);
    return found;
}

enum ml_status ml_click_batches_open(
    struct ml_click_batches *batches, const char *path, struct ml_error_message *error
) {
    enum { OWNER_BITS = 31 };
    uint32_t chance = 0;
    *batches = (struct ml_click_batches){.owner = 0};
    const enum ml_status status = ml_db_open(&batches->db, path, schema, error);
    if (status != ML_OK) {
        return status;
    }
    if (getrandom(&chance, sizeof(chance), 0) != (ssize_t)sizeof(chance) ||
        run(batches,
            "INSERT INTO self SELECT :one WHERE NOT EXISTS (SELECT 1 FROM self)",
            (int64_t)(chance >> (32 - OWNER_BITS)) + 1) != ML_OK) {
        ml_error_set(error, "%s: %s", path, sqlite3_errmsg(batches->db.handle));
        ml_click_batches_close(batches);
        return ML_ENV_SYSTEM;
    }
    batches->owner = number(batches, "SELECT owner FROM self");
    return ML_OK;
}

void ml_click_batches_close(struct ml_click_batches *batches) {
    ml_db_close(&batches->db);
}

/* Numbers of two collectors are apart. */
static uint64_t number_of(const struct ml_click_batches *batches, int64_t id) {
    enum { ID_BITS = 32 };
    return ((uint64_t)batches->owner << ID_BITS) + (uint64_t)id;
}

static int64_t id_of(uint64_t batch) {
    return (int64_t)(batch & UINT32_MAX);
}

uint64_t ml_click_batches_next(const struct ml_click_batches *batches) {
    return number_of(
        batches, 1 + number(batches, "SELECT seq FROM sqlite_sequence WHERE name = 'batches'")
    );
}

enum ml_status
ml_click_batches_add(const struct ml_click_batches *batches, const struct ml_click_batch *batch) {
    static const char sql[] =
        "INSERT INTO batches (id, url, kept, samples, dumps, samples_are_there,"
        " body) VALUES (:id, :url, :kept, :samples, :dumps, :there, :body)";
    struct ml_error_message unused = {.text = ""};
    sqlite3_stmt *statement = ml_db_prepare(&batches->db, sql, &unused);
    if (statement == NULL || batch->body_bytes > INT32_MAX ||
        ml_db_do(&batches->db, "BEGIN IMMEDIATE") != ML_OK) {
        (void)sqlite3_finalize(statement);
        return ML_ENV_SYSTEM;
    }
    ml_db_bind_number(statement, ":id", id_of(batch->number));
    ml_db_bind_text(statement, ":url", batch->url);
    ml_db_bind_number(statement, ":kept", batch->kept);
    ml_db_bind_number(statement, ":samples", (int64_t)batch->samples);
    ml_db_bind_number(statement, ":dumps", (int64_t)batch->dumps);
    ml_db_bind_number(statement, ":there", batch->samples_are_there);
    ml_db_bind_bytes(statement, ":body", batch->body, (int)batch->body_bytes);
    enum ml_status status = ml_db_run(statement);
    (void)sqlite3_finalize(statement);
    if (status == ML_OK) {
        status = ml_click_weeks_remove(batches, batch->kept);
    }
    const enum ml_status ended = ml_db_do(&batches->db, status == ML_OK ? "COMMIT" : "ROLLBACK");
    return status != ML_OK ? status : ended;
}

enum ml_status
ml_click_batches_samples_there(const struct ml_click_batches *batches, uint64_t batch) {
    return run(batches, "UPDATE batches SET samples_are_there = 1 WHERE id = :one", id_of(batch));
}

enum ml_status ml_click_batches_end(const struct ml_click_batches *batches, uint64_t batch) {
    return run(batches, "DELETE FROM batches WHERE id = :one", id_of(batch));
}

bool ml_click_batches_first(
    const struct ml_click_batches *batches, struct ml_click_batch *out_batch
) {
    struct ml_error_message unused = {.text = ""};
    sqlite3_stmt *statement = ml_db_prepare(
        &batches->db,
        "SELECT id, url, kept, samples, dumps, samples_are_there, body FROM batches ORDER BY id",
        &unused
    );
    const bool is_there = statement != NULL && sqlite3_step(statement) == SQLITE_ROW;
    *out_batch = (struct ml_click_batch){.number = 0};
    if (is_there) {
        out_batch->number = number_of(batches, sqlite3_column_int64(statement, 0));
        (void)snprintf(
            out_batch->url,
            sizeof(out_batch->url),
            "%s",
            (const char *)sqlite3_column_text(statement, 1)
        );
        out_batch->kept = sqlite3_column_int64(statement, 2);
        out_batch->samples = (uint64_t)sqlite3_column_int64(statement, 3);
        out_batch->dumps = (uint64_t)sqlite3_column_int64(statement, 4);
        out_batch->samples_are_there = sqlite3_column_int64(statement, 5) != 0;
        out_batch->body_bytes = (size_t)sqlite3_column_bytes(statement, 6);
        out_batch->body = malloc(out_batch->body_bytes + 1);
        if (out_batch->body != NULL && out_batch->body_bytes > 0) {
            memcpy(out_batch->body, sqlite3_column_blob(statement, 6), out_batch->body_bytes);
        }
    }
    (void)sqlite3_finalize(statement);
    return is_there;
}

/* ---- what nothing has any more */

enum ml_status ml_click_batches_sweep_is_due(const struct ml_click_batches *batches) {
    return run(batches, "UPDATE swept SET is_due = :one WHERE is_due <> :one", 1);
}

bool ml_click_batches_is_sweep_due(const struct ml_click_batches *batches, int64_t before_s) {
    return number(batches, "SELECT at_s FROM swept WHERE is_due") <= before_s &&
           number(batches, "SELECT is_due FROM swept") != 0;
}

enum ml_status ml_click_batches_swept(const struct ml_click_batches *batches, int64_t now_s) {
    return run(batches, "UPDATE swept SET is_due = 0, at_s = :one", now_s);
}

/* ---- weeks */

enum ml_status ml_click_weeks_put(const struct ml_click_batches *batches, int64_t kept) {
    return run(batches, "INSERT OR IGNORE INTO weeks VALUES (:one)", kept);
}

enum ml_status ml_click_weeks_remove(const struct ml_click_batches *batches, int64_t kept) {
    return run(batches, "DELETE FROM weeks WHERE kept = :one", kept);
}

size_t
ml_click_weeks(const struct ml_click_batches *batches, int64_t out_weeks[ML_CLICK_WEEKS_MAX]) {
    struct ml_error_message unused = {.text = ""};
    sqlite3_stmt *statement =
        ml_db_prepare(&batches->db, "SELECT kept FROM weeks ORDER BY kept", &unused);
    size_t count = 0;
    while (statement != NULL && count < ML_CLICK_WEEKS_MAX && sqlite3_step(statement) == SQLITE_ROW
    ) {
        out_weeks[count++] = sqlite3_column_int64(statement, 0);
    }
    (void)sqlite3_finalize(statement);
    return count;
}
