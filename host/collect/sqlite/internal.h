/* What the files of the embedded engine share. Room: host (private). */
#ifndef MEMLOG_HOST_COLLECT_SQLITE_INTERNAL_H
#define MEMLOG_HOST_COLLECT_SQLITE_INTERNAL_H

#include "host/collect/store.h"

struct ml_db;

extern const char ml_sqlite_schema[];    /* schema.sql */
extern const char ml_sqlite_questions[]; /* questions.sql */

const char *ml_sqlite_store_path(const struct ml_store *store);
const struct ml_db *ml_sqlite_store_db(const struct ml_store *store);

/* names.c */
ML_NODISCARD enum ml_status ml_sqlite_store_nameless(
    struct ml_store *store,
    const char *build_id,
    struct ml_nameless *out_nameless,
    struct ml_error_message *error
);
ML_NODISCARD enum ml_status ml_sqlite_store_name(
    struct ml_store *store,
    const struct ml_nameless *nameless,
    const char *const *names,
    const struct ml_team_keys *keys,
    struct ml_named *out_named,
    struct ml_error_message *error
);

#endif
