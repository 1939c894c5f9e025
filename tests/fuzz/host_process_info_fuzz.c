/* Text of the kernel's about processes, whose names may hold any byte: stat, status, smaps_rollup,
 * smaps. */
#include <stdlib.h>
#include <string.h>

#include "host/memory/regions.h"
#include "host/process/info.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    char *text = malloc(count_bytes + 1);
    REQUIRE(text != NULL);
    memcpy(text, data, count_bytes);
    text[count_bytes] = '\0';
    const struct ml_footprint footprint = ml_process_footprint_parse(text);
    const pid_t parent = ml_process_parent_parse(text);
    const struct ml_ending ending = ml_process_ending_parse(text);
    REQUIRE(parent >= 0);
    REQUIRE(footprint.files_bytes == 0 || strstr(text, "Pss_Shmem") != NULL);
    REQUIRE(ending.known || (ending.signal == 0 && ending.exit_code == 0));
    struct ml_memory_regions regions = {0};
    char *rest = NULL;
    for (const char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        REQUIRE(ml_memory_regions_line(&regions, line));
    }
    REQUIRE(regions.count <= ML_MEMORY_REGIONS_MAX);
    ml_memory_regions_fini(&regions);
    free(text);
    return 0;
}
