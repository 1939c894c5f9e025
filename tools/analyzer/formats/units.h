/* Formats figures for people: sizes, counts, times. Room: tools. Context: any thread.
 *
 * One rule: the answer is in the caller's buffer, and is returned for use in printf. */
#ifndef MEMLOG_TOOLS_ANALYZER_FORMATS_UNITS_H
#define MEMLOG_TOOLS_ANALYZER_FORMATS_UNITS_H

#include <stddef.h>
#include <stdint.h>

/* Room for every answer. */
enum { ML_UNITS_BYTES = 40 };

/* "0 B", "812 B", "1.2 KiB", "34.0 MiB". */
const char *ml_units_size(uint64_t bytes, char out_text[ML_UNITS_BYTES]);

/* "1,234,567" */
const char *ml_units_count(uint64_t count, char out_text[ML_UNITS_BYTES]);

/* "2026-11-21T10:00:00Z"; with milliseconds "2026-11-21T10:00:00.123Z"; "" for 0. */
const char *ml_units_time(uint64_t realtime_ns, char out_text[ML_UNITS_BYTES]);
const char *ml_units_time_ms(uint64_t realtime_ns, char out_text[ML_UNITS_BYTES]);

/* "850 ms", "12.3 s", "4 min 10 s", "3 h 12 min". */
const char *ml_units_span(uint64_t span_ns, char out_text[ML_UNITS_BYTES]);

#endif
