#include "host/process/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/printable.h"

/* One write for a line: it shares the terminal with the program. */
static void say(const char *format, va_list args) {
    char line[8192];
    int start = snprintf(line, sizeof(line), "memlog: ");
    int count = vsnprintf(line + start, sizeof(line) - (size_t)start - 1, format, args);
    if (count < 0) {
        return;
    }
    size_t end = (size_t)start + (size_t)count;
    if (end > sizeof(line) - 2) {
        end = sizeof(line) - 2;
    }
    line[end] = '\0';
    ml_printable_clean(line);
    end = strlen(line);
    line[end] = '\n';
    (void)fwrite(line, 1, end + 1, stderr);
    (void)fflush(stderr);
}

void ml_say(const struct ml_log *log, const char *format, ...) {
    if (log->quiet) {
        return;
    }
    va_list args;
    va_start(args, format);
    say(format, args);
    va_end(args);
}

void ml_say_error(const char *format, ...) {
    va_list args;
    va_start(args, format);
    say(format, args);
    va_end(args);
}
