/* SQLite as the collector uses it. Room: host. Context: one thread a database.
 *
 * One rule: what was committed is on the disk. Values are bound, never written into SQL. */
#ifndef MEMLOG_HOST_COLLECT_DB_H
#define MEMLOG_HOST_COLLECT_DB_H

#include <stdbool.h>
#include <stdint.h>

#include <sqlite3.h>

#include "base/error_message.h"
#include "ipc/wire/ml_status.h"

struct ml_db {
    sqlite3 *handle;
};

/* Open it, made if it is missing for its user alone, and run the schema, which says "IF NOT
 * EXISTS". Errors: ML_ENV_SYSTEM, with an error message. Owner: ml_db_close. */
ML_NODISCARD enum ml_status
ml_db_open(struct ml_db *db, const char *path, const char *schema, struct ml_error_message *error);
void ml_db_close(struct ml_db *db);

/* A statement of it; NULL with an error message. Owner: sqlite3_finalize. */
sqlite3_stmt *
ml_db_prepare(const struct ml_db *db, const char *sql, struct ml_error_message *error);

/* Bind to the parameter of that name (":name"); one that the statement does not have is passed
 * over. Texts and bytes are borrowed until the statement is reset. */
void ml_db_bind_text(sqlite3_stmt *statement, const char *name, const char *text);
void ml_db_bind_number(sqlite3_stmt *statement, const char *name, int64_t number);
void ml_db_bind_bytes(sqlite3_stmt *statement, const char *name, const void *bytes, int count);

/* Run it to its end, and reset it. Errors: ML_ENV_SYSTEM. */
ML_NODISCARD enum ml_status ml_db_run(sqlite3_stmt *statement);

/* The first column of the first row, or `missing`; reset. */
int64_t ml_db_number(sqlite3_stmt *statement, int64_t missing);

/* BEGIN IMMEDIATE, COMMIT, ROLLBACK and the like. Errors: ML_ENV_SYSTEM. */
ML_NODISCARD enum ml_status ml_db_do(const struct ml_db *db, const char *sql);

#endif
