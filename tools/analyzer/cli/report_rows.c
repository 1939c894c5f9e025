/* What a collector starts for each report that it received: the body on stdin, the answer as
 * messages over descriptor 3 (mojom_like_idl/contracts/fleet_report.mojom). */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/size.h"
#include "tools/analyzer/cli/command.h"
#include "tools/analyzer/fleet/read.h"
#include "tools/analyzer/fleet/send.h"
#include "tools/analyzer/sandbox/confine.h"

enum { COLLECTOR_FD = 3, BODY_MAX_BYTES = 256 << 20, FIRST_BYTES = 1 << 20 };

/* All of stdin. NULL: no memory, or it is too large. Owner: free. */
static uint8_t *body_read(size_t *out_count) {
    size_t capacity = FIRST_BYTES;
    uint8_t *bytes = malloc(capacity);
    ssize_t got = 1;

    *out_count = 0;
    while (bytes && got != 0) {
        if (*out_count == capacity) {
            uint8_t *grown = capacity < BODY_MAX_BYTES ? realloc(bytes, capacity * 2) : NULL;
            if (!grown) {
                free(bytes);
                return NULL;
            }
            bytes = grown;
            capacity *= 2;
        }
        got = read(STDIN_FILENO, bytes + *out_count, capacity - *out_count);
        if (got < 0 && errno != EINTR) {
            free(bytes);
            return NULL;
        }
        *out_count += got > 0 ? (size_t)got : 0;
    }
    return bytes;
}

static const char *reason_of(enum ml_status status) {
    switch (status) {
    case ML_PEER_LIMIT:
        return "it is too large to be read";
    case ML_ENV_MISSING:
        return "there is no heap in it";
    case ML_ENV_MEMORY:
        return "memory ran out while it was read";
    default:
        return "it is no report: no trace, no profile of pprof's or OpenTelemetry's, and no form "
               "with one";
    }
}

static int run(const struct ml_command *command, char *const *words) {
    struct ml_fleet_rows rows = {.is_failed = false};
    struct ml_fleet_piece body = {NULL, 0};
    uint8_t *bytes = NULL;
    enum ml_status status = ML_PEER_LIMIT;
    int exit_code = ML_EXIT_OK;

    if (!ml_command_read(command, words, NULL, NULL, &exit_code)) {
        return exit_code;
    }
    ml_confine_closed();
    bytes = body_read(&body.count_bytes);
    body.bytes = bytes;
    if (bytes) {
        status = ml_fleet_read(body, &rows);
    }
    free(bytes);
    if (status != ML_OK) {
        ml_fleet_send_refusal(reason_of(status), COLLECTOR_FD);
    } else {
        status = ml_fleet_send(&rows, COLLECTOR_FD);
    }
    ml_fleet_rows_fini(&rows);
    return status == ML_OK ? ML_EXIT_OK : ML_EXIT_FAILED;
}

const struct ml_command ml_command_report_rows = {
    .table =
        {.program = "memlog-analyzer",
         .name = "report-rows",
         .summary = "what a collector keeps of a report",
         .usage = "",
         .about = "Reads the body of an upload on stdin and sends what it says as messages over "
                  "descriptor 3. memlog collect starts it for each report.",
         .example = "memlog-analyzer report-rows < body"},
    .dumps = ML_DUMPS_NONE,
    .run = run,
};
