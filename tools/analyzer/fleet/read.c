#include "tools/analyzer/fleet/read.h"

#include <stdlib.h>

#include "tools/analyzer/fleet/trace.h"

enum ml_status ml_fleet_read(struct ml_fleet_piece body, struct ml_fleet_rows *rows) {
    struct ml_fleet_piece piece = body;
    uint8_t *text = NULL;
    size_t text_count = 0;
    enum ml_status status = ML_PEER_FORM;

    if (ml_fleet_is_multipart(body) && !ml_fleet_part(body, "trace", &piece)) {
        return ML_ENV_MISSING;
    }
    if (ml_fleet_is_gzip(piece)) {
        status = ml_fleet_unpack(piece, &text, &text_count);
    }
    if (status == ML_OK) {
        status = ml_fleet_trace_read((const char *)text, text_count, rows);
    }
    free(text);
    return status;
}
