#include "base/shell_word.h"

#include <stdio.h>
#include <string.h>

#include "base/printable.h"
#include "base/utf8.h"

static const char plain[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+:,./-";

/* How many bytes at `text` are printable; 0: the first one is not. */
static size_t seen(const char *text, size_t left) {
    const size_t length = ml_utf8_length(text, left);

    return length > 0 && ml_printable(ml_utf8_character(text, length)) ? length : 0;
}

static bool is_seen(const char *text, size_t count) {
    for (size_t at = 0; at < count;) {
        const size_t length = seen(text + at, count - at);
        if (length == 0) {
            return false;
        }
        at += length;
    }
    return true;
}

struct writer {
    char *out;
    size_t used, out_bytes;
};

static void put(struct writer *writer, const char *bytes, size_t count) {
    if (count < writer->out_bytes - writer->used) {
        memcpy(writer->out + writer->used, bytes, count);
        writer->used += count;
    } else {
        writer->used = writer->out_bytes; /* and nothing fits any more */
    }
}

static void put_escaped(struct writer *writer, const char *text, size_t count) {
    put(writer, "$'", 2);
    for (size_t at = 0; at < count;) {
        const size_t length = seen(text + at, count - at);
        char escape[sizeof "\\xff"];
        if (length == 0) {
            (void)snprintf(escape, sizeof escape, "\\x%02x", (unsigned)(unsigned char)text[at]);
            put(writer, escape, strlen(escape));
        } else {
            put(writer, "\\", text[at] == '\'' || text[at] == '\\');
            put(writer, text + at, length);
        }
        at += length > 0 ? length : 1;
    }
    put(writer, "'", 1);
}

static void put_quoted(struct writer *writer, const char *text, size_t count) {
    put(writer, "'", 1);
    for (size_t at = 0; at < count; at++) {
        if (text[at] == '\'') {
            put(writer, "'\\''", 4);
        } else {
            put(writer, text + at, 1);
        }
    }
    put(writer, "'", 1);
}

bool ml_shell_word(const char *text, char *out, size_t out_bytes) {
    struct writer writer = {.out = out, .out_bytes = out_bytes};
    const size_t count = strlen(text);

    if (!is_seen(text, count)) {
        put_escaped(&writer, text, count);
    } else if (count == 0 || strspn(text, plain) < count) {
        put_quoted(&writer, text, count);
    } else {
        put(&writer, text, count);
    }
    const bool fits = writer.used < out_bytes;
    out[fits ? writer.used : 0] = '\0';
    return fits;
}
