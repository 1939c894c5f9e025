#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/collect/crash_point.h"
#include "host/collect/db.h"
#include "host/collect/engine.h"
#include "host/collect/ids.h"
#include "host/collect/sqlite/internal.h"
#include "host/collect/sqlite/sweep.h"

enum statement {
    WORD_FIND,
    WORD_ADD,
    DUMP_FIND,
    DUMP_ADD,
    FRAME_ADD,
    FRAME_NAME,
    STACK_ADD,
    SAMPLE_ADD,
    SUM_ADD,
    WEEK_ADD,
    SUM_TAKE,
    SUM_SWEEP,
    WEEK_TAKE,
    WEEK_SWEEP,
    STACKS_LOOSEN,
    WORDS_LOOSEN,
    SAMPLES_REMOVE,
    DUMP_REMOVE,
    STATEMENTS
};

#define KEYS "d.team, d.program, d.build, d.week, d.control"
#define SAME_KEYS_OF(one, table)                                                                   \
    table ".team = " one ".team AND " table ".program = " one ".program AND " table                \
          ".build = " one ".build AND " table ".week = " one ".week AND " table ".control = " one  \
          ".control"
#define SAME_KEYS(table) SAME_KEYS_OF("d", table)

/* A dump's samples by stack: what counts into the sums of its week. */
#define OF_DUMP                                                                                    \
    " FROM dumps d JOIN (SELECT stack, sum(live) live, sum(live_n) live_n, sum(peak) peak,"        \
    " sum(total) total FROM samples WHERE dump = :dump GROUP BY stack) s WHERE d.id = :dump"
#define TELLS_PEAK "((d.told & 2) != 0)"
#define TELLS_TOTAL "((d.told & 4) != 0)"
#define SHARE "(CASE WHEN d.live > 0 THEN 1.0 * s.live / d.live ELSE 0 END)"

