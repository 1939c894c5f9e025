#include "host/collect/sqlite/sweep.h"

#include <stdlib.h>
#include <time.h>

enum {
    STEP = 500, /* dumps, or stacks and what goes with them, or words, of one transaction */
    WORDS_EVERY_S = 3600,
    BITS = 8
};

enum statement {
    BEGIN_AGAIN,
    SEED,
    SEEDED,
    LOOSE_FIRST,
    LOOSE_DONE,
    STACK_IS_USED,
    STACK_PARENT,
    STACK_FRAME,
    STACK_REMOVE,
    FRAME_IS_USED,
    FRAME_REMOVE,
    WORDS_ARE_DUE,
    WORDS_BEGIN,
    WORDS_END,
    DUMP_WORDS,
    FRAME_WORDS,
    WORDS,
    WORD_REMOVE,
    STATEMENTS
};

_Static_assert((int)STATEMENTS == (int)ML_SQLITE_SWEEP_STATEMENTS, "their number is the header's");

/* `state` of words: 0: none has gone; 1: some may have; 2: they are being swept. */
static const char *const sql[STATEMENTS] = {
    [BEGIN_AGAIN] = "UPDATE swept SET state = 1, at_s = 0 WHERE state = 2",
    /* A store from before it was swept. */
    [SEED] =
        "INSERT OR IGNORE INTO loose SELECT id FROM stacks WHERE NOT EXISTS (SELECT 1 FROM swept)",
    [SEEDED] = "INSERT INTO swept SELECT EXISTS (SELECT 1 FROM words), 0 WHERE NOT EXISTS (SELECT "
               "1 FROM swept)",
    [LOOSE_FIRST] = "SELECT stack FROM loose LIMIT 1",
    [LOOSE_DONE] = "DELETE FROM loose WHERE stack = :id",
    [STACK_IS_USED] = "SELECT EXISTS (SELECT 1 FROM samples WHERE stack = :id)"
                      " OR EXISTS (SELECT 1 FROM stacks WHERE parent = :id)",
    [STACK_PARENT] = "SELECT parent FROM stacks WHERE id = :id",
    [STACK_FRAME] = "SELECT frame FROM stacks WHERE id = :id",
    [STACK_REMOVE] = "DELETE FROM stacks WHERE id = :id",
    [FRAME_IS_USED] = "SELECT EXISTS (SELECT 1 FROM stacks WHERE frame = :id)",
    [FRAME_REMOVE] = "DELETE FROM frames WHERE id = :id",
    [WORDS_ARE_DUE] = "SELECT state <> 0 AND at_s <= :id FROM swept",
    [WORDS_BEGIN] = "UPDATE swept SET state = 2, at_s = :id",
    [WORDS_END] = "UPDATE swept SET state = 0 WHERE state = 2",
    /* The id comes first; the others are words. A dump without samples has a row, too. */
    [DUMP_WORDS] = "SELECT d.id, d.team, d.program, d.build, d.version, d.host, d.reason, d.cause,"
                   " s.role, s.process, s.heap, s.type FROM (SELECT * FROM dumps WHERE id > :id"
                   " ORDER BY id LIMIT :step) d LEFT JOIN samples s ON s.dump = d.id",
    [FRAME_WORDS] = "SELECT id, function, module, build_id FROM frames WHERE id > :id ORDER BY id"
                    " LIMIT 20 * :step",
    [WORDS] = "SELECT id FROM words WHERE id > :id AND id <= :last ORDER BY id LIMIT 20 * :step",
    [WORD_REMOVE] = "DELETE FROM words WHERE id = :id",
};

static sqlite3_stmt *use(const struct ml_sqlite_sweep *sweep, enum statement which, int64_t id) {
    sqlite3_stmt *statement = sweep->statements[which];
    ml_db_bind_number(statement, ":id", id);
    ml_db_bind_number(statement, ":step", STEP);
    return statement;
}

static bool run(const struct ml_sqlite_sweep *sweep, enum statement which, int64_t id) {
    return ml_db_run(use(sweep, which, id)) == ML_OK;
}

static int64_t number(const struct ml_sqlite_sweep *sweep, enum statement which, int64_t id) {
    return ml_db_number(use(sweep, which, id), 0);
}

/* ---- stacks and frames */

static bool remove_frame(struct ml_sqlite_sweep *sweep, int64_t frame) {
    if (number(sweep, FRAME_IS_USED, frame) != 0) {
        return true;
    }
    sweep->forget(sweep->context, frame);
    return run(sweep, FRAME_REMOVE, frame);
}

/* The stack and those of its callers that are nobody's then. */
static bool remove_stacks(struct ml_sqlite_sweep *sweep, int64_t stack) {
    bool done = true;
    while (done && stack != 0 && number(sweep, STACK_IS_USED, stack) == 0) {
        const int64_t parent = number(sweep, STACK_PARENT, stack);
        const int64_t frame = number(sweep, STACK_FRAME, stack);
        sweep->forget(sweep->context, stack);
        done = run(sweep, STACK_REMOVE, stack) && remove_frame(sweep, frame);
        stack = parent;
    }
    return done;
}

static bool sweep_stacks(struct ml_sqlite_sweep *sweep, bool *out_more) {
    bool done = true;
    *out_more = true;
    for (unsigned i = 0; done && *out_more && i < STEP; i++) {
        sqlite3_stmt *first = use(sweep, LOOSE_FIRST, 0);
        *out_more = sqlite3_step(first) == SQLITE_ROW;
        const int64_t stack = *out_more ? sqlite3_column_int64(first, 0) : 0;
        (void)sqlite3_reset(first);
        done = !*out_more || (remove_stacks(sweep, stack) && run(sweep, LOOSE_DONE, stack));
    }
    return done;
}

