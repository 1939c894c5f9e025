#include "host/terminal/top_model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/printable.h"
#include "base/size.h"

enum { CELL_BYTES = 32, NS_PER_SECOND = 1000000000 };

const char *const ml_top_sort_names[ML_TOP_SORT_COUNT + 1] = {
    "heap", "private", "growth", "allocated"};

static int compare_ids(const void *a, const void *b) {
    const struct ml_top_row *left = a;
    const struct ml_top_row *right = b;
    return (left->id > right->id) - (left->id < right->id);
}

/* Bounded, so that it fits any whole number of 64 bits. */
static double a_second(double bytes, uint64_t elapsed_ns) {
    const double most = 9e18;
    const double rate = bytes * NS_PER_SECOND / (double)elapsed_ns;
    return rate > most ? most : (rate < -most ? -most : rate);
}

void ml_top_rates(
    struct ml_top_row *rows,
    size_t count,
    struct ml_top_row *before,
    size_t before_count,
    uint64_t elapsed_ns
) {
    size_t old = 0;
    if (count > 0) {
        qsort(rows, count, sizeof(*rows), compare_ids);
    }
    if (before_count > 0) {
        qsort(before, before_count, sizeof(*before), compare_ids);
    }
    for (size_t i = 0; i < count; i++) {
        struct ml_top_row *row = &rows[i];
        while (old < before_count && before[old].id < row->id) {
            old++;
        }
        row->has_rates = elapsed_ns > 0 && old < before_count && before[old].id == row->id &&
                         before[old].total_bytes <= row->total_bytes;
        if (row->has_rates) {
            const double grown = (double)row->heap_bytes - (double)before[old].heap_bytes;
            const double added = (double)(row->total_bytes - before[old].total_bytes);
            row->growth_bytes = (int64_t)a_second(grown, elapsed_ns);
            row->allocated_bytes = (uint64_t)a_second(added, elapsed_ns);
        }
    }
}

static int larger_first(uint64_t left, uint64_t right) {
    return (left < right) - (left > right);
}

static int by_pid(const struct ml_top_row *left, const struct ml_top_row *right) {
    return (left->pid > right->pid) - (left->pid < right->pid);
}

static int compare_heap(const void *a, const void *b) {
    const struct ml_top_row *left = a;
    const struct ml_top_row *right = b;
    const int order = larger_first(left->heap_bytes, right->heap_bytes);
    return order != 0 ? order : by_pid(left, right);
}

static int compare_private(const void *a, const void *b) {
    const struct ml_top_row *left = a;
    const struct ml_top_row *right = b;
    const int order = larger_first(left->private_bytes, right->private_bytes);
    return order != 0 ? order : by_pid(left, right);
}

static int compare_growth(const void *a, const void *b) {
    const struct ml_top_row *left = a;
    const struct ml_top_row *right = b;
    int order = larger_first(left->has_rates, right->has_rates);
    if (order == 0 && left->has_rates) {
        order =
            (left->growth_bytes < right->growth_bytes) - (left->growth_bytes > right->growth_bytes);
    }
    return order != 0 ? order : by_pid(left, right);
}

static int compare_allocated(const void *a, const void *b) {
    const struct ml_top_row *left = a;
    const struct ml_top_row *right = b;
    int order = larger_first(left->has_rates, right->has_rates);
    if (order == 0 && left->has_rates) {
        order = larger_first(left->allocated_bytes, right->allocated_bytes);
    }
    return order != 0 ? order : by_pid(left, right);
}

void ml_top_sort(struct ml_top_row *rows, size_t count, enum ml_top_sort by) {
    static int (*const orders[ML_TOP_SORT_COUNT])(const void *, const void *) = {
        compare_heap, compare_private, compare_growth, compare_allocated};
    if (count > 0) {
        qsort(rows, count, sizeof(*rows), orders[by]);
    }
}

bool ml_top_name_holds(const char *name, const char *text) {
    const size_t length = strlen(text);
    for (; strlen(name) >= length; name++) {
        if (strncasecmp(name, text, length) == 0) {
            return true;
        }
        if (*name == '\0') {
            break;
        }
    }
    return false;
}

size_t ml_top_filter(struct ml_top_row *rows, size_t count, const char *text) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (ml_top_name_holds(rows[i].name, text)) {
            const struct ml_top_row row = rows[i];
            rows[i] = rows[kept];
            rows[kept++] = row;
        }
    }
    return kept;
}

void ml_top_cut(char *line, size_t columns) {
    line[ml_printable_head(line, columns < ML_TOP_COLUMNS_MAX ? columns : ML_TOP_COLUMNS_MAX)] =
        '\0';
}

/* The figures and the name. A narrow line does without the last figure, so that names stay. */
static void put_line(
    char out[ML_TOP_LINE_BYTES],
    size_t columns,
    const char *pid,
    char cells[ML_TOP_SORT_COUNT][CELL_BYTES],
    const char *name
) {
    enum { NARROW_COLUMNS = 72, CELL_COLUMNS = 12 };
    const bool is_narrow = columns < NARROW_COLUMNS;
    (void)snprintf(
        out,
        ML_TOP_LINE_BYTES,
        "%8s %11s %11s %11s%*s  %s",
        pid,
        cells[ML_TOP_SORT_HEAP],
        cells[ML_TOP_SORT_PRIVATE],
        cells[ML_TOP_SORT_GROWTH],
        is_narrow ? 0 : CELL_COLUMNS,
        is_narrow ? "" : cells[ML_TOP_SORT_ALLOCATED],
        name
    );
    ml_top_cut(out, columns);
}

void ml_top_head(enum ml_top_sort by, size_t columns, char out[ML_TOP_LINE_BYTES]) {
    static const char *const words[ML_TOP_SORT_COUNT] = {"HEAP", "PRIVATE", "GROWTH/s", "ALLOC/s"};
    char cells[ML_TOP_SORT_COUNT][CELL_BYTES];
    for (size_t i = 0; i < ML_TOP_SORT_COUNT; i++) {
        (void)snprintf(cells[i], CELL_BYTES, "%s%s", i == (size_t)by ? ">" : "", words[i]);
    }
    put_line(out, columns, "PID", cells, "NAME");
}

void ml_top_line(const struct ml_top_row *row, size_t columns, char out[ML_TOP_LINE_BYTES]) {
    char cells[ML_TOP_SORT_COUNT][CELL_BYTES] = {"", "-", "-", "-"};
    char size[ML_SIZE_TEXT_BYTES];
    char pid[CELL_BYTES];
    (void)snprintf(pid, sizeof(pid), "%" PRIu32, row->pid);
    (void)snprintf(cells[ML_TOP_SORT_HEAP], CELL_BYTES, "%s", ml_size_text(row->heap_bytes, size));
    if (row->private_bytes > 0) {
        (void)snprintf(
            cells[ML_TOP_SORT_PRIVATE], CELL_BYTES, "%s", ml_size_text(row->private_bytes, size)
        );
    }
    if (row->has_rates) {
        const int64_t grown = row->growth_bytes;
        (void)ml_size_text(grown < 0 ? 0 - (uint64_t)grown : (uint64_t)grown, size);
        (void)snprintf(cells[ML_TOP_SORT_GROWTH], CELL_BYTES, "%s%s", grown < 0 ? "-" : "+", size);
        (void)snprintf(
            cells[ML_TOP_SORT_ALLOCATED], CELL_BYTES, "%s", ml_size_text(row->allocated_bytes, size)
        );
    }
    put_line(out, columns, pid, cells, row->name);
}
