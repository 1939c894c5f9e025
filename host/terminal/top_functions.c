#include "host/terminal/top_functions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/size.h"

enum { CELL_BYTES = 32, DECIMAL = 10 };

/* The columns that are looked for, by their names in the first line. */
enum column { COLUMN_BYTES, COLUMN_BLOCKS, COLUMN_NAME, COLUMN_MODULE, COLUMNS };
static const char *const column_names[COLUMNS] = {"live_bytes", "live_blocks", "name", "module"};

/* Take the next cell of a line, without its quotes. *at moves behind it. True: the line goes on. */
static bool next_cell(char **at, char **out_cell) {
    char *from = *at;
    char *to = from;
    *out_cell = to;
    bool is_quoted = *from == '"';
    from += is_quoted ? 1 : 0;
    while (*from != '\0' && (is_quoted || (*from != ',' && *from != '\n'))) {
        if (is_quoted && *from == '"') {
            from++;
            is_quoted = *from == '"';
            if (!is_quoted) {
                continue;
            }
        }
        *to++ = *from++;
    }
    const char end = *from;
    *at = end != '\0' ? from + 1 : from;
    *to = '\0';
    return end == ',';
}

/* The sign that keeps a spreadsheet from computing a cell (base/csv.h). */
static const char *shown(const char *cell) {
    return cell[0] == '\'' && cell[1] != '\0' && strchr("=+-@", cell[1]) != NULL ? cell + 1 : cell;
}

static void set_cell(struct ml_top_function *row, enum column column, const char *cell) {
    switch (column) {
    case COLUMN_BYTES:
        row->live_bytes = strtoull(cell, NULL, DECIMAL);
        break;
    case COLUMN_BLOCKS:
        row->live_blocks = strtoull(cell, NULL, DECIMAL);
        break;
    case COLUMN_NAME:
        (void)ml_printable_copy(shown(cell), strlen(shown(cell)), row->name, sizeof(row->name));
        break;
    case COLUMN_MODULE:
        (void)ml_printable_copy(shown(cell), strlen(shown(cell)), row->module, sizeof(row->module));
        break;
    case COLUMNS:
        break;
    }
}

/* Which column of the table is which of ours. False: one is not there. */
static bool read_head(char **at, size_t out_places[COLUMNS]) {
    bool goes_on = true;
    size_t found = 0;
    for (size_t place = 0; goes_on; place++) {
        char *cell = NULL;
        goes_on = next_cell(at, &cell);
        for (size_t i = 0; i < COLUMNS; i++) {
            if (strcmp(cell, column_names[i]) == 0) {
                out_places[i] = place;
                found++;
            }
        }
    }
    return found == COLUMNS;
}

static void read_line(char **at, const size_t places[COLUMNS], struct ml_top_function *row) {
    bool goes_on = true;
    for (size_t place = 0; goes_on; place++) {
        char *cell = NULL;
        goes_on = next_cell(at, &cell);
        for (size_t i = 0; i < COLUMNS; i++) {
            if (places[i] == place) {
                set_cell(row, (enum column)i, cell);
            }
        }
    }
}

bool ml_top_functions_read(char *text, struct ml_top_function **out_rows, size_t *out_count) {
    size_t places[COLUMNS];
    size_t lines = 0;
    char *at = text;
    *out_count = 0;
    *out_rows = NULL;
    if (!read_head(&at, places)) {
        return false;
    }
    for (const char *one = at; *one != '\0'; one++) {
        lines += *one == '\n' ? 1 : 0;
    }
    struct ml_top_function *rows = calloc(lines + 1, sizeof(*rows));
    if (rows == NULL) {
        return false;
    }
    while (*at != '\0' && *out_count <= lines) {
        read_line(&at, places, &rows[*out_count]);
        *out_count += rows[*out_count].live_bytes > 0 ? 1 : 0;
    }
    *out_rows = rows;
    return true;
}

