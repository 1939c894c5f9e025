#include "tools/arguments.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longer words are not compared. */
enum { WORD_MAX = 40 };

/* Insertions, deletions and replacements that make `left` of `right`. */
static size_t distance(const char *left, const char *right) {
    size_t row[WORD_MAX + 1];
    size_t columns = strlen(right);

    if (strlen(left) > WORD_MAX || columns > WORD_MAX) {
        return WORD_MAX;
    }
    for (size_t j = 0; j <= columns; j++) {
        row[j] = j;
    }
    for (size_t i = 1; left[i - 1]; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= columns; j++) {
            size_t best = diagonal + (left[i - 1] != right[j - 1]);
            best = row[j] + 1 < best ? row[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            diagonal = row[j];
            row[j] = best;
        }
    }
    return row[columns];
}

const char *ml_nearest_word(const char *word, const char *const *words, size_t words_count) {
    const char *nearest = NULL;
    size_t least = strlen(word) / 2 < 3 ? strlen(word) / 2 : 3;

    for (size_t i = 0; i < words_count; i++) {
        size_t here = distance(word, words[i]);
        if (here <= least && (!nearest || here < least)) {
            nearest = words[i];
            least = here;
        }
    }
    return nearest;
}

bool ml_number_read(const char *text, unsigned long max, unsigned long *out_number) {
    char *end = NULL;
    unsigned long number = 0;

    if (text[0] < '0' || text[0] > '9') {
        return false;
    }
    errno = 0;
    number = strtoul(text, &end, 10);
    if (errno != 0 || *end != '\0' || number > max) {
        return false;
    }
    *out_number = number;
    return true;
}

bool ml_size_read(const char *text, uint64_t *out_bytes) {
    static const char units[] = "KMG";
    size_t digits = strspn(text, "0123456789");
    const char *unit = text[digits] ? strchr(units, text[digits]) : NULL;
    unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
    char number[sizeof "18446744073709551615"];
    unsigned long value = 0;

    if (digits == 0 || digits >= sizeof number || (text[digits] && (!unit || text[digits + 1]))) {
        return false;
    }
    memcpy(number, text, digits);
    number[digits] = '\0';
    if (!ml_number_read(number, ULONG_MAX >> shift, &value)) {
        return false;
    }
    *out_bytes = (uint64_t)value << shift;
    return true;
}

static const char *complain(
    char out_complaint[ML_COMPLAINT_BYTES], const char *before, const char *word, const char *after
) {
    snprintf(out_complaint, ML_COMPLAINT_BYTES, "%s%.100s%s", before, word, after);
    return out_complaint;
}

static const char *unknown_option(
    const char *word,
    const struct ml_option *options,
    size_t options_count,
    char out_complaint[ML_COMPLAINT_BYTES]
) {
    const char *names[32];
    char name[WORD_MAX + 1];
    const char *nearest = NULL;
    size_t count = options_count < 32 ? options_count : 32;

    for (size_t i = 0; i < count; i++) {
        names[i] = options[i].name;
    }
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    nearest = ml_nearest_word(name, names, count);
    if (nearest) {
        snprintf(
            out_complaint,
            ML_COMPLAINT_BYTES,
            "unknown option %.100s; did you mean %.60s?",
            word,
            nearest
        );
        return out_complaint;
    }
    return complain(out_complaint, "unknown option ", word, "");
}

static const struct ml_option *
option_find(const char *word, const struct ml_option *options, size_t options_count) {
    size_t name_bytes = strcspn(word, "=");

    for (size_t i = 0; i < options_count; i++) {
        if ((strlen(options[i].name) == name_bytes &&
             strncmp(options[i].name, word, name_bytes) == 0) ||
            (options[i].short_name && strcmp(options[i].short_name, word) == 0)) {
            return &options[i];
        }
    }
    return NULL;
}

/* Take an option's value; *at moves on when it is the next word. */
static const char *option_take(
    const struct ml_option *option,
    int argc,
    char **argv,
    int *at,
    char out_complaint[ML_COMPLAINT_BYTES]
) {
    const char *equals = strchr(argv[*at], '=');

    if (option->out_given) {
        *option->out_given = true;
    }
    if (!option->out_value) {
        return equals ? complain(out_complaint, "", option->name, " takes no value") : NULL;
    }
    if (equals) {
        *option->out_value = equals + 1;
        return NULL;
    }
    if (*at + 1 >= argc) {
        return complain(out_complaint, "", option->name, " needs a value");
    }
    *option->out_value = argv[++*at];
    return NULL;
}

const char *ml_arguments_read(
    int argc,
    char **argv,
    const struct ml_option *options,
    size_t options_count,
    const char **out_files,
    size_t files_max,
    size_t *out_files_count,
    char out_complaint[ML_COMPLAINT_BYTES]
) {
    bool only_files = false;

    *out_files_count = 0;
    for (int at = 0; at < argc; at++) {
        const char *word = argv[at];
        const struct ml_option *option = NULL;
        const char *complaint = NULL;

        if (!only_files && strcmp(word, "--") == 0) {
            only_files = true;
            continue;
        }
        if (only_files || word[0] != '-' || word[1] == '\0') {
            if (*out_files_count == files_max) {
                return complain(out_complaint, "one file too many: ", word, "");
            }
            out_files[(*out_files_count)++] = word;
            continue;
        }
        option = option_find(word, options, options_count);
        if (!option) {
            return unknown_option(word, options, options_count, out_complaint);
        }
        complaint = option_take(option, argc, argv, &at, out_complaint);
        if (complaint) {
            return complaint;
        }
    }
    return NULL;
}
