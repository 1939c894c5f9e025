#include "base/printable.h"

#include <string.h>

#include "base/character_width.h"
#include "base/utf8.h"

bool ml_printable(uint32_t character) {
    static const struct {
        uint32_t first, last;
    } others[] = {
        {0x7f, 0x9f},
        {0xad, 0xad},     /* soft hyphen: shown at a line's end alone */
        {0x061c, 0x061c}, /* marks of direction */
        {0x180e, 0x180e}, /* without width */
        {0x200b, 0x200f}, /* without width, marks of direction */
        {0x2028, 0x202e}, /* line and paragraph, overrides of direction */
        {0x2060, 0x206f}, /* without width, isolates */
        {0xfeff, 0xfeff},
        {0xfff9, 0xfffb},
        {0xe0000, 0xe007f}, /* tags */
    };

    if (character < 0x7f) {
        return character >= 0x20;
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (character >= others[i].first && character <= others[i].last) {
            return false;
        }
    }
    return true;
}

/* What stands first in a text, and what is shown of it. */
struct piece {
    size_t count_bytes; /* from 1 */
    size_t shown_bytes; /* the same, or 1: a question mark */
    const char *shown;
    unsigned columns;
};

static struct piece piece_of(const char *bytes, size_t left) {
    const size_t length = ml_utf8_length(bytes, left);
    const uint32_t character = length > 0 ? ml_utf8_character(bytes, length) : 0;

    if (length > 0 && ml_printable(character)) {
        return (struct piece
        ){.count_bytes = length,
          .shown_bytes = length,
          .shown = bytes,
          .columns = ml_character_width(character)};
    }
    return (struct piece
    ){.count_bytes = length > 0 ? length : 1, .shown_bytes = 1, .shown = "?", .columns = 1};
}

size_t ml_printable_copy(const char *bytes, size_t count_bytes, char *out, size_t out_bytes) {
    size_t used = 0;
    size_t at = 0;

    while (at < count_bytes) {
        const struct piece piece = piece_of(bytes + at, count_bytes - at);
        if (piece.shown_bytes >= out_bytes - used) {
            break;
        }
        memmove(out + used, piece.shown, piece.shown_bytes);
        used += piece.shown_bytes;
        at += piece.count_bytes;
    }
    out[used] = '\0';
    return used;
}

void ml_printable_clean(char *text) {
    const size_t count = strlen(text);

    (void)ml_printable_copy(text, count, text, count + 1);
}

void ml_printable_put(FILE *out, const char *bytes, size_t count_bytes) {
    for (size_t at = 0; at < count_bytes;) {
        size_t run = 0;
        while (at + run < count_bytes && bytes[at + run] >= ' ' && bytes[at + run] < 0x7f) {
            run++;
        }
        if (run > 0) {
            (void)fwrite(bytes + at, 1, run, out);
            at += run;
            continue;
        }
        const struct piece piece = piece_of(bytes + at, count_bytes - at);
        (void)fwrite(piece.shown, 1, piece.shown_bytes, out);
        at += piece.count_bytes;
    }
}

void ml_printable_put_text(FILE *out, const char *text) {
    ml_printable_put(out, text, strlen(text));
}

size_t ml_printable_columns(const char *text) {
    const size_t count = strlen(text);
    size_t columns = 0;

    for (size_t at = 0; at < count;) {
        const struct piece piece = piece_of(text + at, count - at);
        columns += piece.columns;
        at += piece.count_bytes;
    }
    return columns;
}

size_t ml_printable_head(const char *text, size_t columns) {
    const size_t count = strlen(text);
    size_t at = 0;

    while (at < count) {
        const struct piece piece = piece_of(text + at, count - at);
        if (piece.columns > columns) {
            break;
        }
        columns -= piece.columns;
        at += piece.count_bytes;
    }
    return at;
}

size_t ml_printable_tail(const char *text, size_t columns) {
    const size_t count = strlen(text);
    size_t left = ml_printable_columns(text);
    size_t at = 0;

    while (at < count) {
        const struct piece piece = piece_of(text + at, count - at);
        if (left <= columns && piece.columns > 0) {
            break;
        }
        left -= piece.columns;
        at += piece.count_bytes;
    }
    return at;
}
