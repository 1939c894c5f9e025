/* A report's body as a collector's analyzer reads it: the trace in it, and the forms around it. */
#include <stdlib.h>

#include "tests/fuzz/fuzz.h"
#include "tools/analyzer/fleet/read.h"
#include "tools/analyzer/fleet/trace.h"

static void read_body(const uint8_t *data, size_t count_bytes) {
    struct ml_fleet_rows rows = {.is_failed = false};
    const struct ml_fleet_piece body = {data, count_bytes};
    const enum ml_status status = ml_fleet_read(body, &rows);
    REQUIRE(status != ML_OK || !rows.is_full);
    REQUIRE(ml_fleet_rows_check(&rows));
    ml_fleet_rows_fini(&rows);
}

static void read_trace(const uint8_t *data, size_t count_bytes) {
    struct ml_fleet_rows rows = {.is_failed = false};
    const enum ml_status status = ml_fleet_trace_read((const char *)data, count_bytes, &rows);
    REQUIRE(status != ML_OK || rows.head.version == MEMLOG_FLEET_FLEET_VERSION);
    REQUIRE(ml_fleet_rows_check(&rows));
    ml_fleet_rows_fini(&rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    read_body(data, count_bytes);
    read_trace(data, count_bytes);
    return 0;
}
