/* A Breakpad symbol file of the module that the seeds name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"
#include "tools/analyzer/symbols/breakpad.h"

enum { FRAMES_MAX = 8 };

static void look_up(const struct ml_breakpad *breakpad, uint64_t address) {
    struct ml_breakpad_frame frames[FRAMES_MAX];
    const size_t count = ml_breakpad_find(breakpad, address, frames, FRAMES_MAX);
    REQUIRE(count <= FRAMES_MAX);
    for (size_t i = 0; i < count; i++) {
        REQUIRE(frames[i].name != NULL && frames[i].file != NULL);
        REQUIRE(frames[i].is_inlined == (i + 1 < count));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    static const uint8_t build_id[20] = {0};
    char path[64];
    const int fd = memfd_create("fuzz", MFD_CLOEXEC);
    REQUIRE(fd >= 0 && write(fd, data, count_bytes) == (ssize_t)count_bytes);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    struct ml_breakpad breakpad = {0};
    if (ml_breakpad_read(&breakpad, path, build_id, sizeof(build_id))) {
        for (size_t i = 0; i < breakpad.functions_count; i++) {
            const struct ml_breakpad_function *function = &breakpad.functions[i];
            REQUIRE(i == 0 || breakpad.functions[i - 1].start <= function->start);
            REQUIRE(function->first_line + function->lines_count <= breakpad.lines_count);
            REQUIRE(function->first_inline + function->inlines_count <= breakpad.inlines_count);
            look_up(&breakpad, function->start);
            look_up(&breakpad, function->start + function->size_bytes);
        }
    } else {
        REQUIRE(breakpad.functions == NULL && breakpad.functions_count == 0);
    }
    ml_breakpad_fini(&breakpad);
    (void)close(fd);
    return 0;
}
