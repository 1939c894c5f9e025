/* Columns of a table for people. Room: host. Context: any.
 *
 * One rule: what does not fit into a terminal's line is cut, in the last column. Where there is no
 * terminal nothing is cut. */
#ifndef MEMLOG_HOST_FLEET_TABLE_H
#define MEMLOG_HOST_FLEET_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { ML_FLEET_COLUMNS_MAX = 10 };

/* A heading that begins with "<" is a column of words, which begin at its left. */
struct ml_fleet_table {
    const char *const *headings; /* NULL behind the last */
    size_t columns;
    char **cells;
    size_t count, capacity; /* of cells */
    bool is_failed;
};

/* Owner: ml_fleet_table_fini. */
struct ml_fleet_table ml_fleet_table_of(const char *const *headings);
void ml_fleet_table_fini(struct ml_fleet_table *table);

/* The next cell, row by row (copied; printable). */
void ml_fleet_table_add(struct ml_fleet_table *table, const char *text);

/* A line of its own below the row that was ended last. */
void ml_fleet_table_below(struct ml_fleet_table *table, const char *text);

/* Print all. False: there was no memory for it. */
bool ml_fleet_table_put(const struct ml_fleet_table *table, FILE *out);

/* How wide a line may be: COLUMNS, else the terminal's, else no bound. */
size_t ml_fleet_width(void);

/* Print the line with a newline, cut where it is wider than that. */
void ml_fleet_put_line(FILE *out, const char *text, size_t columns);

#endif
