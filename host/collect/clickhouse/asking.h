/* One that asks ClickHouse, as questions.c and statement.c share it. Room: host (private). Context:
 * a thread of its own. */
#ifndef MEMLOG_HOST_COLLECT_CLICKHOUSE_ASKING_H
#define MEMLOG_HOST_COLLECT_CLICKHOUSE_ASKING_H

#include "host/collect/clickhouse/dictionary.h"
#include "host/collect/clickhouse/internal.h"
#include "host/collect/clickhouse/table.h"

/* Rows of one kind: a table that a query gave, or frames of a stack. */
struct ml_click_answered {
    struct ml_store_rows head;
    struct ml_click_asking *asking;
    struct ml_click_table table;
    int64_t stacks[MEMLOG_FLEET_MAX_FRAMES_IN_STACK]; /* the outermost last */
    size_t stacks_left;
    int64_t parent; /* of a node */
    struct ml_click_frame frame;
    int64_t one; /* of hosts of names */
};

/* Connections of its own, so that another thread than the store's may ask. */
struct ml_click_asking {
    struct ml_asking head;
    struct ml_click_nodes nodes;
    atomic_bool *interrupted;          /* the nodes'; any thread may set it */
    struct ml_click_batches batches;   /* of the weeks whose sums are made */
    char *forms[ML_SQL_COUNT];         /* statements with names for values */
    char *renamed_forms[ML_SQL_COUNT]; /* of stacks that got names later; NULL: as the others */
    struct ml_click_answered rows[ML_SQL_COUNT];
    struct ml_click_dictionary dictionary;
    int64_t last_turn;         /* of all teams; the dictionary is as of that */
    struct ml_click_view view; /* of the question's team */
    struct ml_id_map hosts;    /* of names */
    int64_t weeks[ML_CLICK_WEEKS_MAX];
    size_t weeks_count;
    const char *missing[ML_CLICK_NODES_MAX + 1]; /* NULL behind the last */
    size_t missing_count;
    size_t node; /* the one that is asked, and asks the others */
    const struct ml_question *question;
    struct ml_ask_times times;
    enum ml_status status;
    struct ml_error_message error; /* of the first that went wrong */
};

/* statement.c: the statement `which` with its values in their places. `ids` are of a list. */
void ml_click_statement(
    const struct ml_click_asking *asking,
    enum ml_ask which,
    struct ml_ask_bound bound,
    const int64_t *ids,
    size_t ids_count,
    struct ml_click_sql *sql
);

#endif
