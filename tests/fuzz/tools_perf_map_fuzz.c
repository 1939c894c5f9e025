/* A map of code made at run time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"
#include "tools/analyzer/symbols/perf_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    char path[64];
    const int fd = memfd_create("fuzz", MFD_CLOEXEC);
    REQUIRE(fd >= 0 && write(fd, data, count_bytes) == (ssize_t)count_bytes);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    struct ml_perf_map map = {0};
    const bool any = ml_perf_map_read_file(&map, path, 0, UINT64_MAX);
    REQUIRE(any == (map.count > 0));
    for (size_t i = 0; i < map.count; i++) {
        REQUIRE(map.entries[i].start < map.entries[i].end);
        REQUIRE(i == 0 || map.entries[i - 1].start <= map.entries[i].start);
        REQUIRE(ml_perf_map_find(&map, map.entries[i].start) != NULL);
        (void)ml_perf_map_find(&map, map.entries[i].end);
    }
    ml_perf_map_fini(&map);
    (void)close(fd);
    return 0;
}
