#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "tools/analyzer/model/memory.h"
#include "tools/analyzer/suppressions/suppressions.h"

static const char kind[] = "leak:";

static bool fail(
    const struct ml_suppressions *suppressions,
    unsigned line,
    const char *why,
    struct ml_error_message *error
) {
    ml_error_set(error, "%s:%u: %s", suppressions->file, line, why);
    return false;
}

/* `text` is the line without blanks around it. */
static bool read_line(
    struct ml_suppressions *suppressions,
    const char *text,
    unsigned line,
    struct ml_error_message *error
) {
    if (text[0] == '\0' || text[0] == '#') {
        return true;
    }
    if (strncmp(text, kind, sizeof kind - 1) != 0) {
        return fail(
            suppressions, line, "leak:PATTERN is wanted, or a comment that begins with #", error
        );
    }
    text += sizeof kind - 1;
    if (text[strspn(text, "^$* \t")] == '\0') {
        return fail(suppressions, line, "the pattern would match everything", error);
    }
    if (suppressions->count == ML_SUPPRESSIONS_MAX) {
        return fail(suppressions, line, "there are more than 4,096 patterns", error);
    }
    if (!ML_GROW(suppressions->rules, suppressions->capacity, suppressions->count + 1)) {
        return fail(suppressions, line, "no memory", error);
    }
    suppressions->rules[suppressions->count++] =
        (struct ml_suppression){.pattern = text, .line = line};
    return true;
}

bool ml_suppressions_read(
    struct ml_suppressions *suppressions,
    const char *bytes,
    size_t count_bytes,
    const char *file,
    struct ml_error_message *error
) {
    unsigned line = 1;

    *suppressions = (struct ml_suppressions){.file = file};
    if (count_bytes > ML_SUPPRESSIONS_MAX_BYTES) {
        ml_error_set(error, "%s: it is larger than 1 MiB", file);
        return false;
    }
    suppressions->text = malloc(count_bytes + 1);
    if (!suppressions->text) {
        ml_error_set(error, "%s: no memory", file);
        return false;
    }
    memcpy(suppressions->text, bytes, count_bytes);
    suppressions->text[count_bytes] = '\0';
    for (char *at = suppressions->text, *end = at + count_bytes; at < end; line++) {
        char *start = at;
        char *newline = memchr(at, '\n', (size_t)(end - at));
        char *stop = newline ? newline : end;

        at = stop + 1;
        if (memchr(start, '\0', (size_t)(stop - start))) {
            return fail(suppressions, line, "this is no text", error);
        }
        while (stop > start && isspace((unsigned char)stop[-1])) {
            stop--;
        }
        *stop = '\0';
        while (isspace((unsigned char)*start)) {
            start++;
        }
        if (!read_line(suppressions, start, line, error)) {
            return false;
        }
    }
    return true;
}

void ml_suppressions_fini(struct ml_suppressions *suppressions) {
    free(suppressions->text);
    free(suppressions->rules);
    *suppressions = (struct ml_suppressions){.file = NULL};
}

/* Where `piece` of that length stands in the text first; NULL: nowhere. */
static const char *find(const char *text, const char *piece, size_t count) {
    return memmem(text, strlen(text), piece, count);
}

bool ml_suppression_matches(const char *pattern, const char *text) {
    const bool is_at_start = pattern[0] == '^';
    size_t left = strlen(pattern) - (is_at_start ? 1 : 0);
    const char *piece = pattern + (is_at_start ? 1 : 0);
    const bool is_at_end = left > 0 && piece[left - 1] == '$';
    bool is_first = true;

    if (text[0] == '\0') {
        return false;
    }
    left -= is_at_end ? 1 : 0;
    for (;;) {
        const char *star = memchr(piece, '*', left);
        const size_t count = star ? (size_t)(star - piece) : left;
        const bool is_fixed = is_first && is_at_start;

        if (!star && is_at_end) {
            /* The last piece ends the text; before it anything may stand, but at the start. */
            const size_t rest = strlen(text);
            return rest >= count && (!is_fixed || rest == count) &&
                   memcmp(text + rest - count, piece, count) == 0;
        }
        const char *found =
            is_fixed ? (strncmp(text, piece, count) == 0 ? text : NULL) : find(text, piece, count);
        if (!found) {
            return false;
        }
        if (!star) {
            return true;
        }
        text = found + count;
        left -= count + 1;
        piece = star + 1;
        is_first = false;
    }
}
