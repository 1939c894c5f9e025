/* The help of an option table, as text for people and as JSON for makers of man pages. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"
#include "base/option_table_internal.h"

enum { WIDTH = 80, TEXT_COLUMN = 23 };

/* The words with `between` in between, and `last` in front of the last. */
static const char *join(
    const char *const *words, const char *between, const char *last, char out[ML_OPTION_WANTS_BYTES]
) {
    size_t at = 0;
    out[0] = '\0';
    for (size_t i = 0; words[i] != NULL && at < ML_OPTION_WANTS_BYTES; i++) {
        const char *part = i == 0 ? "" : words[i + 1] == NULL ? last : between;
        at += (size_t)snprintf(out + at, ML_OPTION_WANTS_BYTES - at, "%s%s", part, words[i]);
    }
    return out;
}

/* A size as a person would type it. */
static const char *size_word(uint64_t bytes, char out[32]) {
    static const char units[] = "\0KMGT";
    unsigned unit = 0;
    while (bytes > 0 && bytes % 1024 == 0 && units[unit + 1] != '\0') {
        bytes /= 1024;
        unit++;
    }
    (void)snprintf(out, 32, "%" PRIu64 "%.1s", bytes, unit > 0 ? &units[unit] : "");
    return out;
}

static const char *bounds(const struct ml_option *option, char out[96]) {
    const bool is_size = option->kind == ML_OPTION_SIZE;
    char least[32];
    char most[32];
    (void)snprintf(least, sizeof(least), "%" PRIu64, option->least);
    (void)snprintf(most, sizeof(most), "%" PRIu64, option->most);
    if (is_size) {
        (void)size_word(option->least, least);
        (void)size_word(option->most, most);
    }
    const bool is_open = option->most == 0;
    (void)snprintf(out, 96, "from %s %s%s", least, is_open ? "on" : "to ", is_open ? "" : most);
    return out;
}

const char *ml_option_wants(const struct ml_option *option, char out[ML_OPTION_WANTS_BYTES]) {
    char between[96];
    if (option->wants != NULL) {
        return option->wants;
    }
    switch (option->kind) {
    case ML_OPTION_WORD:
        return join(option->words, ", ", " or ", out);
    case ML_OPTION_SIZE:
        (void)snprintf(
            out,
            ML_OPTION_WANTS_BYTES,
            "a size in bytes %s (K, M, G or T behind it: times 1024)",
            bounds(option, between)
        );
        return out;
    case ML_OPTION_COUNT:
        (void)snprintf(out, ML_OPTION_WANTS_BYTES, "a whole number %s", bounds(option, between));
        return out;
    case ML_OPTION_SECONDS:
        (void)snprintf(
            out,
            ML_OPTION_WANTS_BYTES,
            "a time in whole seconds %s (s, m, h or d behind it: other units)",
            bounds(option, between)
        );
        return out;
    case ML_OPTION_TIME:
        return "a time (10:02, 10:02:30.5Z or 2026-11-21T10:02:30Z, all UTC; +5m since the start, "
               "-5m before the end)";
    case ML_OPTION_TEXT:
        (void)snprintf(
            out,
            ML_OPTION_WANTS_BYTES,
            option->most > 0 ? "a text of at most %" PRIu64 " bytes" : "a text",
            option->most
        );
        return out;
    case ML_OPTION_PATH:
        return "the name of a file or folder";
    case ML_OPTION_REGEX:
        return "a regular expression (POSIX extended, as of grep -E)";
    default:
        return option->value != NULL ? option->value : "a value";
    }
}

/* ---- help */

/* Write a text from `column` on, wrapped, with further lines at `margin`; each line ends with a
 * newline. A line that begins with a blank is not wrapped. */
static void put_wrapped(const char *text, size_t margin, size_t column, FILE *out) {
    while (*text != '\0') {
        const size_t line_count = strcspn(text, "\n");
        const char *end = text + line_count;
        const bool is_free = *text != ' ';
        while (text < end) {
            const size_t gap = is_free && column > margin ? 1 : 0;
            const size_t count = is_free ? strcspn(text, " \n") : line_count;
            if (gap > 0 && column + gap + count > WIDTH) {
                (void)fputc('\n', out);
                column = 0;
                continue;
            }
            if (column < margin) {
                (void)fprintf(out, "%*s", (int)(margin - column), "");
                column = margin;
            } else if (gap > 0) {
                (void)fputc(' ', out);
            }
            (void)fwrite(text, 1, count, out);
            column += gap + count;
            text += count + (is_free && text[count] == ' ' ? 1 : 0);
        }
        (void)fputc('\n', out);
        column = 0;
        text = end + (*end == '\n');
    }
}

/* "=FILE", "[=PLACE]", "=yes|no". */
static void value_text(const struct ml_option *option, char out[ML_OPTION_WANTS_BYTES + 4]) {
    char words[ML_OPTION_WANTS_BYTES];
    const char *value = option->value;
    if (value == NULL && option->words != NULL) {
        value = join(option->words, "|", "|", words);
    }
    out[0] = '\0';
    if (value != NULL) {
        (void)snprintf(
            out, ML_OPTION_WANTS_BYTES + 4, option->is_value_optional ? "[=%s]" : "=%s", value
        );
    }
}

