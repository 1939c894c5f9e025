#include "tools/analyzer/names/script_name.h"

#include <string.h>

static bool begins_with(struct ml_profile_text text, const char *begin) {
    const size_t count = strlen(begin);

    return text.count_bytes >= count && memcmp(text.bytes, begin, count) == 0;
}

static struct ml_profile_text without_first(struct ml_profile_text text, size_t count) {
    return (struct ml_profile_text
    ){.bytes = text.bytes + count, .count_bytes = text.count_bytes - count};
}

struct ml_profile_text ml_script_name(struct ml_profile_text text) {
    /* V8's words for functions, and its marks of how one was compiled: interpreted, baseline,
     * optimized; from version 13 on with a second mark behind those of the last. */
    static const char *const words[] = {"JS:", "LazyCompile:", "Function:", "Eval:", "Script:"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (begins_with(text, words[i])) {
            struct ml_profile_text rest = without_first(text, strlen(words[i]));
            if (rest.count_bytes > 0 && strchr("~^+*", rest.bytes[0]) != NULL) {
                rest = without_first(rest, rest.count_bytes > 1 && rest.bytes[1] == '\'' ? 2 : 1);
            }
            return rest.count_bytes > 0 ? rest : text;
        }
    }
    return text;
}

/* A number at the text's end, behind a colon; it is taken off. False: there is none. */
static bool take_number(struct ml_profile_text *text, uint32_t *out_number) {
    enum { DIGITS_MAX = 9 };
    size_t digits = 0;
    uint32_t number = 0;
    uint32_t unit = 1;

    while (digits < text->count_bytes && digits < DIGITS_MAX) {
        const char digit = text->bytes[text->count_bytes - 1 - digits];
        if (digit < '0' || digit > '9') {
            break;
        }
        number += (uint32_t)(digit - '0') * unit;
        unit *= 10;
        digits++;
    }
    if (digits == 0 || digits == text->count_bytes ||
        text->bytes[text->count_bytes - 1 - digits] != ':') {
        return false;
    }
    text->count_bytes -= digits + 1;
    *out_number = number;
    return true;
}

/* "py::NAME:FILE", "py::NAME:FILE:LINE" */
static struct ml_script_parts python_parts(struct ml_profile_text name) {
    const struct ml_profile_text rest = without_first(name, strlen("py::"));
    const char *colon = memchr(rest.bytes, ':', rest.count_bytes);
    struct ml_script_parts parts = {.function = name};

    if (colon != NULL && colon > rest.bytes) {
        const size_t count = (size_t)(colon - rest.bytes);
        parts.function = (struct ml_profile_text){.bytes = rest.bytes, .count_bytes = count};
        parts.file = without_first(rest, count + 1);
        (void)take_number(&parts.file, &parts.line);
    }
    return parts;
}

struct ml_script_parts ml_script_parts(struct ml_profile_text name) {
    struct ml_profile_text place = name;
    struct ml_script_parts parts = {.function = name};
    uint32_t last = 0;
    uint32_t line = 0;

    if (begins_with(name, "py::")) {
        return python_parts(name);
    }
    if (begins_with(name, "RegExp:") || !take_number(&place, &last)) {
        return parts;
    }
    if (!take_number(&place, &line)) {
        line = last; /* it has no column */
    }
    /* "work /a.js", "get work /a.js"; a function without a name begins with the blank. */
    const size_t accessor =
        begins_with(place, "get ") || begins_with(place, "set ") ? strlen("get ") : 0;
    const char *blank = memchr(place.bytes + accessor, ' ', place.count_bytes - accessor);
    if (blank == NULL || blank + 1 == place.bytes + place.count_bytes) {
        return parts;
    }
    const size_t count = (size_t)(blank - place.bytes);
    static const char nameless[] = "(anonymous)";
    parts.function =
        count > 0 ? (struct ml_profile_text){.bytes = name.bytes, .count_bytes = count}
                  : (struct ml_profile_text){.bytes = nameless, .count_bytes = sizeof nameless - 1};
    parts.file = without_first(place, count + 1);
    parts.line = line;
    return parts;
}
