#include "host/collect/server/symbolize.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/option_table.h"
#include "host/collect/analyzer/naming.h"
#include "host/collect/clickhouse/opening.h"
#include "host/collect/db.h"
#include "host/collect/ledger.h"
#include "host/collect/store.h"
#include "host/process/log.h"
#include "host/process/paths.h"

enum { EXIT_FAILED = 1, EXIT_WRONG = 2, FILES_MAX = 256, BUILD_ID_LEAST = 8, SUFFIX_BYTES = 16 };

struct symbolizing {
    const char *files[FILES_MAX + 1];
    const char *store_path, *clickhouse; /* one of them */
    const char *store_auth, *spool;
    bool quiet;
    char analyzer_path[PATH_MAX], spool_path[PATH_MAX];
    struct ml_log log;
    struct ml_store *store;
    struct ml_team_keys keys;
};

/* ---- options */

static bool read_store(void *to, const char *value, struct ml_error_message *why) {
    static const char sqlite[] = "sqlite:";
    static const char clickhouse[] = "clickhouse:";
    struct symbolizing *all = to;
    all->store_path = all->clickhouse = NULL;
    if (strncmp(value, sqlite, sizeof(sqlite) - 1) == 0 && value[sizeof(sqlite) - 1] != '\0') {
        all->store_path = value + sizeof(sqlite) - 1;
        return true;
    }
    if (strncmp(value, clickhouse, sizeof(clickhouse) - 1) == 0 &&
        value[sizeof(clickhouse) - 1] != '\0') {
        all->clickhouse = value + sizeof(clickhouse) - 1;
        return true;
    }
    ml_error_set(why, "a store is sqlite:PATH or clickhouse:URL[,URL...]");
    return false;
}

static const char *wrong(const struct symbolizing *all) {
    if (all->store_path == NULL && all->clickhouse == NULL) {
        return "say where the reports are: --store=sqlite:PATH or --store=clickhouse:URL[,URL...]";
    }
    if (all->clickhouse != NULL && all->spool == NULL) {
        return "a store of ClickHouse wants the collector's --spool=DIR, too: it has the teams' "
               "keys";
    }
    return all->clickhouse == NULL && all->store_auth != NULL
               ? "--store-auth is for --store=clickhouse:URL"
               : NULL;
}

static const struct ml_option options_list[] = {
    {.name = "--store",
     ML_READ_BY(read_store),
     .value = "KIND:PLACE",
     .help = "where the reports are: sqlite:PATH or clickhouse:URL[,URL...]"},
    {.name = "--store-auth",
     ML_PATH_TO(struct symbolizing, store_auth),
     .value = "FILE",
     .help = "the file with USER PASSWORD for the servers of ClickHouse"},
    {.name = "--spool",
     ML_PATH_TO(struct symbolizing, spool),
     .value = "DIR",
     .help = "the collector's spool, which has the teams' keys (PATH.spool)"},
    {.name = "--quiet",
     .short_name = "-q",
     ML_FLAG_TO(struct symbolizing, quiet),
     .help = "say nothing but errors"},
};

static const struct ml_option_table table = {
    .program = "memlog",
    .name = "collect symbolize",
    .summary = "give names to frames that reports came without",
    .usage = "--store=KIND:PLACE [OPTIONS] FILE|BUILD_ID...",
    .about = "A program without symbols sends its stacks as module, build id and offset. FILE is "
             "the same build with symbols, or its debug file; of a BUILD_ID it is the one below "
             "/usr/lib/debug/.build-id. Stacks are renamed in all reports; no figure changes.",
    ML_OPTIONS(options_list),
    .operands = ML_OPERANDS_FILES,
    .operands_offset = offsetof(struct symbolizing, files),
    .operands_least = 1,
    .operands_most = FILES_MAX,
    .operands_missing = "say which file has the names, or which build id",
    .example = "memlog collect symbolize --store=sqlite:fleet.db server.debug",
};

/* ---- the teams' keys */

static bool keys_add(struct ml_team_keys *keys, sqlite3_stmt *statement) {
    if (sqlite3_column_bytes(statement, 0) != ML_TEAM_KEY_BYTES) {
        return true;
    }
    void *grown = reallocarray(keys->list, keys->count + 1, sizeof(*keys->list));
    if (grown == NULL) {
        return false;
    }
    keys->list = grown;
    memcpy(keys->list[keys->count++], sqlite3_column_blob(statement, 0), ML_TEAM_KEY_BYTES);
    return true;
}

static void in_spool(const struct symbolizing *all, const char *name, char out_path[PATH_MAX]) {
    (void)snprintf(out_path, PATH_MAX, "%.*s/%s", PATH_MAX - SUFFIX_BYTES, all->spool_path, name);
}

/* Of the ledger, which a collector may hold: reading its table needs no lock of it. */
static bool keys_read(struct symbolizing *all, struct ml_error_message *error) {
    char path[PATH_MAX];
    struct ml_db db;
    in_spool(all, "ledger.db", path);
    if (access(path, R_OK | W_OK) != 0) {
        ml_error_set(error, "%s: %s; --spool=DIR is the collector's", path, strerror(errno));
        return false;
    }
    if (ml_db_open(&db, path, "", error) != ML_OK) {
        return false;
    }
    sqlite3_stmt *statement = ml_db_prepare(&db, "SELECT key FROM teams ORDER BY team", error);
    bool done = statement != NULL;
    while (done && sqlite3_step(statement) == SQLITE_ROW) {
        done = keys_add(&all->keys, statement);
    }
    (void)sqlite3_finalize(statement);
    ml_db_close(&db);
    return done;
}

