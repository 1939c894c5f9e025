#include "tools/analyzer/memory/pattern.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A longer pattern is not written by hand. Each repetition is copied when it is compiled. */
enum { PATTERN_MAX_BYTES = 4096, REPEATED_MAX = 1000 };

/* A pattern on its way from Python's form to POSIX's. */
struct translation {
    const char *from;
    char *to;
    size_t count;
    unsigned long repeated; /* product of all upper limits of {n,m} */
    bool is_in_class;       /* within [...] */
    char last;              /* the byte before */
};

static void put(struct translation *translation, const char *text) {
    const size_t count = strlen(text);

    memcpy(translation->to + translation->count, text, count + 1);
    translation->count += count;
}

static void put_byte(struct translation *translation, char byte) {
    const char text[] = {byte, '\0'};

    put(translation, text);
}

/* A backslash and what follows it. */
static const char *put_escape(struct translation *translation, struct ml_error_message *error) {
    const char escaped = translation->from[1];
    const char *const of = translation->is_in_class ? "0-9" : "[0-9]";

    if (escaped == '\0') {
        ml_error_set(error, "it ends with a backslash");
        return NULL;
    }
    if (escaped >= '1' && escaped <= '9') {
        ml_error_set(error, "back references (\\%c) are not supported", escaped);
        return NULL;
    }
    if (escaped == 'd') {
        put(translation, of);
    } else if (translation->is_in_class) {
        put(translation, escaped == 's' ? " " : escaped == 'w' ? "A-Za-z0-9_" : "");
        if (escaped != 's' && escaped != 'w') {
            put_byte(translation, escaped); /* POSIX has no backslash in brackets */
        }
    } else if (escaped != 'Z' && escaped != 'A') { /* it is matched as a whole anyway */
        put_byte(translation, '\\');
        put_byte(translation, escaped);
    }
    return translation->from + 2;
}

/* {n}, {n,} or {n,m}, and a group's +, of which glibc makes two copies. False: too often. */
static bool count_repeated(struct translation *translation, struct ml_error_message *error) {
    const bool is_plus = *translation->from == '+';
    char *end = NULL;
    unsigned long most = is_plus ? 2 : strtoul(translation->from + 1, &end, 10);

    if (!is_plus && *end == ',') {
        const unsigned long upper = strtoul(end + 1, &end, 10);
        most = upper > most ? upper : most;
    }
    most = most > 0 ? most : 1;
    if (most > REPEATED_MAX || translation->repeated * most > REPEATED_MAX) {
        ml_error_set(error, "it repeats more than %d times", REPEATED_MAX);
        return false;
    }
    translation->repeated *= most;
    return true;
}

/* Copy one element; where the next one begins. NULL: it is not supported. */
static const char *put_element(struct translation *translation, struct ml_error_message *error) {
    const char *from = translation->from;

    if (*from == '\\') {
        return put_escape(translation, error);
    }
    if (translation->is_in_class) {
        translation->is_in_class = *from != ']';
    } else if (*from == '[') {
        translation->is_in_class = true;
        put_byte(translation, *from++);
        if (*from == '^') {
            put_byte(translation, *from++);
        }
        if (*from != ']') { /* one that comes first is no end */
            return from;
        }
    } else if (strncmp(from, "(?:", 3) == 0) {
        put(translation, "(");
        return from + 3;
    } else if (strncmp(from, "(?", 2) == 0) {
        ml_error_set(error, "(?%c...) is not supported", from[2] ? from[2] : ' ');
        return NULL;
    } else if ((*from == '{' || (*from == '+' && translation->last == ')')) && !count_repeated(translation, error)) {
        return NULL;
    } else if (strchr("*+?}", *from) && from[1] == '+') {
        ml_error_set(error, "%c+ is not supported", *from);
        return NULL;
    }
    put_byte(translation, *from);
    if (!translation->is_in_class && strchr("*+?", *from) && from[1] == '?') {
        return from + 2; /* a shorter match is a match */
    }
    return from + 1;
}

/* As POSIX has it, between ^( and )$. NULL: an error message says why. Owner: free. */
static char *translate(const char *text, struct ml_error_message *error) {
    struct translation translation = {.from = text, .repeated = 1};

    if (strlen(text) > PATTERN_MAX_BYTES) {
        ml_error_set(error, "it is longer than %d bytes", PATTERN_MAX_BYTES);
        return NULL;
    }
    translation.to = malloc(12 * strlen(text) + sizeof "^()$");
    if (!translation.to) {
        ml_error_set(error, "out of memory");
        return NULL;
    }
    put(&translation, "^(");
    while (translation.from && *translation.from) {
        const char *next = put_element(&translation, error);
        translation.last = next ? next[-1] : '\0';
        translation.from = next;
    }
    if (!translation.from) {
        free(translation.to);
        return NULL;
    }
    put(&translation, ")$");
    return translation.to;
}

static bool is_plain(char byte) {
    return isalnum((unsigned char)byte) || strchr("_:/ -,<>=~@%&;#!'\"", byte) != NULL;
}

/* The longest run of plain bytes that every match has: none of it stands in brackets or groups,
 * none is repeated. NULL: there is none, or no memory. */
static char *find_literal(const char *text) {
    const char *best = NULL;
    size_t best_count = 0;

    if (strpbrk(text, "([|\\{")) {
        return NULL;
    }
    for (const char *at = text; *at; at++) {
        size_t count = 0;
        while (at[count] && is_plain(at[count])) {
            count++;
        }
        const size_t sure = count > 0 && at[count] && strchr("*?+", at[count]) ? count - 1 : count;
        if (sure > best_count) {
            best = at;
            best_count = sure;
        }
        at += count > 0 ? count - 1 : 0;
    }
    return best ? strndup(best, best_count) : NULL;
}

bool ml_pattern_init(struct ml_pattern *pattern, const char *text, struct ml_error_message *error) {
    char *translated = NULL;
    int error_number = 0;

    *pattern = (struct ml_pattern){.is_any = strcmp(text, ".*") == 0 || strcmp(text, "^.*$") == 0};
    if (pattern->is_any) {
        return true;
    }
    translated = translate(text, error);
    if (!translated) {
        return false;
    }
    error_number = regcomp(&pattern->regex, translated, REG_EXTENDED | REG_NOSUB);
    free(translated);
    if (error_number != 0) {
        char words[256];
        regerror(error_number, NULL, words, sizeof words);
        ml_error_set(error, "%s", words);
        return false;
    }
    pattern->literal = find_literal(text);
    return true;
}

void ml_pattern_fini(struct ml_pattern *pattern) {
    if (!pattern->is_any) {
        regfree(&pattern->regex);
    }
    free(pattern->literal);
    *pattern = (struct ml_pattern){.is_any = true};
}

bool ml_pattern_matches(const struct ml_pattern *pattern, const char *text) {
    if (pattern->is_any) {
        return true;
    }
    if (pattern->literal && !strstr(text, pattern->literal)) {
        return false;
    }
    return regexec(&pattern->regex, text, 0, NULL, 0) == 0;
}
