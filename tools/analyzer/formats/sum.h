/* A sum in one line: "330 MiB = 12 heap + 243 mapped + 75 rest". Room: tools. Context: any thread.
 *
 * One rule: the line adds up as it is printed. All figures have the sum's unit and its decimals,
 * and those parts that lost most by rounding down are rounded up. */
#ifndef MEMLOG_TOOLS_ANALYZER_FORMATS_SUM_H
#define MEMLOG_TOOLS_ANALYZER_FORMATS_SUM_H

#include <stddef.h>
#include <stdint.h>

enum { ML_SUM_PARTS_MAX = 32, ML_SUM_TEXT_BYTES = 768 };

struct ml_sum_part {
    const char *name; /* borrowed */
    uint64_t bytes;
};

/* The first part stands first, the others follow by size. Parts that are too small for a figure are
 * left out. What does not fit into `columns` (0: everything fits) is put together as "rest".
 *
 * Units:  `count` up to ML_SUM_PARTS_MAX; more are ignored.
 * Returns out_text. */
const char *ml_sum_text(
    const struct ml_sum_part *parts, size_t count, size_t columns, char out_text[ML_SUM_TEXT_BYTES]
);

#endif
