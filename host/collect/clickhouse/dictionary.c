#include "host/collect/clickhouse/dictionary.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "host/collect/clickhouse/table.h"

enum { CHUNK = 4000 /* ids in one query */, KEPT_MAX = 4000000 };

void ml_click_dictionary_fini(struct ml_click_dictionary *dictionary) {
    ml_id_map_fini(&dictionary->stacks);
    ml_id_map_fini(&dictionary->frames);
    ml_id_map_fini(&dictionary->given);
    free(dictionary->texts);
    *dictionary = (struct ml_click_dictionary){.texts = NULL};
}

/* ---- rows */

static bool put_texts(struct ml_click_dictionary *dictionary, const char *text) {
    const size_t count = strlen(text) + 1;
    if (dictionary->texts_bytes + count > dictionary->texts_capacity) {
        const size_t wanted = 2 * (dictionary->texts_bytes + count) + 4096;
        char *grown = realloc(dictionary->texts, wanted);
        if (grown == NULL) {
            return false;
        }
        dictionary->texts = grown;
        dictionary->texts_capacity = wanted;
    }
    memcpy(dictionary->texts + dictionary->texts_bytes, text, count);
    dictionary->texts_bytes += count;
    return true;
}

/* ID, FUNCTION, MODULE, BUILD, PLACE */
static bool put_frame(struct ml_click_dictionary *dictionary, const struct ml_click_table *table) {
    enum { FIRST_TEXT = 1, PLACE = 4 };
    const struct ml_id_map_entry entry = {
        .id = ml_click_table_id(table, 0),
        .first = (int64_t)dictionary->texts_bytes,
        .second = ml_click_table_id(table, PLACE)};
    if (ml_id_map_find(&dictionary->frames, entry.id) != NULL) {
        return true;
    }
    for (int i = FIRST_TEXT; i < PLACE; i++) {
        if (!put_texts(dictionary, ml_click_table_text(table, i))) {
            return false;
        }
    }
    return ml_id_map_put(&dictionary->frames, entry);
}

/* ID, FUNCTION */
static bool put_given(struct ml_click_dictionary *dictionary, const struct ml_click_table *table) {
    const struct ml_id_map_entry entry = {
        .id = ml_click_table_id(table, 0), .first = (int64_t)dictionary->texts_bytes};
    return put_texts(dictionary, ml_click_table_text(table, 1)) &&
           ml_id_map_put(&dictionary->given, entry);
}

/* ID, [STACK, ...], [FRAME, ...], the outermost first */
static bool put_stack(struct ml_click_dictionary *dictionary, const struct ml_click_table *table) {
    const char *stacks = ml_click_table_text(table, 1);
    const char *frames = ml_click_table_text(table, 2);
    struct ml_id_map_entry entry = {.id = 0};
    stacks += stacks[0] != '\0';
    frames += frames[0] != '\0';
    int64_t parent = 0;
    bool done = true;
    while (done && ml_click_table_element(&stacks, &entry.id) &&
           ml_click_table_element(&frames, &entry.second)) {
        entry.first = parent;
        parent = entry.id;
        done = ml_id_map_put(&dictionary->stacks, entry);
    }
    return done;
}

/* ---- queries */

void ml_click_sql_seen(
    struct ml_click_sql *sql, const char *database, const struct ml_click_view *view
) {
    ml_click_sql_put(sql, "team = ");
    ml_click_sql_text(sql, view->team);
    ml_click_sql_printf(
        sql,
        " AND turn <= %" PRId64 " AND (turn = %" PRId64
        " OR turn IN (SELECT turn FROM %s.turns WHERE team = ",
        view->turn,
        view->turn,
        database
    );
    ml_click_sql_text(sql, view->team);
    ml_click_sql_put(sql, "))");
}

/* Where a query's words come from. */
struct loading {
    struct ml_click_dictionary *dictionary;
    struct ml_click_nodes *nodes;
    size_t node;
    const struct ml_click_view *view;
    struct ml_error_message *error;
};

typedef bool put_row(struct ml_click_dictionary *dictionary, const struct ml_click_table *table);

static enum ml_status
load(struct loading *loading, const char *select, const int64_t *ids, size_t count, put_row *put) {
    struct ml_click_sql sql = {.text = NULL};
    struct ml_click_answer answer = {.text = NULL};
    struct ml_click_table table;
    ml_click_sql_put(&sql, select);
    ml_click_sql_put(&sql, " WHERE ");
    if (put == put_given) {
        ml_click_sql_seen(&sql, loading->nodes->database, loading->view);
    } else {
        ml_click_sql_put(&sql, "team = ");
        ml_click_sql_text(&sql, loading->view->team);
    }
    ml_click_sql_put(&sql, " AND id IN (");
    ml_click_sql_ids(&sql, ids, count);
    ml_click_sql_put(&sql, ")");
    enum ml_status status =
        sql.is_failed
            ? ML_ENV_MEMORY
            : ml_click_ask(loading->nodes, loading->node, sql.text, "", &answer, loading->error);
    ml_click_table_init(&table, answer.text);
    while (status == ML_OK && ml_click_table_next(&table)) {
        status = put(loading->dictionary, &table) ? ML_OK : ML_ENV_MEMORY;
    }
    ml_click_table_fini(&table);
    ml_click_sql_fini(&sql);
    return status;
}