static void put_option(const struct ml_option *option, FILE *out) {
    char value[ML_OPTION_WANTS_BYTES + 4];
    char words[ML_OPTION_WANTS_BYTES];
    value_text(option, value);
    int column = fprintf(
        out,
        "  %s%s%s%s",
        option->short_name != NULL ? option->short_name : "",
        option->short_name != NULL ? ", " : "",
        option->name,
        value
    );
    if (column + 1 >= TEXT_COLUMN) {
        (void)fputc('\n', out);
        column = 0;
    }
    put_wrapped(option->help, TEXT_COLUMN, (size_t)column, out);
    if (option->words != NULL && option->value != NULL) {
        (void)fprintf(out, "%*s", TEXT_COLUMN, "");
        put_wrapped(join(option->words, ", ", ", ", words), TEXT_COLUMN, TEXT_COLUMN, out);
    }
}

/* How its flags are taken back, by the first of them. */
static void put_negatives(const struct ml_option_table *table, FILE *out) {
    char negative[ML_OPTION_NEGATIVE_BYTES];
    char text[256];
    for (size_t i = 0; i < table->options_count; i++) {
        const struct ml_option *option = &table->options[i];
        if (ml_option_is_flag(option) && option->help != NULL) {
            (void)snprintf(
                text,
                sizeof(text),
                "take back a flag, as if it had not been said: %s, where the config file has %s",
                ml_option_negative(option, negative),
                option->name
            );
            put_option(&(struct ml_option){.name = "--no-FLAG", .help = text}, out);
            return;
        }
    }
}

void ml_option_table_help(const struct ml_option_table *table, FILE *out) {
    (void)fprintf(out, "Usage: %s %s %s\n", table->program, table->name, table->usage);
    if (table->about != NULL) {
        (void)fputc('\n', out);
        put_wrapped(table->about, 0, 0, out);
    }
    for (size_t i = 0; i < table->options_count; i++) {
        const struct ml_option *option = &table->options[i];
        if (option->group != NULL || i == 0) {
            (void)fprintf(out, "\n%s:\n", option->group != NULL ? option->group : "Options");
        }
        if (option->help != NULL) {
            put_option(option, out);
        }
    }
    if (table->options_count == 0) {
        (void)fputs("\nOptions:\n", out);
    }
    put_option(&ml_option_help, out);
    put_negatives(table, out);
    if (table->notes != NULL) {
        (void)fputc('\n', out);
        put_wrapped(table->notes, 0, 0, out);
    }
    (void)fputs("\nExample:\n", out);
    put_wrapped(table->example, 2, 0, out);
}

/* ---- for programs */

static void put_member(struct ml_json *json, const char *name, const char *text) {
    if (text != NULL) {
        ml_json_string_member(json, name, text);
    }
}

static void dump_option(const struct ml_option *option, const char *group, struct ml_json *json) {
    static const char *const kinds[ML_OPTION_KIND_COUNT] = {
        [ML_OPTION_FLAG] = "flag",
        [ML_OPTION_CHOICE] = "flag",
        [ML_OPTION_WORD] = "word",
        [ML_OPTION_SIZE] = "size",
        [ML_OPTION_COUNT] = "count",
        [ML_OPTION_SECONDS] = "duration",
        [ML_OPTION_TIME] = "time",
        [ML_OPTION_TEXT] = "text",
        [ML_OPTION_PATH] = "path",
        [ML_OPTION_REGEX] = "regex",
        [ML_OPTION_OWN] = "text",
        [ML_OPTION_ACTION] = "flag",
    };
    char wants[ML_OPTION_WANTS_BYTES];
    char negative[ML_OPTION_NEGATIVE_BYTES];
    ml_json_open(json, '{');
    ml_json_string_member(json, "name", option->name);
    put_member(json, "short", option->short_name);
    if (ml_option_is_flag(option)) {
        ml_json_string_member(json, "negative", ml_option_negative(option, negative));
    }
    ml_json_string_member(json, "kind", kinds[option->kind]);
    if (ml_option_has_value(option)) {
        put_member(json, "value", option->value);
        ml_json_string_member(json, "accepts", ml_option_wants(option, wants));
        ml_json_bool_member(json, "value_optional", option->is_value_optional);
    }
    if (option->words != NULL) {
        ml_json_key(json, "words");
        ml_json_open(json, '[');
        for (size_t i = 0; option->words[i] != NULL; i++) {
            ml_json_string(json, option->words[i]);
        }
        ml_json_close(json, ']');
    }
    put_member(json, "group", group);
    put_member(json, "help", option->help);
    ml_json_close(json, '}');
}

void ml_option_table_dump(const struct ml_option_table *table, FILE *out) {
    struct ml_json json = ml_json_over(out);
    const char *group = NULL;
    ml_json_open(&json, '{');
    ml_json_string_member(&json, "program", table->program);
    ml_json_string_member(&json, "command", table->name);
    ml_json_string_member(&json, "summary", table->summary);
    ml_json_string_member(&json, "usage", table->usage);
    put_member(&json, "about", table->about);
    ml_json_key(&json, "options");
    ml_json_open(&json, '[');
    for (size_t i = 0; i < table->options_count; i++) {
        group = table->options[i].group != NULL ? table->options[i].group : group;
        if (table->options[i].help != NULL) {
            dump_option(&table->options[i], group, &json);
        }
    }
    dump_option(&ml_option_help, group, &json);
    ml_json_close(&json, ']');
    put_member(&json, "notes", table->notes);
    ml_json_string_member(&json, "example", table->example);
    ml_json_close(&json, '}');
    (void)fputc('\n', out);
}
