#include "tools/analyzer/fleet/read.h"

#include <stdlib.h>

#include <jansson.h>

#include "tools/analyzer/fleet/otlp.h"
#include "tools/analyzer/fleet/pprof.h"
#include "tools/analyzer/fleet/proto.h"
#include "tools/analyzer/fleet/push.h"
#include "tools/analyzer/fleet/trace.h"
#include "tools/analyzer/formats/otlp_fields.h"
#include "tools/analyzer/formats/pprof.pb.h"

static enum ml_status json_read(struct ml_fleet_piece text, struct ml_fleet_rows *rows) {
    json_t *root = json_loadb((const char *)text.bytes, text.count_bytes, 0, NULL);
    enum ml_status status = ML_PEER_FORM;

    if (json_object_get(root, "series")) {
        status = ml_fleet_push_json_read(root, rows);
    } else if (root) {
        status = ml_fleet_trace_read(root, rows);
    }
    json_decref(root);
    return status;
}

/* Each of pprof's profiles has a table of strings, and each of OpenTelemetry's a dictionary. A push
 * has series alone. */
static enum ml_status proto_read(struct ml_fleet_piece message, struct ml_fleet_rows *rows) {
    struct ml_fleet_piece rest = message;
    struct ml_fleet_field field;
    bool has_strings = false;
    bool has_dictionary = false;

    while (ml_fleet_field(&rest, &field)) {
        has_strings =
            has_strings || (field.number == ml_pprof_Profile_string_table_tag && field.is_bytes);
        has_dictionary =
            has_dictionary || (field.number == ML_OTLP_REQUEST_DICTIONARY && field.is_bytes);
    }
    if (rest.count_bytes > 0 || message.count_bytes == 0) {
        return ML_PEER_FORM;
    }
    if (has_strings) {
        return ml_fleet_pprof_read(message, rows);
    }
    return has_dictionary ? ml_fleet_otlp_read(message, rows) : ml_fleet_push_read(message, rows);
}

enum ml_status ml_fleet_read_plain(struct ml_fleet_piece plain, struct ml_fleet_rows *rows) {
    struct ml_fleet_piece rest = plain;
    enum ml_status status = ML_OK;

    while (rest.count_bytes > 0 && (rest.bytes[0] == ' ' || rest.bytes[0] == '\n')) {
        rest.bytes++;
        rest.count_bytes--;
    }
    if (rest.count_bytes > 0 && (rest.bytes[0] == '{' || rest.bytes[0] == '[')) {
        status = json_read(rest, rows);
    } else {
        status = proto_read(plain, rows);
    }
    rows->head.version = MEMLOG_FLEET_FLEET_VERSION;
    if (rows->is_full) {
        return ML_PEER_LIMIT;
    }
    return rows->is_failed ? ML_ENV_MEMORY : status;
}

enum ml_status ml_fleet_read(struct ml_fleet_piece body, struct ml_fleet_rows *rows) {
    struct ml_fleet_piece piece = body;
    uint8_t *text = NULL;
    size_t text_count = 0;
    enum ml_status status = ML_OK;

    if (ml_fleet_is_multipart(body) && !ml_fleet_part(body, "trace", &piece) &&
        !ml_fleet_part(body, "profile", &piece)) {
        return ML_ENV_MISSING;
    }
    if (!ml_fleet_is_gzip(piece)) {
        return ml_fleet_read_plain(piece, rows);
    }
    status = ml_fleet_unpack(piece, &text, &text_count);
    if (status == ML_OK) {
        status = ml_fleet_read_plain((struct ml_fleet_piece){text, text_count}, rows);
    }
    free(text);
    return status;
}
