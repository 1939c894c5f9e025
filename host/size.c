#include "host/size.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <strings.h>

static enum ml_status parse_digits(const char **text, uint64_t max, uint64_t *out_value) {
    const char *pos = *text;
    uint64_t value = 0;
    if (!isdigit((unsigned char)*pos)) {
        return ML_PEER_FORM;
    }
    for (; isdigit((unsigned char)*pos); pos++) {
        uint64_t digit = (uint64_t)(*pos - '0');
        if (digit > max || value > (max - digit) / 10) {
            return ML_PEER_RANGE;
        }
        value = value * 10 + digit;
    }
    *text = pos;
    *out_value = value;
    return ML_OK;
}

enum ml_status ml_size_parse(const char *text, uint64_t *out_bytes) {
    static const char *const suffixes[][4] = {
        {"", "B", "", ""}, {"K", "KB", "KiB", ""}, {"M", "MB", "MiB", ""}, {"G", "GB", "GiB", ""}};
    uint64_t value = 0;
    enum ml_status status = parse_digits(&text, INT64_MAX, &value);
    if (status != ML_OK) {
        return status;
    }
    for (unsigned power = 0; power < sizeof(suffixes) / sizeof(suffixes[0]); power++) {
        for (unsigned i = 0; i < 4; i++) {
            const char *suffix = suffixes[power][i];
            bool first = power == 0 && i == 0;
            if ((suffix[0] == '\0' && !first) || strcasecmp(text, suffix) != 0) {
                continue;
            }
            if (value > ((uint64_t)INT64_MAX >> (10 * power))) {
                return ML_PEER_RANGE;
            }
            *out_bytes = value << (10 * power);
            return ML_OK;
        }
    }
    return ML_PEER_FORM;
}

enum ml_status ml_count_parse(const char *text, uint64_t max, uint64_t *out_count) {
    uint64_t value = 0;
    enum ml_status status = parse_digits(&text, max, &value);
    if (status != ML_OK) {
        return status;
    }
    if (*text != '\0') {
        return ML_PEER_FORM;
    }
    *out_count = value;
    return ML_OK;
}

const char *ml_size_text(uint64_t bytes, char out[ML_SIZE_TEXT_BYTES]) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) {
        (void)snprintf(out, ML_SIZE_TEXT_BYTES, "%" PRIu64 " B", bytes);
        return out;
    }
    double value = (double)bytes;
    unsigned unit = 0;
    while (value >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        value /= 1024;
        unit++;
    }
    (void)snprintf(out, ML_SIZE_TEXT_BYTES, "%.1f %s", value, units[unit]);
    return out;
}
