#include "host/collect/db.h"

#include <stddef.h>
#include <sys/stat.h>

enum { BUSY_MS = 10000 };

enum ml_status
ml_db_open(struct ml_db *db, const char *path, const char *schema, struct ml_error_message *error) {
    const mode_t before = umask(S_IRWXG | S_IRWXO);
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX;
    db->handle = NULL;
    const bool done =
        sqlite3_open_v2(path, &db->handle, flags, NULL) == SQLITE_OK &&
        sqlite3_busy_timeout(db->handle, BUSY_MS) == SQLITE_OK &&
        sqlite3_exec(
            db->handle,
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-32768;",
            NULL,
            NULL,
            NULL
        ) == SQLITE_OK &&
        sqlite3_exec(db->handle, schema, NULL, NULL, NULL) == SQLITE_OK;
    (void)umask(before);
    if (!done) {
        ml_error_set(
            error, "%s", db->handle != NULL ? sqlite3_errmsg(db->handle) : "memory ran out"
        );
        ml_db_close(db);
    }
    return done ? ML_OK : ML_ENV_SYSTEM;
}

void ml_db_close(struct ml_db *db) {
    (void)sqlite3_close_v2(db->handle);
    db->handle = NULL;
}

sqlite3_stmt *
ml_db_prepare(const struct ml_db *db, const char *sql, struct ml_error_message *error) {
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v3(db->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL) !=
        SQLITE_OK) {
        ml_error_set(error, "%s", sqlite3_errmsg(db->handle));
    }
    return statement;
}

void ml_db_bind_text(sqlite3_stmt *statement, const char *name, const char *text) {
    const int number = sqlite3_bind_parameter_index(statement, name);
    if (number > 0) {
        (void)sqlite3_bind_text(statement, number, text, -1, SQLITE_STATIC);
    }
}

void ml_db_bind_number(sqlite3_stmt *statement, const char *name, int64_t number) {
    const int parameter = sqlite3_bind_parameter_index(statement, name);
    if (parameter > 0) {
        (void)sqlite3_bind_int64(statement, parameter, number);
    }
}

void ml_db_bind_bytes(sqlite3_stmt *statement, const char *name, const void *bytes, int count) {
    const int number = sqlite3_bind_parameter_index(statement, name);
    if (number > 0) {
        (void)sqlite3_bind_blob(statement, number, bytes, count, SQLITE_STATIC);
    }
}

enum ml_status ml_db_run(sqlite3_stmt *statement) {
    int state = SQLITE_ROW;
    while (state == SQLITE_ROW) {
        state = sqlite3_step(statement);
    }
    (void)sqlite3_reset(statement);
    return state == SQLITE_DONE ? ML_OK : ML_ENV_SYSTEM;
}

int64_t ml_db_number(sqlite3_stmt *statement, int64_t missing) {
    const bool is_there =
        sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_type(statement, 0) != SQLITE_NULL;
    const int64_t number = is_there ? sqlite3_column_int64(statement, 0) : missing;
    (void)sqlite3_reset(statement);
    return number;
}

enum ml_status ml_db_do(const struct ml_db *db, const char *sql) {
    return sqlite3_exec(db->handle, sql, NULL, NULL, NULL) == SQLITE_OK ? ML_OK : ML_ENV_SYSTEM;
}
