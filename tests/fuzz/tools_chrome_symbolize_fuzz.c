/* A Chrome trace that is to get names. jansson reads it; what it holds is ours to doubt. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"
#include "tools/analyzer/formats/chrome_symbolize.h"

static void
nameless(void *context, const char *path, const char *build_id_hex, const char *trouble) {
    (void)context;
    REQUIRE(path != NULL && build_id_hex != NULL && trouble != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    char path[64];
    char *text = NULL;
    size_t text_bytes = 0;
    size_t places = 0;
    const struct ml_symbolizer_options options = {.search = {.debug_root = "/nonexistent"}};
    struct ml_symbolizer *symbolizer = ml_symbolizer_new(&options);
    const int fd = memfd_create("fuzz", MFD_CLOEXEC);
    FILE *out = open_memstream(&text, &text_bytes);
    REQUIRE(symbolizer != NULL && out != NULL);
    REQUIRE(fd >= 0 && write(fd, data, count_bytes) == (ssize_t)count_bytes);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    const enum ml_status status =
        ml_chrome_symbolize(path, symbolizer, nameless, NULL, out, &places);
    REQUIRE(fclose(out) == 0);
    REQUIRE((status == ML_OK) == (text_bytes > 0));
    free(text);
    ml_symbolizer_free(symbolizer);
    (void)close(fd);
    return 0;
}
