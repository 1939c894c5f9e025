#include "tools/analyzer/fleet/push.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "tools/analyzer/fleet/pprof.h"
#include "tools/analyzer/fleet/profile.h"
#include "tools/analyzer/fleet/proto.h"

/* Fields of the messages. */
enum {
    REQUEST_SERIES = 1,
    SERIES_LABELS = 1,
    SERIES_SAMPLES = 2,
    LABEL_NAME = 1,
    LABEL_VALUE = 2,
    SAMPLE_PROFILE = 1
};

static struct ml_fleet_piece piece_of(const char *text) {
    return (struct ml_fleet_piece
    ){.bytes = (const uint8_t *)text, .count_bytes = text ? strlen(text) : 0};
}

/* memlog says "unknown" where it does not know. */
static void
take_label(struct ml_fleet_rows *rows, struct ml_fleet_piece name, struct ml_fleet_piece value) {
    struct memlog_fleet_begin_request *head = &rows->head;
    const struct {
        const char *name;
        struct ml_string *to;
        size_t most;
    } known[] = {
        {"service_name", &head->program, MEMLOG_FLEET_BEGIN_REQUEST_PROGRAM_LIMIT},
        {"build_id", &head->build_id, MEMLOG_FLEET_BEGIN_REQUEST_BUILD_ID_LIMIT},
        {"version", &head->program_version, MEMLOG_FLEET_BEGIN_REQUEST_PROGRAM_VERSION_LIMIT},
        {"hostname", &head->host, MEMLOG_FLEET_BEGIN_REQUEST_HOST_LIMIT},
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (ml_fleet_is_text(name, known[i].name) && !ml_fleet_is_text(value, "unknown")) {
            *known[i].to = ml_fleet_string_of(rows, ml_fleet_text(rows, value, known[i].most));
        }
    }
}

/* A profile, which most have gzipped. */
static enum ml_status profile_read(struct ml_fleet_piece profile, struct ml_fleet_rows *rows) {
    uint8_t *unpacked = NULL;
    size_t count = 0;
    enum ml_status status = ML_OK;

    if (!ml_fleet_is_gzip(profile)) {
        return ml_fleet_pprof_read(profile, rows);
    }
    status = ml_fleet_unpack(profile, &unpacked, &count);
    if (status == ML_OK) {
        status = ml_fleet_pprof_read((struct ml_fleet_piece){unpacked, count}, rows);
    }
    free(unpacked);
    return status;
}

/* Of several profiles those of other things than the heap are passed over. */
static enum ml_status both(enum ml_status sum, enum ml_status more) {
    return sum == ML_ENV_MISSING ? more : more == ML_ENV_MISSING ? sum : sum != ML_OK ? sum : more;
}

/* ---- protobuf */

static enum ml_status series_read(struct ml_fleet_piece series, struct ml_fleet_rows *rows) {
    enum ml_status status = ML_ENV_MISSING;
    struct ml_fleet_piece rest = series;
    struct ml_fleet_field field;

    while (ml_fleet_field(&rest, &field)) {
        struct ml_fleet_piece name = {.count_bytes = 0};
        struct ml_fleet_piece value = {.count_bytes = 0};
        struct ml_fleet_field part;
        while (field.number == SERIES_LABELS && ml_fleet_field(&field.bytes, &part)) {
            name = part.number == LABEL_NAME ? part.bytes : name;
            value = part.number == LABEL_VALUE ? part.bytes : value;
        }
        take_label(rows, name, value);
    }
    while (ml_fleet_field(&series, &field)) {
        struct ml_fleet_field part;
        while (field.number == SERIES_SAMPLES && ml_fleet_field(&field.bytes, &part)) {
            if (part.number == SAMPLE_PROFILE) {
                status = both(status, profile_read(part.bytes, rows));
            }
        }
    }
    return series.count_bytes == 0 ? status : ML_PEER_FORM;
}

enum ml_status ml_fleet_push_read(struct ml_fleet_piece message, struct ml_fleet_rows *rows) {
    enum ml_status status = ML_ENV_MISSING;
    struct ml_fleet_field field;

    while (ml_fleet_field(&message, &field)) {
        if (field.number == REQUEST_SERIES) {
            status = both(status, series_read(field.bytes, rows));
        }
    }
    return message.count_bytes == 0 ? status : ML_PEER_FORM;
}

/* ---- JSON */

/* 64: it is no letter of base64. */
static unsigned digit_of(char letter) {
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = letter != '\0' ? strchr(letters, letter) : NULL;

    return at ? (unsigned)(at - letters) : 64;
}

/* False: it is none, or there is no memory. Owner: free *out_bytes. */
static bool base64_read(const char *text, uint8_t **out_bytes, size_t *out_count) {
    size_t letters = strlen(text);
    uint32_t word = 0;
    unsigned bits = 0;

    *out_count = 0;
    *out_bytes = malloc(letters + 1);
    while (letters > 0 && text[letters - 1] == '=') {
        letters--;
    }
    for (size_t i = 0; *out_bytes && i < letters; i++) {
        const unsigned digit = digit_of(text[i]);
        if (digit == 64) {
            return false;
        }
        word = word << 6 | digit;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            (*out_bytes)[(*out_count)++] = (uint8_t)(word >> bits);
        }
    }
    return *out_bytes;
}

static enum ml_status sample_read(const json_t *sample, struct ml_fleet_rows *rows) {
    const char *text = json_string_value(json_object_get(sample, "rawProfile"));
    uint8_t *bytes = NULL;
    size_t count = 0;
    enum ml_status status = ML_PEER_FORM;

    if (text && base64_read(text, &bytes, &count)) {
        status = profile_read((struct ml_fleet_piece){bytes, count}, rows);
    }
    free(bytes);
    return status;
}

static enum ml_status series_json_read(const json_t *series, struct ml_fleet_rows *rows) {
    const json_t *labels = json_object_get(series, "labels");
    const json_t *samples = json_object_get(series, "samples");
    enum ml_status status = ML_ENV_MISSING;

    for (size_t i = 0; i < json_array_size(labels); i++) {
        const json_t *label = json_array_get(labels, i);
        take_label(
            rows,
            piece_of(json_string_value(json_object_get(label, "name"))),
            piece_of(json_string_value(json_object_get(label, "value")))
        );
    }
    for (size_t i = 0; i < json_array_size(samples); i++) {
        status = both(status, sample_read(json_array_get(samples, i), rows));
    }
    return status;
}

enum ml_status ml_fleet_push_json_read(const struct json_t *request, struct ml_fleet_rows *rows) {
    const json_t *series = json_object_get(request, "series");
    enum ml_status status = ML_ENV_MISSING;

    for (size_t i = 0; i < json_array_size(series); i++) {
        status = both(status, series_json_read(json_array_get(series, i), rows));
    }
    return status;
}