static const char *const sql[STATEMENTS] = {
    [WORD_FIND] = "SELECT id FROM words WHERE word = :word",
    [WORD_ADD] = "INSERT INTO words (word) VALUES (:word)",
    [DUMP_FIND] = "SELECT d.id FROM dumps d JOIN words w ON w.id = d.team"
                  " WHERE w.word = :team AND d.guid = :guid",
    [DUMP_ADD] =
        "INSERT INTO dumps (team, guid, program, build, version, host, time_ms, reason, cause,"
        " control, weight, complete, covered, sampling_bytes, processes, private_bytes, left_bytes,"
        " live, peak, total, week, told, promised_ppm, cost_ppm) VALUES (:team, :guid, :program, "
        ":build, :version, :host, "
        ":time,"
        " :reason, :cause, :control, :weight, :complete, :covered, :sampling, :processes, :private,"
        " :left, :live, :peak, :total, :week, :told, :promised, :cost)",
    [FRAME_ADD] = "INSERT OR IGNORE INTO frames (id, function, module, build_id, place)"
                  " VALUES (:id, :function, :module, :build, :place)",
    [FRAME_NAME] = "SELECT w.word FROM frames r JOIN words w ON w.id = r.function"
                   " WHERE r.id = :id",
    [STACK_ADD] = "INSERT OR IGNORE INTO stacks (id, parent, frame, names)"
                  " VALUES (:id, :parent, :frame, :names)",
    [SAMPLE_ADD] =
        "INSERT INTO samples VALUES (:dump, :stack, :role, :process, :heap, :type, :live, :live_n,"
        " :peak, :peak_n, :total, :total_n) ON CONFLICT DO UPDATE SET live = live + excluded.live,"
        " live_n = live_n + excluded.live_n, peak = peak + excluded.peak,"
        " peak_n = peak_n + excluded.peak_n, total = total + excluded.total,"
        " total_n = total_n + excluded.total_n",
    [SUM_ADD] = "INSERT INTO sums SELECT " KEYS ", s.stack, 1, s.live, s.live_n, s.peak, s.total,"
                " " SHARE ", " SHARE " * " SHARE ", s.live" OF_DUMP
                " ON CONFLICT DO UPDATE SET n = n + 1, live = live + excluded.live,"
                " live_n = live_n + excluded.live_n, peak = peak + excluded.peak,"
                " total = total + excluded.total, share = share + excluded.share,"
                " share_squares = share_squares + excluded.share_squares,"
                " most = max(most, excluded.most)",
    [WEEK_ADD] = "INSERT INTO weeks SELECT " KEYS ", 1, d.live, 1.0 * d.live * d.live, d.peak,"
                 " d.total, " TELLS_PEAK ", " TELLS_TOTAL " FROM dumps d WHERE d.id = :dump"
                 " ON CONFLICT DO UPDATE SET n = n + 1, live = live + excluded.live,"
                 " live_squares = live_squares + excluded.live_squares,"
                 " peak = peak + excluded.peak, total = total + excluded.total,"
                 " peak_n = peak_n + excluded.peak_n, total_n = total_n + excluded.total_n",
    /* `most` may stay too large until its week is made anew: what is told of it is "at most". */
    [SUM_TAKE] =
        "UPDATE sums SET n = n - 1, live = sums.live - o.live, live_n = sums.live_n - o.live_n,"
        " peak = sums.peak - o.peak, total = sums.total - o.total, share = sums.share - o.share,"
        " share_squares = sums.share_squares - o.share * o.share FROM (SELECT " KEYS
        ", s.stack, s.live, s.live_n, s.peak, s.total, " SHARE " share" OF_DUMP ") o"
        " WHERE sums.team = o.team AND sums.program = o.program AND sums.build = o.build"
        " AND sums.week = o.week AND sums.control = o.control AND sums.stack = o.stack",
    [SUM_SWEEP] = "DELETE FROM sums WHERE n <= 0 AND (team, program, build, week, control) ="
                  " (SELECT " KEYS " FROM dumps d WHERE d.id = :dump)",
    [WEEK_TAKE] = "UPDATE weeks SET n = n - 1, live = weeks.live - d.live,"
                  " live_squares = live_squares - 1.0 * d.live * d.live,"
                  " peak = weeks.peak - d.peak, total = weeks.total - d.total,"
                  " peak_n = peak_n - " TELLS_PEAK ", total_n = total_n - " TELLS_TOTAL
                  " FROM dumps d WHERE d.id = :dump AND " SAME_KEYS("weeks"),
    [WEEK_SWEEP] = "DELETE FROM weeks WHERE n <= 0",
    /* See host/collect/sqlite/sweep.h. */
    [STACKS_LOOSEN] = "INSERT OR IGNORE INTO loose SELECT stack FROM samples WHERE dump = :dump",
    [WORDS_LOOSEN] = "UPDATE swept SET state = 1",
    [SAMPLES_REMOVE] = "DELETE FROM samples WHERE dump = :dump",
    [DUMP_REMOVE] = "DELETE FROM dumps WHERE id = :dump",
};

/* Most frames and stacks of a report were in the one before it. */
enum { KNOWN = 1 << 16 };

struct sqlite_store {
    struct ml_store head;
    char path[PATH_MAX];
    struct ml_db db;
    sqlite3_stmt *statements[STATEMENTS];
    /* Ids of frames and stacks that are in it, each where its last bits say. */
    int64_t known[KNOWN];
    struct ml_sqlite_sweep sweep;
};

const char *ml_sqlite_store_path(const struct ml_store *store) {
    return ((const struct sqlite_store *)store)->path;
}

const struct ml_db *ml_sqlite_store_db(const struct ml_store *store) {
    return &((const struct sqlite_store *)store)->db;
}

/* ---- one report */

/* What is added, and whether all went well so far. */
struct adding {
    struct sqlite_store *store;
    const struct ml_store_item *item;
    int64_t *stacks; /* ids of the report's stacks */
    int64_t dump;
    bool done;
};

static sqlite3_stmt *use(const struct adding *adding, enum statement which) {
    return adding->store->statements[which];
}

static void finish(struct adding *adding, enum statement which) {
    adding->done = adding->done && ml_db_run(use(adding, which)) == ML_OK;
}

