#include "host/fleet/answer.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/printable.h"
#include "base/size.h"
#include "base/utf8.h"
#include "host/policy/overhead.h"

enum { FORM_VERSION = 1, BUILD_LETTERS = 12, SURROGATES = 0x10000 };

json_t *ml_fleet_answer_read(const char *bytes, size_t count, struct ml_error_message *error) {
    json_error_t why;
    json_t *answer = json_loadb(bytes, count, 0, &why);
    const json_t *version = json_object_get(answer, "memlog");
    if (json_is_integer(version) && json_integer_value(version) == FORM_VERSION) {
        return answer;
    }
    if (json_is_integer(version)) {
        ml_error_set(error, "the collector answers in a newer form: use its own memlog");
    } else {
        ml_error_set(error, "what answers is no collector: its answer is not memlog's JSON");
    }
    json_decref(answer);
    return NULL;
}

const char *ml_fleet_text(const json_t *object, const char *name) {
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

double ml_fleet_signed(const json_t *object, const char *name) {
    const double value = json_number_value(json_object_get(object, name));
    return isfinite(value) ? value : 0;
}

double ml_fleet_number(const json_t *object, const char *name) {
    return fmax(0, ml_fleet_signed(object, name));
}

bool ml_fleet_is(const json_t *object, const char *name) {
    return json_is_true(json_object_get(object, name));
}

bool ml_fleet_is_not(const json_t *object, const char *name) {
    return json_is_false(json_object_get(object, name));
}

size_t ml_fleet_count(const json_t *object, const char *name) {
    return json_array_size(json_object_get(object, name));
}

const json_t *ml_fleet_element(const json_t *object, const char *name, size_t at) {
    return json_array_get(json_object_get(object, name), at);
}

const char *ml_fleet_name(const char *text, char out[ML_FLEET_NAME_BYTES]) {
    (void)ml_printable_copy(text, strlen(text), out, ML_FLEET_NAME_BYTES);
    if (out[0] == '\0') {
        (void)snprintf(out, ML_FLEET_NAME_BYTES, "(none)");
    }
    return out;
}

const char *ml_fleet_build(const char *text, char out[ML_FLEET_CELL_BYTES]) {
    char name[ML_FLEET_NAME_BYTES];
    (void)ml_fleet_name(text, name);
    const size_t count = ml_printable_head(name, BUILD_LETTERS);
    (void)snprintf(out, ML_FLEET_CELL_BYTES, "%.*s", (int)count, name);
    return out;
}

const char *ml_fleet_bytes(double bytes, char out[ML_FLEET_CELL_BYTES]) {
    char size[ML_SIZE_TEXT_BYTES];
    const uint64_t whole = bytes < 0x1p63 ? (uint64_t)llround(fmax(0, bytes)) : (uint64_t)INT64_MAX;
    (void)snprintf(out, ML_FLEET_CELL_BYTES, "%s", ml_size_text(whole, size));
    return out;
}

const char *ml_fleet_figure(const json_t *object, const char *name, char out[ML_FLEET_CELL_BYTES]) {
    if (!json_is_number(json_object_get(object, name))) {
        (void)snprintf(out, ML_FLEET_CELL_BYTES, "-");
        return out;
    }
    return ml_fleet_bytes(ml_fleet_number(object, name), out);
}

const char *ml_fleet_cost(const json_t *object, const char *name, char out[ML_FLEET_CELL_BYTES]) {
    char text[ML_OVERHEAD_PERCENT_BYTES];
    const double ppm = fmin(ML_PPM, ml_fleet_number(object, name));
    const bool is_told = json_is_number(json_object_get(object, name)) && ppm >= 0;
    (void)snprintf(
        out, ML_FLEET_CELL_BYTES, "%s", is_told ? ml_overhead_percent((uint32_t)ppm, text) : "-"
    );
    return out;
}

const char *ml_fleet_share(double share, char out[ML_FLEET_CELL_BYTES]) {
    (void)snprintf(out, ML_FLEET_CELL_BYTES, "%.1f %%", 100 * fmin(1, fmax(0, share)));
    return out;
}

const char *ml_fleet_many(double count, char out[ML_FLEET_CELL_BYTES]) {
    char digits[ML_FLEET_CELL_BYTES];
    const int64_t whole = llround(fmin(fmax(0, count), 1e15));
    const int length = snprintf(digits, sizeof(digits), "%" PRId64, whole);
    size_t at = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) {
            out[at++] = ',';
        }
        out[at++] = digits[i];
    }
    out[at] = '\0';
    return out;
}

const char *ml_fleet_time(double ms, char out[ML_FLEET_CELL_BYTES]) {
    const double last = 253402300799; /* the end of 9999 */
    const time_t seconds = (time_t)fmin(last, fmax(0, ms) / 1000);
    struct tm parts;
    if (gmtime_r(&seconds, &parts) == NULL ||
        strftime(out, ML_FLEET_CELL_BYTES, "%Y-%m-%d %H:%M", &parts) == 0) {
        (void)snprintf(out, ML_FLEET_CELL_BYTES, "?");
    }
    return out;
}

const char *ml_fleet_frame(const json_t *frame, char out[ML_FLEET_NAME_BYTES]) {
    enum { OFFSET_AT = 2, OFFSET_BYTES = 24 };
    if (!json_is_array(frame)) {
        const char *function = json_string_value(frame);
        return ml_fleet_name(function != NULL ? function : "", out);
    }
    char offset[OFFSET_BYTES];
    const char *module = json_string_value(json_array_get(frame, 0));
    const json_int_t at = json_integer_value(json_array_get(frame, OFFSET_AT));
    (void)snprintf(offset, sizeof(offset), "+0x%" PRIx64, (uint64_t)at);
    (void)ml_fleet_name(module != NULL ? module : "", out);
    const size_t count = strlen(out);
    const size_t most = ML_FLEET_NAME_BYTES - OFFSET_BYTES;
    (void)snprintf(
        out + (count < most ? count : most),
        count < most ? ML_FLEET_NAME_BYTES - count : OFFSET_BYTES,
        "%s",
        offset
    );
    return out;
}

/* Within a string these letters mean the same: nothing else of JSON has any that is unprintable. */
static void put_escaped(FILE *out, uint32_t character) {
    if (character >= SURROGATES) {
        const uint32_t rest = character - SURROGATES;
        (void)fprintf(out, "\\u%04x\\u%04x", 0xd800 + (rest >> 10), 0xdc00 + (rest & 0x3ff));
    } else {
        (void)fprintf(out, "\\u%04x", character);
    }
}

void ml_fleet_answer_put(FILE *out, const char *bytes, size_t count) {
    for (size_t at = 0; at < count;) {
        const size_t length = ml_utf8_length(bytes + at, count - at);
        if (length == 0) {
            (void)fputc('?', out); /* never of what was read as JSON */
            at++;
            continue;
        }
        const uint32_t character = ml_utf8_character(bytes + at, length);
        if (ml_printable(character) || character == '\n' || character == '\r' ||
            character == '\t') {
            (void)fwrite(bytes + at, 1, length, out);
        } else {
            put_escaped(out, character);
        }
        at += length;
    }
    if (count == 0 || bytes[count - 1] != '\n') {
        (void)fputc('\n', out);
    }
}
