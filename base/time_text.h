/* Times and lengths of time as people type them. Room: base. Context: any; no state.
 *
 * One rule: a text that is not wholly a time is refused. Clock times are UTC, as in all that memlog
 * prints. */
#ifndef MEMLOG_BASE_TIME_TEXT_H
#define MEMLOG_BASE_TIME_TEXT_H

#include <stdbool.h>
#include <stdint.h>

/* What a time is counted from. */
enum ml_time_from {
    ML_TIME_NONE = 0, /* none was given */
    ML_TIME_OF_DAY,   /* some day's midnight */
    ML_TIME_OF_1970,
    ML_TIME_AFTER_START,
    ML_TIME_BEFORE_END
};

struct ml_time {
    enum ml_time_from from;
    uint64_t ms;
};

/* "90", "90s", "1.5m", "2h", "30d", "250ms"; a number alone is seconds. False: it is none. */
bool ml_duration_read(const char *text, uint64_t *out_ms);

/* "10:02", "10:02:30.5Z"; "2026-11-21T10:02", "2026-11-21T10:02:30.5Z", "@MILLISECONDS" since 1970;
 * "+5m", "-5m". False: it is none. */
bool ml_time_read(const char *text, struct ml_time *out_time);

#endif
