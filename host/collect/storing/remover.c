#include "host/collect/storing/remover.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>

#include <ev.h>

#include "host/collect/crash_point.h"
#include "host/collect/db.h"
#include "host/process/loop.h"

enum { LOOKED_AT = 1000 /* lines of the ledger in a slice */, RETRY_S = 5 };

/* How long a slice may take, and the others' time after it. */
#define SLICE_S 0.02
#define PAUSE_S 0.01

const char *const ml_removal_names[ML_REMOVE_COUNT + 1] = {"report", "host", "team", NULL};

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS removals (id INTEGER PRIMARY KEY AUTOINCREMENT, team TEXT NOT NULL,"
    " kind INTEGER NOT NULL, name TEXT NOT NULL, last_id INTEGER NOT NULL,"
    " asked_ms INTEGER NOT NULL)";

enum statement { NOTE, NEXT, NEXT_OF_TEAM, COUNT_OF_TEAM, DONE, FORGET_KEY, STATEMENTS };

#define COLUMNS "id, team, kind, name, last_id, asked_ms"

static const char *const sql[STATEMENTS] = {
    [NOTE] = "INSERT INTO removals (team, kind, name, last_id, asked_ms) VALUES (:team, :kind,"
             " :name, (SELECT coalesce(max(id), 0) FROM reports), :now)",
    [NEXT] = "SELECT " COLUMNS " FROM removals WHERE id > :id ORDER BY id LIMIT 1",
    [NEXT_OF_TEAM] = "SELECT " COLUMNS " FROM removals WHERE id > :id AND team = :team"
                     " ORDER BY id LIMIT 1",
    [COUNT_OF_TEAM] = "SELECT count(*) FROM removals WHERE team = :team",
    [DONE] = "DELETE FROM removals WHERE id = :id",
    [FORGET_KEY] = "DELETE FROM teams WHERE team = :team"
                   " AND NOT EXISTS (SELECT 1 FROM reports WHERE team = :team)",
};

struct ml_remover {
    struct ml_remover_setup setup;
    sqlite3_stmt *statements[STATEMENTS];
    char *name; /* of the wish that was asked for last */
    ev_timer timer;
    TAILQ_HEAD(, asked) asked; /* reports that somebody waits for */
    bool is_at_one;            /* an entry of the wish is being removed */
    /* The wish that is carried out; 0: none. */
    int64_t wish;
    int64_t at; /* the entry that was looked at last */
    uint64_t removed;
};

static void trouble(struct ml_remover *remover, const char *why) {
    char text[512];
    (void)snprintf(text, sizeof(text), "reports cannot be removed: %.400s", why);
    remover->setup.on_trouble(remover->setup.context, text);
}

static void go_on(struct ml_remover *remover, double seconds) {
    ml_timer_start(remover->setup.loop, &remover->timer, seconds);
}

/* ---- wishes */

/* The row of a statement with COLUMNS. */
static bool
wish_of(struct ml_remover *remover, sqlite3_stmt *statement, struct ml_removal *out_wish) {
    const bool is_there = sqlite3_step(statement) == SQLITE_ROW;
    if (is_there) {
        *out_wish = (struct ml_removal){
            .id = sqlite3_column_int64(statement, 0),
            .kind = (enum ml_removal_kind)sqlite3_column_int(statement, 2),
            .last_id = sqlite3_column_int64(statement, 4),
            .asked_ms = (uint64_t)sqlite3_column_int64(statement, 5),
        };
        const unsigned char *team = sqlite3_column_text(statement, 1);
        const unsigned char *name = sqlite3_column_text(statement, 3);
        (void)snprintf(
            out_wish->team, sizeof(out_wish->team), "%s", team != NULL ? (const char *)team : ""
        );
        free(remover->name);
        remover->name = strdup(name != NULL ? (const char *)name : "");
        out_wish->name = remover->name;
        out_wish->removed = out_wish->id == remover->wish ? remover->removed : 0;
    }
    (void)sqlite3_reset(statement);
    return is_there && remover->name != NULL;
}

static enum ml_status
note(struct ml_remover *remover, const char *team, enum ml_removal_kind kind, const char *name) {
    sqlite3_stmt *statement = remover->statements[NOTE];
    ml_db_bind_text(statement, ":team", team);
    ml_db_bind_number(statement, ":kind", kind);
    ml_db_bind_text(statement, ":name", name);
    ml_db_bind_number(statement, ":now", (int64_t)time(NULL) * 1000);
    const enum ml_status status = ml_db_run(statement);
    ml_crash_point("wish-noted");
    return status;
}

static enum ml_status finish(struct ml_remover *remover, const struct ml_removal *wish) {
    enum ml_status status = ML_OK;
    if (wish->kind == ML_REMOVE_TEAM) {
        ml_db_bind_text(remover->statements[FORGET_KEY], ":team", wish->team);
        status = ml_db_run(remover->statements[FORGET_KEY]);
    }
    ml_db_bind_number(remover->statements[DONE], ":id", wish->id);
    return status == ML_OK ? ml_db_run(remover->statements[DONE]) : status;
}

/* ---- carrying them out */

static void on_removed(void *context, enum ml_status status, const struct ml_error_message *error) {
    struct ml_remover *remover = context;
    remover->is_at_one = false;
    if (status != ML_OK) {
        trouble(remover, error->text);
        go_on(remover, RETRY_S);
        return;
    }
    remover->removed++;
    go_on(remover, 0);
}

/* The entry leaves the ledger last, so it is found again until it is gone. */
static void remove_entry(struct ml_remover *remover, const struct ml_entry *entry) {
    remover->is_at_one = true;
    if (!ml_collector_remove(remover->setup.collector, entry, on_removed, remover)) {
        remover->is_at_one = false;
        trouble(remover, "memory ran out");
        go_on(remover, RETRY_S);
    }
}

static bool is_waiting(struct ml_remover *remover, const struct ml_removal *wish) {
    struct ml_entry entry;
    /* Whose a report is stands in it: those that came before are read first. */
    return wish->kind == ML_REMOVE_HOST && ml_ledger_next(remover->setup.ledger, 0, &entry) &&
           entry.id <= wish->last_id;
}

/* The next entry that the wish is about, among those of a slice. */
enum found { FOUND, FOUND_NOT_YET, FOUND_NONE };

static enum found
find_entry(struct ml_remover *remover, const struct ml_removal *wish, struct ml_entry *out_entry) {
    struct ml_ledger *ledger = remover->setup.ledger;
    const double begun = ev_time();
    const char *host = wish->kind == ML_REMOVE_HOST ? wish->name : NULL;
    bool is_hosts = false;
    if (wish->kind == ML_REMOVE_REPORT) {
        return ml_ledger_find(ledger, wish->team, wish->name, out_entry) &&
                       out_entry->id <= wish->last_id
                   ? FOUND
                   : FOUND_NONE;
    }
    for (unsigned i = 0; i < LOOKED_AT && ev_time() - begun < SLICE_S; i++) {
        if (!ml_ledger_walk(ledger, remover->at, host, out_entry, &is_hosts) ||
            out_entry->id > wish->last_id) {
            return FOUND_NONE;
        }
        if (is_hosts && strcmp(out_entry->team, wish->team) == 0) {
            return FOUND;
        }
        remover->at = out_entry->id;
    }
    return FOUND_NOT_YET;
}

static void carry_out(struct ml_remover *remover, const struct ml_removal *wish) {
    struct ml_entry entry;
    switch (find_entry(remover, wish, &entry)) {
    case FOUND:
        remove_entry(remover, &entry);
        return;
    case FOUND_NOT_YET:
        go_on(remover, PAUSE_S);
        return;
    case FOUND_NONE:
        if (finish(remover, wish) != ML_OK) {
            trouble(remover, "the ledger cannot be written");
            go_on(remover, RETRY_S);
            return;
        }
        go_on(remover, 0);
        return;
    }
}

/* The first wish that need not wait. */
static bool choose(struct ml_remover *remover, struct ml_removal *out_wish) {
    int64_t after = 0;
    do {
        ml_db_bind_number(remover->statements[NEXT], ":id", after);
        if (!wish_of(remover, remover->statements[NEXT], out_wish)) {
            return false;
        }
        after = out_wish->id;
    } while (is_waiting(remover, out_wish));
    if (remover->wish != out_wish->id) {
        remover->wish = out_wish->id;
        remover->at = 0;
        remover->removed = 0;
    }
    return true;
}

static void on_timer(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)loop;
    (void)events;
    struct ml_remover *remover = watcher->data;
    struct ml_removal wish;
    if (remover->is_at_one) {
        return; /* it goes on by itself */
    }
    if (choose(remover, &wish)) {
        carry_out(remover, &wish);
        return;
    }
    ml_db_bind_number(remover->statements[NEXT], ":id", 0);
    if (wish_of(remover, remover->statements[NEXT], &wish)) {
        go_on(remover, 1); /* all of them wait */
    }
}

