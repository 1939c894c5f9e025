/* What a process says of itself: /proc/PID/cmdline, and what policy makes of it. */
#include <stdlib.h>
#include <string.h>

#include "host/policy/command_line.h"
#include "host/policy/role.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    struct ml_command_line line;
    struct ml_command_line again;
    REQUIRE(ml_command_line_from_bytes(&line, (const char *)data, count_bytes) == ML_OK);
    REQUIRE(line.count <= ML_COMMAND_LINE_MAX_ARGUMENTS && line.arguments[line.count] == NULL);
    size_t sum_bytes = 0;
    for (size_t i = 0; i < line.count; i++) {
        const size_t bytes = strlen(line.arguments[i]);
        REQUIRE(bytes < ML_COMMAND_LINE_MAX_ARGUMENT_BYTES + 1);
        sum_bytes += bytes + 1;
    }
    REQUIRE(sum_bytes <= ML_COMMAND_LINE_MAX_BYTES + 1);
    REQUIRE(strlen(line.joined) + (line.count > 0) == sum_bytes);
    REQUIRE(ml_command_line_from_argv(&again, line.arguments) == ML_OK);
    REQUIRE(ml_command_line_equal(&line, &again));
    ml_command_line_fini(&line);
    ml_command_line_fini(&again);
    REQUIRE(line.count == 0);
    return 0;
}
