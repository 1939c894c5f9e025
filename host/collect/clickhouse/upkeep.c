#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host/collect/clickhouse/internal.h"

enum { WEEK_DAYS = 7, DAY_MS = 86400000, PARTITIONS_MAX = ML_CLICK_WEEKS_MAX };

#define SUMS_QUERY_ID "memlog-sums"

/* Do one with a day in its middle. */
static enum ml_status do_of_week(
    struct ml_click_store *store,
    size_t node,
    const char *before,
    int64_t kept,
    const char *after,
    struct ml_error_message *error
) {
    struct ml_click_sql sql = {.text = NULL};
    ml_click_sql_put(&sql, before);
    ml_click_sql_day(&sql, kept);
    ml_click_sql_put(&sql, after);
    struct ml_click_answer answer = {.text = NULL};
    const enum ml_status status =
        sql.is_failed
            ? ML_ENV_MEMORY
            : ml_click_ask(
                  &store->nodes, node, sql.text, "&query_id=" SUMS_QUERY_ID, &answer, error
              );
    ml_click_sql_fini(&sql);
    free(answer.text);
    return status;
}

/* Partitions of a node that are before a day, as many as fit; of dumps and of samples, as one may
 * have come without the other. */
static enum ml_status weeks_at(
    struct ml_click_store *store,
    size_t node,
    int64_t before,
    int64_t *out_weeks,
    size_t *out_count,
    struct ml_error_message *error
) {
    struct ml_click_answer answer;
    struct ml_click_sql sql = {.text = NULL};
    ml_click_sql_printf(
        &sql,
        "SELECT DISTINCT toRelativeDayNum(toDate(replaceAll(partition, '\\'', ''))) FROM "
        "system.parts"
        " WHERE active AND database = '%s' AND table IN ('samples_local', 'dumps_local')"
        " AND toDate(replaceAll(partition, '\\'', '')) < ",
        store->nodes.database
    );
    ml_click_sql_put(&sql, "toDate(");
    ml_click_sql_day(&sql, before);
    ml_click_sql_put(&sql, ")");
    *out_count = 0;
    enum ml_status status = sql.is_failed
                                ? ML_ENV_MEMORY
                                : ml_click_ask(&store->nodes, node, sql.text, "", &answer, error);
    ml_click_sql_fini(&sql);
    if (status != ML_OK) {
        return status;
    }
    char *at = answer.text;
    while (at != NULL && *at != '\0' && *out_count < PARTITIONS_MAX) {
        out_weeks[(*out_count)++] = strtoll(at, &at, 10);
        at = strchr(at, '\n');
        at = at != NULL ? at + 1 : NULL;
    }
    free(answer.text);
    return ML_OK;
}

/* ---- sums of past weeks */

#define SUMS_OF_WEEK                                                                               \
    "INSERT INTO sums_made SELECT kept, week, team, program, build, control, stack, any(names),"   \
    " sum(first), sum(toFloat64(live)), sum(toFloat64(live_n)), sum(toFloat64(peak)),"             \
    " sum(toFloat64(total)), max(stack_live) FROM samples_local WHERE kept = "

static enum ml_status make_sums_at(
    struct ml_click_store *store, size_t node, int64_t kept, struct ml_error_message *error
) {
    static const struct {
        const char *before, *after;
    } steps[] = {
        {"ALTER TABLE sums_made DROP PARTITION ", ""},
        {SUMS_OF_WEEK, " GROUP BY kept, week, team, program, build, control, stack"},
        {"ALTER TABLE sums_local REPLACE PARTITION ", " FROM sums_made"},
        {"ALTER TABLE sums_made DROP PARTITION ", ""},
    };
    /* One that was given up may be at work still. */
    enum ml_status status = ml_click_wait_gone(&store->nodes, node, SUMS_QUERY_ID, error);
    for (size_t i = 0; status == ML_OK && i < sizeof(steps) / sizeof(steps[0]); i++) {
        status = do_of_week(store, node, steps[i].before, kept, steps[i].after, error);
    }
    return status;
}

static bool is_among(const int64_t *weeks, size_t count, int64_t kept) {
    for (size_t i = 0; i < count; i++) {
        if (weeks[i] == kept) {
            return true;
        }
    }
    return false;
}

