/* The collector's store on servers of ClickHouse, an engine of host/collect/engine.h. Room: host.
 * Context: the loop's thread, which waits for the servers.
 *
 * One rule: what became of an insert is asked for, never assumed
 * (host/collect/clickhouse/batches.h). */
#ifndef MEMLOG_HOST_COLLECT_CLICKHOUSE_OPENING_H
#define MEMLOG_HOST_COLLECT_CLICKHOUSE_OPENING_H

#include "base/error_message.h"
#include "host/collect/store.h"

/* Borrowed. */
struct ml_click_place {
    const char *urls;         /* http://HOST:PORT/DATABASE, with commas between them */
    const char *login_path;   /* a file with USER PASSWORD; NULL: none */
    const char *batches_path; /* a file of this collector's alone: what is on its way there */
};

/* Servers that are away are no error: reports wait for them. Errors: ML_ENV_SYSTEM; ML_ENV_MISSING:
 * a word is wrong; ML_ENV_REFUSED: the servers are set up in another way; ML_ENV_MEMORY; with an
 * error message. Owner: ml_store_close. */
ML_NODISCARD enum ml_status ml_click_store_open(
    const struct ml_click_place *place, struct ml_store **out_store, struct ml_error_message *error
);

#endif
