/* What stacks are called by names that came later. Room: host. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "host/collect/clickhouse/internal.h"
#include "host/collect/clickhouse/table.h"
#include "host/collect/crash_point.h"
#include "host/collect/ids.h"

enum { CHUNK = 4000 /* ids in one query */, TURNS_MAX = 4096 };

/* Why a stack is called otherwise. */
enum { IS_GIVEN = 1, IS_FRESH = 2 };

static const struct ml_click_column renamed_columns[] = {
    {"team", ML_CLICK_STRING},
    {"id", ML_CLICK_INT64},
    {"names", ML_CLICK_INT64},
    {"turn", ML_CLICK_INT64},
    {NULL, ML_CLICK_UINT8}};

void ml_click_renaming_fini(struct ml_click_renaming *renaming) {
    ml_click_dictionary_fini(&renaming->dictionary);
    ml_id_map_fini(&renaming->called);
}

/* ---- one stack */

/* The entry of a stack whose caller's is `caller`. False: memory ran out. */
static bool call(
    struct ml_click_renaming *renaming,
    struct ml_id_map_entry caller,
    const struct ml_click_frame *frame,
    struct ml_id_map_entry *io_entry
) {
    const char *word = frame->function[0] != '\0' ? frame->function : frame->module;
    const struct memlog_fleet_frame named = {.function = ml_string_of(word)};
    const bool is_fresh =
        renaming->fresh != NULL && ml_id_map_find(renaming->fresh, frame->id) != NULL;
    io_entry->first = ml_id_of_names(renaming->key, caller.first, &named);
    io_entry->second = caller.second | (frame->is_given ? IS_GIVEN : 0) | (is_fresh ? IS_FRESH : 0);
    renaming->changed += (io_entry->second & IS_FRESH) != 0;
    return ml_id_map_put(&renaming->called, *io_entry);
}

/* A contract bounds how many callers there are. False: memory ran out. `out`: of id 0 where the
 * dictionary does not have all of it. */
static bool
call_all(struct ml_click_renaming *renaming, int64_t stack, struct ml_id_map_entry *out) {
    int64_t path[MEMLOG_FLEET_MAX_FRAMES_IN_STACK];
    struct ml_click_frame frame;
    size_t count = 0;
    struct ml_id_map_entry entry = {.id = 0};
    *out = entry;
    for (int64_t at = stack; at != 0; count++) {
        const struct ml_id_map_entry *known = ml_id_map_find(&renaming->called, at);
        if (known != NULL) {
            entry = *known;
            break;
        }
        if (count == MEMLOG_FLEET_MAX_FRAMES_IN_STACK) {
            return true;
        }
        path[count] = at;
        if (!ml_click_dictionary_find(&renaming->dictionary, at, &at, &frame)) {
            return true;
        }
    }
    while (count > 0) {
        const struct ml_id_map_entry caller = entry;
        int64_t unused = 0;
        entry.id = path[--count];
        if (!ml_click_dictionary_find(&renaming->dictionary, entry.id, &unused, &frame) ||
            !call(renaming, caller, &frame, &entry)) {
            return false;
        }
    }
    *out = entry;
    return true;
}

/* ---- many */

static enum ml_status send_rows(
    struct ml_click_renaming *renaming, struct ml_click_block *block, struct ml_error_message *error
) {
    const enum ml_status status = ml_click_send_to_all(renaming->store, "renamed", block, error);
    ml_click_block_fini(block);
    ml_click_block_init(block, renamed_columns);
    return status;
}

static enum ml_status put_all(
    struct ml_click_renaming *renaming,
    const int64_t *ids,
    size_t count,
    struct ml_click_block *block,
    struct ml_error_message *error
) {
    const char *team = renaming->view.team;
    enum ml_status status = ML_OK;
    for (size_t i = 0; status == ML_OK && i < count; i++) {
        struct ml_id_map_entry entry;
        if (!call_all(renaming, ids[i], &entry)) {
            return ML_ENV_MEMORY;
        }
        if ((entry.second & IS_GIVEN) == 0) {
            continue;
        }
        ml_click_put_text(block, team, strlen(team));
        ml_click_put_number(block, (uint64_t)entry.id);
        ml_click_put_number(block, (uint64_t)entry.first);
        ml_click_put_number(block, (uint64_t)renaming->view.turn);
        if (block->rows == ML_CLICK_ROWS_MAX) {
            status = send_rows(renaming, block, error);
        }
    }
    return status;
}

