/* Formats figures for people: sizes, counts, times. Room: tools. Context: any thread.
 *
 * One rule: the answer is a value. Its text lives to the end of the expression, as printf needs it;
 * who needs it longer keeps the value. */
#ifndef MEMLOG_TOOLS_ANALYZER_FORMATS_UNITS_H
#define MEMLOG_TOOLS_ANALYZER_FORMATS_UNITS_H

#include <stddef.h>
#include <stdint.h>

enum { ML_UNITS_BYTES = 40 }; /* room for every answer */

struct ml_units {
    char text[ML_UNITS_BYTES];
};

/* "0 B", "812 B", "1.2 KiB", "34.0 MiB". */
struct ml_units ml_units_size(uint64_t bytes);

/* "1,234,567" */
struct ml_units ml_units_count(uint64_t count);

/* "2026-11-21T10:00:00Z"; with milliseconds "2026-11-21T10:00:00.123Z"; "" for 0. */
struct ml_units ml_units_time(uint64_t realtime_ns);
struct ml_units ml_units_time_ms(uint64_t realtime_ns);

/* "850 ms", "12.3 s", "4 min 10 s", "3 h 12 min". */
struct ml_units ml_units_span(uint64_t span_ns);

#endif
