#include "tools/analyzer/formats/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/size.h"

enum { NS_PER_MS = 1000000, MS_PER_S = 1000 };

struct ml_units ml_units_size(uint64_t bytes) {
    struct ml_units units;

    (void)ml_size_text(bytes, units.text);
    return units;
}

struct ml_units ml_units_count(uint64_t count) {
    struct ml_units units;
    struct ml_units digits;
    size_t length = (size_t)snprintf(digits.text, sizeof digits.text, "%" PRIu64, count);
    size_t at = 0;

    for (size_t i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) {
            units.text[at++] = ',';
        }
        units.text[at++] = digits.text[i];
    }
    units.text[at] = '\0';
    return units;
}

static struct ml_units time_words(uint64_t realtime_ns, const char *form) {
    time_t seconds = (time_t)(realtime_ns / NS_PER_MS / MS_PER_S);
    struct ml_units units = {.text = ""};
    struct tm parts;

    if (realtime_ns != 0 && gmtime_r(&seconds, &parts)) {
        strftime(units.text, sizeof units.text, form, &parts);
    }
    return units;
}

struct ml_units ml_units_time(uint64_t realtime_ns) {
    return time_words(realtime_ns, "%Y-%m-%dT%H:%M:%SZ");
}

struct ml_units ml_units_time_ms(uint64_t realtime_ns) {
    struct ml_units units = time_words(realtime_ns, "%Y-%m-%dT%H:%M:%S");
    size_t count = strlen(units.text);

    if (count > 0) {
        unsigned ms = (unsigned)(realtime_ns / NS_PER_MS % MS_PER_S);
        snprintf(units.text + count, sizeof units.text - count, ".%03uZ", ms);
    }
    return units;
}

struct ml_units ml_units_span(uint64_t span_ns) {
    struct ml_units units;
    uint64_t ms = span_ns / NS_PER_MS;
    uint64_t s = ms / MS_PER_S;
    uint64_t whole = s < 3600 ? s / 60 : s / 3600;

    if (ms < MS_PER_S) {
        snprintf(units.text, sizeof units.text, "%" PRIu64 " ms", ms);
    } else if (s < 60) {
        uint64_t tenths = ms % MS_PER_S / 100;
        snprintf(units.text, sizeof units.text, "%" PRIu64 ".%" PRIu64 " s", s, tenths);
    } else if (s < 3600) {
        snprintf(units.text, sizeof units.text, "%" PRIu64 " min %" PRIu64 " s", whole, s % 60);
    } else {
        uint64_t minutes = s % 3600 / 60;
        snprintf(units.text, sizeof units.text, "%" PRIu64 " h %" PRIu64 " min", whole, minutes);
    }
    return units;
}