/* Those of `ids` that the map does not have, as many as go into one query; `*at` moves on. */
static size_t
chunk_of(const struct ml_id_map *map, const int64_t *ids, size_t count, size_t *at, int64_t *out) {
    size_t chosen = 0;
    while (*at < count && chosen < CHUNK) {
        const int64_t id = ids[(*at)++];
        if (id != 0 && ml_id_map_find(map, id) == NULL) {
            out[chosen++] = id;
        }
    }
    return chosen;
}

static enum ml_status load_all(
    struct loading *loading,
    const struct ml_id_map *map,
    const char *select,
    const int64_t *ids,
    size_t count,
    put_row *put
) {
    int64_t *chunk = calloc(CHUNK, sizeof(*chunk));
    enum ml_status status = chunk != NULL ? ML_OK : ML_ENV_MEMORY;
    for (size_t at = 0; status == ML_OK && at < count;) {
        const size_t chosen = chunk_of(map, ids, count, &at, chunk);
        if (chosen > 0) {
            status = load(loading, select, chunk, chosen, put);
        }
    }
    free(chunk);
    return status;
}

/* Those frames of the dictionary's stacks that it does not have. */
static enum ml_status load_frames(struct loading *loading) {
    const struct ml_id_map *stacks = &loading->dictionary->stacks;
    int64_t *ids = calloc(stacks->count + 1, sizeof(*ids));
    struct ml_id_map seen = {.slots = NULL};
    size_t count = 0;
    enum ml_status status = ids != NULL ? ML_OK : ML_ENV_MEMORY;
    for (size_t i = 0; status == ML_OK && i < stacks->slots_count; i++) {
        const int64_t frame = stacks->slots[i].second;
        if (stacks->slots[i].id == 0 || ml_id_map_find(&seen, frame) != NULL ||
            ml_id_map_find(&loading->dictionary->frames, frame) != NULL) {
            continue;
        }
        ids[count++] = frame;
        status =
            ml_id_map_put(&seen, (struct ml_id_map_entry){.id = frame}) ? ML_OK : ML_ENV_MEMORY;
    }
    if (status == ML_OK) {
        status = load_all(
            loading,
            &loading->dictionary->frames,
            "SELECT id, function, module, build_id, place FROM frames",
            ids,
            count,
            put_frame
        );
    }
    if (status == ML_OK && loading->view->turn != 0) {
        status = load_all(
            loading,
            &loading->dictionary->given,
            "SELECT id, function FROM given",
            ids,
            count,
            put_given
        );
    }
    ml_id_map_fini(&seen);
    free(ids);
    return status;
}

enum ml_status ml_click_dictionary_load(
    struct ml_click_dictionary *dictionary,
    struct ml_click_nodes *nodes,
    size_t node,
    const struct ml_click_view *view,
    const int64_t *ids,
    size_t count,
    struct ml_error_message *error
) {
    struct loading loading = {
        .dictionary = dictionary, .nodes = nodes, .node = node, .view = view, .error = error};
    if (dictionary->stacks.count > KEPT_MAX) {
        ml_click_dictionary_fini(dictionary);
    }
    const size_t before = dictionary->stacks.count;
    enum ml_status status = load_all(
        &loading,
        &dictionary->stacks,
        "SELECT id, stacks, frames FROM stacks",
        ids,
        count,
        put_stack
    );
    if (status == ML_OK && dictionary->stacks.count > before) {
        status = load_frames(&loading);
    }
    if (status == ML_ENV_MEMORY) {
        ml_error_set(error, "memory ran out");
    }
    if (status != ML_OK) {
        ml_click_dictionary_fini(dictionary); /* stacks without their frames would stay */
    }
    return status;
}

bool ml_click_dictionary_find(
    const struct ml_click_dictionary *dictionary,
    int64_t stack,
    int64_t *out_parent,
    struct ml_click_frame *out_frame
) {
    const struct ml_id_map_entry *found = ml_id_map_find(&dictionary->stacks, stack);
    const struct ml_id_map_entry *frame =
        found != NULL ? ml_id_map_find(&dictionary->frames, found->second) : NULL;
    if (frame == NULL) {
        return false;
    }
    const char *text = dictionary->texts + frame->first;
    *out_parent = found->first;
    const struct ml_id_map_entry *given = ml_id_map_find(&dictionary->given, frame->id);
    out_frame->id = frame->id;
    out_frame->is_given = given != NULL;
    out_frame->function = given != NULL ? dictionary->texts + given->first : text;
    out_frame->module = text + strlen(text) + 1;
    out_frame->build_id = out_frame->module + strlen(out_frame->module) + 1;
    out_frame->place = (double)frame->second;
    return true;
}
