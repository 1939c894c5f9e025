/* What `memlog top` shows of functions: rows, their growth between two looks, order, and lines of
 * text. Room: host. Context: any; caller's storage; no terminal.
 *
 * One rule: as in host/terminal/top_model.h, a line is printable and no wider than asked for. */
#ifndef MEMLOG_HOST_TERMINAL_TOP_FUNCTIONS_H
#define MEMLOG_HOST_TERMINAL_TOP_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/terminal/top_model.h"

struct ml_top_function {
    uint64_t live_bytes, live_blocks; /* of the calls that it makes itself */
    bool has_growth;                  /* it was there at the look before, or is new since */
    int64_t growth_bytes;             /* since the look before */
    char name[ML_TOP_NAME_BYTES];     /* printable */
    char module[ML_TOP_NAME_BYTES];
};

/* Read the table of `memlog report --by=function --csv`. Whatever stands in it is made printable.
 *
 * Errors: false: it has no such columns, or no memory.
 * Owner:  free *out_rows. */
bool ml_top_functions_read(char *text, struct ml_top_function **out_rows, size_t *out_count);

/* Set the growth of `rows` by an earlier look; both are left in the order of names. A function that
 * the earlier look does not have has grown by all that it holds. */
void ml_top_functions_growth(
    struct ml_top_function *rows, size_t count, struct ml_top_function *before, size_t before_count
);

/* The largest first, by heap, or by growth with ML_TOP_SORT_GROWTH. */
void ml_top_functions_sort(struct ml_top_function *rows, size_t count, enum ml_top_sort by);

/* As ml_top_filter. */
size_t ml_top_functions_filter(struct ml_top_function *rows, size_t count, const char *text);

void ml_top_functions_head(enum ml_top_sort by, size_t columns, char out[ML_TOP_LINE_BYTES]);
void ml_top_functions_line(
    const struct ml_top_function *row, size_t columns, char out[ML_TOP_LINE_BYTES]
);

#endif
