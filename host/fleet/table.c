#include "host/fleet/table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/size.h"

enum { GAP = 2, BELOW_INDENT = 8, LEAST_LAST = 10, LEAST_WIDTH = 20, MOST_WIDTH = 10000 };

/* In front of a text that is a line of its own. */
#define BELOW "\n"

struct ml_fleet_table ml_fleet_table_of(const char *const *headings) {
    struct ml_fleet_table table = {.headings = headings};
    while (headings[table.columns] != NULL) {
        table.columns++;
    }
    return table;
}

void ml_fleet_table_fini(struct ml_fleet_table *table) {
    for (size_t i = 0; i < table->count; i++) {
        free(table->cells[i]);
    }
    free(table->cells);
    *table = (struct ml_fleet_table){.cells = NULL};
}

static void add(struct ml_fleet_table *table, char *take_text) {
    if (take_text != NULL && table->count == table->capacity) {
        const size_t capacity = table->capacity > 0 ? table->capacity * 2 : 256;
        char **grown = reallocarray(table->cells, capacity, sizeof(*grown));
        if (grown != NULL) {
            table->cells = grown;
            table->capacity = capacity;
        }
    }
    if (take_text == NULL || table->count == table->capacity) {
        table->is_failed = true;
        free(take_text);
        return;
    }
    table->cells[table->count++] = take_text;
}

void ml_fleet_table_add(struct ml_fleet_table *table, const char *text) {
    add(table, strdup(text));
}

void ml_fleet_table_below(struct ml_fleet_table *table, const char *text) {
    char *line = NULL;
    add(table, asprintf(&line, BELOW "%s", text) >= 0 ? line : NULL);
}

static bool is_below(const char *cell) {
    return cell[0] == BELOW[0];
}

static bool is_left(const struct ml_fleet_table *table, size_t column) {
    return table->headings[column][0] == '<';
}

static const char *heading(const struct ml_fleet_table *table, size_t column) {
    return table->headings[column] + (is_left(table, column) ? 1 : 0);
}

/* Of all columns but the last, which takes the rest. */
static void measure(const struct ml_fleet_table *table, size_t out_widths[ML_FLEET_COLUMNS_MAX]) {
    for (size_t i = 0; i < table->columns; i++) {
        out_widths[i] = ml_printable_columns(heading(table, i));
    }
    size_t column = 0;
    for (size_t i = 0; i < table->count; i++) {
        if (!is_below(table->cells[i])) {
            const size_t width = ml_printable_columns(table->cells[i]);
            out_widths[column] = width > out_widths[column] ? width : out_widths[column];
            column = column + 1 < table->columns ? column + 1 : 0;
        }
    }
}

static void put_spaces(FILE *out, size_t count) {
    for (size_t i = 0; i < count; i++) {
        (void)fputc(' ', out);
    }
}

static void put_cut(FILE *out, const char *text, size_t columns) {
    static const char dots[] = "...";
    const bool is_cut = ml_printable_columns(text) > columns && columns > strlen(dots);
    const size_t head = ml_printable_head(text, is_cut ? columns - strlen(dots) : columns);
    (void)fprintf(out, "%.*s%s", (int)head, text, is_cut ? dots : "");
}

static void put_cell(
    const struct ml_fleet_table *table,
    size_t column,
    const char *text,
    const size_t widths[ML_FLEET_COLUMNS_MAX],
    size_t left,
    FILE *out
) {
    const size_t width = ml_printable_columns(text);
    const bool is_last = column + 1 == table->columns;
    const size_t pad = width < widths[column] ? widths[column] - width : 0;
    put_spaces(out, column > 0 ? GAP : 0);
    if (!is_left(table, column)) {
        put_spaces(out, pad);
    }
    if (is_last) {
        put_cut(out, text, left);
        (void)fputc('\n', out);
        return;
    }
    (void)fputs(text, out);
    if (is_left(table, column)) {
        put_spaces(out, pad);
    }
}

bool ml_fleet_table_put(const struct ml_fleet_table *table, FILE *out) {
    size_t widths[ML_FLEET_COLUMNS_MAX] = {0};
    const size_t width = ml_fleet_width();
    size_t front = 0;
    measure(table, widths);
    for (size_t i = 0; i + 1 < table->columns; i++) {
        front += widths[i] + GAP;
    }
    const size_t left = width > front + LEAST_LAST ? width - front : LEAST_LAST;
    for (size_t i = 0; i < table->columns; i++) {
        put_cell(table, i, heading(table, i), widths, left, out);
    }
    size_t column = 0;
    for (size_t i = 0; i < table->count; i++) {
        if (is_below(table->cells[i])) {
            put_spaces(out, BELOW_INDENT);
            put_cut(out, table->cells[i] + 1, width - BELOW_INDENT);
            (void)fputc('\n', out);
        } else {
            put_cell(table, column, table->cells[i], widths, left, out);
            column = column + 1 < table->columns ? column + 1 : 0;
        }
    }
    return !table->is_failed;
}

size_t ml_fleet_width(void) {
    const char *said = getenv("COLUMNS");
    struct winsize size = {.ws_col = 0};
    uint64_t columns = 0;
    if (said != NULL && ml_count_read(said, MOST_WIDTH, &columns) && columns >= LEAST_WIDTH) {
        return (size_t)columns;
    }
    if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
        size.ws_col >= LEAST_WIDTH) {
        return size.ws_col;
    }
    return MOST_WIDTH;
}

void ml_fleet_put_line(FILE *out, const char *text, size_t columns) {
    put_cut(out, text, columns);
    (void)fputc('\n', out);
}
