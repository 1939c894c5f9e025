/* What `memlog top` shows: rows of processes, their rates between two looks, order, and lines of
 * text. Room: host. Context: any; caller's storage; no terminal.
 *
 * One rule: a line holds printable text alone and is never wider than was asked for, whatever
 * processes call themselves. */
#ifndef MEMLOG_HOST_TERMINAL_TOP_MODEL_H
#define MEMLOG_HOST_TERMINAL_TOP_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ML_TOP_NAME_BYTES = 257,  /* ProcessRow.name of heap_host.mojom and its NUL */
    ML_TOP_COLUMNS_MAX = 512, /* wider terminals show no more */
    ML_TOP_LINE_BYTES = 4096  /* ML_TOP_COLUMNS_MAX characters with combining ones */
};

enum ml_top_sort {
    ML_TOP_SORT_HEAP = 0,
    ML_TOP_SORT_PRIVATE,
    ML_TOP_SORT_GROWTH,
    ML_TOP_SORT_ALLOCATED,
    ML_TOP_SORT_COUNT
};

/* Words for the orders, NULL behind the last. */
extern const char *const ml_top_sort_names[ML_TOP_SORT_COUNT + 1];

struct ml_top_row {
    uint32_t id, pid; /* the id is the process's own within a run; pids come again */
    uint64_t heap_bytes, private_bytes, total_bytes;
    bool has_rates;               /* it was there at the look before */
    int64_t growth_bytes;         /* a second, of the heap */
    uint64_t allocated_bytes;     /* a second */
    char name[ML_TOP_NAME_BYTES]; /* printable */
};

/* Set the rates of `rows` by those of an earlier look. Both are left in the order of ids.
 *
 * Units:  elapsed_ns between both; 0: no row gets rates. A total that fell (it was started again)
 * gives none. */
void ml_top_rates(
    struct ml_top_row *rows,
    size_t count,
    struct ml_top_row *before,
    size_t before_count,
    uint64_t elapsed_ns
);

/* The largest first; rows without rates behind those with; equal ones by pid. */
void ml_top_sort(struct ml_top_row *rows, size_t count, enum ml_top_sort by);

/* Put rows in front whose name holds the text, upper and lower case alike, in the order that they
 * have; the others come behind in any order. Returns the number of those in front. */
size_t ml_top_filter(struct ml_top_row *rows, size_t count, const char *text);

/* Whether a name has the text in it, likewise. */
bool ml_top_name_holds(const char *name, const char *text);

/* Cut a line to a width, between two characters. */
void ml_top_cut(char *line, size_t columns);

/* The line above the rows, with a mark at what they are sorted by, and a row's line. At most
 * `columns` wide. */
void ml_top_head(enum ml_top_sort by, size_t columns, char out[ML_TOP_LINE_BYTES]);
void ml_top_line(const struct ml_top_row *row, size_t columns, char out[ML_TOP_LINE_BYTES]);

#endif
