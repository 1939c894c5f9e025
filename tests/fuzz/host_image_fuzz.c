/* /proc/PID/maps of a program that has just begun: the names in it are whatever somebody called his
 * files. */
#include <stdio.h>
#include <string.h>

#include "host/process/image.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    char *maps = malloc(count_bytes + 1);
    REQUIRE(maps != NULL);
    memcpy(maps, data, count_bytes);
    maps[count_bytes] = '\0';
    FILE *file = fmemopen(maps, count_bytes + 1, "r");
    REQUIRE(file != NULL);
    const enum ml_image_kind kind = ml_image_from_maps(file);
    (void)fclose(file);
    /* What only the file's mode or a refused look can tell is not told by text. */
    REQUIRE(
        kind == ML_IMAGE_PRELOADABLE || kind == ML_IMAGE_GONE || kind == ML_IMAGE_STATIC ||
        kind == ML_IMAGE_OTHER_LOADER || kind == ML_IMAGE_32_BIT
    );
    REQUIRE(ml_image_text(kind)[0] != '\0');
    REQUIRE(kind == ML_IMAGE_GONE || memchr(maps, '/', count_bytes) != NULL);
    free(maps);
    return 0;
}
