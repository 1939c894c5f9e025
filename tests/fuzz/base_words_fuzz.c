/* Words of a program's that people will read: a dump's label, a name. What comes out is one line of
 * UTF-8 that fits, and cleaning it again changes nothing. */
#include <stdbool.h>
#include <string.h>

#include "base/printable.h"
#include "base/utf8.h"
#include "tests/fuzz/fuzz.h"

static void check(const char *text, size_t count_bytes) {
    for (size_t at = 0; at < count_bytes;) {
        const size_t count = ml_utf8_length(text + at, count_bytes - at);
        REQUIRE(count >= 1 && count <= 4 && count <= count_bytes - at);
        REQUIRE(ml_printable(ml_utf8_character(text + at, count)));
        at += count;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    char again[256];
    if (count_bytes == 0) {
        return 0;
    }
    /* Of its size exactly, so that one byte too many is seen. */
    const size_t room = 1 + data[0];
    char *out = malloc(room);
    REQUIRE(out != NULL);
    const size_t count = ml_printable_copy((const char *)data + 1, count_bytes - 1, out, room);
    REQUIRE(count < room && out[count] == '\0' && strlen(out) == count);
    check(out, count);
    REQUIRE(ml_printable_copy(out, count, again, sizeof(again)) == count || count >= sizeof(again));
    REQUIRE(count >= sizeof(again) || memcmp(out, again, count) == 0);
    free(out);
    return 0;
}
