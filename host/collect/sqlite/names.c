/* Names that come later: frames get functions, and stacks the ids of their names. Room: host. */
#include <stdlib.h>
#include <string.h>

#include "host/collect/db.h"
#include "host/collect/engine.h"
#include "host/collect/ids.h"
#include "host/collect/sqlite/internal.h"

/* A frame by what its stacks are called: its function, else its module. */
struct frame {
    int64_t id;
    char *text;
};

struct stack {
    int64_t id, parent, frame, names;
    int64_t found;      /* what `names` should be; 0: not known yet */
    const uint8_t *key; /* its team's; NULL: nobody's */
    bool is_known;
};

/* All of the dictionary, each list by id. */
struct renaming {
    const struct ml_db *db;
    const struct ml_team_keys *keys;
    struct frame *frames;
    struct stack *stacks;
    size_t frames_count, stacks_count;
    uint64_t changed;
};

static void fini(struct renaming *renaming) {
    for (size_t i = 0; i < renaming->frames_count; i++) {
        free(renaming->frames[i].text);
    }
    free(renaming->frames);
    free(renaming->stacks);
}

/* ---- what is there */

static int64_t count_of(const struct ml_db *db, const char *sql) {
    struct ml_error_message unused = {.text = ""};
    sqlite3_stmt *statement = ml_db_prepare(db, sql, &unused);
    const int64_t count = statement != NULL ? ml_db_number(statement, -1) : -1;
    (void)sqlite3_finalize(statement);
    return count;
}

static bool read_frames(struct renaming *renaming) {
    static const char sql[] =
        "SELECT r.id, CASE f.word WHEN '' THEN m.word ELSE f.word END FROM frames r"
        " JOIN words f ON f.id = r.function JOIN words m ON m.id = r.module ORDER BY r.id";
    struct ml_error_message unused = {.text = ""};
    const int64_t count = count_of(renaming->db, "SELECT count(*) FROM frames");
    sqlite3_stmt *statement = ml_db_prepare(renaming->db, sql, &unused);
    bool done = count >= 0 && statement != NULL;
    renaming->frames = done ? calloc((size_t)count + 1, sizeof(*renaming->frames)) : NULL;
    done = renaming->frames != NULL;
    while (done && renaming->frames_count < (size_t)count && sqlite3_step(statement) == SQLITE_ROW
    ) {
        const unsigned char *text = sqlite3_column_text(statement, 1);
        struct frame *frame = &renaming->frames[renaming->frames_count];
        frame->id = sqlite3_column_int64(statement, 0);
        frame->text = text != NULL ? strdup((const char *)text) : NULL;
        done = frame->text != NULL;
        renaming->frames_count += done;
    }
    (void)sqlite3_finalize(statement);
    return done && renaming->frames_count == (size_t)count;
}

static bool read_stacks(struct renaming *renaming) {
    static const char sql[] = "SELECT id, parent, frame, names FROM stacks ORDER BY id";
    struct ml_error_message unused = {.text = ""};
    const int64_t count = count_of(renaming->db, "SELECT count(*) FROM stacks");
    sqlite3_stmt *statement = ml_db_prepare(renaming->db, sql, &unused);
    const bool done = count >= 0 && statement != NULL;
    renaming->stacks = done ? calloc((size_t)count + 1, sizeof(*renaming->stacks)) : NULL;
    while (renaming->stacks != NULL && renaming->stacks_count < (size_t)count &&
           sqlite3_step(statement) == SQLITE_ROW) {
        renaming->stacks[renaming->stacks_count++] = (struct stack){
            .id = sqlite3_column_int64(statement, 0),
            .parent = sqlite3_column_int64(statement, 1),
            .frame = sqlite3_column_int64(statement, 2),
            .names = sqlite3_column_int64(statement, 3),
        };
    }
    (void)sqlite3_finalize(statement);
    return renaming->stacks != NULL && renaming->stacks_count == (size_t)count;
}

static int by_id_of_frame(const void *key, const void *one) {
    const int64_t id = *(const int64_t *)key;
    const int64_t other = ((const struct frame *)one)->id;
    return id < other ? -1 : id > other;
}

static int by_id_of_stack(const void *key, const void *one) {
    const int64_t id = *(const int64_t *)key;
    const int64_t other = ((const struct stack *)one)->id;
    return id < other ? -1 : id > other;
}

/* ---- what stacks are called now */

/* An id is a keyed hash: whose key it is of, that team it is of. */
static const uint8_t *key_of(const struct renaming *renaming, const struct stack *outermost) {
    for (size_t i = 0; i < renaming->keys->count; i++) {
        const uint8_t *key = renaming->keys->list[i];
        if (ml_id_of_stack(key, 0, outermost->frame) == outermost->id) {
            return key;
        }
    }
    return NULL;
}

