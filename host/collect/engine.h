/* What an engine of the store does: the embedded one (host/collect/sqlite/) and
 * ClickHouse (host/collect/clickhouse/). Room: host (private).
 * Context: a store belongs to one thread, and what asks it to another; they share nothing.
 *
 * One rule: an engine gives rows. What is made of them, and how it is called in an answer, is the
 * same code for all (host/collect/questions*.c), so that all give the same answers. */
#ifndef MEMLOG_HOST_COLLECT_ENGINE_H
#define MEMLOG_HOST_COLLECT_ENGINE_H

#include "base/error_message.h"
#include "host/collect/questions.h"
#include "host/collect/store.h"

/* ---- adding and removing */

/* host/collect/store.h says what each does. */
struct ml_store_engine {
    void (*close)(struct ml_store *take_store);
    enum ml_status (*add
    )(struct ml_store *store,
      const struct ml_store_item *items,
      size_t count,
      struct ml_error_message *error);
    enum ml_status (*remove
    )(struct ml_store *store, const char *team, const char *guid, struct ml_error_message *error);
    /* See ml_store_upkeep. */
    enum ml_status (*upkeep
    )(struct ml_store *store,
      uint64_t before_ms,
      struct ml_store_kept *out_kept,
      struct ml_error_message *error);
    /* See ml_store_interrupt. */
    void (*interrupt)(struct ml_store *store);
    /* See ml_store_nameless and ml_store_name. */
    enum ml_status (*nameless
    )(struct ml_store *store,
      const char *build_id,
      struct ml_nameless *out_nameless,
      struct ml_error_message *error);
    enum ml_status (*name
    )(struct ml_store *store,
      const struct ml_nameless *nameless,
      const char *const *names,
      const struct ml_team_keys *keys,
      struct ml_named *out_named,
      struct ml_error_message *error);
    /* NULL: with an error message. It outlives nothing of the store but what it was opened with. */
    struct ml_asking *(*ask_open)(const struct ml_store *store, struct ml_error_message *error);
};

/* The head of an engine's own struct. */
struct ml_store {
    const struct ml_store_engine *engine;
};

/* What all engines say of a report. A sender's clock may be anything: a time that is not before its
 * arrival is that. The host is a certificate's, or the report's own word. */
uint64_t ml_store_time_ms(const struct ml_store_item *item);
bool ml_store_is_control(const struct ml_store_item *item);
struct ml_string ml_store_host(const struct ml_store_item *item);
/* Bits of MEMLOG_FLEET_TOLD_*: no report comes without what is live. */
uint32_t ml_store_told(const struct ml_store_item *item);

/* ---- rows */

struct ml_store_rows;

struct ml_store_rows_engine {
    bool (*next)(struct ml_store_rows *rows);
    const char *(*text)(const struct ml_store_rows *rows, int column);
    int64_t (*id)(const struct ml_store_rows *rows, int column);
    double (*real)(const struct ml_store_rows *rows, int column); /* below 0: not told */
    void (*end)(struct ml_store_rows *rows);
};

/* Rows of one kind, which are at their end when `next` says false. Their texts are borrowed until
 * then. The same kind cannot be asked for a second time meanwhile. */
struct ml_store_rows {
    const struct ml_store_rows_engine *engine;
};

/* ---- asking */

/* In the order of the names in host/collect/questions.c; each is a statement of the engine's
 * questions.sql, or is answered from what `expect` was told. */
enum ml_ask {
    ML_SQL_PROGRAMS,
    ML_SQL_BUILDS,
    ML_SQL_DUMPS_OF_SUMS,
    ML_SQL_TOP,
    ML_SQL_HOSTS_OF_NAMES,
    ML_SQL_PATH,
    ML_SQL_SUMS,
    ML_SQL_NODE,
    ML_SQL_CONTROL_DUMPS,
    ML_SQL_SHARES,
    ML_SQL_MEDIAN_OF_CONTROL,
    ML_SQL_HOSTS,
    ML_SQL_HOSTS_OF_STACK,
    ML_SQL_REPORTS,
    ML_SQL_ROWS,
    ML_SQL_COUNT
};

extern const char *const ml_ask_names[ML_SQL_COUNT];

/* The statement behind "-- name: NAME" in `file`, up to the next one. Owner: free. NULL: it is not
 * there, or memory ran out. */
char *ml_ask_text(const char *file, enum ml_ask which);

/* What one list of rows is about, beside the question: a stack or the names of one, the build
 * (NULL: the question's), and whether shares are of hosts and not of dumps. */
struct ml_ask_bound {
    int64_t id;
    const char *build;
    bool by_host;
};

/* What all engines see of a question's span of time. */
struct ml_ask_times {
    uint64_t from_ms, until_ms;
    int64_t from_week, until_week; /* sums are by week: the Monday, days since 1970 */
};
struct ml_ask_times ml_ask_times(const struct ml_question *question);

/* The Monday of that time, in days since 1970, which began on a Thursday. */
int64_t ml_week_of(uint64_t time_ms);

/* Rows at most. */
uint64_t ml_ask_limit(const struct ml_question *question);

struct ml_asking;

struct ml_asking_engine {
    void (*close)(struct ml_asking *take_asking);
    /* Let what is asked now fail soon, from any thread. NULL: it cannot. */
    void (*interrupt)(const struct ml_asking *asking);
    /* All rows until `end` are of one state of the store. Errors: ML_ENV_SYSTEM, with an error
     * message. The question is borrowed until `end`. */
    enum ml_status (*begin
    )(struct ml_asking *asking, const struct ml_question *question, struct ml_error_message *error);
    /* Errors: what went wrong since `begin`, with an error message. */
    enum ml_status (*end)(struct ml_asking *asking, struct ml_error_message *error);
    /* What was not asked as it is away; NULL behind the last. Valid from `begin` to `end`. */
    const char *const *(*missing)(const struct ml_asking *asking);
    /* Rows of `which` will be asked of these ids, one after the other. */
    void (*expect)(struct ml_asking *asking, enum ml_ask which, const int64_t *ids, size_t count);
    struct ml_store_rows *(*rows
    )(struct ml_asking *asking, enum ml_ask which, struct ml_ask_bound bound);
};

/* The head of an engine's own struct. */
struct ml_asking {
    const struct ml_asking_engine *engine;
};

/* ---- engines */

ML_NODISCARD enum ml_status
ml_sqlite_store_open(const char *path, struct ml_store **out_store, struct ml_error_message *error);
struct ml_asking *ml_sqlite_ask_open(const struct ml_store *store, struct ml_error_message *error);

#endif