/* ---- one file */

/* What a word stands for: a file, or else a build id, whose file lies where distributions have it.
 */
static int open_file(const char *word, char out_path[PATH_MAX]) {
    static const char digits[] = "0123456789abcdef";
    (void)snprintf(out_path, PATH_MAX, "%s", word);
    const int fd = open(word, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 || strspn(word, digits) != strlen(word) || strlen(word) < BUILD_ID_LEAST) {
        return fd;
    }
    (void)snprintf(out_path, PATH_MAX, "/usr/lib/debug/.build-id/%.2s/%s.debug", word, word + 2);
    return open(out_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

static bool name_all(
    struct symbolizing *all,
    struct ml_naming *naming,
    const char *path,
    struct ml_error_message *error
) {
    const char *build_id = ml_naming_build_id(naming);
    struct ml_nameless nameless;
    struct ml_named named = {.frames = 0};
    if (ml_store_nameless(all->store, build_id, &nameless, error) != ML_OK) {
        return false;
    }
    const char **names = calloc(nameless.count + 1, sizeof(*names));
    const bool done =
        names != NULL &&
        ml_naming_ask(naming, nameless.places, nameless.count, names, error) == ML_OK &&
        ml_store_name(all->store, &nameless, names, &all->keys, &named, error) == ML_OK;
    if (done) {
        ml_say(
            &all->log,
            "%s: build %s, %zu frames without a name, %" PRIu64 " named, %" PRIu64
            " stacks renamed",
            path,
            build_id,
            nameless.count,
            named.frames,
            named.stacks
        );
    } else if (names == NULL) {
        ml_error_set(error, "memory ran out");
    }
    free(names);
    ml_nameless_fini(&nameless);
    return done;
}

static bool symbolize(struct symbolizing *all, const char *word) {
    char path[PATH_MAX];
    struct ml_error_message error = {.text = ""};
    const int fd = open_file(word, path);
    if (fd < 0) {
        ml_say_error("%s: %s", path, strerror(errno));
        return false;
    }
    struct ml_naming *naming = ml_naming_start(all->analyzer_path, fd, &error);
    (void)close(fd);
    const bool done = naming != NULL && name_all(all, naming, path, &error);
    ml_naming_free(naming);
    if (!done) {
        ml_say_error("%s: %s", path, error.text);
    }
    return done;
}

/* ---- all of them */

/* Both are the collector's, and are there: none is made. */
static enum ml_status open_store(struct symbolizing *all, struct ml_error_message *error) {
    char batches_path[PATH_MAX];
    if (all->store_path != NULL) {
        return ml_store_open(all->store_path, &all->store, error);
    }
    in_spool(all, "batches.db", batches_path);
    if (access(batches_path, R_OK | W_OK) != 0) {
        ml_error_set(
            error, "%s: %s; --spool=DIR is the collector's", batches_path, strerror(errno)
        );
        return ML_ENV_SYSTEM;
    }
    const struct ml_click_place place = {
        .urls = all->clickhouse, .login_path = all->store_auth, .batches_path = batches_path};
    return ml_click_store_open(&place, &all->store, error);
}

static int work(struct symbolizing *all) {
    struct ml_error_message error = {.text = ""};
    bool done = true;
    if (all->store_path != NULL && access(all->store_path, R_OK | W_OK) != 0) {
        ml_say_error("%s: %s", all->store_path, strerror(errno));
        return EXIT_FAILED;
    }
    (void)snprintf(
        all->spool_path,
        sizeof(all->spool_path),
        "%.*s%s",
        PATH_MAX - 2 * SUFFIX_BYTES,
        all->spool != NULL ? all->spool : all->store_path,
        all->spool != NULL ? "" : ".spool"
    );
    if (ml_paths_find(ML_ANALYZER_FILE, all->analyzer_path, &error) != ML_OK ||
        !keys_read(all, &error) || open_store(all, &error) != ML_OK) {
        ml_say_error("%s", error.text);
        return EXIT_FAILED;
    }
    for (size_t i = 0; all->files[i] != NULL; i++) {
        done = symbolize(all, all->files[i]) && done;
    }
    ml_store_close(all->store);
    return done ? EXIT_SUCCESS : EXIT_FAILED;
}

int ml_symbolize_run(char *const *words) {
    static struct symbolizing all;
    struct ml_error_message error = {.text = ""};
    switch (ml_option_table_read(&table, words, &all, NULL, &error)) {
    case ML_OPTIONS_HELP:
        ml_option_table_help(&table, stdout);
        return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILED;
    case ML_OPTIONS_READ:
        if (wrong(&all) == NULL) {
            break;
        }
        ml_error_set(&error, "%s", wrong(&all));
        __attribute__((fallthrough));
    case ML_OPTIONS_WRONG:
        ml_say_error("%s", error.text);
        (void)fputs("Try 'memlog collect symbolize --help'.\n", stderr);
        return EXIT_WRONG;
    }
    all.log.quiet = all.quiet;
    const int exit_code = work(&all);
    if (all.keys.list != NULL) {
        explicit_bzero(all.keys.list, all.keys.count * sizeof(*all.keys.list));
    }
    free(all.keys.list);
    return exit_code;
}
