/* What the files of the embedded engine share. Room: host (private). */
#ifndef MEMLOG_HOST_COLLECT_SQLITE_INTERNAL_H
#define MEMLOG_HOST_COLLECT_SQLITE_INTERNAL_H

struct ml_store;

extern const char ml_sqlite_schema[];    /* schema.sql */
extern const char ml_sqlite_questions[]; /* questions.sql */

const char *ml_sqlite_store_path(const struct ml_store *store);

#endif
