#include "tools/analyzer/memory/pattern.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Nobody writes more by hand. regcomp() copies what {n} repeats, and takes exponential time for
 * repetitions within repetitions. */
enum { PATTERN_MAX_BYTES = 4096, COPIES_MAX = 1000, GROUPS_MAX = 32, DEPTH_MAX = 2, INNER_MAX = 6 };

/* A pattern on its way from Python's form to POSIX's. */
struct translation {
    const char *from;
    char *to;
    size_t count;
    bool is_in_class; /* within [...] */
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
    }
    put_byte(translation, *from);
    if (!translation->is_in_class && strchr("*+?}", *from) && from[1] == '?') {
        return from + 2; /* a shorter match is a match */
    }
    return from + 1;
}

/* As POSIX has it, between ^( and )$. NULL: an error message says why. Owner: free. */
static char *translate(const char *text, struct ml_error_message *error) {
    struct translation translation = {.from = text};

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
        translation.from = put_element(&translation, error);
    }
    if (!translation.from) {
        free(translation.to);
        return NULL;
    }
    put(&translation, ")$");
    return translation.to;
}

/* What a group or a byte repeats. */
struct group {
    unsigned repetitions; /* in it */
    unsigned depth;       /* of repetitions within each other */
};

/* The shape of a pattern while it is checked. */
struct shape {
    struct group groups[GROUPS_MAX]; /* that are open, the outermost first */
    size_t open;
    struct group last; /* what a repetition would repeat */
    bool is_repeated;  /* the last is a repetition already */
    unsigned long copies;
};

/* The bytes of [...]. */
static size_t class_bytes(const char *text) {
    size_t at = text[1] == '^' ? 2 : 1;

    at += text[at] == ']';
    while (text[at] && text[at] != ']') {
        const bool is_named = text[at] == '[' && text[at + 1] == ':';
        const char *end = is_named ? strstr(text + at, ":]") : NULL;
        at = end ? (size_t)(end - text) + 2 : at + 1;
    }
    return text[at] ? at + 1 : at;
}

/* A repetition: * + ? {n} {n,} {n,m}. False: it costs too much. */
static bool check_repetition(struct shape *shape, const char *at, struct ml_error_message *error) {
    struct group *group = &shape->groups[shape->open];

    if (shape->is_repeated) {
        ml_error_set(error, "%c behind another repetition is not supported", *at);
        return false;
    }
    if (shape->last.depth >= DEPTH_MAX || shape->last.repetitions > INNER_MAX ||
        (*at == '{' && shape->last.repetitions > 0)) {
        ml_error_set(error, "it repeats what has repetitions in it");
        return false;
    }
    if (*at == '{') {
        char *end = NULL;
        unsigned long most = strtoul(at + 1, &end, 10);
        if (*end == ',') {
            const unsigned long upper = strtoul(end + 1, NULL, 10);
            most = upper > most ? upper : most;
        }
        shape->copies += most < COPIES_MAX ? most : COPIES_MAX;
        if (shape->copies >= COPIES_MAX) {
            ml_error_set(error, "it repeats more than %d times", COPIES_MAX);
            return false;
        }
    }
    shape->is_repeated = true;
    shape->last.depth++;
    group->repetitions++;
    group->depth = shape->last.depth > group->depth ? shape->last.depth : group->depth;
    return true;
}

/* The end of a group: it is what a repetition would repeat. */
static void close_group(struct shape *shape) {
    struct group *outer = &shape->groups[shape->open - 1];

    shape->last = shape->groups[shape->open--];
    outer->repetitions += shape->last.repetitions;
    outer->depth = shape->last.depth > outer->depth ? shape->last.depth : outer->depth;
}

/* Check that a pattern in POSIX's form is compiled and matched in linear time. False: an error
 * message says why not. */
static bool check_shape(const char *text, struct ml_error_message *error) {
    struct shape shape = {.open = 0};
    size_t bytes = 1;

    for (const char *at = text; *at; at += bytes) {
        bytes = *at == '\\' ? 2 : *at == '[' ? class_bytes(at) : 1;
        if (strchr("(|", *at) && strchr("|)", at[1])) {
            ml_error_set(error, "an empty alternative is not supported");
            return false;
        }
        if (strchr("*+?{", *at)) {
            if (!check_repetition(&shape, at, error)) {
                return false;
            }
            bytes = *at == '{' ? strcspn(at, "}") : 1;
            bytes += at[bytes] == '}';
            continue;
        }
        shape.is_repeated = false;
        shape.last = (struct group){.depth = 0};
        if (*at == '(') {
            if (++shape.open == GROUPS_MAX) {
                ml_error_set(error, "it has more than %d groups in each other", GROUPS_MAX - 1);
                return false;
            }
            shape.groups[shape.open] = (struct group){.depth = 0};
        } else if (*at == ')' && shape.open > 0) {
            close_group(&shape);
        }
    }
    return true;
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
    translated = text[0] ? translate(text, error) : strdup("^$");
    if (!translated || !check_shape(translated, error)) {
        free(translated);
        ml_error_set(error, "out of memory"); /* unless there is an error message */
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
