#include "base/time_text.h"

#include <stddef.h>
#include <string.h>
#include <time.h>

#include "base/size.h"

enum { MS_PER_S = 1000, DURATION_MAX_S = 1000000000 };

/* ".25" in thousandths of `unit`, as far as they are whole; *text moves behind the digits. */
static uint64_t read_fraction(const char **text, uint64_t unit) {
    uint64_t sum = 0;
    uint64_t digit_is = unit;
    if (**text != '.') {
        return 0;
    }
    for (++*text; **text >= '0' && **text <= '9'; ++*text) {
        digit_is /= 10;
        sum += (uint64_t)(**text - '0') * digit_is;
    }
    return sum;
}

bool ml_duration_read(const char *text, uint64_t *out_ms) {
    static const struct {
        const char *name;
        uint64_t ms;
    } units[] = {
        {"", MS_PER_S},
        {"ms", 1},
        {"s", MS_PER_S},
        {"m", 60 * MS_PER_S},
        {"min", 60 * MS_PER_S},
        {"h", 3600 * MS_PER_S},
        {"d", 24 * 3600 * MS_PER_S},
    };
    char digits[sizeof("1000000000")];
    uint64_t whole = 0;
    const size_t count = strspn(text, "0123456789");
    if (count >= sizeof(digits)) {
        return false;
    }
    memcpy(digits, text, count);
    digits[count] = '\0';
    if (count > 0 ? !ml_count_read(digits, DURATION_MAX_S, &whole)
                  : text[0] != '.' || text[1] < '0' || text[1] > '9') {
        return false;
    }
    const char *unit = text + count;
    (void)read_fraction(&unit, 1);
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(unit, units[i].name) == 0) {
            const char *fraction = text + count;
            *out_ms = whole * units[i].ms + read_fraction(&fraction, units[i].ms);
            return true;
        }
    }
    return false;
}

static bool read_clock(const char *text, struct ml_time *out_time) {
    static const char *const forms[] = {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%H:%M:%S", "%H:%M"};
    enum { FORMS = sizeof(forms) / sizeof(forms[0]), FORMS_WITH_DAY = 2 };
    for (size_t form = 0; form < FORMS; form++) {
        struct tm parts = {.tm_mday = form < FORMS_WITH_DAY ? 0 : 1, .tm_year = 70};
        const char *end = strptime(text, forms[form], &parts);
        const uint64_t rest_ms = end != NULL ? read_fraction(&end, MS_PER_S) : 0;
        if (end == NULL || (*end != '\0' && strcmp(end, "Z") != 0)) {
            continue;
        }
        const time_t seconds = timegm(&parts);
        if (seconds < 0) {
            return false;
        }
        *out_time = (struct ml_time
        ){.from = form < FORMS_WITH_DAY ? ML_TIME_OF_1970 : ML_TIME_OF_DAY,
          .ms = (uint64_t)seconds * MS_PER_S + rest_ms};
        return true;
    }
    return false;
}

bool ml_time_read(const char *text, struct ml_time *out_time) {
    struct ml_time time = {.from = ML_TIME_NONE};
    switch (text[0]) {
    case '+':
        time.from = ML_TIME_AFTER_START;
        break;
    case '-':
        time.from = ML_TIME_BEFORE_END;
        break;
    case '@':
        time.from = ML_TIME_OF_1970;
        break;
    default:
        return read_clock(text, out_time);
    }
    if (time.from == ML_TIME_OF_1970 ? !ml_count_read(text + 1, UINT64_MAX / 1000000, &time.ms)
                                     : !ml_duration_read(text + 1, &time.ms)) {
        return false;
    }
    *out_time = time;
    return true;
}
