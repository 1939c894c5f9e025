#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/collect/clickhouse/asking.h"

static void fail(struct ml_click_asking *asking, enum ml_status status) {
    if (asking->status == ML_OK) {
        asking->status = status;
    }
}

/* ---- rows of a query */

static bool table_next(struct ml_store_rows *head) {
    return ml_click_table_next(&((struct ml_click_answered *)head)->table);
}

static const char *table_text(const struct ml_store_rows *head, int column) {
    return ml_click_table_text(&((const struct ml_click_answered *)head)->table, column);
}

static int64_t table_id(const struct ml_store_rows *head, int column) {
    return ml_click_table_id(&((const struct ml_click_answered *)head)->table, column);
}

static double table_real(const struct ml_store_rows *head, int column) {
    return ml_click_table_real(&((const struct ml_click_answered *)head)->table, column);
}

static void table_end(struct ml_store_rows *head) {
    ml_click_table_fini(&((struct ml_click_answered *)head)->table);
}

static const struct ml_store_rows_engine table_engine = {
    .next = table_next,
    .text = table_text,
    .id = table_id,
    .real = table_real,
    .end = table_end,
};

/* ---- rows of a stack: its frames, or its innermost one alone */

static bool frames_next(struct ml_store_rows *head) {
    struct ml_click_answered *rows = (struct ml_click_answered *)head;
    if (rows->stacks_left == 0) {
        return false;
    }
    rows->stacks_left--;
    return ml_click_dictionary_find(
        &rows->asking->dictionary, rows->stacks[rows->stacks_left], &rows->parent, &rows->frame
    );
}

/* FUNCTION, MODULE, BUILD, PLACE */
static const char *path_text(const struct ml_store_rows *head, int column) {
    const struct ml_click_frame *frame = &((const struct ml_click_answered *)head)->frame;
    const char *const texts[] = {frame->function, frame->module, frame->build_id};
    return column >= 0 && column < 3 ? texts[column] : "";
}

static double path_real(const struct ml_store_rows *head, int column) {
    (void)column;
    return ((const struct ml_click_answered *)head)->frame.place;
}

/* PARENT, FUNCTION, MODULE, PLACE */
static const char *node_text(const struct ml_store_rows *head, int column) {
    return path_text(head, column - 1);
}

static int64_t frames_id(const struct ml_store_rows *head, int column) {
    (void)column;
    return ((const struct ml_click_answered *)head)->parent;
}

static void frames_end(struct ml_store_rows *head) {
    ((struct ml_click_answered *)head)->stacks_left = 0;
}

static const struct ml_store_rows_engine path_engine = {
    .next = frames_next,
    .text = path_text,
    .id = frames_id,
    .real = path_real,
    .end = frames_end,
};

static const struct ml_store_rows_engine node_engine = {
    .next = frames_next,
    .text = node_text,
    .id = frames_id,
    .real = path_real,
    .end = frames_end,
};

static struct ml_store_rows *
rows_of_stack(struct ml_click_asking *asking, enum ml_ask which, int64_t stack) {
    struct ml_click_answered *rows = &asking->rows[which];
    struct ml_click_frame unused;
    rows->head.engine = which == ML_SQL_PATH ? &path_engine : &node_engine;
    rows->stacks_left = 0;
    for (int64_t at = stack; at != 0 && rows->stacks_left < MEMLOG_FLEET_MAX_FRAMES_IN_STACK;) {
        rows->stacks[rows->stacks_left] = at;
        if (!ml_click_dictionary_find(&asking->dictionary, at, &at, &unused)) {
            break;
        }
        rows->stacks_left++;
        if (which == ML_SQL_NODE) {
            break;
        }
    }
    return &rows->head;
}

/* ---- the row of how many hosts have names */

static bool hosts_next(struct ml_store_rows *head) {
    struct ml_click_answered *rows = (struct ml_click_answered *)head;
    if (rows->stacks_left == 0) {
        return false;
    }
    rows->stacks_left--;
    return true;
}