enum ml_status ml_remover_wish(
    struct ml_remover *remover, const char *team, enum ml_removal_kind kind, const char *name
) {
    ml_db_bind_text(remover->statements[COUNT_OF_TEAM], ":team", team);
    if (ml_db_number(remover->statements[COUNT_OF_TEAM], 0) >= ML_REMOVALS_WAITING) {
        return ML_PEER_LIMIT;
    }
    const enum ml_status status = note(remover, team, kind, name);
    if (status == ML_OK) {
        go_on(remover, 0);
    }
    return status;
}

/* ---- one report, for whom somebody waits */

struct asked {
    struct ml_remover *remover;
    void *asker; /* NULL: nobody hears of it */
    int64_t wish;
    TAILQ_ENTRY(asked) links;
};

static void
on_asked_removed(void *context, enum ml_status status, const struct ml_error_message *error) {
    struct asked *asked = context;
    struct ml_remover *remover = asked->remover;
    const struct ml_removal wish = {.id = asked->wish};
    if (status == ML_OK) {
        status = finish(remover, &wish);
    } else {
        trouble(remover, error->text);
    }
    if (status != ML_OK) {
        go_on(remover, RETRY_S);
    }
    if (asked->asker != NULL) {
        remover->setup.on_report_end(asked->asker, status);
    }
    TAILQ_REMOVE(&remover->asked, asked, links);
    free(asked);
}

