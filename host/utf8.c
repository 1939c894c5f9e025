#include "host/utf8.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

size_t ml_utf8_count(const unsigned char *bytes, size_t left) {
    size_t count = bytes[0] < 0x80   ? 1
                   : bytes[0] < 0xC2 ? 0
                   : bytes[0] < 0xE0 ? 2
                   : bytes[0] < 0xF0 ? 3
                   : bytes[0] < 0xF5 ? 4
                                     : 0;
    if (count == 0 || count > left) {
        return 0;
    }
    for (size_t i = 1; i < count; i++) {
        if ((bytes[i] & 0xC0) != 0x80) {
            return 0;
        }
    }
    /* Overlong forms, surrogates, and what lies beyond the last character. */
    if ((bytes[0] == 0xE0 && bytes[1] < 0xA0) || (bytes[0] == 0xED && bytes[1] > 0x9F) ||
        (bytes[0] == 0xF0 && bytes[1] < 0x90) || (bytes[0] == 0xF4 && bytes[1] > 0x8F)) {
        return 0;
    }
    return count;
}

static uint32_t character_of(const unsigned char *bytes, size_t count) {
    static const unsigned char first_bits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    uint32_t character = bytes[0] & first_bits[count];
    for (size_t i = 1; i < count; i++) {
        character = character << 6 | (bytes[i] & 0x3F);
    }
    return character;
}

static bool is_plain(uint32_t character) {
    static const struct {
        uint32_t first, last;
    } others[] = {
        {0x00, 0x1F},
        {0x7F, 0x9F},
        {0x061C, 0x061C}, /* marks of direction */
        {0x200B, 0x200F}, /* without width, marks of direction */
        {0x2028, 0x202E}, /* line and paragraph, overrides of direction */
        {0x2060, 0x206F},
        {0xFEFF, 0xFEFF},
        {0xFFF9, 0xFFFB},
        {0xE0000, 0xE007F}, /* tags */
    };
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (character >= others[i].first && character <= others[i].last) {
            return false;
        }
    }
    return true;
}

size_t ml_utf8_clean(const char *bytes, size_t count_bytes, char *out, size_t out_bytes) {
    size_t used = 0;
    size_t pos = 0;
    while (pos < count_bytes) {
        const unsigned char *here = (const unsigned char *)bytes + pos;
        const size_t count = ml_utf8_count(here, count_bytes - pos);
        const bool plain = count > 0 && is_plain(character_of(here, count));
        const size_t wanted = plain ? count : 1;
        if (wanted >= out_bytes - used) {
            break;
        }
        if (plain) {
            memcpy(out + used, here, count);
        } else {
            out[used] = '?';
        }
        used += wanted;
        pos += count > 0 ? count : 1;
    }
    out[used] = '\0';
    return used;
}