static int64_t hosts_id(const struct ml_store_rows *head, int column) {
    (void)column;
    return ((const struct ml_click_answered *)head)->one;
}

static const struct ml_store_rows_engine hosts_engine = {
    .next = hosts_next,
    .text = table_text,
    .id = hosts_id,
    .real = table_real,
    .end = frames_end,
};

static struct ml_store_rows *rows_of_hosts(struct ml_click_asking *asking, int64_t names) {
    struct ml_click_answered *rows = &asking->rows[ML_SQL_HOSTS_OF_NAMES];
    const struct ml_id_map_entry *found = ml_id_map_find(&asking->hosts, names);
    rows->head.engine = &hosts_engine;
    rows->stacks_left = 1;
    rows->one = found != NULL ? found->first : 0;
    return &rows->head;
}

/* ---- asking */

/* Where a node is away the others answer, and `missing` says so. Else one that goes meanwhile is an
 * error. */
static const char *settings_of(const struct ml_click_asking *asking) {
    return asking->missing_count > 0
               ? "&connect_timeout_with_failover_ms=1000&skip_unavailable_shards=1"
               : "&connect_timeout_with_failover_ms=1000";
}

/* Ask, into `table`. */
static void
ask(struct ml_click_asking *asking,
    enum ml_ask which,
    struct ml_ask_bound bound,
    const int64_t *ids,
    size_t ids_count,
    struct ml_click_table *out_table) {
    struct ml_click_sql sql = {.text = NULL};
    struct ml_click_answer answer = {.text = NULL};
    if (asking->status == ML_OK) {
        ml_click_statement(asking, which, bound, ids, ids_count, &sql);
        fail(
            asking,
            sql.is_failed ? ML_ENV_MEMORY
                          : ml_click_ask(
                                &asking->nodes,
                                asking->node,
                                sql.text,
                                settings_of(asking),
                                &answer,
                                &asking->error
                            )
        );
        ml_click_sql_fini(&sql);
    }
    ml_click_table_fini(out_table);
    ml_click_table_init(out_table, answer.text);
}

static struct ml_store_rows *
rows_of(struct ml_asking *head, enum ml_ask which, struct ml_ask_bound bound) {
    struct ml_click_asking *asking = (struct ml_click_asking *)head;
    if (which == ML_SQL_PATH || which == ML_SQL_NODE) {
        return rows_of_stack(asking, which, bound.id);
    }
    if (which == ML_SQL_HOSTS_OF_NAMES) {
        return rows_of_hosts(asking, bound.id);
    }
    asking->rows[which].head.engine = &table_engine;
    ask(asking, which, bound, NULL, 0, &asking->rows[which].table);
    return &asking->rows[which].head;
}

static void expect_hosts(struct ml_click_asking *asking, const int64_t *ids, size_t count) {
    const struct ml_ask_bound bound = {.id = 0};
    struct ml_click_table table = {.text = NULL};
    ml_id_map_fini(&asking->hosts);
    ask(asking, ML_SQL_HOSTS_OF_NAMES, bound, ids, count, &table);
    while (asking->status == ML_OK && ml_click_table_next(&table)) {
        const struct ml_id_map_entry entry = {
            .id = ml_click_table_id(&table, 0), .first = ml_click_table_id(&table, 1)};
        fail(asking, ml_id_map_put(&asking->hosts, entry) ? ML_OK : ML_ENV_MEMORY);
    }
    ml_click_table_fini(&table);
}

static void expect(struct ml_asking *head, enum ml_ask which, const int64_t *ids, size_t count) {
    struct ml_click_asking *asking = (struct ml_click_asking *)head;
    if (asking->status != ML_OK) {
        return;
    }
    if (which == ML_SQL_HOSTS_OF_NAMES) {
        expect_hosts(asking, ids, count);
        return;
    }
    fail(
        asking,
        ml_click_dictionary_load(
            &asking->dictionary,
            &asking->nodes,
            asking->node,
            &asking->view,
            ids,
            count,
            &asking->error
        )
    );
}

