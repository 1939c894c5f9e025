#include "base/utf8.h"

/* The second byte must lie between these, so that overlong forms, surrogates and values beyond
 * U+10FFFF are none. */
static size_t
sequence_length(unsigned char first, unsigned char *out_low, unsigned char *out_high) {
    *out_low = 0x80;
    *out_high = 0xbf;
    if (first < 0x80) {
        return 1;
    }
    if (first >= 0xc2 && first <= 0xdf) {
        return 2;
    }
    if (first >= 0xe0 && first <= 0xef) {
        *out_low = first == 0xe0 ? 0xa0 : 0x80;
        *out_high = first == 0xed ? 0x9f : 0xbf;
        return 3;
    }
    if (first >= 0xf0 && first <= 0xf4) {
        *out_low = first == 0xf0 ? 0x90 : 0x80;
        *out_high = first == 0xf4 ? 0x8f : 0xbf;
        return 4;
    }
    return 0;
}

size_t ml_utf8_length(const char *bytes, size_t left) {
    unsigned char low = 0;
    unsigned char high = 0;
    const size_t length = left > 0 ? sequence_length((unsigned char)bytes[0], &low, &high) : 0;

    if (length > left) {
        return 0;
    }
    for (size_t i = 1; i < length; i++) {
        const unsigned char byte = (unsigned char)bytes[i];
        if (byte < (i == 1 ? low : 0x80) || byte > (i == 1 ? high : 0xbf)) {
            return 0;
        }
    }
    return length;
}

uint32_t ml_utf8_character(const char *bytes, size_t length) {
    static const unsigned char first_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t character = (unsigned char)bytes[0] & first_bits[length];

    for (size_t i = 1; i < length; i++) {
        character = character << 6 | ((unsigned char)bytes[i] & 0x3f);
    }
    return character;
}