static int compare_names(const void *a, const void *b) {
    const struct ml_top_function *left = a;
    const struct ml_top_function *right = b;
    const int order = strcmp(left->name, right->name);
    return order != 0 ? order : strcmp(left->module, right->module);
}

static void
sort(struct ml_top_function *rows, size_t count, int (*order)(const void *, const void *)) {
    if (count > 0) {
        qsort(rows, count, sizeof(*rows), order);
    }
}

void ml_top_functions_growth(
    struct ml_top_function *rows, size_t count, struct ml_top_function *before, size_t before_count
) {
    size_t old = 0;
    sort(rows, count, compare_names);
    sort(before, before_count, compare_names);
    for (size_t i = 0; i < count; i++) {
        while (old < before_count && compare_names(&before[old], &rows[i]) < 0) {
            old++;
        }
        const bool is_known = old < before_count && compare_names(&before[old], &rows[i]) == 0;
        rows[i].has_growth = true;
        rows[i].growth_bytes =
            (int64_t)(rows[i].live_bytes - (is_known ? before[old].live_bytes : 0));
    }
}

static int compare_heap(const void *a, const void *b) {
    const struct ml_top_function *left = a;
    const struct ml_top_function *right = b;
    const int order =
        (left->live_bytes < right->live_bytes) - (left->live_bytes > right->live_bytes);
    return order != 0 ? order : compare_names(a, b);
}

static int compare_growth(const void *a, const void *b) {
    const struct ml_top_function *left = a;
    const struct ml_top_function *right = b;
    const int order =
        (left->growth_bytes < right->growth_bytes) - (left->growth_bytes > right->growth_bytes);
    return order != 0 ? order : compare_heap(a, b);
}

void ml_top_functions_sort(struct ml_top_function *rows, size_t count, enum ml_top_sort by) {
    sort(rows, count, by == ML_TOP_SORT_GROWTH ? compare_growth : compare_heap);
}

size_t ml_top_functions_filter(struct ml_top_function *rows, size_t count, const char *text) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (ml_top_name_holds(rows[i].name, text)) {
            const struct ml_top_function row = rows[i];
            rows[i] = rows[kept];
            rows[kept++] = row;
        }
    }
    return kept;
}

static void put_line(
    char out[ML_TOP_LINE_BYTES],
    size_t columns,
    const char *heap,
    const char *growth,
    const char *blocks,
    const char *name,
    const char *module
) {
    (void)snprintf(
        out,
        ML_TOP_LINE_BYTES,
        "%11s %11s %9s  %s%s%s",
        heap,
        growth,
        blocks,
        name,
        module[0] != '\0' ? "  " : "",
        module
    );
    ml_top_cut(out, columns);
}

void ml_top_functions_head(enum ml_top_sort by, size_t columns, char out[ML_TOP_LINE_BYTES]) {
    const bool by_growth = by == ML_TOP_SORT_GROWTH;
    put_line(
        out,
        columns,
        by_growth ? "HEAP" : ">HEAP",
        by_growth ? ">GROWTH" : "GROWTH",
        "BLOCKS",
        "FUNCTION",
        ""
    );
}

void ml_top_functions_line(
    const struct ml_top_function *row, size_t columns, char out[ML_TOP_LINE_BYTES]
) {
    char heap[ML_SIZE_TEXT_BYTES];
    char size[ML_SIZE_TEXT_BYTES];
    char growth[CELL_BYTES] = "-";
    char blocks[CELL_BYTES];
    if (row->has_growth) {
        const int64_t grown = row->growth_bytes;
        (void)ml_size_text(grown < 0 ? 0 - (uint64_t)grown : (uint64_t)grown, size);
        (void)snprintf(growth, sizeof(growth), "%s%s", grown < 0 ? "-" : "+", size);
    }
    (void)snprintf(blocks, sizeof(blocks), "%llu", (unsigned long long)row->live_blocks);
    (void)ml_size_text(row->live_bytes, heap);
    put_line(out, columns, heap, growth, blocks, row->name, row->module);
}