/* ---- who is there */

/* The lines of all nodes that the first one that answers reaches. Errors: none answers. */
static enum ml_status
who_is_there(struct ml_click_asking *asking, char **out_text, struct ml_error_message *error) {
    for (size_t i = 0; i < asking->nodes.count; i++) {
        struct ml_click_answer answer;
        struct ml_error_message why = {.text = ""};
        if (ml_click_ask(
                &asking->nodes,
                i,
                "SELECT DISTINCT url FROM nodes FORMAT TabSeparatedRaw",
                "&connect_timeout_with_failover_ms=1000&skip_unavailable_shards=1",
                &answer,
                &why
            ) == ML_OK) {
            asking->node = i;
            *out_text = answer.text;
            return ML_OK;
        }
        ml_error_set(error, "%s", why.text);
    }
    return ML_ENV_SYSTEM;
}

static bool has_line(const char *text, const char *line) {
    const size_t count = strlen(line);
    for (const char *at = text; at != NULL && *at != '\0';) {
        if (strncmp(at, line, count) == 0 && (at[count] == '\n' || at[count] == '\0')) {
            return true;
        }
        at = strchr(at, '\n');
        at = at != NULL ? at + 1 : NULL;
    }
    return false;
}

static enum ml_status look_who_is_there(
    struct ml_click_asking *asking, const char **out_missing, struct ml_error_message *error
) {
    char *text = NULL;
    size_t count = 0;
    const enum ml_status status = who_is_there(asking, &text, error);
    for (size_t i = 0; status == ML_OK && i < asking->nodes.count; i++) {
        if (!has_line(text, asking->nodes.list[i].url)) {
            out_missing[count++] = asking->nodes.list[i].url;
        }
    }
    out_missing[count] = NULL;
    free(text);
    return status;
}

/* Up to which turn names that came later are seen: it is the same one for all that is asked. */
static enum ml_status
look_for_turns(struct ml_click_asking *asking, struct ml_error_message *error) {
    struct ml_click_sql sql = {.text = NULL};
    struct ml_click_answer answer = {.text = NULL};
    struct ml_click_table table;
    ml_click_sql_put(&sql, "SELECT max(turn), maxIf(turn, team = ");
    ml_click_sql_text(&sql, asking->question->team);
    ml_click_sql_put(&sql, ") FROM turns");
    const enum ml_status status =
        sql.is_failed ? ML_ENV_MEMORY
                      : ml_click_ask(&asking->nodes, asking->node, sql.text, "", &answer, error);
    ml_click_sql_fini(&sql);
    ml_click_table_init(&table, answer.text);
    asking->view = (struct ml_click_view){.team = asking->question->team};
    if (status == ML_OK && ml_click_table_next(&table)) {
        const int64_t last_turn = ml_click_table_id(&table, 0);
        asking->view.turn = ml_click_table_id(&table, 1);
        if (last_turn != asking->last_turn) {
            ml_click_dictionary_fini(&asking->dictionary);
        }
        asking->last_turn = last_turn;
    }
    ml_click_table_fini(&table);
    return status;
}

static enum ml_status
begin(struct ml_asking *head, const struct ml_question *question, struct ml_error_message *error) {
    struct ml_click_asking *asking = (struct ml_click_asking *)head;
    atomic_store(&asking->nodes.is_interrupted, false);
    asking->question = question;
    asking->times = ml_ask_times(question);
    asking->error = (struct ml_error_message){.text = ""};
    asking->status = look_who_is_there(asking, asking->missing, error);
    asking->missing_count = 0;
    while (asking->missing[asking->missing_count] != NULL) {
        asking->missing_count++;
    }
    if (asking->status == ML_OK) {
        asking->status = look_for_turns(asking, error);
    }
    asking->weeks_count = ml_click_weeks(&asking->batches, asking->weeks);
    return asking->status;
}

