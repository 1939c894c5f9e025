/* What memlog says to the person: lines on stderr. Room: host. Context: the host's one thread.
 *
 * One rule: notes may be silenced, an error that ends memlog is always said. */
#ifndef MEMLOG_HOST_PROCESS_LOG_H
#define MEMLOG_HOST_PROCESS_LOG_H

#include <stdbool.h>

struct ml_log {
    bool quiet; /* set once at the start */
};

/* "memlog: ..." and a newline, unless quiet. Whatever stands in it is printable
 * (base/printable.h): one line. */
__attribute__((format(printf, 2, 3))) void
ml_say(const struct ml_log *log, const char *format, ...);

/* The same, always. */
__attribute__((format(printf, 1, 2))) void ml_say_error(const char *format, ...);

#endif