static int64_t word(struct adding *adding, struct ml_string string) {
    const char *text = string.count_bytes > 0 ? string.data : "";
    ml_db_bind_text(use(adding, WORD_FIND), ":word", text);
    const int64_t found = ml_db_number(use(adding, WORD_FIND), 0);
    if (found > 0) {
        ml_sqlite_sweep_mark(&adding->store->sweep, found);
        return found;
    }
    ml_db_bind_text(use(adding, WORD_ADD), ":word", text);
    finish(adding, WORD_ADD);
    const int64_t added = sqlite3_last_insert_rowid(adding->store->db.handle);
    ml_sqlite_sweep_mark(&adding->store->sweep, added);
    return added;
}

/* SQLite's numbers are signed. */
static int64_t whole(uint64_t number) {
    return number <= INT64_MAX ? (int64_t)number : INT64_MAX;
}

static void
number(const struct adding *adding, enum statement which, const char *name, uint64_t value) {
    ml_db_bind_number(use(adding, which), name, whole(value));
}

static void add_dump(struct adding *adding) {
    const struct ml_store_item *item = adding->item;
    const struct memlog_fleet_begin_request *head = &item->report->head;
    const struct memlog_fleet_figures sums = item->report->sums;
    const uint64_t time_ms = ml_store_time_ms(item);
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {
        {":team", word(adding, ml_string_of(item->entry->team))},
        {":program", word(adding, head->program)},
        {":build", word(adding, head->build_id)},
        {":version", word(adding, head->program_version)},
        {":host", word(adding, ml_store_host(item))},
        {":time", whole(time_ms)},
        {":reason", word(adding, head->reason)},
        {":cause", word(adding, head->trigger)},
        {":control", ml_store_is_control(item)},
        {":weight", head->weight > 0 ? head->weight : 1},
        {":complete", head->complete},
        {":covered", head->covered},
        {":sampling", whole(head->sampling_bytes)},
        {":processes", whole(head->processes)},
        {":private", whole(head->private_bytes)},
        {":left", whole(head->left_bytes)},
        {":live", whole(sums.live_bytes)},
        {":peak", whole(sums.peak_bytes)},
        {":total", whole(sums.total_bytes)},
        {":week", ml_week_of(time_ms)},
        {":told", ml_store_told(item)},
        {":promised", head->promised_ppm},
        {":cost", head->cost_ppm},
    };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        ml_db_bind_number(use(adding, DUMP_ADD), numbers[i].name, numbers[i].value);
    }
    ml_db_bind_text(use(adding, DUMP_ADD), ":guid", item->entry->guid);
    finish(adding, DUMP_ADD);
    adding->dump = sqlite3_last_insert_rowid(adding->store->db.handle);
}

/* Whether it is there for sure; from now on it is. */
static bool is_known(struct adding *adding, int64_t id) {
    int64_t *known = &adding->store->known[(uint64_t)id % KNOWN];
    const bool was = *known == id;
    *known = id;
    return was;
}

static int64_t add_frame(struct adding *adding, const struct memlog_fleet_frame *frame) {
    sqlite3_stmt *statement = use(adding, FRAME_ADD);
    const int64_t id = ml_id_of_frame(adding->item->team_key, frame);
    if (is_known(adding, id)) {
        return id;
    }
    ml_db_bind_number(statement, ":id", id);
    ml_db_bind_number(statement, ":function", word(adding, frame->function));
    ml_db_bind_number(statement, ":module", word(adding, frame->module));
    ml_db_bind_number(statement, ":build", word(adding, frame->build_id));
    number(adding, FRAME_ADD, ":place", frame->offset);
    finish(adding, FRAME_ADD);
    return id;
}

/* Those that rows have, and their callers: no others are kept, as nothing would ever sweep them. */
static void find_needed(const struct ml_collect_report *report, bool *out_is_needed) {
    for (size_t i = 0; i < report->rows_count; i++) {
        for (uint32_t at = report->rows[i].stack; at != 0 && !out_is_needed[at];) {
            out_is_needed[at] = true;
            at = report->stacks[at - 1].parent;
        }
    }
}

