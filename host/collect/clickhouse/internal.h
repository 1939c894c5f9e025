/* What the files of this engine share. Room: host (private). */
#ifndef MEMLOG_HOST_COLLECT_CLICKHOUSE_INTERNAL_H
#define MEMLOG_HOST_COLLECT_CLICKHOUSE_INTERNAL_H

#include <limits.h>

#include "host/collect/clickhouse/batches.h"
#include "host/collect/clickhouse/block.h"
#include "host/collect/clickhouse/dictionary.h"
#include "host/collect/clickhouse/id_map.h"
#include "host/collect/clickhouse/node.h"
#include "host/collect/clickhouse/opening.h"
#include "host/collect/clickhouse/sql.h"
#include "host/collect/engine.h"

extern const char ml_click_schema[];    /* schema.sql */
extern const char ml_click_questions[]; /* questions.sql */
extern const char ml_click_renamed[];   /* renamed.sql */

enum { ML_CLICK_QUERY_ID_BYTES = 64 };

struct ml_click_store {
    struct ml_store head;
    char *urls, *login_path, *batches_path; /* for what asks */
    struct ml_click_nodes nodes;
    struct ml_click_batches batches;
    struct ml_id_map sent; /* stacks that are at all nodes for sure */
    int names_lock_fd;     /* names.c's; -1: none */
};

/* ---- prepare.c */

/* All nodes have all tables, and are those that their cluster of that name knows. Errors:
 * ML_ENV_SYSTEM: one is away; ML_ENV_REFUSED: they are set up in another way; with an error
 * message. */
ML_NODISCARD enum ml_status
ml_click_prepare(struct ml_click_store *store, struct ml_error_message *error);

/* ---- settle.c */

/* Wait until the server does not work on that query any more. Errors: ML_ENV_SYSTEM, with an error
 * message. */
ML_NODISCARD enum ml_status ml_click_wait_gone(
    struct ml_click_nodes *nodes, size_t node, const char *query_id, struct ml_error_message *error
);

/* Find out what became of each insert that is on its way, and bring it to its end. Afterwards a
 * report is there with all of its rows, or with none. Errors: likewise. */
ML_NODISCARD enum ml_status
ml_click_settle(struct ml_click_store *store, struct ml_error_message *error);

/* Delete rows of a table, and wait until they are gone: servers delete behind one's back. Errors:
 * likewise. */
ML_NODISCARD enum ml_status ml_click_delete(
    struct ml_click_nodes *nodes,
    size_t node,
    const char *table,
    const char *where,
    struct ml_error_message *error
);

void ml_click_query_id(
    const struct ml_click_batch *batch, const char *table, char out_id[ML_CLICK_QUERY_ID_BYTES]
);

/* ---- rows.c */

/* A report's ids, by its own numbers; number 0: none. Owner: ml_click_ids_fini. */
struct ml_click_ids {
    int64_t *frames, *stacks, *names;
};
bool ml_click_ids_of(const struct ml_store_item *item, struct ml_click_ids *out_ids);
void ml_click_ids_fini(struct ml_click_ids *ids);

/* The blocks of some reports. Owner: ml_click_rows_fini. */
struct ml_click_rows {
    struct ml_click_block frames, stacks, samples, dumps;
    struct ml_id_map stacks_put, frames_put; /* in the blocks already */
};
void ml_click_rows_init(struct ml_click_rows *rows);
void ml_click_rows_fini(struct ml_click_rows *rows);

/* Add frames and stacks that `sent` does not have. False: memory ran out. */
bool ml_click_rows_of_stacks(
    struct ml_click_rows *rows,
    const struct ml_store_item *item,
    const struct ml_click_ids *ids,
    const struct ml_id_map *sent
);
/* Add samples and dump. */
bool ml_click_rows_of_report(
    struct ml_click_rows *rows,
    const struct ml_store_item *item,
    const struct ml_click_ids *ids,
    uint64_t batch
);

/* The partition of a report. */
int64_t ml_click_kept(const struct ml_store_item *item);

/* ---- store.c */

/* A block to every node, which may come again: its rows say the same then. Of none nothing is sent.
 * Errors: ML_ENV_SYSTEM, with an error message; ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status ml_click_send_to_all(
    struct ml_click_store *store,
    const char *table,
    const struct ml_click_block *block,
    struct ml_error_message *error
);

/* ---- names.c */

enum ml_status ml_click_nameless(
    struct ml_store *head,
    const char *build_id,
    struct ml_nameless *out_nameless,
    struct ml_error_message *error
);
enum ml_status ml_click_name(
    struct ml_store *head,
    const struct ml_nameless *nameless,
    const char *const *names,
    const struct ml_team_keys *keys,
    struct ml_named *out_named,
    struct ml_error_message *error
);

/* ---- renaming.c */

/* Rows of `renamed`, for all nodes: what stacks with samples are called by the functions that their
 * frames got up to a turn. Owner: ml_click_renaming_fini. */
struct ml_click_renaming {
    struct ml_click_store *store;
    struct ml_click_view view;
    const uint8_t *key; /* the team's */
    const struct ml_id_map
        *fresh;       /* frames that got theirs by this turn; NULL: it is not counted */
    uint64_t changed; /* stacks, and callers of some, with one of these frames */
    struct ml_click_dictionary dictionary;
    struct ml_id_map called; /* first: the id of a stack's names; second: bits of why */
};
void ml_click_renaming_fini(struct ml_click_renaming *renaming);

/* Send rows of these stacks of the team. Errors: ML_ENV_SYSTEM, with an error message;
 * ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status ml_click_rename(
    struct ml_click_renaming *renaming,
    const int64_t *ids,
    size_t count,
    struct ml_error_message *error
);

/* Likewise of the stacks and frames that have just been sent, by each turn that gave one of these
 * frames a function, be it whole or not yet. So no stack is left out that comes in the middle of
 * one: either it is there when the turn looks for stacks, or its functions are when this does. */
ML_NODISCARD enum ml_status ml_click_rename_sent(
    struct ml_click_store *store,
    const char *team,
    const uint8_t *key,
    const struct ml_click_rows *rows,
    struct ml_error_message *error
);

/* ---- questions.c */

struct ml_asking *ml_click_ask_open(const struct ml_store *store, struct ml_error_message *error);

/* ---- sweep.c */

/* A step, once an hour and only where reports have gone; all batches are settled. `out_more`: there
 * is more to do. Errors: ML_ENV_SYSTEM, ML_ENV_MEMORY, with an error message. */
ML_NODISCARD enum ml_status
ml_click_sweep(struct ml_click_store *store, bool *out_more, struct ml_error_message *error);

/* ---- upkeep.c */

enum ml_status ml_click_upkeep(
    struct ml_store *head,
    uint64_t before_ms,
    struct ml_store_kept *out_kept,
    struct ml_error_message *error
);

#endif
