/* A ClickHouse server, spoken to by HTTP. Room: host. Context: one thread, which waits for it.
 *
 * One rule: an insert is sent once. Whether one took place whose answer did not come, the sender
 * asks for (host/collect/clickhouse/batches.h); libcurl's own second try on a connection that was
 * used before would double it, so an insert has a connection of its own. */
#ifndef MEMLOG_HOST_COLLECT_CLICKHOUSE_NODE_H
#define MEMLOG_HOST_COLLECT_CLICKHOUSE_NODE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error_message.h"
#include "host/upload/curl_api.h"
#include "ipc/wire/ml_status.h"

enum { ML_CLICK_NODES_MAX = 64, ML_CLICK_URL_BYTES = 512, ML_CLICK_DATABASE_BYTES = 64 };

struct ml_click_node {
    char url[ML_CLICK_URL_BYTES]; /* scheme, host and port */
    bool is_prepared;             /* its tables are there */
};

/* All that one thread needs to speak to all of them. */
struct ml_click_nodes {
    struct ml_click_node list[ML_CLICK_NODES_MAX];
    size_t count;
    char database[ML_CLICK_DATABASE_BYTES];  /* of letters, digits and '_' */
    char login[2 * ML_CLICK_DATABASE_BYTES]; /* USER:PASSWORD; "": none */
    struct ml_curl_api api;
    CURL *easy;
    char curl_error[CURL_ERROR_SIZE];
    long whole_ms;              /* for an answer; 0: two minutes */
    atomic_bool is_interrupted; /* by any thread: what is asked now is given up */
};

/* URL[,URL...], each http(s)://HOST[:PORT][/DATABASE], and all of one database ("memlog").
 * `login_path`: a file of one line, USER PASSWORD, that others may not read; NULL: none. Errors:
 * ML_ENV_MISSING, with an error message. Owner: ml_click_nodes_fini. */
ML_NODISCARD enum ml_status ml_click_nodes_init(
    struct ml_click_nodes *nodes,
    const char *urls,
    const char *login_path,
    struct ml_error_message *error
);
void ml_click_nodes_fini(struct ml_click_nodes *nodes);

/* What a node said. */
struct ml_click_answer {
    char *text; /* owner: free */
    size_t bytes, capacity;
    bool was_reached; /* it answered, with an error at least */
};

/* Ask: `settings` is "&name=value..." or "". The answer is whole, or it is an error. Errors:
 * ML_ENV_SYSTEM, with an error message that names the node. */
ML_NODISCARD enum ml_status ml_click_ask(
    struct ml_click_nodes *nodes,
    size_t node,
    const char *sql,
    const char *settings,
    struct ml_click_answer *out_answer,
    struct ml_error_message *error
);

/* Likewise, for an answer of nothing or of one number. */
ML_NODISCARD enum ml_status ml_click_do(
    struct ml_click_nodes *nodes, size_t node, const char *sql, struct ml_error_message *error
);
ML_NODISCARD enum ml_status ml_click_number(
    struct ml_click_nodes *nodes,
    size_t node,
    const char *sql,
    uint64_t *out_number,
    struct ml_error_message *error
);

/* Change rows by `change`, which the node takes and does by and by, where `left` counts some; until
 * it counts none. `doing`: what it says where that takes too long. */
ML_NODISCARD enum ml_status ml_click_change(
    struct ml_click_nodes *nodes,
    size_t node,
    const char *change,
    const char *left,
    const char *doing,
    struct ml_error_message *error
);

/* Insert a block (host/collect/clickhouse/block.h) into a table of the database. `query_id` finds
 * it in system.processes. Errors: ML_ENV_SYSTEM, likewise: it took place, or it did not. */
ML_NODISCARD enum ml_status ml_click_insert(
    struct ml_click_nodes *nodes,
    size_t node,
    const char *table,
    const char *query_id,
    const void *bytes,
    size_t count,
    struct ml_error_message *error
);

#endif
