/* SQL for ClickHouse, put together. Room: host. Context: any; pure.
 *
 * One rule: a text that anybody else has chosen goes in by ml_click_sql_text alone, where nothing
 * but letters and digits stands as it is. */
#ifndef MEMLOG_HOST_COLLECT_CLICKHOUSE_SQL_H
#define MEMLOG_HOST_COLLECT_CLICKHOUSE_SQL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero at first. Owner: ml_click_sql_fini. */
struct ml_click_sql {
    char *text; /* NULL: nothing yet, or memory ran out */
    size_t count, capacity;
    bool is_failed; /* memory ran out */
};

void ml_click_sql_fini(struct ml_click_sql *sql);

/* SQL as it is. */
void ml_click_sql_put(struct ml_click_sql *sql, const char *text);
__attribute__((format(printf, 2, 3))) void
ml_click_sql_printf(struct ml_click_sql *sql, const char *format, ...);

/* A text in quotes; NULL: the empty one. Every byte but letters, digits, '_' and '-' is told by its
 * number. */
void ml_click_sql_text(struct ml_click_sql *sql, const char *text);

/* '2026-11-23', of days since 1970. */
void ml_click_sql_day(struct ml_click_sql *sql, int64_t day);

/* 1, 2, 3; of none: 0. */
void ml_click_sql_ids(struct ml_click_sql *sql, const int64_t *ids, size_t count);

/* Put the value of :name. False: it is none of its names. */
typedef bool ml_click_sql_value(const void *context, const char *name, struct ml_click_sql *sql);

/* `form` with a value for each :name. A name without a value is a mistake in `form`: it fails. */
void ml_click_sql_fill(
    struct ml_click_sql *sql, const char *form, ml_click_sql_value *value, const void *context
);

#endif
