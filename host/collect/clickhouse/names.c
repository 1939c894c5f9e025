/* Names that come later: functions of frames that came without, and what stacks are called by them.
 * Room: host. Context: a process of its own beside the collector, which goes on.
 *
 * One rule: a turn is seen when all nodes have all of it. Its rows have its number, and questions
 * pass over rows of a turn that is not in `turns`, so who is killed in the middle has changed
 * nothing. One process at a time makes turns. Rows of samples and sums are never touched. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "host/collect/clickhouse/internal.h"
#include "host/collect/clickhouse/table.h"
#include "host/collect/crash_point.h"
#include "host/collect/ids.h"

enum { CHUNK = 4000 /* ids in one query */ };

#define TURNS_QUERY_ID "memlog-turns"

static const struct ml_click_column given_columns[] = {
    {"team", ML_CLICK_STRING},
    {"id", ML_CLICK_INT64},
    {"function", ML_CLICK_STRING},
    {"turn", ML_CLICK_INT64},
    {NULL, ML_CLICK_UINT8}};

static const struct ml_click_column turns_columns[] = {
    {"team", ML_CLICK_STRING}, {"turn", ML_CLICK_INT64}, {NULL, ML_CLICK_UINT8}};

/* Ask the first node, which has all that is whole at every node. */
static enum ml_status
ask(struct ml_click_store *store,
    size_t node,
    struct ml_click_sql *take_sql,
    struct ml_click_table *out_table,
    struct ml_error_message *error) {
    struct ml_click_answer answer = {.text = NULL};
    const enum ml_status status =
        take_sql->is_failed ? ML_ENV_MEMORY
                            : ml_click_ask(&store->nodes, node, take_sql->text, "", &answer, error);
    ml_click_sql_fini(take_sql);
    ml_click_table_init(out_table, answer.text);
    return status;
}

/* The ids of the first column. Owner: free. */
static enum ml_status read_ids(
    struct ml_click_store *store,
    size_t node,
    struct ml_click_sql *take_sql,
    int64_t **out_ids,
    size_t *out_count,
    struct ml_error_message *error
) {
    struct ml_click_table table;
    size_t capacity = 0;
    enum ml_status status = ask(store, node, take_sql, &table, error);
    *out_ids = NULL;
    *out_count = 0;
    while (status == ML_OK && ml_click_table_next(&table)) {
        if (*out_count == capacity) {
            capacity = capacity > 0 ? 2 * capacity : CHUNK;
            int64_t *grown = reallocarray(*out_ids, capacity, sizeof(*grown));
            if (grown == NULL) {
                status = ML_ENV_MEMORY;
                break;
            }
            *out_ids = grown;
        }
        (*out_ids)[(*out_count)++] = ml_click_table_id(&table, 0);
    }
    ml_click_table_fini(&table);
    return status;
}

/* ---- one at a time */

static enum ml_status lock(struct ml_click_store *store, struct ml_error_message *error) {
    enum { TRIES = 60, PAUSE_NS = 50000000 };
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    char path[PATH_MAX];
    const char *slash = strrchr(store->batches_path, '/');
    const int count = slash != NULL ? (int)(slash + 1 - store->batches_path) : 0;
    (void)snprintf(path, sizeof(path), "%.*snames.lock", count, store->batches_path);
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
    if (fd < 0) {
        ml_error_set(error, "%s: %s", path, strerror(errno));
        return ML_ENV_SYSTEM;
    }
    /* One that was killed may leave an analyzer's process that has the lock for a moment. */
    for (int i = 0; i < TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
            store->names_lock_fd = fd;
            return ML_OK;
        }
        (void)nanosleep(&pause, NULL);
    }
    (void)close(fd);
    ml_error_set(error, "%s: another one gives names; run it again when that has ended", path);
    return ML_ENV_SYSTEM;
}