static enum ml_status end(struct ml_asking *head, struct ml_error_message *error) {
    struct ml_click_asking *asking = (struct ml_click_asking *)head;
    if (asking->status == ML_OK && asking->missing_count > 0) {
        /* Those that are said to be missing are those that were. */
        const char *missing[ML_CLICK_NODES_MAX + 1] = {NULL};
        asking->status = look_who_is_there(asking, missing, &asking->error);
        for (size_t i = 0; asking->status == ML_OK && i <= asking->missing_count; i++) {
            if (missing[i] != asking->missing[i]) {
                ml_error_set(&asking->error, "a node came or went meanwhile: ask again");
                asking->status = ML_ENV_SYSTEM;
            }
        }
    }
    if (asking->status != ML_OK) {
        ml_error_set(
            error, "%s", asking->error.text[0] != '\0' ? asking->error.text : "memory ran out"
        );
    }
    for (enum ml_ask i = 0; i < ML_SQL_COUNT; i++) {
        ml_click_table_fini(&asking->rows[i].table);
    }
    return asking->status;
}

static void interrupt(const struct ml_asking *head) {
    atomic_store(((const struct ml_click_asking *)head)->interrupted, true);
}

static const char *const *missing_of(const struct ml_asking *head) {
    return ((const struct ml_click_asking *)head)->missing;
}

/* ---- open and close */

static void close_asking(struct ml_asking *take_asking) {
    struct ml_click_asking *asking = (struct ml_click_asking *)take_asking;
    for (enum ml_ask i = 0; i < ML_SQL_COUNT; i++) {
        ml_click_table_fini(&asking->rows[i].table);
        free(asking->forms[i]);
        free(asking->renamed_forms[i]);
    }
    ml_click_dictionary_fini(&asking->dictionary);
    ml_id_map_fini(&asking->hosts);
    ml_click_nodes_fini(&asking->nodes);
    ml_click_batches_close(&asking->batches);
    free(asking);
}

static bool open_asking(
    struct ml_click_asking *asking,
    const struct ml_click_store *store,
    struct ml_error_message *error
) {
    if (ml_click_nodes_init(&asking->nodes, store->urls, store->login_path, error) != ML_OK ||
        ml_click_batches_open(&asking->batches, store->batches_path, error) != ML_OK) {
        return false;
    }
    for (size_t i = 0; i < asking->nodes.count; i++) {
        asking->nodes.list[i].is_prepared = true; /* by the store; else the server says so */
    }
    for (enum ml_ask i = 0; i < ML_SQL_COUNT; i++) {
        asking->rows[i].asking = asking;
        asking->forms[i] = ml_ask_text(ml_click_questions, i);
        if (asking->forms[i] == NULL) {
            ml_error_set(error, "memory ran out, or there is no statement %s", ml_ask_names[i]);
            return false;
        }
        asking->renamed_forms[i] = ml_ask_text(ml_click_renamed, i);
    }
    return true;
}

struct ml_asking *ml_click_ask_open(const struct ml_store *store, struct ml_error_message *error) {
    static const struct ml_asking_engine engine = {
        .close = close_asking,
        .interrupt = interrupt,
        .begin = begin,
        .end = end,
        .missing = missing_of,
        .expect = expect,
        .rows = rows_of,
    };
    struct ml_click_asking *asking = calloc(1, sizeof(*asking));
    if (asking == NULL) {
        ml_error_set(error, "memory ran out");
        return NULL;
    }
    asking->head.engine = &engine;
    asking->interrupted = &asking->nodes.is_interrupted;
    if (!open_asking(asking, (const struct ml_click_store *)store, error)) {
        close_asking(&asking->head);
        return NULL;
    }
    return &asking->head;
}