enum ml_status
ml_remover_report(struct ml_remover *remover, const char *team, const char *guid, void *asker) {
    struct ml_entry entry;
    if (!ml_ledger_find(remover->setup.ledger, team, guid, &entry)) {
        return ML_ENV_MISSING;
    }
    struct asked *asked = calloc(1, sizeof(*asked));
    if (asked == NULL || note(remover, team, ML_REMOVE_REPORT, guid) != ML_OK) {
        free(asked);
        return ML_ENV_SYSTEM;
    }
    asked->remover = remover;
    asked->asker = asker;
    asked->wish = sqlite3_last_insert_rowid(ml_ledger_db(remover->setup.ledger)->handle);
    TAILQ_INSERT_TAIL(&remover->asked, asked, links);
    if (!ml_collector_remove(remover->setup.collector, &entry, on_asked_removed, asked)) {
        TAILQ_REMOVE(&remover->asked, asked, links);
        free(asked);
        go_on(remover, RETRY_S);
        return ML_ENV_SYSTEM;
    }
    return ML_OK;
}

void ml_remover_cancel(struct ml_remover *remover, const void *asker) {
    struct asked *asked = NULL;
    TAILQ_FOREACH(asked, &remover->asked, links) {
        if (asked->asker == asker) {
            asked->asker = NULL;
        }
    }
}

bool ml_remover_next(
    struct ml_remover *remover, const char *team, int64_t after, struct ml_removal *out_removal
) {
    ml_db_bind_number(remover->statements[NEXT_OF_TEAM], ":id", after);
    ml_db_bind_text(remover->statements[NEXT_OF_TEAM], ":team", team);
    return wish_of(remover, remover->statements[NEXT_OF_TEAM], out_removal);
}

/* ---- birth and end */

static bool prepare(struct ml_remover *remover, struct ml_error_message *error) {
    const struct ml_db *db = ml_ledger_db(remover->setup.ledger);
    bool done = ml_db_do(db, schema) == ML_OK;
    if (!done) {
        ml_error_set(error, "%s", sqlite3_errmsg(db->handle));
    }
    for (enum statement i = 0; done && i < STATEMENTS; i++) {
        remover->statements[i] = ml_db_prepare(db, sql[i], error);
        done = remover->statements[i] != NULL;
    }
    return done;
}

struct ml_remover *
ml_remover_new(const struct ml_remover_setup *setup, struct ml_error_message *error) {
    struct ml_remover *remover = calloc(1, sizeof(*remover));
    if (remover == NULL) {
        ml_error_set(error, "memory ran out");
        return NULL;
    }
    remover->setup = *setup;
    TAILQ_INIT(&remover->asked);
    ml_timer_init(&remover->timer, on_timer, remover);
    if (!prepare(remover, error)) {
        ml_remover_free(remover);
        return NULL;
    }
    go_on(remover, 0);
    return remover;
}

void ml_remover_free(struct ml_remover *take_remover) {
    if (take_remover == NULL) {
        return;
    }
    for (enum statement i = 0; i < STATEMENTS; i++) {
        (void)sqlite3_finalize(take_remover->statements[i]);
    }
    ev_timer_stop(take_remover->setup.loop, &take_remover->timer);
    struct asked *asked = TAILQ_FIRST(&take_remover->asked);
    while (asked != NULL) {
        struct asked *next = TAILQ_NEXT(asked, links);
        free(asked);
        asked = next;
    }
    free(take_remover->name);
    free(take_remover);
}
