#include "tools/analyzer/sqlite/many.h"

#include <sqlite3.h>
#include <stdlib.h>

#include "tools/analyzer/model/memory.h"
#include "tools/analyzer/sqlite/file.h"

/* tools/analyzer/sqlite/schema.sql and many*.sql */
extern const char ml_sqlite_schema[];
extern const char ml_sqlite_many[];
extern const char ml_sqlite_many_places[];
extern const char ml_sqlite_many_figures[];

/* A dump as a database of its own. */
struct one {
    unsigned char *bytes;
    int64_t count;
    uint64_t monotonic_ns;
};

struct ml_sqlite_many {
    struct one *ones;
    size_t count, capacity;
    uint64_t run_start_ns;
    sqlite3 *database;
    int code; /* the first trouble */
};

/* Call sites of a depth: their parents are known by then. */
static const char level_in[] =
    "INSERT INTO site_in SELECT c.id, coalesce(p.main, 0), f.main, row_number() OVER "
    "(PARTITION BY p.main, f.main ORDER BY c.id) FROM one.stack_profile_callsite c "
    "JOIN frame_map f ON f.one = c.frame_id LEFT JOIN site_map p ON p.one = c.parent_id "
    "WHERE c.depth = ?1";
static const char level_known[] =
    "INSERT OR IGNORE INTO known_site(parent, frame, nth) SELECT i.parent, i.frame, i.nth "
    "FROM one.stack_profile_callsite c JOIN site_in i ON i.one = c.id WHERE c.depth = ?1 "
    "ORDER BY c.id";
static const char level_map[] =
    "INSERT INTO site_map SELECT i.one, k.id FROM one.stack_profile_callsite c "
    "JOIN site_in i ON i.one = c.id JOIN known_site k USING (parent, frame, nth) "
    "WHERE c.depth = ?1";
static const char level_put[] =
    "INSERT OR IGNORE INTO main.stack_profile_callsite SELECT m.main, c.depth, "
    "nullif(i.parent, 0), i.frame FROM one.stack_profile_callsite c JOIN site_in i ON i.one = c.id "
    "JOIN site_map m ON m.one = c.id WHERE c.depth = ?1";

struct ml_sqlite_many *ml_sqlite_many_new(void) {
    return calloc(1, sizeof(struct ml_sqlite_many));
}

void ml_sqlite_many_free(struct ml_sqlite_many *many) {
    for (size_t i = 0; many && i < many->count; i++) {
        sqlite3_free(many->ones[i].bytes);
    }
    if (many) {
        free(many->ones);
    }
    free(many);
}

enum ml_status ml_sqlite_many_add(struct ml_sqlite_many *many, const struct ml_stacks *stacks) {
    const struct ml_profile *profile = stacks->profile;
    enum ml_status status = ML_OK;

    if (many->count > 0 && many->run_start_ns != profile->run_start.monotonic_ns) {
        return ML_PEER_STATE;
    }
    if (!ML_GROW(many->ones, many->capacity, many->count + 1)) {
        return ML_ENV_MEMORY;
    }
    struct one *one = &many->ones[many->count];
    *one = (struct one){.monotonic_ns = profile->now.monotonic_ns};
    status = ml_sqlite_file_make(stacks, &one->bytes, &one->count);
    if (status == ML_OK) {
        many->run_start_ns = profile->run_start.monotonic_ns;
        many->count++;
    }
    return status;
}

static void check(struct ml_sqlite_many *many, int code) {
    if (code != SQLITE_OK && code != SQLITE_DONE && many->code == SQLITE_OK) {
        many->code = code;
    }
}

static void run(struct ml_sqlite_many *many, const char *sql) {
    if (many->code == SQLITE_OK) {
        check(many, sqlite3_exec(many->database, sql, NULL, NULL, NULL));
    }
}

static void run_at(struct ml_sqlite_many *many, const char *sql, int64_t depth) {
    sqlite3_stmt *statement = NULL;

    check(many, sqlite3_prepare_v2(many->database, sql, -1, &statement, NULL));
    check(many, sqlite3_bind_int64(statement, 1, depth));
    check(many, sqlite3_step(statement));
    sqlite3_finalize(statement);
}

/* -1: there are none. */
static int64_t deepest(struct ml_sqlite_many *many) {
    sqlite3_stmt *statement = NULL;
    int64_t depth = -1;

    check(
        many,
        sqlite3_prepare_v2(
            many->database,
            "SELECT coalesce(max(depth), -1) FROM one.stack_profile_callsite",
            -1,
            &statement,
            NULL
        )
    );
    if (sqlite3_step(statement) == SQLITE_ROW) {
        depth = sqlite3_column_int64(statement, 0);
    }
    sqlite3_finalize(statement);
    return depth;
}

static void take_in(struct ml_sqlite_many *many, struct one *one) {
    const unsigned owned = SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE;

    run(many, "ATTACH ':memory:' AS one");
    check(
        many, sqlite3_deserialize(many->database, "one", one->bytes, one->count, one->count, owned)
    );
    one->bytes = NULL; /* also where it failed */
    run(many, "BEGIN");
    run(many, ml_sqlite_many_places);
    const int64_t end = many->code == SQLITE_OK ? deepest(many) : -1;
    for (int64_t depth = 0; many->code == SQLITE_OK && depth <= end; depth++) {
        run_at(many, level_in, depth);
        run_at(many, level_known, depth);
        run_at(many, level_map, depth);
        run_at(many, level_put, depth);
    }
    run(many, ml_sqlite_many_figures);
    run(many, "COMMIT");
    run(many, "DETACH one");
}

static int order(const void *left, const void *right) {
    const struct one *a = left, *b = right;

    return (a->monotonic_ns > b->monotonic_ns) - (a->monotonic_ns < b->monotonic_ns);
}

enum ml_status ml_sqlite_many_write(struct ml_sqlite_many *many, FILE *out) {
    sqlite3_int64 count_bytes = 0;
    unsigned char *bytes = NULL;
    enum ml_status status = ML_OK;

    ML_SORT(many->ones, many->count, order);
    check(many, sqlite3_open(":memory:", &many->database));
    run(many, "PRAGMA journal_mode = OFF");
    run(many, "PRAGMA temp_store = MEMORY"); /* the analyzer writes no file but its output */
    run(many, ml_sqlite_schema);
    run(many, ml_sqlite_many);
    for (size_t i = 0; many->code == SQLITE_OK && i < many->count; i++) {
        take_in(many, &many->ones[i]);
    }
    if (many->code == SQLITE_OK) {
        bytes = sqlite3_serialize(many->database, "main", &count_bytes, 0);
    }
    if (!bytes) {
        status = ML_ENV_MEMORY; /* it is all in memory: nothing else can fail */
    } else if (fwrite(bytes, 1, (size_t)count_bytes, out) != (size_t)count_bytes) {
        status = ML_ENV_SYSTEM;
    }
    sqlite3_free(bytes);
    sqlite3_close(many->database);
    return status;
}
