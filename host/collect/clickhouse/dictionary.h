/* Stacks and frames that a question was told to expect: from all of the server's to those few, in
 * two queries a thousand stacks. Room: host. Context: one thread.
 *
 * They never change, as an id is a hash of what it stands for, so they stay for later questions.
 * Only names that came later do: who asks as of another turn begins with an empty dictionary. */
#ifndef MEMLOG_HOST_COLLECT_CLICKHOUSE_DICTIONARY_H
#define MEMLOG_HOST_COLLECT_CLICKHOUSE_DICTIONARY_H

#include "base/error_message.h"
#include "host/collect/clickhouse/id_map.h"
#include "host/collect/clickhouse/node.h"
#include "host/collect/clickhouse/sql.h"

/* Borrowed from the dictionary. */
struct ml_click_frame {
    int64_t id;
    const char *function, *module, *build_id;
    double place;
    bool is_given; /* its function came later */
};

/* Whose stacks, and up to which turn of names that came later; 0: as they came. */
struct ml_click_view {
    const char *team;
    int64_t turn;
};

/* The condition that a row of `given` or `renamed` is of that view: of a turn that is whole, or of
 * the last one itself. */
void ml_click_sql_seen(
    struct ml_click_sql *sql, const char *database, const struct ml_click_view *view
);

/* All zero at first. Owner: ml_click_dictionary_fini. */
struct ml_click_dictionary {
    struct ml_id_map stacks; /* first: the parent; second: the frame */
    struct ml_id_map frames; /* first: where its texts begin; second: its place */
    struct ml_id_map given;  /* first: where the text begins that is a frame's function now */
    char *texts;
    size_t texts_bytes, texts_capacity;
};

void ml_click_dictionary_fini(struct ml_click_dictionary *dictionary);

/* Have the view's stacks of these ids, with their callers. Errors: ML_ENV_SYSTEM, ML_ENV_MEMORY,
 * with an error message. */
ML_NODISCARD enum ml_status ml_click_dictionary_load(
    struct ml_click_dictionary *dictionary,
    struct ml_click_nodes *nodes,
    size_t node,
    const struct ml_click_view *view,
    const int64_t *ids,
    size_t count,
    struct ml_error_message *error
);

/* False: it has no such stack. */
bool ml_click_dictionary_find(
    const struct ml_click_dictionary *dictionary,
    int64_t stack,
    int64_t *out_parent,
    struct ml_click_frame *out_frame
);

#endif
