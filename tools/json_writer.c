#include "tools/json_writer.h"

#include <inttypes.h>
#include <string.h>

struct ml_json ml_json_over(FILE *out) {
    return (struct ml_json){.out = out};
}

static void comma(struct ml_json *json) {
    if (json->needs_comma) {
        putc(',', json->out);
    }
    json->needs_comma = true;
}

void ml_json_open(struct ml_json *json, char bracket) {
    comma(json);
    putc(bracket, json->out);
    json->needs_comma = false;
}

void ml_json_close(struct ml_json *json, char bracket) {
    putc(bracket, json->out);
    json->needs_comma = true;
}

void ml_json_line(struct ml_json *json) {
    if (json->needs_comma) {
        putc(',', json->out);
        json->needs_comma = false;
    }
    putc('\n', json->out);
}

void ml_json_key(struct ml_json *json, const char *name) {
    comma(json);
    fprintf(json->out, "\"%s\":", name);
    json->needs_comma = false;
}

/* Continuation bytes that a first byte asks for, and what the second byte must lie between (so that
 * overlong forms, surrogates and values beyond U+10FFFF are none). */
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

size_t ml_utf8_length(const char *bytes, size_t count_bytes) {
    unsigned char low = 0;
    unsigned char high = 0;
    size_t length = count_bytes > 0 ? sequence_length((unsigned char)bytes[0], &low, &high) : 0;

    if (length > count_bytes) {
        return 0;
    }
    for (size_t i = 1; i < length; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        if (byte < (i == 1 ? low : 0x80) || byte > (i == 1 ? high : 0xbf)) {
            return 0;
        }
    }
    return length;
}

static void put_ascii(FILE *out, unsigned char byte, bool in_html) {
    static const char escapes[] = "\"\"\\\\\bb\ff\nn\rr\tt";

    for (size_t i = 0; i + 1 < sizeof escapes; i += 2) {
        if ((unsigned char)escapes[i] == byte) {
            putc('\\', out);
            putc(escapes[i + 1], out);
            return;
        }
    }
    if (byte < 0x20 || byte == 0x7f || (in_html && byte == '<')) {
        fprintf(out, "\\u%04x", byte);
    } else {
        putc(byte, out);
    }
}

void ml_json_text(struct ml_json *json, const char *bytes, size_t count_bytes) {
    comma(json);
    putc('"', json->out);
    while (count_bytes > 0) {
        size_t length = ml_utf8_length(bytes, count_bytes);
        if (length == 1) {
            put_ascii(json->out, (unsigned char)bytes[0], json->in_html);
        } else if (length > 1) {
            fwrite(bytes, 1, length, json->out);
        } else {
            fputs("\\ufffd", json->out);
            length = 1;
        }
        bytes += length;
        count_bytes -= length;
    }
    putc('"', json->out);
}

void ml_json_string(struct ml_json *json, const char *text) {
    ml_json_text(json, text, strlen(text));
}

void ml_json_number(struct ml_json *json, uint64_t value) {
    comma(json);
    fprintf(json->out, "%" PRIu64, value);
}

void ml_json_integer(struct ml_json *json, int64_t value) {
    comma(json);
    fprintf(json->out, "%" PRId64, value);
}

void ml_json_bool(struct ml_json *json, bool value) {
    comma(json);
    fputs(value ? "true" : "false", json->out);
}

void ml_json_string_member(struct ml_json *json, const char *name, const char *text) {
    ml_json_key(json, name);
    ml_json_string(json, text);
}

void ml_json_number_member(struct ml_json *json, const char *name, uint64_t value) {
    ml_json_key(json, name);
    ml_json_number(json, value);
}

void ml_json_bool_member(struct ml_json *json, const char *name, bool value) {
    ml_json_key(json, name);
    ml_json_bool(json, value);
}