/* The id of a stack's names: a frame that came without one may have got it since. */
static int64_t names_of(
    struct adding *adding, int64_t parent, const struct memlog_fleet_frame *frame, int64_t id
) {
    sqlite3_stmt *statement = use(adding, FRAME_NAME);
    struct memlog_fleet_frame named = *frame;
    if (frame->function.count_bytes == 0) {
        ml_db_bind_number(statement, ":id", id);
        const bool is_there = sqlite3_step(statement) == SQLITE_ROW;
        const char *text = is_there ? (const char *)sqlite3_column_text(statement, 0) : NULL;
        named.function = ml_string_of(text != NULL ? text : "");
    }
    const int64_t names = ml_id_of_names(adding->item->team_key, parent, &named);
    (void)sqlite3_reset(statement);
    return names;
}

/* False: no memory. */
static bool add_stacks(struct adding *adding) {
    const struct ml_collect_report *report = adding->item->report;
    const uint8_t *key = adding->item->team_key;
    int64_t *frames = calloc(report->frames_count + 1, sizeof(*frames));
    int64_t *names = calloc(report->stacks_count + 1, sizeof(*names));
    bool *is_needed = calloc(report->stacks_count + 1, sizeof(*is_needed));
    adding->stacks = calloc(report->stacks_count + 1, sizeof(*adding->stacks));
    const bool is_room =
        frames != NULL && names != NULL && is_needed != NULL && adding->stacks != NULL;
    if (is_room) {
        find_needed(report, is_needed);
    }
    for (size_t i = 0; is_room && i < report->stacks_count; i++) {
        const struct memlog_fleet_stack *stack = &report->stacks[i];
        if (!is_needed[i + 1]) {
            continue;
        }
        if (frames[stack->frame] == 0) {
            frames[stack->frame] = add_frame(adding, &report->frames[stack->frame - 1]);
        }
        const int64_t parent = adding->stacks[stack->parent];
        const int64_t id = ml_id_of_stack(key, parent, frames[stack->frame]);
        names[i + 1] = names_of(
            adding, names[stack->parent], &report->frames[stack->frame - 1], frames[stack->frame]
        );
        adding->stacks[i + 1] = id;
        if (is_known(adding, id)) {
            continue;
        }
        ml_db_bind_number(use(adding, STACK_ADD), ":id", id);
        ml_db_bind_number(use(adding, STACK_ADD), ":parent", parent);
        ml_db_bind_number(use(adding, STACK_ADD), ":frame", frames[stack->frame]);
        ml_db_bind_number(use(adding, STACK_ADD), ":names", names[i + 1]);
        finish(adding, STACK_ADD);
    }
    free(frames);
    free(names);
    free(is_needed);
    return is_room;
}

static void add_row(struct adding *adding, const struct memlog_fleet_row *row) {
    sqlite3_stmt *statement = use(adding, SAMPLE_ADD);
    ml_db_bind_number(statement, ":dump", adding->dump);
    ml_db_bind_number(statement, ":stack", adding->stacks[row->stack]);
    ml_db_bind_number(statement, ":role", word(adding, row->role));
    ml_db_bind_number(statement, ":process", word(adding, row->process));
    ml_db_bind_number(statement, ":heap", word(adding, row->heap));
    ml_db_bind_number(statement, ":type", word(adding, row->type));
    number(adding, SAMPLE_ADD, ":live", row->figures.live_bytes);
    number(adding, SAMPLE_ADD, ":live_n", row->figures.live_blocks);
    number(adding, SAMPLE_ADD, ":peak", row->figures.peak_bytes);
    number(adding, SAMPLE_ADD, ":peak_n", row->figures.peak_blocks);
    number(adding, SAMPLE_ADD, ":total", row->figures.total_bytes);
    number(adding, SAMPLE_ADD, ":total_n", row->figures.total_blocks);
    finish(adding, SAMPLE_ADD);
}

static int64_t dump_find(const struct sqlite_store *store, const char *team, const char *guid) {
    sqlite3_stmt *statement = store->statements[DUMP_FIND];
    ml_db_bind_text(statement, ":team", team);
    ml_db_bind_text(statement, ":guid", guid);
    return ml_db_number(statement, 0);
}

