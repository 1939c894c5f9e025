#include "base/json_writer.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/printable.h"
#include "base/utf8.h"

struct ml_json ml_json_over(FILE *out) {
    return (struct ml_json){.out = out};
}

/* Reports have a hundred megabytes of names: nothing that most of it goes through locks the file or
 * reads a format. */
static void put(const struct ml_json *json, char byte) {
    putc_unlocked(byte, json->out);
}

static void put_bytes(const struct ml_json *json, const char *bytes, size_t count_bytes) {
    (void)fwrite_unlocked(bytes, 1, count_bytes, json->out);
}

static void comma(struct ml_json *json) {
    if (json->needs_comma) {
        put(json, ',');
    }
    json->needs_comma = true;
}

void ml_json_open(struct ml_json *json, char bracket) {
    comma(json);
    put(json, bracket);
    json->needs_comma = false;
}

void ml_json_close(struct ml_json *json, char bracket) {
    put(json, bracket);
    json->needs_comma = true;
}

void ml_json_line(struct ml_json *json) {
    if (json->needs_comma) {
        put(json, ',');
        json->needs_comma = false;
    }
    put(json, '\n');
}

void ml_json_key(struct ml_json *json, const char *name) {
    comma(json);
    put(json, '"');
    put_bytes(json, name, strlen(name));
    put_bytes(json, "\":", 2);
    json->needs_comma = false;
}

/* Characters of the first plane take four digits, others a pair of surrogates. */
static void put_escape(FILE *out, uint32_t character) {
    if (character >= 0x10000) {
        fprintf(out, "\\u%04" PRIx32, 0xd800 + ((character - 0x10000) >> 10));
        character = 0xdc00 + (character & 0x3ff);
    }
    fprintf(out, "\\u%04" PRIx32, character);
}

static void put_ascii(FILE *out, char byte, bool in_html) {
    static const char escapes[] = "\"\"\\\\\bb\ff\nn\rr\tt";

    for (size_t i = 0; i + 1 < sizeof escapes; i += 2) {
        if (escapes[i] == byte) {
            putc('\\', out);
            putc(escapes[i + 1], out);
            return;
        }
    }
    if (!ml_printable((unsigned char)byte) || (in_html && byte == '<')) {
        put_escape(out, (unsigned char)byte);
    } else {
        putc(byte, out);
    }
}

/* Write the first character; returns how many bytes of the text it took. */
static size_t put_character(FILE *out, const char *bytes, size_t count_bytes, bool in_html) {
    const size_t length = ml_utf8_length(bytes, count_bytes);

    if (length == 0) {
        put_escape(out, 0xfffd);
        return 1;
    }
    const uint32_t character = ml_utf8_character(bytes, length);
    if (length == 1) {
        put_ascii(out, bytes[0], in_html);
    } else if (ml_printable(character)) {
        fwrite(bytes, 1, length, out);
    } else {
        put_escape(out, character);
    }
    return length;
}

/* Whether it stands for itself: printable ASCII but for what JSON and a page act upon. */
static bool is_plain(char byte, bool in_html) {
    return byte >= ' ' && byte <= '~' && byte != '"' && byte != '\\' && !(in_html && byte == '<');
}

void ml_json_text(struct ml_json *json, const char *bytes, size_t count_bytes) {
    comma(json);
    put(json, '"');
    for (size_t at = 0; at < count_bytes;) {
        const size_t first = at;
        while (at < count_bytes && is_plain(bytes[at], json->in_html)) {
            at++;
        }
        put_bytes(json, bytes + first, at - first);
        if (at < count_bytes) {
            at += put_character(json->out, bytes + at, count_bytes - at, json->in_html);
        }
    }
    put(json, '"');
}

void ml_json_string(struct ml_json *json, const char *text) {
    ml_json_text(json, text, strlen(text));
}

void ml_json_number(struct ml_json *json, uint64_t value) {
    char digits[sizeof("18446744073709551615")];
    size_t first = sizeof(digits);

    do {
        digits[--first] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    comma(json);
    put_bytes(json, digits + first, sizeof(digits) - first);
}

void ml_json_integer(struct ml_json *json, int64_t value) {
    comma(json);
    fprintf(json->out, "%" PRId64, value);
}

void ml_json_double(struct ml_json *json, double value) {
    if (!isfinite(value)) {
        ml_json_null(json);
        return;
    }
    comma(json);
    fprintf(json->out, "%.15g", value);
}

void ml_json_bool(struct ml_json *json, bool value) {
    comma(json);
    fputs(value ? "true" : "false", json->out);
}

void ml_json_null(struct ml_json *json) {
    comma(json);
    fputs("null", json->out);
}

void ml_json_open_member(struct ml_json *json, const char *name, char bracket) {
    ml_json_key(json, name);
    ml_json_open(json, bracket);
}

void ml_json_text_member(
    struct ml_json *json, const char *name, const char *bytes, size_t count_bytes
) {
    ml_json_key(json, name);
    ml_json_text(json, bytes, count_bytes);
}

void ml_json_string_member(struct ml_json *json, const char *name, const char *text) {
    ml_json_key(json, name);
    ml_json_string(json, text);
}

void ml_json_number_member(struct ml_json *json, const char *name, uint64_t value) {
    ml_json_key(json, name);
    ml_json_number(json, value);
}

void ml_json_double_member(struct ml_json *json, const char *name, double value) {
    ml_json_key(json, name);
    ml_json_double(json, value);
}

void ml_json_bool_member(struct ml_json *json, const char *name, bool value) {
    ml_json_key(json, name);
    ml_json_bool(json, value);
}
