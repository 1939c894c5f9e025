/* Linkage names out of somebody's symbol table, made readable and short. */
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tools/analyzer/names/function_name.h"
#include "tools/analyzer/names/type_name.h"
#include "tools/analyzer/symbols/demangle.h"

enum { OUT_BYTES = 256 };

static void check_fit(const char *name, size_t columns) {
    char out[OUT_BYTES];
    memset(out, 'x', sizeof(out));
    ml_function_name_fit(name, columns, out, sizeof(out));
    REQUIRE(memchr(out, '\0', sizeof(out)) != NULL);
    memset(out, 'x', sizeof(out));
    ml_function_name_brief(name, out, sizeof(out));
    REQUIRE(memchr(out, '\0', sizeof(out)) != NULL);
}

static void check_type(const char *function, const char *linkage) {
    for (int known = 0; known < 2; known++) {
        const struct ml_type_frame frame = {
            .function = function, .linkage = linkage, .inlines_are_known = known != 0};
        char type[ML_TYPE_NAME_BYTES];
        const enum ml_type_word word = ml_type_of_frame(&frame, type);
        if (word == ML_TYPE_ALLOCATED || word == ML_TYPE_CONSTRUCTED) {
            REQUIRE(memchr(type, '\0', sizeof(type)) != NULL && type[0] != '\0');
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    if (count_bytes < 1) {
        return 0;
    }
    char *linkage = malloc(count_bytes);
    REQUIRE(linkage != NULL);
    memcpy(linkage, data + 1, count_bytes - 1);
    linkage[count_bytes - 1] = '\0';
    REQUIRE(ml_function_name_bytes(linkage) <= strlen(linkage));
    char *name = ml_demangle(linkage);
    REQUIRE(name != NULL);
    REQUIRE(ml_is_mangled(linkage) || strncmp(name, linkage, strlen(name)) == 0);
    check_fit(name, data[0]);
    check_fit(linkage, data[0] % 8);
    check_type(name, linkage);
    check_type(linkage, linkage);
    free(name);
    free(linkage);
    return 0;
}
