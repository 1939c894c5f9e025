#include "tools/analyzer/formats/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/size.h"

enum { NS_PER_MS = 1000000, MS_PER_S = 1000 };

const char *ml_words_size(uint64_t bytes, char out_words[ML_WORDS_BYTES]) {
    return ml_size_text(bytes, out_words);
}

const char *ml_words_count(uint64_t count, char out_words[ML_WORDS_BYTES]) {
    char digits[ML_WORDS_BYTES];
    size_t length = (size_t)snprintf(digits, sizeof digits, "%" PRIu64, count);
    size_t at = 0;

    for (size_t i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) {
            out_words[at++] = ',';
        }
        out_words[at++] = digits[i];
    }
    out_words[at] = '\0';
    return out_words;
}

static const char *time_words(uint64_t realtime_ns, const char *form, char *out_words) {
    time_t seconds = (time_t)(realtime_ns / NS_PER_MS / MS_PER_S);
    struct tm parts;

    out_words[0] = '\0';
    if (realtime_ns != 0 && gmtime_r(&seconds, &parts)) {
        strftime(out_words, ML_WORDS_BYTES, form, &parts);
    }
    return out_words;
}

const char *ml_words_time(uint64_t realtime_ns, char out_words[ML_WORDS_BYTES]) {
    return time_words(realtime_ns, "%Y-%m-%dT%H:%M:%SZ", out_words);
}

const char *ml_words_time_ms(uint64_t realtime_ns, char out_words[ML_WORDS_BYTES]) {
    size_t count = strlen(time_words(realtime_ns, "%Y-%m-%dT%H:%M:%S", out_words));

    if (count > 0) {
        unsigned ms = (unsigned)(realtime_ns / NS_PER_MS % MS_PER_S);
        snprintf(out_words + count, ML_WORDS_BYTES - count, ".%03uZ", ms);
    }
    return out_words;
}

const char *ml_words_span(uint64_t span_ns, char out_words[ML_WORDS_BYTES]) {
    uint64_t ms = span_ns / NS_PER_MS;
    uint64_t s = ms / MS_PER_S;

    if (ms < MS_PER_S) {
        snprintf(out_words, ML_WORDS_BYTES, "%" PRIu64 " ms", ms);
    } else if (s < 60) {
        snprintf(out_words, ML_WORDS_BYTES, "%" PRIu64 ".%" PRIu64 " s", s, ms % MS_PER_S / 100);
    } else if (s < 3600) {
        snprintf(out_words, ML_WORDS_BYTES, "%" PRIu64 " min %" PRIu64 " s", s / 60, s % 60);
    } else {
        snprintf(
            out_words, ML_WORDS_BYTES, "%" PRIu64 " h %" PRIu64 " min", s / 3600, s % 3600 / 60
        );
    }
    return out_words;
}