static bool add_one(struct sqlite_store *store, const struct ml_store_item *item) {
    struct adding adding = {.store = store, .item = item, .done = true};
    if (dump_find(store, item->entry->team, item->entry->guid) > 0) {
        return true;
    }
    add_dump(&adding);
    const bool is_room = add_stacks(&adding);
    for (size_t i = 0; is_room && i < item->report->rows_count; i++) {
        add_row(&adding, &item->report->rows[i]);
    }
    for (enum statement i = SUM_ADD; i <= WEEK_ADD; i++) {
        ml_db_bind_number(use(&adding, i), ":dump", adding.dump);
        finish(&adding, i);
    }
    free(adding.stacks);
    return is_room && adding.done;
}

/* ---- together or not at all */

/* Whether it is the machine that refuses, and not the report that cannot be added. */
static bool is_machines(int code) {
    static const int machines[] = {
        SQLITE_FULL,
        SQLITE_IOERR,
        SQLITE_BUSY,
        SQLITE_LOCKED,
        SQLITE_NOMEM,
        SQLITE_READONLY,
        SQLITE_CANTOPEN,
        SQLITE_PERM,
        SQLITE_CORRUPT,
        SQLITE_NOTADB,
        SQLITE_INTERRUPT,
    };
    for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
        if ((code & 0xff) == machines[i]) {
            return true;
        }
    }
    return false;
}

static enum ml_status end(struct sqlite_store *store, bool done, struct ml_error_message *error) {
    if (done && ml_db_do(&store->db, "COMMIT") == ML_OK) {
        return ML_OK;
    }
    const int code = sqlite3_errcode(store->db.handle);
    ml_error_set(error, "the store did not take it: %s", sqlite3_errmsg(store->db.handle));
    (void)!ml_db_do(&store->db, "ROLLBACK");
    memset(store->known, 0, sizeof(store->known));
    ml_sqlite_sweep_undo(&store->sweep);
    return is_machines(code) ? ML_ENV_SYSTEM : ML_PEER_RANGE;
}

static enum ml_status
add(struct ml_store *head,
    const struct ml_store_item *items,
    size_t count,
    struct ml_error_message *error) {
    struct sqlite_store *store = (struct sqlite_store *)head;
    bool done = ml_db_do(&store->db, "BEGIN IMMEDIATE") == ML_OK;
    for (size_t i = 0; done && i < count; i++) {
        done = add_one(store, &items[i]);
    }
    ml_crash_point("adding");
    return end(store, done, error);
}

static enum ml_status take_away(
    struct ml_store *head, const char *team, const char *guid, struct ml_error_message *error
) {
    struct sqlite_store *store = (struct sqlite_store *)head;
    bool done = ml_db_do(&store->db, "BEGIN IMMEDIATE") == ML_OK;
    const int64_t dump = done ? dump_find(store, team, guid) : 0;
    for (enum statement i = SUM_TAKE; done && dump > 0 && i <= DUMP_REMOVE; i++) {
        ml_db_bind_number(store->statements[i], ":dump", dump);
        done = ml_db_run(store->statements[i]) == ML_OK;
    }
    ml_crash_point("removing");
    return end(store, done, error);
}

static void forget(void *context, int64_t id) {
    struct sqlite_store *store = context;
    int64_t *known = &store->known[(uint64_t)id % KNOWN];
    *known = *known == id ? 0 : *known;
}

static enum ml_status upkeep(
    struct ml_store *head,
    uint64_t before_ms,
    struct ml_store_kept *out_kept,
    struct ml_error_message *error
) {
    struct sqlite_store *store = (struct sqlite_store *)head;
    (void)before_ms;
    out_kept->gone_ms = UINT64_MAX;
    const bool done = ml_db_do(&store->db, "BEGIN IMMEDIATE") == ML_OK &&
                      ml_sqlite_sweep_step(&store->sweep, &out_kept->is_more);
    ml_crash_point("sweeping");
    return end(store, done, error);
}

static void interrupt(struct ml_store *head) {
    sqlite3_interrupt(((struct sqlite_store *)head)->db.handle);
}

/* ---- stores of an older memlog */

