/* What a debuginfod server answered: a file in its client's cache that claims to be the debug file
 * of a build id. Any bytes; no name may come of them that is no text. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/fuzz/folder.h"
#include "tests/fuzz/fuzz.h"
#include "tools/analyzer/symbols/symbolizer.h"

/* Of a damaged debug file libdwfl forgets the handle and the name that it was given. The analyzer
 * ends with its one task. */
// NOLINTNEXTLINE(bugprone-reserved-identifier): the name is the sanitizer's
const char *__lsan_default_suppressions(void);
// NOLINTNEXTLINE(bugprone-reserved-identifier): likewise
const char *__lsan_default_suppressions(void) {
    return "leak:libelf.so\nleak:libdw.so\n";
}

enum { LOOK_UPS = 16, ADDRESS_STEP = 0x40 };

static const uint8_t build_id[] = {0xab, 0xcd, 0xef, 0x01};
static char cache[PATH_MAX];
static char answer[PATH_MAX];
static const struct ml_symbol_wanted wanted = {
    .path = "/nowhere/module.so", .build_id = build_id, .build_id_bytes = sizeof(build_id)};

static void begin(void) {
    (void)snprintf(cache, sizeof(cache), "%s", fuzz_folder());
    (void)snprintf(answer, sizeof(answer), "%.4000s/abcdef01", cache);
    REQUIRE(mkdir(answer, S_IRWXU) == 0);
    (void)snprintf(answer, sizeof(answer), "%.4000s/abcdef01/debuginfo", cache);
}

/* The fetcher's own answer: the file has come. */
static bool fetch(const char *hex, char *out_path, unsigned long path_bytes) {
    REQUIRE(strcmp(hex, "abcdef01") == 0);
    (void)snprintf(out_path, path_bytes, "%s", answer);
    return true;
}

static void look_up(const struct ml_symbolizer_options *options) {
    struct ml_symbol symbols[ML_SYMBOL_INLINES_MAX];
    const char *trouble = NULL;
    struct ml_symbolizer *symbolizer = ml_symbolizer_new(options);
    REQUIRE(symbolizer != NULL);
    struct ml_symbol_file *file = ml_symbolizer_open(symbolizer, &wanted, &trouble);
    REQUIRE(file != NULL);
    for (uint64_t i = 0; i < LOOK_UPS; i++) {
        const size_t count = ml_symbol_file_find(file, i * ADDRESS_STEP, symbols);
        REQUIRE(count <= ML_SYMBOL_INLINES_MAX);
        REQUIRE(ml_symbol_file_class(file, i * ADDRESS_STEP) != NULL);
        for (size_t k = 0; k < count; k++) {
            REQUIRE(symbols[k].function != NULL && symbols[k].linkage != NULL);
            REQUIRE(symbols[k].file != NULL);
        }
    }
    ml_symbolizer_free(symbolizer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    if (answer[0] == '\0') {
        begin();
    }
    fuzz_write(answer, data, count_bytes);
    const struct ml_symbolizer_options found = {
        .search = {.debug_root = "/nowhere", .debuginfod_cache = cache}};
    const struct ml_symbolizer_options fetched = {
        .search = {.debug_root = "/nowhere"}, .fetch = fetch};
    look_up(&found);
    look_up(&fetched);
    return 0;
}
