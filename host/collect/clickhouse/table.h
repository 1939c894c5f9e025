/* What a query gave, in ClickHouse's format TabSeparated, row by row. Room: host. Context: any.
 *
 * One rule: a row has as many columns as the reader wants, or it is an error; texts are unescaped
 * where they lie. */
#ifndef MEMLOG_HOST_COLLECT_CLICKHOUSE_TABLE_H
#define MEMLOG_HOST_COLLECT_CLICKHOUSE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ML_CLICK_TABLE_COLUMNS_MAX = 24 };

struct ml_click_table {
    char *text; /* owned */
    char *at;   /* the next row */
    const char *columns[ML_CLICK_TABLE_COLUMNS_MAX];
    size_t columns_count; /* of this row */
};

/* `take_text` NULL: no rows. */
void ml_click_table_init(struct ml_click_table *table, char *take_text);
void ml_click_table_fini(struct ml_click_table *table);

/* The next row. False: there is none. */
bool ml_click_table_next(struct ml_click_table *table);

/* A column that the row does not have is "". */
const char *ml_click_table_text(const struct ml_click_table *table, int column);
int64_t ml_click_table_id(const struct ml_click_table *table, int column);
double ml_click_table_real(const struct ml_click_table *table, int column);

/* The next number of "[1,2,3]", from its second sign on. False: there is none. */
bool ml_click_table_element(const char **at, int64_t *out_id);

#endif