/* While the file is not empty a turn may have got into `turns` of some nodes alone. */
static enum ml_status
note(struct ml_click_store *store, bool is_ending, struct ml_error_message *error) {
    const int fd = store->names_lock_fd;
    const bool done = is_ending ? pwrite(fd, "t", 1, 0) == 1 : ftruncate(fd, 0) == 0;
    if (!done) {
        ml_error_set(error, "names.lock in the spool: %s", strerror(errno));
    }
    return done ? ML_OK : ML_ENV_SYSTEM;
}

/* ---- turns of before */

static enum ml_status insert_turns(
    struct ml_click_store *store,
    size_t node,
    const struct ml_click_block *block,
    struct ml_error_message *error
) {
    struct ml_click_bytes bytes;
    if (block->rows == 0) {
        return ML_OK;
    }
    if (!ml_click_block_whole(block, &bytes)) {
        return ML_ENV_MEMORY;
    }
    const enum ml_status status = ml_click_insert(
        &store->nodes, node, "turns", TURNS_QUERY_ID, bytes.data, bytes.count, error
    );
    free(bytes.data);
    return status;
}

/* Give a node those turns that another has and it does not. */
static enum ml_status
copy_turns(struct ml_click_store *store, size_t from, size_t to, struct ml_error_message *error) {
    struct ml_click_sql sql = {.text = NULL};
    struct ml_click_table table;
    struct ml_click_block block;
    int64_t *ids = NULL;
    size_t count = 0;
    struct ml_id_map there = {.slots = NULL};
    ml_click_block_init(&block, turns_columns);
    ml_click_sql_put(&sql, "SELECT DISTINCT turn FROM turns");
    enum ml_status status = read_ids(store, to, &sql, &ids, &count, error);
    for (size_t i = 0; status == ML_OK && i < count; i++) {
        const struct ml_id_map_entry entry = {.id = ids[i]};
        status = ml_id_map_put(&there, entry) ? ML_OK : ML_ENV_MEMORY;
    }
    ml_click_table_init(&table, NULL);
    if (status == ML_OK) {
        ml_click_sql_put(&sql, "SELECT DISTINCT turn, team FROM turns");
        status = ask(store, from, &sql, &table, error);
    }
    while (status == ML_OK && ml_click_table_next(&table)) {
        const int64_t turn = ml_click_table_id(&table, 0);
        const char *team = ml_click_table_text(&table, 1);
        if (ml_id_map_find(&there, turn) == NULL) {
            ml_click_put_text(&block, team, strlen(team));
            ml_click_put_number(&block, (uint64_t)turn);
        }
    }
    if (status == ML_OK) {
        status = insert_turns(store, to, &block, error);
    }
    ml_click_table_fini(&table);
    ml_click_block_fini(&block);
    ml_id_map_fini(&there);
    free(ids);
    return status;
}

/* Bring to its end what somebody left who was killed when his turn was whole. */
static enum ml_status mend(struct ml_click_store *store, struct ml_error_message *error) {
    char sign = 0;
    enum ml_status status = ML_OK;
    const bool is_noted = pread(store->names_lock_fd, &sign, 1, 0) > 0;
    for (size_t i = 0; is_noted && status == ML_OK && i < store->nodes.count; i++) {
        status = ml_click_wait_gone(&store->nodes, i, TURNS_QUERY_ID, error);
    }
    for (size_t i = 0; status == ML_OK && i < store->nodes.count; i++) {
        for (size_t j = 0; status == ML_OK && j < store->nodes.count; j++) {
            status = i != j ? copy_turns(store, i, j, error) : ML_OK;
        }
    }
    return status == ML_OK ? note(store, false, error) : status;
}

/* Nobody sees rows of a turn that has not become whole: they go, so that they do not pile up. */
static enum ml_status clean_at(
    struct ml_click_store *store, size_t node, const char *table, struct ml_error_message *error
) {
    struct ml_click_sql sql = {.text = NULL};
    int64_t *turns = NULL;
    size_t count = 0;
    ml_click_sql_printf(
        &sql,
        "SELECT DISTINCT turn FROM %s WHERE turn NOT IN (SELECT turn FROM turns) LIMIT %d",
        table,
        CHUNK
    );
    enum ml_status status = read_ids(store, node, &sql, &turns, &count, error);
    if (status == ML_OK && count > 0) {
        ml_click_sql_put(&sql, "turn IN (");
        ml_click_sql_ids(&sql, turns, count);
        ml_click_sql_put(&sql, ")");
        status = sql.is_failed ? ML_ENV_MEMORY
                               : ml_click_delete(&store->nodes, node, table, sql.text, error);
        ml_click_sql_fini(&sql);
    }
    free(turns);
    return status;
}