enum ml_status ml_click_rename(
    struct ml_click_renaming *renaming,
    const int64_t *ids,
    size_t count,
    struct ml_error_message *error
) {
    struct ml_click_nodes *nodes = &renaming->store->nodes;
    struct ml_click_block block;
    ml_click_block_init(&block, renamed_columns);
    enum ml_status status = ml_click_dictionary_load(
        &renaming->dictionary, nodes, 0, &renaming->view, ids, count, error
    );
    if (status == ML_OK) {
        status = put_all(renaming, ids, count, &block, error);
    }
    if (status == ML_OK) {
        status = send_rows(renaming, &block, error);
        ml_crash_point("renamed-sent");
    }
    ml_click_block_fini(&block);
    return status;
}

/* ---- stacks of a batch of reports */

/* All ids of a map. NULL: memory ran out. Owner: free. */
static int64_t *ids_of(const struct ml_id_map *map) {
    int64_t *ids = calloc(map->count + 1, sizeof(*ids));
    size_t count = 0;
    for (size_t i = 0; ids != NULL && i < map->slots_count; i++) {
        if (map->slots[i].id != 0) {
            ids[count++] = map->slots[i].id;
        }
    }
    return ids;
}

/* Add the turns that gave functions to frames among these. */
static enum ml_status find_turns(
    struct ml_click_store *store,
    const char *team,
    const int64_t *frames,
    size_t count,
    struct ml_id_map *turns,
    struct ml_error_message *error
) {
    struct ml_click_answer answer = {.text = NULL};
    struct ml_click_table table;
    struct ml_click_sql sql = {.text = NULL};
    ml_click_sql_put(&sql, "SELECT DISTINCT turn FROM given WHERE team = ");
    ml_click_sql_text(&sql, team);
    ml_click_sql_put(&sql, " AND id IN (");
    ml_click_sql_ids(&sql, frames, count);
    ml_click_sql_printf(&sql, ") LIMIT %d", TURNS_MAX);
    enum ml_status status = sql.is_failed
                                ? ML_ENV_MEMORY
                                : ml_click_ask(&store->nodes, 0, sql.text, "", &answer, error);
    ml_click_sql_fini(&sql);
    ml_click_table_init(&table, answer.text);
    while (status == ML_OK && ml_click_table_next(&table)) {
        const struct ml_id_map_entry turn = {.id = ml_click_table_id(&table, 0)};
        status = ml_id_map_put(turns, turn) ? ML_OK : ML_ENV_MEMORY;
    }
    ml_click_table_fini(&table);
    return status;
}

enum ml_status ml_click_rename_sent(
    struct ml_click_store *store,
    const char *team,
    const uint8_t *key,
    const struct ml_click_rows *rows,
    struct ml_error_message *error
) {
    struct ml_id_map turns = {.slots = NULL};
    int64_t *frames = ids_of(&rows->frames_put);
    int64_t *stacks = ids_of(&rows->stacks_put);
    enum ml_status status = frames != NULL && stacks != NULL ? ML_OK : ML_ENV_MEMORY;
    for (size_t at = 0; status == ML_OK && at < rows->frames_put.count; at += CHUNK) {
        const size_t left = rows->frames_put.count - at;
        status = find_turns(store, team, frames + at, left < CHUNK ? left : CHUNK, &turns, error);
    }
    for (size_t i = 0; status == ML_OK && i < turns.slots_count; i++) {
        struct ml_click_renaming renaming = {
            .store = store, .view = {.team = team, .turn = turns.slots[i].id}, .key = key};
        if (turns.slots[i].id != 0) {
            status = ml_click_rename(&renaming, stacks, rows->stacks_put.count, error);
        }
        ml_click_renaming_fini(&renaming);
    }
    ml_id_map_fini(&turns);
    free(frames);
    free(stacks);
    return status;
}