/* The first past week without sums; INT64_MAX: there is none. */
static enum ml_status next_week(
    struct ml_click_store *store,
    int64_t *weeks,
    int64_t *made,
    int64_t *out_week,
    struct ml_error_message *error
) {
    const int64_t now_week = ml_week_of((uint64_t)time(NULL) * 1000);
    const size_t made_count = ml_click_weeks(&store->batches, made);
    enum ml_status status = ML_OK;
    *out_week = INT64_MAX;
    for (size_t node = 0; status == ML_OK && node < store->nodes.count; node++) {
        size_t count = 0;
        status = weeks_at(store, node, now_week, weeks, &count, error);
        for (size_t i = 0; i < count; i++) {
            if (weeks[i] < *out_week && !is_among(made, made_count, weeks[i])) {
                *out_week = weeks[i];
            }
        }
    }
    return status;
}

/* Week after week, but not for long: the loop waits for it. */
static enum ml_status make_sums(
    struct ml_click_store *store, int64_t *weeks, int64_t *made, struct ml_error_message *error
) {
    enum { SECONDS = 5 };
    const time_t begin = time(NULL);
    int64_t week = 0;
    enum ml_status status = ML_OK;
    while (status == ML_OK && week != INT64_MAX && time(NULL) < begin + SECONDS) {
        status = next_week(store, weeks, made, &week, error);
        for (size_t i = 0; status == ML_OK && week != INT64_MAX && i < store->nodes.count; i++) {
            status = make_sums_at(store, i, week, error);
        }
        if (status == ML_OK && week != INT64_MAX) {
            status = ml_click_weeks_put(&store->batches, week);
        }
    }
    return status;
}

/* ---- what is too old */

static enum ml_status drop_at(
    struct ml_click_store *store,
    size_t node,
    int64_t before,
    int64_t *weeks,
    struct ml_error_message *error
) {
    static const char *const tables[] = {"sums_local", "dumps_local", "samples_local"};
    size_t count = 0;
    enum ml_status status = weeks_at(store, node, before, weeks, &count, error);
    if (status == ML_OK && count > 0) {
        status = ml_click_batches_sweep_is_due(&store->batches);
    }
    for (size_t i = 0; status == ML_OK && i < count; i++) {
        for (size_t j = 0; status == ML_OK && j < sizeof(tables) / sizeof(tables[0]); j++) {
            char drop[64];
            (void)snprintf(drop, sizeof(drop), "ALTER TABLE %s DROP PARTITION ", tables[j]);
            status = do_of_week(store, node, drop, weeks[i], "", error);
        }
        if (status == ML_OK) {
            status = ml_click_weeks_remove(&store->batches, weeks[i]);
        }
    }
    return status;
}

enum ml_status ml_click_upkeep(
    struct ml_store *head,
    uint64_t before_ms,
    struct ml_store_kept *out_kept,
    struct ml_error_message *error
) {
    struct ml_click_store *store = (struct ml_click_store *)head;
    /* A week is dropped when all of it is too old. */
    const int64_t before = before_ms > 0 ? ml_week_of(before_ms) : 0;
    int64_t *weeks = calloc(PARTITIONS_MAX, sizeof(*weeks));
    int64_t *made = calloc(ML_CLICK_WEEKS_MAX, sizeof(*made));
    enum ml_status status =
        weeks != NULL && made != NULL ? ml_click_prepare(store, error) : ML_ENV_MEMORY;
    if (status == ML_OK) {
        status = ml_click_settle(store, error);
    }
    for (size_t i = 0; status == ML_OK && before > 0 && i < store->nodes.count; i++) {
        status = drop_at(store, i, before, weeks, error);
    }
    if (status == ML_OK && before > 0) {
        out_kept->gone_ms = (uint64_t)before * DAY_MS;
    }
    if (status == ML_OK) {
        status = make_sums(store, weeks, made, error);
    }
    if (status == ML_OK) {
        status = ml_click_sweep(store, &out_kept->is_more, error);
    }
    free(weeks);
    free(made);
    return status;
}
