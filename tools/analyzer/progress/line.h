/* One line of progress on a terminal, written over itself. Room: tools. Context: one thread; the
 * caller's clock.
 *
 * One rule: nothing is written within the first second, and what was written is erased. So quick
 * work leaves no trace, and slow work none once it is done. */
#ifndef MEMLOG_TOOLS_ANALYZER_PROGRESS_LINE_H
#define MEMLOG_TOOLS_ANALYZER_PROGRESS_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/analyzer/progress/progress.h"

enum { ML_PROGRESS_COLUMNS_MAX = 200, ML_PROGRESS_TEXT_BYTES = 4 * ML_PROGRESS_COLUMNS_MAX + 1 };

/* "Reading symbols: 41% (123/300), libxul.so", of at most `columns` columns: safe to show
 * (base/printable.h). Of a path the last part is its name. */
void ml_progress_text(
    const struct ml_progress *now, size_t columns, char out_text[ML_PROGRESS_TEXT_BYTES]
);

struct ml_progress_line {
    uint64_t next_ns; /* when it may be written (again) */
    bool is_shown;
};

/* Nothing is shown; the work begins. */
void ml_progress_line_begin(struct ml_progress_line *line, uint64_t now_ns);

/* Whether it is time to write it (again): after the first second ten times a second. True counts as
 * written. */
bool ml_progress_line_is_due(struct ml_progress_line *line, uint64_t now_ns);

/* Put the text of `now` over the line, or erase it. Writes to `fd`; errors do not matter. */
void ml_progress_line_put(
    struct ml_progress_line *line, int fd, const struct ml_progress *now, size_t columns
);
void ml_progress_line_erase(struct ml_progress_line *line, int fd);

#endif
