#include "base/utf8.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "tests/suite.h"

/* As the standard's table has it, without a look at ml_utf8_length(). */
static size_t encode(uint32_t character, char out[4]) {
    if (character < 0x80) {
        out[0] = (char)character;
        return 1;
    }
    if (character < 0x800) {
        out[0] = (char)(0xc0 | character >> 6);
        out[1] = (char)(0x80 | (character & 0x3f));
        return 2;
    }
    if (character < 0x10000) {
        out[0] = (char)(0xe0 | character >> 12);
        out[1] = (char)(0x80 | (character >> 6 & 0x3f));
        out[2] = (char)(0x80 | (character & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | character >> 18);
    out[1] = (char)(0x80 | (character >> 12 & 0x3f));
    out[2] = (char)(0x80 | (character >> 6 & 0x3f));
    out[3] = (char)(0x80 | (character & 0x3f));
    return 4;
}

START_TEST(every_character_is_read_and_none_that_is_cut) {
    for (uint32_t character = 0; character <= 0x10ffff; character++) {
        char bytes[4];
        const size_t count = encode(character, bytes);
        if (character >= 0xd800 && character <= 0xdfff) {
            ck_assert_uint_eq(ml_utf8_length(bytes, count), 0);
            continue;
        }
        bool is_read =
            ml_utf8_length(bytes, count) == count && ml_utf8_character(bytes, count) == character;
        for (size_t left = 0; left < count; left++) {
            is_read = is_read && ml_utf8_length(bytes, left) == 0;
        }
        if (!is_read) { /* an assertion costs a million times more than the question */
            ck_abort_msg("U+%04X", character);
        }
    }
}
END_TEST

START_TEST(overlong_forms_and_what_lies_beyond_are_none) {
    static const char *const cases[] = {
        "\xc0\x80",
        "\xc1\xbf",
        "\xe0\x80\x80",
        "\xe0\x9f\xbf",
        "\xf0\x80\x80\x80",
        "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80",
        "\xff\xff\xff\xff",
        "\x80\x80\x80\x80",
        "\xc3\x28",
        "\xe2\x28\xa1",
        "\xe2\x82\x28",
        "\xf0\x9f\x98\x28"};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert_uint_eq(ml_utf8_length(cases[i], strlen(cases[i])), 0);
    }
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("utf8");
    tcase_add_test(tcase, every_character_is_read_and_none_that_is_cut);
    tcase_add_test(tcase, overlong_forms_and_what_lies_beyond_are_none);
    return run_suite("base/utf8", tcase);
}