/* What its dumps told is seen by their figures: a program that has live blocks has a peak. */
static const char told_of_old[] =
    "ALTER TABLE dumps ADD COLUMN told INTEGER NOT NULL DEFAULT 15;"
    "ALTER TABLE weeks ADD COLUMN peak_n INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE weeks ADD COLUMN total_n INTEGER NOT NULL DEFAULT 0;"
    "UPDATE dumps SET told = 1 + 2 * (peak > 0 OR (live = 0 AND total = 0))"
    " + 4 * (total > 0 OR (live = 0 AND peak = 0)) + 8 * (peak > 0 OR complete OR covered)"
    " WHERE NOT (peak > 0 AND total > 0);"
    "UPDATE weeks SET peak_n = o.peak_n, total_n = o.total_n FROM (SELECT " KEYS
    ", total(" TELLS_PEAK ") peak_n, total(" TELLS_TOTAL ") total_n FROM dumps d GROUP BY " KEYS
    ") o WHERE " SAME_KEYS_OF("o", "weeks");

static const char cost_of_old[] =
    "ALTER TABLE dumps ADD COLUMN promised_ppm INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE dumps ADD COLUMN cost_ppm INTEGER NOT NULL DEFAULT 0;";

/* Run `change` where the table of dumps lacks the column. */
static bool add_column(
    const struct ml_db *db, const char *column, const char *change, struct ml_error_message *error
) {
    sqlite3_stmt *statement = ml_db_prepare(
        db, "SELECT count(*) FROM pragma_table_info('dumps') WHERE name = :column", error
    );
    if (statement == NULL) {
        return false;
    }
    ml_db_bind_text(statement, ":column", column);
    const bool is_old = ml_db_number(statement, 1) == 0;
    (void)sqlite3_finalize(statement);
    return !is_old || ml_db_do(db, change) == ML_OK;
}

/* All of it, or none; then the next start does it. */
static enum ml_status renew(const struct ml_db *db, struct ml_error_message *error) {
    const bool done = ml_db_do(db, "BEGIN IMMEDIATE") == ML_OK &&
                      add_column(db, "told", told_of_old, error) &&
                      add_column(db, "cost_ppm", cost_of_old, error);
    if (done && ml_db_do(db, "COMMIT") == ML_OK) {
        return ML_OK;
    }
    ml_error_set(
        error, "it is an older memlog's, and cannot be renewed: %s", sqlite3_errmsg(db->handle)
    );
    (void)!ml_db_do(db, "ROLLBACK");
    return ML_ENV_SYSTEM;
}

/* ---- open and close */

static void close_store(struct ml_store *take_store) {
    struct sqlite_store *store = (struct sqlite_store *)take_store;
    for (enum statement i = 0; i < STATEMENTS; i++) {
        (void)sqlite3_finalize(store->statements[i]);
    }
    ml_sqlite_sweep_close(&store->sweep);
    ml_db_close(&store->db);
    free(store);
}

enum ml_status ml_sqlite_store_open(
    const char *path, struct ml_store **out_store, struct ml_error_message *error
) {
    static const struct ml_store_engine engine = {
        .close = close_store,
        .add = add,
        .remove = take_away,
        .upkeep = upkeep,
        .interrupt = interrupt,
        .nameless = ml_sqlite_store_nameless,
        .name = ml_sqlite_store_name,
        .ask_open = ml_sqlite_ask_open,
    };
    struct sqlite_store *store = calloc(1, sizeof(*store));
    if (store == NULL || strlen(path) >= sizeof(store->path)) {
        free(store);
        ml_error_set(error, "memory ran out, or the path is too long");
        return ML_ENV_MEMORY;
    }
    store->head.engine = &engine;
    (void)snprintf(store->path, sizeof(store->path), "%s", path);
    enum ml_status status = ml_db_open(&store->db, path, ml_sqlite_schema, error);
    if (status == ML_OK) {
        status = renew(&store->db, error);
    }
    for (enum statement i = 0; status == ML_OK && i < STATEMENTS; i++) {
        store->statements[i] = ml_db_prepare(&store->db, sql[i], error);
        status = store->statements[i] != NULL ? ML_OK : ML_ENV_SYSTEM;
    }
    store->sweep.forget = forget;
    store->sweep.context = store;
    if (status == ML_OK) {
        status = ml_sqlite_sweep_open(&store->sweep, &store->db, error);
    }
    if (status != ML_OK) {
        close_store(&store->head);
        return status;
    }
    *out_store = &store->head;
    return ML_OK;
}