/* ---- words */

void ml_sqlite_sweep_mark(struct ml_sqlite_sweep *sweep, int64_t word) {
    if (sweep->marks != NULL && word > 0 && word <= sweep->marks_last) {
        sweep->marks[word / BITS] |= (uint8_t)(1U << (word % BITS));
    }
}

static bool is_marked(const struct ml_sqlite_sweep *sweep, int64_t word) {
    return (sweep->marks[word / BITS] & 1U << (word % BITS)) != 0;
}

static void stop_marking(struct ml_sqlite_sweep *sweep) {
    free(sweep->marks);
    sweep->marks = NULL;
    sweep->phase = ML_SQLITE_SWEEP_STACKS;
    sweep->at = 0;
}

void ml_sqlite_sweep_undo(struct ml_sqlite_sweep *sweep) {
    stop_marking(sweep);
}

/* Where words are due. Without memory it is tried again later. */
static bool begin_marking(struct ml_sqlite_sweep *sweep) {
    const int64_t now_s = (int64_t)time(NULL);
    struct ml_error_message unused = {.text = ""};
    sqlite3_stmt *last = NULL;
    if (number(sweep, WORDS_ARE_DUE, now_s - WORDS_EVERY_S) == 0) {
        return true;
    }
    last = ml_db_prepare(sweep->db, "SELECT max(id) FROM words", &unused);
    sweep->marks_last = last != NULL ? ml_db_number(last, 0) : 0;
    (void)sqlite3_finalize(last);
    sweep->marks = calloc(1, (size_t)(sweep->marks_last / BITS) + 1);
    if (sweep->marks == NULL) {
        return true;
    }
    sweep->phase = ML_SQLITE_SWEEP_DUMPS;
    sweep->at = 0;
    return run(sweep, WORDS_BEGIN, now_s);
}

/* Mark what some rows have. False: there were none, and the phase is over. */
static bool mark_rows(struct ml_sqlite_sweep *sweep, enum statement which) {
    sqlite3_stmt *rows = use(sweep, which, sweep->at);
    bool is_any = false;
    while (sqlite3_step(rows) == SQLITE_ROW) {
        const int64_t id = sqlite3_column_int64(rows, 0);
        sweep->at = id > sweep->at ? id : sweep->at;
        is_any = true;
        for (int i = 1; i < sqlite3_column_count(rows); i++) {
            ml_sqlite_sweep_mark(sweep, sqlite3_column_int64(rows, i));
        }
    }
    /* An error that ends the rows early would leave words without their marks. */
    if (sqlite3_reset(rows) != SQLITE_OK) {
        stop_marking(sweep);
        return true;
    }
    return is_any;
}

static bool remove_words(struct ml_sqlite_sweep *sweep) {
    sqlite3_stmt *rows = use(sweep, WORDS, sweep->at);
    bool is_any = false;
    bool done = true;
    ml_db_bind_number(rows, ":last", sweep->marks_last);
    while (done && sqlite3_step(rows) == SQLITE_ROW) {
        sweep->at = sqlite3_column_int64(rows, 0);
        is_any = true;
        done = is_marked(sweep, sweep->at) || run(sweep, WORD_REMOVE, sweep->at);
    }
    done = sqlite3_reset(rows) == SQLITE_OK && done;
    if (done && !is_any) {
        stop_marking(sweep);
        done = run(sweep, WORDS_END, 0);
    }
    return done;
}

static void next_phase(struct ml_sqlite_sweep *sweep) {
    sweep->phase++;
    /* Ids of frames are hashes, with a sign. */
    sweep->at = sweep->phase == ML_SQLITE_SWEEP_FRAMES ? INT64_MIN : 0;
}

bool ml_sqlite_sweep_step(struct ml_sqlite_sweep *sweep, bool *out_more) {
    bool done = true;
    *out_more = true;
    switch (sweep->phase) {
    case ML_SQLITE_SWEEP_STACKS:
        done = sweep_stacks(sweep, out_more);
        if (done && !*out_more) {
            done = begin_marking(sweep);
            *out_more = sweep->phase != ML_SQLITE_SWEEP_STACKS;
        }
        break;
    case ML_SQLITE_SWEEP_DUMPS:
        if (!mark_rows(sweep, DUMP_WORDS)) {
            next_phase(sweep);
        }
        break;
    case ML_SQLITE_SWEEP_FRAMES:
        if (!mark_rows(sweep, FRAME_WORDS)) {
            next_phase(sweep);
        }
        break;
    case ML_SQLITE_SWEEP_WORDS:
        done = remove_words(sweep);
        break;
    }
    return done;
}

/* ---- open and close */

enum ml_status ml_sqlite_sweep_open(
    struct ml_sqlite_sweep *sweep, const struct ml_db *db, struct ml_error_message *error
) {
    sweep->db = db;
    for (enum statement i = 0; i < STATEMENTS; i++) {
        sweep->statements[i] = ml_db_prepare(db, sql[i], error);
        if (sweep->statements[i] == NULL) {
            return ML_ENV_SYSTEM;
        }
    }
    if (!run(sweep, SEED, 0) || !run(sweep, SEEDED, 0) || !run(sweep, BEGIN_AGAIN, 0)) {
        ml_error_set(error, "%s", sqlite3_errmsg(db->handle));
        return ML_ENV_SYSTEM;
    }
    return ML_OK;
}

void ml_sqlite_sweep_close(struct ml_sqlite_sweep *sweep) {
    for (enum statement i = 0; i < STATEMENTS; i++) {
        (void)sqlite3_finalize(sweep->statements[i]);
    }
    free(sweep->marks);
}