/* A contract bounds how many callers there are. */
static void call(struct renaming *renaming, struct stack *stack, unsigned depth) {
    struct stack *parent = NULL;
    if (stack->is_known) {
        return;
    }
    stack->is_known = true;
    stack->found = stack->names;
    if (stack->parent != 0 && depth <= MEMLOG_FLEET_MAX_FRAMES_IN_STACK) {
        parent = bsearch(
            &stack->parent,
            renaming->stacks,
            renaming->stacks_count,
            sizeof(*renaming->stacks),
            by_id_of_stack
        );
        if (parent != NULL) {
            call(renaming, parent, depth + 1);
            stack->key = parent->key;
        }
    } else if (stack->parent == 0) {
        stack->key = key_of(renaming, stack);
    }
    const struct frame *frame = bsearch(
        &stack->frame,
        renaming->frames,
        renaming->frames_count,
        sizeof(*renaming->frames),
        by_id_of_frame
    );
    if (stack->key != NULL && frame != NULL) {
        const struct memlog_fleet_frame named = {.function = ml_string_of(frame->text)};
        stack->found = ml_id_of_names(stack->key, parent != NULL ? parent->found : 0, &named);
    }
}

static bool write_names(struct renaming *renaming, struct ml_error_message *error) {
    sqlite3_stmt *statement =
        ml_db_prepare(renaming->db, "UPDATE stacks SET names = :names WHERE id = :id", error);
    bool done = statement != NULL;
    for (size_t i = 0; done && i < renaming->stacks_count; i++) {
        struct stack *stack = &renaming->stacks[i];
        call(renaming, stack, 0);
        if (stack->found != stack->names) {
            ml_db_bind_number(statement, ":names", stack->found);
            ml_db_bind_number(statement, ":id", stack->id);
            done = ml_db_run(statement) == ML_OK;
            renaming->changed++;
        }
    }
    (void)sqlite3_finalize(statement);
    return done;
}

/* ---- frames */

static bool write_functions(
    const struct ml_db *db,
    const struct ml_nameless *nameless,
    const char *const *names,
    uint64_t *out_frames,
    struct ml_error_message *error
) {
    sqlite3_stmt *word =
        ml_db_prepare(db, "INSERT OR IGNORE INTO words (word) VALUES (:word)", error);
    sqlite3_stmt *frame = ml_db_prepare(
        db,
        "UPDATE frames SET function = (SELECT id FROM words WHERE word = :word) WHERE id = :id"
        " AND function = (SELECT id FROM words WHERE word = '')",
        error
    );
    bool done = word != NULL && frame != NULL;
    for (size_t i = 0; done && i < nameless->count; i++) {
        if (names[i] == NULL) {
            continue;
        }
        ml_db_bind_text(word, ":word", names[i]);
        ml_db_bind_text(frame, ":word", names[i]);
        ml_db_bind_number(frame, ":id", nameless->ids[i]);
        done = ml_db_run(word) == ML_OK && ml_db_run(frame) == ML_OK;
        *out_frames += (uint64_t)sqlite3_changes(db->handle);
    }
    (void)sqlite3_finalize(word);
    (void)sqlite3_finalize(frame);
    return done;
}

enum ml_status ml_sqlite_store_name(
    struct ml_store *store,
    const struct ml_nameless *nameless,
    const char *const *names,
    const struct ml_team_keys *keys,
    struct ml_named *out_named,
    struct ml_error_message *error
) {
    struct renaming renaming = {.db = ml_sqlite_store_db(store), .keys = keys};
    uint64_t frames = 0;
    const bool done = ml_db_do(renaming.db, "BEGIN IMMEDIATE") == ML_OK &&
                      write_functions(renaming.db, nameless, names, &frames, error) &&
                      read_frames(&renaming) && read_stacks(&renaming) &&
                      write_names(&renaming, error) && ml_db_do(renaming.db, "COMMIT") == ML_OK;
    if (!done) {
        ml_error_set(
            error, "the store cannot be rewritten: %s", sqlite3_errmsg(renaming.db->handle)
        );
        (void)!ml_db_do(renaming.db, "ROLLBACK");
    }
    *out_named = (struct ml_named){.frames = frames, .stacks = renaming.changed};
    fini(&renaming);
    return done ? ML_OK : ML_ENV_SYSTEM;
}

enum ml_status ml_sqlite_store_nameless(
    struct ml_store *store,
    const char *build_id,
    struct ml_nameless *out_nameless,
    struct ml_error_message *error
) {
    static const char sql[] =
        "SELECT r.id, r.place FROM frames r JOIN words f ON f.id = r.function"
        " JOIN words b ON b.id = r.build_id WHERE b.word = :build AND f.word = '' ORDER BY r.place";
    const struct ml_db *db = ml_sqlite_store_db(store);
    sqlite3_stmt *statement = ml_db_prepare(db, sql, error);
    bool done = statement != NULL;
    size_t capacity = 0;
    int state = SQLITE_ROW;
    *out_nameless = (struct ml_nameless){.count = 0};
    if (done) {
        ml_db_bind_text(statement, ":build", build_id);
    }
    while (done && (state = sqlite3_step(statement)) == SQLITE_ROW &&
           out_nameless->count < ML_NAMELESS_MAX) {
        done = ml_nameless_add(
            out_nameless,
            &capacity,
            sqlite3_column_int64(statement, 0),
            (uint64_t)sqlite3_column_int64(statement, 1)
        );
    }
    done = done && (state == SQLITE_DONE || state == SQLITE_ROW);
    (void)sqlite3_finalize(statement);
    if (!done) {
        ml_error_set(error, "the store cannot be read: %s", sqlite3_errmsg(db->handle));
        ml_nameless_fini(out_nameless);
    }
    return done ? ML_OK : ML_ENV_SYSTEM;
}
