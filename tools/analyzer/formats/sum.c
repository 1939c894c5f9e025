#include "tools/analyzer/formats/sum.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { FIGURE_BYTES = 32 };

__extension__ typedef unsigned __int128 ml_wide;

/* A figure counts steps: units, or tenths of a unit. */
struct scale {
    const char *unit;
    uint64_t unit_bytes;
    uint64_t steps; /* in a unit: 1 or 10 */
};

struct rounded {
    const char *name;
    uint64_t steps;
    uint64_t lost; /* by rounding down, in 1/steps of a byte */
    size_t place;  /* in the order of the caller */
};

static struct scale scale_of(uint64_t bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    enum { WHOLE_FROM = 100 };
    struct scale scale = {.unit_bytes = 1};
    size_t unit = 0;

    while (bytes / scale.unit_bytes >= 1024) {
        scale.unit_bytes *= 1024;
        unit++;
    }
    scale.unit = units[unit];
    scale.steps = unit > 0 && bytes / scale.unit_bytes < WHOLE_FROM ? 10 : 1;
    return scale;
}

static void put_figure(uint64_t steps, const struct scale *scale, char out[FIGURE_BYTES]) {
    if (scale->steps == 1) {
        snprintf(out, FIGURE_BYTES, "%" PRIu64, steps);
    } else {
        snprintf(out, FIGURE_BYTES, "%" PRIu64 ".%" PRIu64, steps / 10, steps % 10);
    }
}

static int order_lost(const void *left, const void *right) {
    const struct rounded *a = left;
    const struct rounded *b = right;

    if (a->lost != b->lost) {
        return a->lost < b->lost ? 1 : -1;
    }
    return a->place < b->place ? -1 : 1;
}

/* The first in front, then the largest; equal ones as the caller has them. */
static int order_shown(const void *left, const void *right) {
    const struct rounded *a = left;
    const struct rounded *b = right;

    if ((a->place == 0) != (b->place == 0)) {
        return a->place == 0 ? -1 : 1;
    }
    if (a->steps != b->steps) {
        return a->steps < b->steps ? 1 : -1;
    }
    return a->place < b->place ? -1 : 1;
}

/* Round so that the parts add up to the rounded sum. Returns that sum. */
static uint64_t round_parts(
    struct rounded *rounded,
    const struct ml_sum_part *parts,
    size_t count,
    uint64_t sum,
    const struct scale *scale
) {
    const uint64_t sum_steps =
        (uint64_t)(((ml_wide)sum * scale->steps + scale->unit_bytes / 2) / scale->unit_bytes);
    uint64_t missing = sum_steps;

    for (size_t i = 0; i < count; i++) {
        const ml_wide steps = (ml_wide)parts[i].bytes * scale->steps;
        rounded[i] = (struct rounded
        ){.name = parts[i].name,
          .steps = (uint64_t)(steps / scale->unit_bytes),
          .lost = (uint64_t)(steps % scale->unit_bytes),
          .place = i};
        missing -= rounded[i].steps;
    }
    qsort(rounded, count, sizeof *rounded, order_lost);
    for (size_t i = 0; i < count && missing > 0; i++, missing--) {
        rounded[i].steps++;
    }
    qsort(rounded, count, sizeof *rounded, order_shown);
    return sum_steps;
}

/* The line with so many parts. Returns its columns; all of it is ASCII. */
static size_t put_line(
    const struct rounded *rounded,
    size_t shown,
    uint64_t sum_steps,
    const struct scale *scale,
    char out_text[ML_SUM_TEXT_BYTES]
) {
    char figure[FIGURE_BYTES];
    uint64_t rest = sum_steps;
    const char *joint = " =";
    size_t at = 0;

    put_figure(sum_steps, scale, figure);
    at = (size_t)snprintf(out_text, ML_SUM_TEXT_BYTES, "%s %s", figure, scale->unit);
    for (size_t i = 0; i < shown && at < ML_SUM_TEXT_BYTES; i++) {
        if (rounded[i].steps > 0) {
            put_figure(rounded[i].steps, scale, figure);
            at += (size_t)snprintf(
                out_text + at, ML_SUM_TEXT_BYTES - at, "%s %s %s", joint, figure, rounded[i].name
            );
            joint = " +";
            rest -= rounded[i].steps;
        }
    }
    if (rest > 0 && at < ML_SUM_TEXT_BYTES) {
        put_figure(rest, scale, figure);
        at += (size_t)snprintf(out_text + at, ML_SUM_TEXT_BYTES - at, "%s %s rest", joint, figure);
    }
    return at;
}

const char *ml_sum_text(
    const struct ml_sum_part *parts, size_t count, size_t columns, char out_text[ML_SUM_TEXT_BYTES]
) {
    struct rounded rounded[ML_SUM_PARTS_MAX];
    const size_t used = count < ML_SUM_PARTS_MAX ? count : ML_SUM_PARTS_MAX;
    struct scale scale;
    uint64_t sum_steps = 0;
    uint64_t sum = 0;

    for (size_t i = 0; i < used; i++) {
        sum += parts[i].bytes;
    }
    scale = scale_of(sum);
    sum_steps = round_parts(rounded, parts, used, sum, &scale);
    for (size_t shown = used;; shown--) {
        const size_t taken = put_line(rounded, shown, sum_steps, &scale, out_text);
        if (columns == 0 || taken <= columns || shown == 0) {
            return out_text;
        }
    }
}