/* All nodes are there, and nobody else is at it. */
static enum ml_status begin(struct ml_click_store *store, struct ml_error_message *error) {
    enum ml_status status = ml_click_prepare(store, error);
    if (status != ML_OK || store->names_lock_fd >= 0) {
        return status;
    }
    status = lock(store, error);
    if (status == ML_OK) {
        status = mend(store, error);
    }
    for (size_t i = 0; status == ML_OK && i < store->nodes.count; i++) {
        status = clean_at(store, i, "given", error);
        if (status == ML_OK) {
            status = clean_at(store, i, "renamed", error);
        }
    }
    return status;
}

/* ---- frames without a name */

enum ml_status ml_click_nameless(
    struct ml_store *head,
    const char *build_id,
    struct ml_nameless *out_nameless,
    struct ml_error_message *error
) {
    struct ml_click_store *store = (struct ml_click_store *)head;
    struct ml_click_sql sql = {.text = NULL};
    struct ml_click_table table;
    size_t capacity = 0;
    *out_nameless = (struct ml_nameless){.count = 0};
    enum ml_status status = begin(store, error);
    if (status != ML_OK) {
        return ML_ENV_SYSTEM;
    }
    ml_click_sql_put(&sql, "SELECT DISTINCT id, place FROM frames WHERE build_id = ");
    ml_click_sql_text(&sql, build_id);
    ml_click_sql_printf(
        &sql,
        " AND function = '' AND id NOT IN (SELECT id FROM given WHERE turn IN (SELECT turn FROM"
        " turns)) ORDER BY place, id LIMIT %d",
        ML_NAMELESS_MAX
    );
    status = ask(store, 0, &sql, &table, error);
    while (status == ML_OK && ml_click_table_next(&table)) {
        const int64_t id = ml_click_table_id(&table, 0);
        const uint64_t place = (uint64_t)ml_click_table_id(&table, 1);
        status = ml_nameless_add(out_nameless, &capacity, id, place) ? ML_OK : ML_ENV_MEMORY;
    }
    ml_click_table_fini(&table);
    if (status != ML_OK) {
        ml_error_set(error, "memory ran out");
        ml_nameless_fini(out_nameless);
        return ML_ENV_SYSTEM;
    }
    return ML_OK;
}

/* ---- a turn */

struct turn {
    struct ml_click_store *store;
    int64_t number;
    const struct ml_nameless *nameless;
    const char *const *names;
    const struct ml_team_keys *keys;
    struct ml_id_map places;     /* of frames that got a name: where they stand in the lists */
    struct ml_click_block teams; /* rows of `turns` */
    struct ml_named named;
};

