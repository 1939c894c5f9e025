#include "base/size.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* The number at *text, which moves behind it. False: there are no digits, or it is above max.
 */
static bool read_digits(const char **text, uint64_t max, uint64_t *out_value) {
    const char *pos = *text;
    uint64_t value = 0;
    for (; *pos >= '0' && *pos <= '9'; pos++) {
        const uint64_t digit = (uint64_t)(*pos - '0');
        if (digit > max || value > (max - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    if (pos == *text) {
        return false;
    }
    *text = pos;
    *out_value = value;
    return true;
}

bool ml_size_read(const char *text, uint64_t *out_bytes) {
    static const char units[] = "KMGT";
    uint64_t value = 0;
    unsigned shift = 0;
    if (!read_digits(&text, INT64_MAX, &value)) {
        return false;
    }
    for (unsigned i = 0; units[i] != '\0' && *text != '\0'; i++) {
        if (strncasecmp(text, &units[i], 1) == 0) {
            shift = 10 * (i + 1);
            text++;
            break;
        }
    }
    if (shift > 0 && strcasecmp(text, "iB") == 0) {
        text++;
    }
    if ((*text != '\0' && strcasecmp(text, "B") != 0) || value > (uint64_t)INT64_MAX >> shift) {
        return false;
    }
    *out_bytes = value << shift;
    return true;
}

bool ml_count_read(const char *text, uint64_t max, uint64_t *out_count) {
    uint64_t value = 0;
    if (!read_digits(&text, max, &value) || *text != '\0') {
        return false;
    }
    *out_count = value;
    return true;
}

const char *ml_size_text(uint64_t bytes, char out[ML_SIZE_TEXT_BYTES]) {
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    unsigned unit = 0;
    if (bytes < 1024) {
        (void)snprintf(out, ML_SIZE_TEXT_BYTES, "%" PRIu64 " B", bytes);
        return out;
    }
    while (unit + 1 < sizeof(units) / sizeof(units[0]) && bytes >> 10 >= 1024) {
        bytes >>= 10;
        unit++;
    }
    /* Rounded up to 1024.0 it is shown as such: the next unit would be 1.0. */
    const uint64_t tenths = bytes / 1024 * 10 + (bytes % 1024 * 10 + 512) / 1024;
    (void)snprintf(
        out, ML_SIZE_TEXT_BYTES, "%" PRIu64 ".%" PRIu64 " %s", tenths / 10, tenths % 10, units[unit]
    );
    return out;
}
