#include <stdlib.h>
#include <string.h>

#include "host/collect/db.h"
#include "host/collect/engine.h"
#include "host/collect/sqlite/internal.h"

struct sqlite_rows {
    struct ml_store_rows head;
    struct sqlite_asking *asking;
    sqlite3_stmt *statement;
};

/* A connection of its own, so that another thread than the store's may ask. */
struct sqlite_asking {
    struct ml_asking head;
    struct ml_db db;
    sqlite3_stmt *word;
    struct sqlite_rows rows[ML_SQL_COUNT];
    const struct ml_question *question;
    struct ml_ask_times times;
    int64_t team, program, build, other, host; /* numbers of words; 0: any; -1: nobody has it */
    enum ml_status status;
    struct ml_error_message error; /* of the first that went wrong */
};

static void fail(struct sqlite_asking *asking) {
    if (asking->status == ML_OK) {
        asking->status = ML_ENV_SYSTEM;
        ml_error_set(&asking->error, "%s", sqlite3_errmsg(asking->db.handle));
    }
}

/* ---- rows */

static bool rows_next(struct ml_store_rows *head) {
    const struct sqlite_rows *rows = (const struct sqlite_rows *)head;
    const int state = sqlite3_step(rows->statement);
    if (state == SQLITE_ROW) {
        return true;
    }
    if (state != SQLITE_DONE) {
        fail(rows->asking);
    }
    (void)sqlite3_reset(rows->statement);
    return false;
}

static const char *rows_text(const struct ml_store_rows *head, int column) {
    sqlite3_stmt *statement = ((const struct sqlite_rows *)head)->statement;
    const unsigned char *text = sqlite3_column_text(statement, column);
    return text != NULL ? (const char *)text : "";
}

static int64_t rows_id(const struct ml_store_rows *head, int column) {
    return sqlite3_column_int64(((const struct sqlite_rows *)head)->statement, column);
}

static double rows_real(const struct ml_store_rows *head, int column) {
    return sqlite3_column_double(((const struct sqlite_rows *)head)->statement, column);
}

static void rows_end(struct ml_store_rows *head) {
    (void)sqlite3_reset(((const struct sqlite_rows *)head)->statement);
}

static const struct ml_store_rows_engine rows_engine = {
    .next = rows_next,
    .text = rows_text,
    .id = rows_id,
    .real = rows_real,
    .end = rows_end,
};

/* ---- asking */

static int64_t word_of(const struct sqlite_asking *asking, const char *word) {
    if (word == NULL) {
        return 0;
    }
    ml_db_bind_text(asking->word, ":word", word);
    return ml_db_number(asking->word, -1);
}

static enum ml_status
begin(struct ml_asking *head, const struct ml_question *question, struct ml_error_message *error) {
    struct sqlite_asking *asking = (struct sqlite_asking *)head;
    if (ml_db_do(&asking->db, "BEGIN") != ML_OK) {
        ml_error_set(error, "%s", sqlite3_errmsg(asking->db.handle));
        return ML_ENV_SYSTEM;
    }
    asking->question = question;
    asking->times = ml_ask_times(question);
    asking->team = word_of(asking, question->team);
    asking->program = word_of(asking, question->program);
    asking->build = word_of(asking, question->build);
    asking->other = word_of(asking, question->other);
    asking->host = word_of(asking, question->host);
    asking->status = ML_OK;
    return ML_OK;
}

static enum ml_status end(struct ml_asking *head, struct ml_error_message *error) {
    struct sqlite_asking *asking = (struct sqlite_asking *)head;
    if (asking->status != ML_OK) {
        *error = asking->error;
    }
    if (ml_db_do(&asking->db, "COMMIT") != ML_OK) {
        (void)!ml_db_do(&asking->db, "ROLLBACK"); /* it was interrupted */
    }
    return asking->status;
}

static const char *const *missing(const struct ml_asking *head) {
    static const char *const none[] = {NULL}; /* it is whole */
    (void)head;
    return none;
}

static void
expect(struct ml_asking *head, enum ml_ask which, const int64_t *ids, size_t ids_count) {
    (void)head;
    (void)which;
    (void)ids;
    (void)ids_count;
}

static struct ml_store_rows *
rows_of(struct ml_asking *head, enum ml_ask which, struct ml_ask_bound bound) {
    struct sqlite_asking *asking = (struct sqlite_asking *)head;
    const struct ml_question *question = asking->question;
    sqlite3_stmt *statement = asking->rows[which].statement;
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {
        {":team", asking->team},
        {":program", asking->program},
        {":build", bound.build != NULL ? word_of(asking, bound.build) : asking->build},
        {":other", asking->other},
        {":host", asking->host},
        {":metric", question->metric},
        {":control", question->control_only},
        {":from", asking->times.from_week},
        {":until", asking->times.until_week},
        {":from_ms", (int64_t)asking->times.from_ms},
        {":until_ms", (int64_t)asking->times.until_ms},
        {":limit", (int64_t)ml_ask_limit(question)},
        {":stack", bound.id},
        {":names", bound.id},
        {":by_host", bound.by_host},
    };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        ml_db_bind_number(statement, numbers[i].name, numbers[i].value);
    }
    ml_db_bind_text(statement, ":guid", question->guid != NULL ? question->guid : "");
    return &asking->rows[which].head;
}

/* ---- open and close */

static void close_asking(struct ml_asking *take_asking) {
    struct sqlite_asking *asking = (struct sqlite_asking *)take_asking;
    (void)sqlite3_finalize(asking->word);
    for (enum ml_ask i = 0; i < ML_SQL_COUNT; i++) {
        (void)sqlite3_finalize(asking->rows[i].statement);
    }
    ml_db_close(&asking->db);
    free(asking);
}

static void interrupt(const struct ml_asking *head) {
    sqlite3_interrupt(((const struct sqlite_asking *)head)->db.handle);
}

static bool prepare(struct sqlite_asking *asking, struct ml_error_message *error) {
    asking->word = ml_db_prepare(&asking->db, "SELECT id FROM words WHERE word = :word", error);
    bool done = asking->word != NULL;
    for (enum ml_ask i = 0; done && i < ML_SQL_COUNT; i++) {
        char *text = ml_ask_text(ml_sqlite_questions, i);
        asking->rows[i] = (struct sqlite_rows
        ){.head.engine = &rows_engine,
          .asking = asking,
          .statement = text != NULL ? ml_db_prepare(&asking->db, text, error) : NULL};
        free(text);
        done = asking->rows[i].statement != NULL;
    }
    return done;
}

struct ml_asking *ml_sqlite_ask_open(const struct ml_store *store, struct ml_error_message *error) {
    static const struct ml_asking_engine engine = {
        .close = close_asking,
        .interrupt = interrupt,
        .begin = begin,
        .end = end,
        .missing = missing,
        .expect = expect,
        .rows = rows_of,
    };
    struct sqlite_asking *asking = calloc(1, sizeof(*asking));
    if (asking == NULL) {
        ml_error_set(error, "memory ran out");
        return NULL;
    }
    asking->head.engine = &engine;
    if (ml_db_open(&asking->db, ml_sqlite_store_path(store), ml_sqlite_schema, error) != ML_OK ||
        !prepare(asking, error)) {
        close_asking(&asking->head);
        return NULL;
    }
    return &asking->head;
}