/* Later than all that is there, whatever the clock says. */
static enum ml_status
number_of(struct ml_click_store *store, int64_t *out_number, struct ml_error_message *error) {
    enum { SECOND_NS = 1000000000 };
    static const char sql[] = "SELECT toUInt64(greatest((SELECT max(turn) FROM turns), "
                              "(SELECT max(turn) FROM given)))";
    struct timespec now;
    uint64_t last = 0;
    const enum ml_status status = ml_click_number(&store->nodes, 0, sql, &last, error);
    (void)clock_gettime(CLOCK_REALTIME, &now);
    *out_number = (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec;
    if (*out_number <= (int64_t)last) {
        *out_number = (int64_t)last + 1;
    }
    return status;
}

/* An id is a keyed hash: whose key it is of, that team it is of. NULL: nobody's. */
static enum ml_status key_of(
    const struct turn *turn,
    const char *team,
    const uint8_t **out_key,
    struct ml_error_message *error
) {
    struct ml_click_sql sql = {.text = NULL};
    struct ml_click_table table;
    *out_key = NULL;
    ml_click_sql_put(&sql, "SELECT stacks[1], frames[1] FROM stacks WHERE team = ");
    ml_click_sql_text(&sql, team);
    ml_click_sql_put(&sql, " LIMIT 1");
    const enum ml_status status = ask(turn->store, 0, &sql, &table, error);
    if (status == ML_OK && ml_click_table_next(&table)) {
        const int64_t stack = ml_click_table_id(&table, 0);
        const int64_t frame = ml_click_table_id(&table, 1);
        for (size_t i = 0; i < turn->keys->count && *out_key == NULL; i++) {
            const uint8_t *key = turn->keys->list[i];
            *out_key = ml_id_of_stack(key, 0, frame) == stack ? key : NULL;
        }
    }
    ml_click_table_fini(&table);
    return status;
}

/* Rows of `given`, of those of a chunk of frames that are the team's. */
static enum ml_status put_given(
    const struct turn *turn,
    const char *team,
    const int64_t *ids,
    size_t count,
    struct ml_id_map *fresh,
    struct ml_click_block *block,
    struct ml_error_message *error
) {
    struct ml_click_sql sql = {.text = NULL};
    int64_t *own = NULL;
    size_t own_count = 0;
    ml_click_sql_put(&sql, "SELECT DISTINCT id FROM frames WHERE team = ");
    ml_click_sql_text(&sql, team);
    ml_click_sql_put(&sql, " AND id IN (");
    ml_click_sql_ids(&sql, ids, count);
    ml_click_sql_put(&sql, ")");
    enum ml_status status = read_ids(turn->store, 0, &sql, &own, &own_count, error);
    for (size_t i = 0; status == ML_OK && i < own_count; i++) {
        const struct ml_id_map_entry *place = ml_id_map_find(&turn->places, own[i]);
        if (place == NULL) {
            continue;
        }
        const char *name = turn->names[place->first];
        ml_click_put_text(block, team, strlen(team));
        ml_click_put_number(block, (uint64_t)own[i]);
        ml_click_put_text(block, name, strlen(name));
        ml_click_put_number(block, (uint64_t)turn->number);
        status = ml_id_map_put(fresh, *place) ? ML_OK : ML_ENV_MEMORY;
    }
    free(own);
    return status;
}

/* Functions to all frames of the team that are named. */
static enum ml_status give(
    const struct turn *turn,
    const char *team,
    struct ml_id_map *fresh,
    struct ml_error_message *error
) {
    struct ml_click_block block;
    int64_t *chunk = calloc(CHUNK, sizeof(*chunk));
    size_t chosen = 0;
    enum ml_status status = chunk != NULL ? ML_OK : ML_ENV_MEMORY;
    ml_click_block_init(&block, given_columns);
    for (size_t i = 0; status == ML_OK && i < turn->nameless->count; i++) {
        if (turn->names[i] != NULL) {
            chunk[chosen++] = turn->nameless->ids[i];
        }
        if (chosen == CHUNK || (i + 1 == turn->nameless->count && chosen > 0)) {
            status = put_given(turn, team, chunk, chosen, fresh, &block, error);
            chosen = 0;
        }
        if (status == ML_OK && block.rows + CHUNK > ML_CLICK_ROWS_MAX) {
            status = ml_click_send_to_all(turn->store, "given", &block, error);
            ml_click_block_fini(&block);
            ml_click_block_init(&block, given_columns);
        }
    }
    if (status == ML_OK) {
        status = ml_click_send_to_all(turn->store, "given", &block, error);
        ml_crash_point("given-sent");
    }
    ml_click_block_fini(&block);
    free(chunk);
    return status;
}

/* All stacks of the team with one of these frames. */
static enum ml_status rename_stacks(
    struct turn *turn,
    const char *team,
    const uint8_t *key,
    const struct ml_id_map *fresh,
    struct ml_error_message *error
) {
    struct ml_click_renaming renaming = {
        .store = turn->store,
        .view = {.team = team, .turn = turn->number},
        .key = key,
        .fresh = fresh};
    struct ml_click_sql sql = {.text = NULL};
    int64_t *stacks = NULL;
    size_t count = 0;
    ml_click_sql_put(&sql, "SELECT DISTINCT id FROM stacks ARRAY JOIN frames AS one WHERE team = ");
    ml_click_sql_text(&sql, team);
    ml_click_sql_put(&sql, " AND one IN (SELECT id FROM given WHERE team = ");
    ml_click_sql_text(&sql, team);
    ml_click_sql_printf(&sql, " AND turn = %" PRId64 ")", turn->number);
    enum ml_status status = read_ids(turn->store, 0, &sql, &stacks, &count, error);
    if (status == ML_OK) {
        status = ml_click_rename(&renaming, stacks, count, error);
    }
    turn->named.stacks += renaming.changed;
    ml_click_renaming_fini(&renaming);
    free(stacks);
    return status;
}

static enum ml_status
name_team(struct turn *turn, const char *team, struct ml_error_message *error) {
    struct ml_id_map fresh = {.slots = NULL};
    const uint8_t *key = NULL;
    enum ml_status status = key_of(turn, team, &key, error);
    if (status == ML_OK && key != NULL) {
        status = give(turn, team, &fresh, error);
    }
    if (status == ML_OK && fresh.count > 0) {
        status = rename_stacks(turn, team, key, &fresh, error);
        turn->named.frames += fresh.count;
        ml_click_put_text(&turn->teams, team, strlen(team));
        ml_click_put_number(&turn->teams, (uint64_t)turn->number);
    }
    ml_id_map_fini(&fresh);
    return status;
}

/* The turn is whole: from here on it is seen. */
static enum ml_status end(struct turn *turn, struct ml_error_message *error) {
    struct ml_click_store *store = turn->store;
    if (turn->teams.rows == 0) {
        return ML_OK;
    }
    enum ml_status status = note(store, true, error);
    for (size_t i = 0; status == ML_OK && i < store->nodes.count; i++) {
        status = insert_turns(store, i, &turn->teams, error);
        ml_crash_point("turn-sent");
    }
    return status == ML_OK ? note(store, false, error) : status;
}

static enum ml_status name_all(struct turn *turn, struct ml_error_message *error) {
    struct ml_click_sql sql = {.text = NULL};
    struct ml_click_table table;
    for (size_t i = 0; i < turn->nameless->count; i++) {
        const struct ml_id_map_entry entry = {.id = turn->nameless->ids[i], .first = (int64_t)i};
        if (turn->names[i] != NULL && !ml_id_map_put(&turn->places, entry)) {
            return ML_ENV_MEMORY;
        }
    }
    if (turn->places.count == 0) {
        return ML_OK;
    }
    ml_click_sql_put(&sql, "SELECT DISTINCT team FROM frames");
    enum ml_status status = number_of(turn->store, &turn->number, error);
    if (status == ML_OK) {
        status = ask(turn->store, 0, &sql, &table, error);
        while (status == ML_OK && ml_click_table_next(&table)) {
            status = name_team(turn, ml_click_table_text(&table, 0), error);
        }
        ml_click_table_fini(&table);
    }
    ml_click_sql_fini(&sql);
    return status == ML_OK ? end(turn, error) : status;
}

enum ml_status ml_click_name(
    struct ml_store *head,
    const struct ml_nameless *nameless,
    const char *const *names,
    const struct ml_team_keys *keys,
    struct ml_named *out_named,
    struct ml_error_message *error
) {
    struct turn turn = {
        .store = (struct ml_click_store *)head,
        .nameless = nameless,
        .names = names,
        .keys = keys,
    };
    ml_click_block_init(&turn.teams, turns_columns);
    const enum ml_status status = name_all(&turn, error);
    ml_click_block_fini(&turn.teams);
    ml_id_map_fini(&turn.places);
    *out_named = turn.named;
    if (status != ML_OK) {
        ml_error_set(error, "memory ran out");
        return ML_ENV_SYSTEM;
    }
    return ML_OK;
}
