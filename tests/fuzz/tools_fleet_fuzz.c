/* A report's body as a collector's analyzer reads it: the profiles in it, and the forms around
 * them. */
#include <stdlib.h>

#include "tests/fuzz/fuzz.h"
#include "tools/analyzer/fleet/read.h"

enum { PPM = 1000000 };

static void read_body(const uint8_t *data, size_t count_bytes) {
    struct ml_fleet_rows rows = {.is_failed = false};
    const struct ml_fleet_piece body = {data, count_bytes};
    const enum ml_status status = ml_fleet_read(body, &rows);
    REQUIRE(status != ML_OK || !rows.is_full);
    REQUIRE(ml_fleet_rows_check(&rows));
    ml_fleet_rows_fini(&rows);
}

/* What would have to be gzipped, as it is. */
static void read_plain(const uint8_t *data, size_t count_bytes) {
    struct ml_fleet_rows rows = {.is_failed = false};
    const struct ml_fleet_piece plain = {data, count_bytes};
    const enum ml_status status = ml_fleet_read_plain(plain, &rows);
    REQUIRE(status != ML_OK || rows.head.version == MEMLOG_FLEET_FLEET_VERSION);
    REQUIRE(status != ML_OK || (rows.head.told & MEMLOG_FLEET_TOLD_LIVE) != 0);
    REQUIRE((rows.head.told & MEMLOG_FLEET_TOLD_COST) != 0 || rows.head.cost_ppm == 0);
    REQUIRE(rows.head.cost_ppm <= PPM && rows.head.promised_ppm <= PPM);
    REQUIRE(ml_fleet_rows_check(&rows));
    ml_fleet_rows_fini(&rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    read_body(data, count_bytes);
    read_plain(data, count_bytes);
    return 0;
}
