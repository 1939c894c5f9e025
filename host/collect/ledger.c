#include "host/collect/ledger.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

#include "host/collect/crash_point.h"
#include "host/collect/db.h"

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS teams (team TEXT PRIMARY KEY, key BLOB NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS reports ("
    " id INTEGER PRIMARY KEY AUTOINCREMENT, team TEXT NOT NULL, guid TEXT NOT NULL,"
    " hash BLOB NOT NULL, bytes INTEGER NOT NULL, received_ms INTEGER NOT NULL,"
    " host TEXT NOT NULL, own_host TEXT NOT NULL, state INTEGER NOT NULL, reason TEXT NOT NULL,"
    " UNIQUE (team, guid));"
    "CREATE INDEX IF NOT EXISTS reports_by_state ON reports (state, id);"
    "CREATE INDEX IF NOT EXISTS reports_by_team ON reports (state, team, id);";

#define ENTRY_COLUMNS "id, team, guid, hash, bytes, received_ms, host, state, reason"

enum statement {
    FIND,
    ADD,
    NEXT,
    NEXT_OF_TEAM,
    SETTLE,
    FORGET,
    REMOVE,
    OLDEST,
    WALK,
    FIGURES,
    TEAM_KEY,
    TEAM_ADD,
    STATEMENTS
};

static const char *const sql[STATEMENTS] = {
    [FIND] = "SELECT " ENTRY_COLUMNS " FROM reports WHERE team = :team AND guid = :guid",
    [ADD] = "INSERT INTO reports (team, guid, hash, bytes, received_ms, host, own_host, state,"
            " reason) VALUES (:team, :guid, :hash, :bytes, :received, :host, '', 0, '')",
    [NEXT] =
        "SELECT " ENTRY_COLUMNS " FROM reports WHERE state = 0 AND id > :id ORDER BY id LIMIT 1",
    [NEXT_OF_TEAM] = "SELECT " ENTRY_COLUMNS " FROM reports WHERE state = 0 AND team = :team"
                     " AND id > :id ORDER BY id LIMIT 1",
    [SETTLE] = "UPDATE reports SET state = :state, reason = :reason, own_host = :own_host"
               " WHERE id = :id",
    [FORGET] = "UPDATE reports SET state = 0 WHERE state = 1",
    [REMOVE] = "DELETE FROM reports WHERE id = :id",
    [OLDEST] = "SELECT " ENTRY_COLUMNS " FROM reports ORDER BY id LIMIT 1",
    [WALK] = "SELECT " ENTRY_COLUMNS ", CASE WHEN host <> '' THEN host ELSE own_host END = :host"
             " FROM reports WHERE id > :id ORDER BY id LIMIT 1",
    [FIGURES] = "SELECT team, state, count(*), sum(bytes) FROM reports GROUP BY team, state",
    [TEAM_KEY] = "SELECT key FROM teams WHERE team = :team",
    [TEAM_ADD] = "INSERT OR IGNORE INTO teams (team, key) VALUES (:team, :key)",
};

struct ml_ledger {
    char folder[PATH_MAX / 2];
    int lock_fd;
    struct ml_db db;
    sqlite3_stmt *statements[STATEMENTS];
    struct ml_team_list teams;
};

struct ml_body {
    int fd;
    char path[PATH_MAX];
    uint64_t bytes;
    gnutls_hash_hd_t hash;
};

/* ---- open and close */

static enum ml_status prepare(struct ml_ledger *ledger, struct ml_error_message *error) {
    for (enum statement i = 0; i < STATEMENTS; i++) {
        ledger->statements[i] = ml_db_prepare(&ledger->db, sql[i], error);
        if (ledger->statements[i] == NULL) {
            return ML_ENV_SYSTEM;
        }
    }
    return ML_OK;
}

/* One collector works in a folder. One that was killed may leave a process that it had forked: it
 * has the lock until it becomes the analyzer. */
static bool take_lock(int fd) {
    enum { TRIES = 60, PAUSE_NS = 50000000 };
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    for (int i = 0; i < TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
            return true;
        }
        (void)nanosleep(&pause, NULL);
    }
    return false;
}

static enum ml_status lock(struct ml_ledger *ledger, struct ml_error_message *error) {
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/lock", ledger->folder);
    ledger->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (ledger->lock_fd < 0) {
        ml_error_set(error, "%s: %s", path, strerror(errno));
        return ML_ENV_SYSTEM;
    }
    if (!take_lock(ledger->lock_fd)) {
        ml_error_set(error, "another collector works in %s", ledger->folder);
        return ML_ENV_REFUSED;
    }
    return ML_OK;
}

static void sweep_incoming(const struct ml_ledger *ledger);

static void column_text(sqlite3_stmt *statement, int column, char *out_text, size_t room) {
    const unsigned char *text = sqlite3_column_text(statement, column);
    (void)snprintf(out_text, room, "%s", text != NULL ? (const char *)text : "");
}

static void count_all(struct ml_ledger *ledger) {
    sqlite3_stmt *statement = ledger->statements[FIGURES];
    ml_team_list_clear(&ledger->teams);
    while (sqlite3_step(statement) == SQLITE_ROW) {
        char team[ML_TEAM_BYTES];
        column_text(statement, 0, team, sizeof(team));
        ml_team_list_add(
            &ledger->teams,
            team,
            (unsigned)sqlite3_column_int(statement, 1),
            (uint64_t)sqlite3_column_int64(statement, 2),
            (uint64_t)sqlite3_column_int64(statement, 3)
        );
    }
    (void)sqlite3_reset(statement);
}

static enum ml_status make_folders(struct ml_ledger *ledger, struct ml_error_message *error) {
    static const char *const names[] = {"", "/incoming", "/bodies"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[PATH_MAX];
        (void)snprintf(path, sizeof(path), "%s%s", ledger->folder, names[i]);
        if (mkdir(path, S_IRWXU) != 0 && errno != EEXIST) {
            ml_error_set(error, "%s: %s", path, strerror(errno));
            return ML_ENV_SYSTEM;
        }
    }
    return ML_OK;
}

enum ml_status
ml_ledger_open(const char *folder, struct ml_ledger **out_ledger, struct ml_error_message *error) {
    struct ml_ledger *ledger = calloc(1, sizeof(*ledger));
    char path[PATH_MAX];
    if (ledger == NULL || strlen(folder) >= sizeof(ledger->folder)) {
        free(ledger);
        ml_error_set(error, "memory ran out, or the path is too long");
        return ML_ENV_MEMORY;
    }
    (void)snprintf(ledger->folder, sizeof(ledger->folder), "%s", folder);
    ledger->lock_fd = -1;
    (void)snprintf(path, sizeof(path), "%s/ledger.db", folder);
    enum ml_status status = make_folders(ledger, error);
    status = status == ML_OK ? lock(ledger, error) : status;
    status = status == ML_OK ? ml_db_open(&ledger->db, path, schema, error) : status;
    status = status == ML_OK ? prepare(ledger, error) : status;
    if (status != ML_OK) {
        ml_ledger_close(ledger);
        return status;
    }
    sweep_incoming(ledger);
    count_all(ledger);
    *out_ledger = ledger;
    return ML_OK;
}

void ml_ledger_close(struct ml_ledger *take_ledger) {
    struct ml_ledger *ledger = take_ledger;
    if (ledger == NULL) {
        return;
    }
    for (enum statement i = 0; i < STATEMENTS; i++) {
        (void)sqlite3_finalize(ledger->statements[i]);
    }
    ml_db_close(&ledger->db);
    ml_team_list_fini(&ledger->teams);
    if (ledger->lock_fd >= 0) {
        (void)close(ledger->lock_fd);
    }
    free(ledger);
}

/* ---- bodies */

static uint64_t now_ms(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Its name is that of team and guid, whatever they are. */
static void path_of(
    const struct ml_ledger *ledger, const char *team, const char *guid, char out_path[PATH_MAX]
) {
    char name[ML_TEAM_BYTES + ML_GUID_BYTES + 1];
    uint8_t hash[ML_HASH_BYTES];
    const int count = snprintf(name, sizeof(name), "%s/%s", team, guid);
    (void)gnutls_hash_fast(GNUTLS_DIG_SHA256, name, (size_t)count, hash);
    int at = snprintf(out_path, PATH_MAX, "%s/bodies/%02x/", ledger->folder, hash[0]);
    for (size_t i = 1; i < ML_HASH_BYTES; i++) {
        at += snprintf(out_path + at, (size_t)(PATH_MAX - at), "%02x", hash[i]);
    }
}

static bool sync_folder_of(const char *path) {
    char folder[PATH_MAX];
    (void)snprintf(folder, sizeof(folder), "%s", path);
    *strrchr(folder, '/') = '\0';
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool done = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0) {
        (void)close(fd);
    }
    return done;
}

struct ml_body *ml_body_new(struct ml_ledger *ledger) {
    struct ml_body *body = calloc(1, sizeof(*body));
    if (body == NULL) {
        return NULL;
    }
    (void)snprintf(body->path, sizeof(body->path), "%s/incoming/XXXXXX", ledger->folder);
    body->fd = mkostemp(body->path, O_CLOEXEC);
    if (body->fd < 0 || gnutls_hash_init(&body->hash, GNUTLS_DIG_SHA256) != 0) {
        const int error = errno;
        ml_body_drop(body);
        errno = error;
        return NULL;
    }
    return body;
}

bool ml_body_add(struct ml_body *body, const void *bytes, size_t count) {
    const uint8_t *at = bytes;
    if (gnutls_hash(body->hash, bytes, count) != 0) {
        return false;
    }
    body->bytes += count;
    while (count > 0) {
        const ssize_t written = write(body->fd, at, count);
        if (written < 0 && errno != EINTR) {
            return false;
        }
        at += written > 0 ? written : 0;
        count -= written > 0 ? (size_t)written : 0;
    }
    return true;
}

uint64_t ml_body_bytes(const struct ml_body *body) {
    return body->bytes;
}

bool ml_body_hash(const struct ml_body *body, uint8_t out_hash[ML_HASH_BYTES]) {
    gnutls_hash_hd_t copy = gnutls_hash_copy(body->hash);
    if (copy == NULL) {
        return false;
    }
    gnutls_hash_deinit(copy, out_hash);
    return true;
}

int ml_body_fd(const struct ml_body *body) {
    return body->fd;
}

bool ml_body_move(struct ml_body *take_body, const char *path) {
    struct ml_body *body = take_body;
    const bool is_moved =
        fsync(body->fd) == 0 && rename(body->path, path) == 0 && sync_folder_of(path);
    const int error = errno;
    if (is_moved) {
        (void)close(body->fd);
        body->fd = -1;
    }
    ml_body_drop(body);
    errno = error;
    return is_moved;
}

void ml_body_drop(struct ml_body *take_body) {
    struct ml_body *body = take_body;
    if (body == NULL) {
        return;
    }
    if (body->fd >= 0) {
        (void)close(body->fd);
        (void)unlink(body->path);
    }
    if (body->hash != NULL) {
        gnutls_hash_deinit(body->hash, NULL);
    }
    free(body);
}

/* What a collector that died had begun to take in was never promised. */
static void sweep_incoming(const struct ml_ledger *ledger) {
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/incoming", ledger->folder);
    DIR *folder = opendir(path);
    for (const struct dirent *one = folder != NULL ? readdir(folder) : NULL; one != NULL;
         one = readdir(folder)) {
        if (one->d_name[0] != '.') {
            (void)unlinkat(dirfd(folder), one->d_name, 0);
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
}

/* ---- entries */

/* The next row of a statement with ENTRY_COLUMNS. False: there is none. */
static bool entry_row(sqlite3_stmt *statement, struct ml_entry *out_entry) {
    const bool is_there = sqlite3_step(statement) == SQLITE_ROW;
    if (is_there) {
        *out_entry = (struct ml_entry){
            .id = sqlite3_column_int64(statement, 0),
            .bytes = (uint64_t)sqlite3_column_int64(statement, 4),
            .received_ms = (uint64_t)sqlite3_column_int64(statement, 5),
            .state = (enum ml_entry_state)sqlite3_column_int(statement, 7),
        };
        column_text(statement, 1, out_entry->team, sizeof(out_entry->team));
        column_text(statement, 2, out_entry->guid, sizeof(out_entry->guid));
        column_text(statement, 6, out_entry->host, sizeof(out_entry->host));
        column_text(statement, 8, out_entry->reason, sizeof(out_entry->reason));
        if (sqlite3_column_bytes(statement, 3) == ML_HASH_BYTES) {
            memcpy(out_entry->hash, sqlite3_column_blob(statement, 3), ML_HASH_BYTES);
        }
    }
    return is_there;
}

static bool entry_of(sqlite3_stmt *statement, struct ml_entry *out_entry) {
    const bool is_there = entry_row(statement, out_entry);
    (void)sqlite3_reset(statement);
    return is_there;
}

bool ml_ledger_find(
    struct ml_ledger *ledger, const char *team, const char *guid, struct ml_entry *out_entry
) {
    ml_db_bind_text(ledger->statements[FIND], ":team", team);
    ml_db_bind_text(ledger->statements[FIND], ":guid", guid);
    return entry_of(ledger->statements[FIND], out_entry);
}

static void hex_of(const uint8_t *bytes, size_t count, char *out_hex) {
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(out_hex + 2 * i, 3, "%02x", bytes[i]);
    }
}

/* The body under its name, both on the disk. */
static bool
place(const struct ml_ledger *ledger, const struct ml_body *body, const struct ml_entry *entry) {
    char path[PATH_MAX];
    char folder[PATH_MAX];
    path_of(ledger, entry->team, entry->guid, path);
    (void)snprintf(folder, sizeof(folder), "%s", path);
    *strrchr(folder, '/') = '\0';
    if (mkdir(folder, S_IRWXU) != 0 && errno != EEXIST) {
        return false;
    }
    return fsync(body->fd) == 0 && rename(body->path, path) == 0 && sync_folder_of(path) &&
           sync_folder_of(folder);
}

static enum ml_status add(struct ml_ledger *ledger, struct ml_entry *entry) {
    sqlite3_stmt *statement = ledger->statements[ADD];
    ml_db_bind_text(statement, ":team", entry->team);
    ml_db_bind_text(statement, ":guid", entry->guid);
    ml_db_bind_bytes(statement, ":hash", entry->hash, ML_HASH_BYTES);
    ml_db_bind_number(statement, ":bytes", (int64_t)entry->bytes);
    ml_db_bind_number(statement, ":received", (int64_t)entry->received_ms);
    ml_db_bind_text(statement, ":host", entry->host);
    const enum ml_status status = ml_db_run(statement);
    entry->id = sqlite3_last_insert_rowid(ledger->db.handle);
    if (status == ML_OK) {
        ml_team_list_add(&ledger->teams, entry->team, ML_ENTRY_ACCEPTED, 1, entry->bytes);
    }
    return status;
}

static enum ml_accepted
accept_new(struct ml_ledger *ledger, struct ml_body *body, struct ml_entry *entry) {
    errno = EIO;
    ml_crash_point("body-written");
    if (!place(ledger, body, entry)) {
        return ML_ACCEPTED_NOT;
    }
    ml_crash_point("body-synced");
    /* From here on the file stands under its name. Without a line it is nobody's, and the next try
     * replaces it. */
    (void)close(body->fd);
    body->fd = -1;
    if (add(ledger, entry) != ML_OK) {
        return ML_ACCEPTED_NOT;
    }
    ml_crash_point("line-written");
    return ML_ACCEPTED_NEW;
}

enum ml_accepted ml_ledger_accept(
    struct ml_ledger *ledger,
    struct ml_body *take_body,
    const char *team,
    const char *guid,
    const char *host,
    struct ml_entry *out_entry
) {
    struct ml_entry entry = {.bytes = take_body->bytes, .received_ms = now_ms()};
    gnutls_hash_output(take_body->hash, entry.hash);
    (void)snprintf(entry.team, sizeof(entry.team), "%s", team);
    (void)snprintf(entry.host, sizeof(entry.host), "%s", host);
    (void)snprintf(entry.guid, sizeof(entry.guid), "%s", guid);
    if (guid[0] == '\0') {
        hex_of(entry.hash, ML_HASH_BYTES, entry.guid);
    }
    enum ml_accepted accepted = ML_ACCEPTED_NOT;
    if (ml_ledger_find(ledger, entry.team, entry.guid, out_entry)) {
        const bool is_same = memcmp(out_entry->hash, entry.hash, ML_HASH_BYTES) == 0;
        accepted = is_same ? ML_ACCEPTED_BEFORE : ML_ACCEPTED_CONFLICT;
    } else {
        accepted = accept_new(ledger, take_body, &entry);
        *out_entry = entry;
    }
    ml_body_drop(take_body);
    return accepted;
}

bool ml_ledger_next(struct ml_ledger *ledger, int64_t after, struct ml_entry *out_entry) {
    ml_db_bind_number(ledger->statements[NEXT], ":id", after);
    return entry_of(ledger->statements[NEXT], out_entry);
}

bool ml_ledger_next_of_team(
    struct ml_ledger *ledger, uint64_t team, int64_t after, struct ml_entry *out_entry
) {
    sqlite3_stmt *statement = ledger->statements[NEXT_OF_TEAM];
    struct ml_team_figures figures;
    const char *name = ml_team_list_at(&ledger->teams, team, &figures);
    if (name == NULL || figures.counts[ML_ENTRY_ACCEPTED] == 0) {
        return false;
    }
    ml_db_bind_text(statement, ":team", name);
    ml_db_bind_number(statement, ":id", after);
    return entry_of(statement, out_entry);
}

uint64_t ml_ledger_teams(const struct ml_ledger *ledger) {
    return ledger->teams.count;
}

bool ml_ledger_oldest(struct ml_ledger *ledger, struct ml_entry *out_entry) {
    return entry_of(ledger->statements[OLDEST], out_entry);
}

bool ml_ledger_walk(
    struct ml_ledger *ledger,
    int64_t after,
    const char *host,
    struct ml_entry *out_entry,
    bool *out_is_hosts
) {
    enum { IS_HOSTS = 9 }; /* behind ENTRY_COLUMNS */
    sqlite3_stmt *statement = ledger->statements[WALK];
    ml_db_bind_number(statement, ":id", after);
    ml_db_bind_text(statement, ":host", host != NULL ? host : "");
    const bool is_there = entry_row(statement, out_entry);
    *out_is_hosts = is_there && (host == NULL || sqlite3_column_int(statement, IS_HOSTS) != 0);
    (void)sqlite3_reset(statement);
    return is_there;
}

const struct ml_db *ml_ledger_db(const struct ml_ledger *ledger) {
    return &ledger->db;
}

int ml_ledger_body(const struct ml_ledger *ledger, const struct ml_entry *entry) {
    char path[PATH_MAX];
    path_of(ledger, entry->team, entry->guid, path);
    return open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
}

enum ml_status ml_ledger_settle(
    struct ml_ledger *ledger,
    const struct ml_entry *entry,
    enum ml_entry_state state,
    const char *reason,
    const char *own_host
) {
    sqlite3_stmt *statement = ledger->statements[SETTLE];
    ml_db_bind_text(statement, ":own_host", own_host);
    ml_db_bind_number(statement, ":id", entry->id);
    ml_db_bind_number(statement, ":state", state);
    ml_db_bind_text(statement, ":reason", reason);
    const enum ml_status status = ml_db_run(statement);
    if (status == ML_OK && sqlite3_changes(ledger->db.handle) > 0) {
        ml_team_list_take(&ledger->teams, entry->team, entry->state, 1, entry->bytes);
        ml_team_list_add(&ledger->teams, entry->team, state, 1, entry->bytes);
    }
    return status;
}

/* A commit that fails leaves all of it accepted: it comes again. */
void ml_ledger_begin(struct ml_ledger *ledger) {
    (void)!ml_db_do(&ledger->db, "BEGIN IMMEDIATE");
}

void ml_ledger_commit(struct ml_ledger *ledger) {
    if (ml_db_do(&ledger->db, "COMMIT") != ML_OK) {
        (void)!ml_db_do(&ledger->db, "ROLLBACK");
        count_all(ledger);
    }
}

enum ml_status ml_ledger_forget_store(struct ml_ledger *ledger) {
    const enum ml_status status = ml_db_run(ledger->statements[FORGET]);
    count_all(ledger);
    return status;
}

/* The body goes first, and its line tells of it until then. */
enum ml_status ml_ledger_remove(struct ml_ledger *ledger, const struct ml_entry *entry) {
    char path[PATH_MAX];
    path_of(ledger, entry->team, entry->guid, path);
    if (unlink(path) == 0 ? !sync_folder_of(path) : errno != ENOENT) {
        return ML_ENV_SYSTEM;
    }
    ml_crash_point("body-removed");
    ml_db_bind_number(ledger->statements[REMOVE], ":id", entry->id);
    const enum ml_status status = ml_db_run(ledger->statements[REMOVE]);
    if (status == ML_OK && sqlite3_changes(ledger->db.handle) > 0) {
        ml_team_list_take(&ledger->teams, entry->team, entry->state, 1, entry->bytes);
    }
    return status;
}

struct ml_team_figures ml_ledger_figures(const struct ml_ledger *ledger, const char *team) {
    return team != NULL ? ml_team_list_of(&ledger->teams, team) : ledger->teams.all;
}

static bool team_key(struct ml_ledger *ledger, const char *team, uint8_t *out_key) {
    sqlite3_stmt *statement = ledger->statements[TEAM_KEY];
    ml_db_bind_text(statement, ":team", team);
    const bool is_there = sqlite3_step(statement) == SQLITE_ROW &&
                          sqlite3_column_bytes(statement, 0) == ML_TEAM_KEY_BYTES;
    if (is_there) {
        memcpy(out_key, sqlite3_column_blob(statement, 0), ML_TEAM_KEY_BYTES);
    }
    (void)sqlite3_reset(statement);
    return is_there;
}

enum ml_status
ml_ledger_team_key(struct ml_ledger *ledger, const char *team, uint8_t out_key[ML_TEAM_KEY_BYTES]) {
    uint8_t made[ML_TEAM_KEY_BYTES];
    if (team_key(ledger, team, out_key)) {
        return ML_OK;
    }
    if (getrandom(made, sizeof(made), 0) != (ssize_t)sizeof(made)) {
        return ML_ENV_SYSTEM;
    }
    ml_db_bind_text(ledger->statements[TEAM_ADD], ":team", team);
    ml_db_bind_bytes(ledger->statements[TEAM_ADD], ":key", made, sizeof(made));
    const enum ml_status status = ml_db_run(ledger->statements[TEAM_ADD]);
    return status == ML_OK && team_key(ledger, team, out_key) ? ML_OK : ML_ENV_SYSTEM;
}

const char *ml_ledger_folder(const struct ml_ledger *ledger) {
    return ledger->folder;
}

uint64_t ml_ledger_free_bytes(const struct ml_ledger *ledger) {
    struct statvfs facts;
    return statvfs(ledger->folder, &facts) == 0 ? (uint64_t)facts.f_bavail * facts.f_frsize : 0;
}
