#include "tools/analyzer/formats/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/size.h"

enum { NS_PER_MS = 1000000, MS_PER_S = 1000 };

const char *ml_units_size(uint64_t bytes, char out_text[ML_UNITS_BYTES]) {
    return ml_size_text(bytes, out_text);
}

const char *ml_units_count(uint64_t count, char out_text[ML_UNITS_BYTES]) {
    char digits[ML_UNITS_BYTES];
    size_t length = (size_t)snprintf(digits, sizeof digits, "%" PRIu64, count);
    size_t at = 0;

    for (size_t i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) {
            out_text[at++] = ',';
        }
        out_text[at++] = digits[i];
    }
    out_text[at] = '\0';
    return out_text;
}

static const char *time_words(uint64_t realtime_ns, const char *form, char *out_text) {
    time_t seconds = (time_t)(realtime_ns / NS_PER_MS / MS_PER_S);
    struct tm parts;

    out_text[0] = '\0';
    if (realtime_ns != 0 && gmtime_r(&seconds, &parts)) {
        strftime(out_text, ML_UNITS_BYTES, form, &parts);
    }
    return out_text;
}

const char *ml_units_time(uint64_t realtime_ns, char out_text[ML_UNITS_BYTES]) {
    return time_words(realtime_ns, "%Y-%m-%dT%H:%M:%SZ", out_text);
}

const char *ml_units_time_ms(uint64_t realtime_ns, char out_text[ML_UNITS_BYTES]) {
    size_t count = strlen(time_words(realtime_ns, "%Y-%m-%dT%H:%M:%S", out_text));

    if (count > 0) {
        unsigned ms = (unsigned)(realtime_ns / NS_PER_MS % MS_PER_S);
        snprintf(out_text + count, ML_UNITS_BYTES - count, ".%03uZ", ms);
    }
    return out_text;
}

const char *ml_units_span(uint64_t span_ns, char out_text[ML_UNITS_BYTES]) {
    uint64_t ms = span_ns / NS_PER_MS;
    uint64_t s = ms / MS_PER_S;

    if (ms < MS_PER_S) {
        snprintf(out_text, ML_UNITS_BYTES, "%" PRIu64 " ms", ms);
    } else if (s < 60) {
        snprintf(out_text, ML_UNITS_BYTES, "%" PRIu64 ".%" PRIu64 " s", s, ms % MS_PER_S / 100);
    } else if (s < 3600) {
        snprintf(out_text, ML_UNITS_BYTES, "%" PRIu64 " min %" PRIu64 " s", s / 60, s % 60);
    } else {
        snprintf(
            out_text, ML_UNITS_BYTES, "%" PRIu64 " h %" PRIu64 " min", s / 3600, s % 3600 / 60
        );
    }
    return out_text;
}
