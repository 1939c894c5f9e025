#include "tools/analyzer/progress/line.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/printable.h"

enum { FIRST_NS = 1000000000, EVERY_NS = 100000000 };

/* Erases from the cursor on to the line's end. */
#define ERASE "\x1b[K"

/* "41% (123/300)", "41% (3/12 MiB)"; of an unknown total "123", "3 MiB". */
static void figures_text(const struct ml_progress *now, char *out, size_t out_bytes) {
    const unsigned shift = now->are_bytes ? 20 : 0;
    const char *unit = now->are_bytes ? " MiB" : "";
    const uint64_t done = now->total > 0 && now->done > now->total ? now->total : now->done;

    if (now->total == 0) {
        snprintf(out, out_bytes, "%" PRIu64 "%s", done >> shift, unit);
        return;
    }
    snprintf(
        out,
        out_bytes,
        "%u%% (%" PRIu64 "/%" PRIu64 "%s)",
        (unsigned)(100.0 * (double)done / (double)now->total), /* 100 % is all of it */
        done >> shift,
        now->total >> shift,
        unit
    );
}

void ml_progress_text(
    const struct ml_progress *now, size_t columns, char out_text[ML_PROGRESS_TEXT_BYTES]
) {
    const char *slash = now->name ? strrchr(now->name, '/') : NULL;
    const char *name = slash && slash[1] ? slash + 1 : now->name;
    char figures[64];

    figures_text(now, figures, sizeof figures);
    snprintf(
        out_text,
        ML_PROGRESS_TEXT_BYTES,
        "%s: %s%s%s",
        now->work,
        figures,
        name && name[0] ? ", " : "",
        name ? name : ""
    );
    ml_printable_clean(out_text);
    out_text[ml_printable_head(
        out_text, columns < ML_PROGRESS_COLUMNS_MAX ? columns : ML_PROGRESS_COLUMNS_MAX
    )] = '\0';
}

void ml_progress_line_begin(struct ml_progress_line *line, uint64_t now_ns) {
    *line = (struct ml_progress_line){.next_ns = now_ns + FIRST_NS};
}

bool ml_progress_line_is_due(struct ml_progress_line *line, uint64_t now_ns) {
    if (now_ns < line->next_ns) {
        return false;
    }
    line->next_ns = now_ns + EVERY_NS;
    return true;
}

void ml_progress_line_put(
    struct ml_progress_line *line, int fd, const struct ml_progress *now, size_t columns
) {
    char text[ML_PROGRESS_TEXT_BYTES];
    char bytes[ML_PROGRESS_TEXT_BYTES + 8];

    /* The last column stays free: a terminal may go to the next line behind it. */
    ml_progress_text(now, columns > 0 ? columns - 1 : 0, text);
    const int count = snprintf(bytes, sizeof bytes, "\r%s" ERASE, text);
    line->is_shown = write(fd, bytes, (size_t)count) == count || line->is_shown;
}

void ml_progress_line_erase(struct ml_progress_line *line, int fd) {
    static const char erase[] = "\r" ERASE;

    if (line->is_shown) {
        line->is_shown = write(fd, erase, sizeof erase - 1) < 0;
    }
}
