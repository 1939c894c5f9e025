#include "base/option_table.h"

#include <inttypes.h>
#include <limits.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/option_table_internal.h"
#include "base/printable.h"
#include "base/size.h"
#include "base/suggest.h"

/* Longest part of a bad value that an error message repeats: the accepted values must fit behind
 * it. */
#define SHOWN "%.1000s"

const struct ml_option ml_option_help = {
    .name = "--help", .short_name = "-h", .kind = ML_OPTION_FLAG, .help = "this text"};

/* See ml_option_defaults(). */
static const struct ml_option_default *in_advance;
static size_t in_advance_count;

void ml_option_defaults(const struct ml_option_default *defaults, size_t count) {
    in_advance = defaults;
    in_advance_count = count;
}

char **ml_option_defaults_of(
    char **words, struct ml_option_default out_defaults[ML_OPTION_DEFAULTS_MAX], size_t *out_count
) {
    size_t count = 0;
    while (words[0] != NULL && strcmp(words[0], "--default") == 0 && words[1] != NULL &&
           words[2] != NULL && count < ML_OPTION_DEFAULTS_MAX) {
        out_defaults[count++] = (struct ml_option_default){.origin = words[1], .word = words[2]};
        words += 3;
    }
    *out_count = count;
    return words;
}

/* One reading. */
struct reading {
    const struct ml_option_table *table;
    char *to;
    uint64_t given;
    uint64_t defaulted; /* of those: in advance alone */
    size_t operands_count;
    struct ml_error_message *error;
};

static bool is_name(const char *name, const char *word, size_t word_count) {
    return name != NULL && strlen(name) == word_count && strncmp(name, word, word_count) == 0;
}

bool ml_option_is_flag(const struct ml_option *option) {
    return option != &ml_option_help &&
           (option->kind == ML_OPTION_FLAG || option->kind == ML_OPTION_CHOICE);
}

const char *ml_option_negative(const struct ml_option *option, char out[ML_OPTION_NEGATIVE_BYTES]) {
    static const char no[] = "--no-";
    const bool is_negative = strncmp(option->name, no, sizeof(no) - 1) == 0;
    const char *bare = option->name + (is_negative ? sizeof(no) - 1 : 2);
    (void)snprintf(out, ML_OPTION_NEGATIVE_BYTES, "%s%s", is_negative ? "--" : no, bare);
    return out;
}

/* The option of that name; *out_is_off: the word is a flag's negative form. */
static const struct ml_option *
find(const struct ml_option_table *table, const char *word, size_t word_count, bool *out_is_off) {
    *out_is_off = false;
    for (size_t i = 0; i < table->options_count; i++) {
        const struct ml_option *option = &table->options[i];
        if (is_name(option->name, word, word_count) ||
            is_name(option->short_name, word, word_count)) {
            return option;
        }
    }
    for (size_t i = 0; i < table->options_count; i++) {
        const struct ml_option *option = &table->options[i];
        char negative[ML_OPTION_NEGATIVE_BYTES];
        if (ml_option_is_flag(option) &&
            is_name(ml_option_negative(option, negative), word, word_count)) {
            *out_is_off = true;
            return option;
        }
    }
    return is_name(ml_option_help.name, word, word_count) ||
                   is_name(ml_option_help.short_name, word, word_count)
               ? &ml_option_help
               : NULL;
}

static bool unknown_option(struct reading *reading, const char *word, size_t word_count) {
    const struct ml_option_table *table = reading->table;
    const char *names[ML_OPTIONS_MAX + 1];
    char name[ML_SUGGEST_WORD_MAX + 2];
    for (size_t i = 0; i < table->options_count; i++) {
        names[i] = table->options[i].name;
    }
    names[table->options_count] = ml_option_help.name;
    (void)snprintf(name, sizeof(name), "%.*s", (int)word_count, word);
    const char *near = ml_suggest(name, names, table->options_count + 1);
    if (near != NULL) {
        ml_error_set(reading->error, "unknown option '%s'; did you mean '%s'?", name, near);
    } else {
        ml_error_set(reading->error, "unknown option '%s'", name);
    }
    return false;
}

/* "--limit=0: a whole number from 1 on is wanted". */
static bool refuse(
    struct reading *reading, const struct ml_option *option, const char *value, const char *why
) {
    char wants[ML_OPTION_WANTS_BYTES];
    const bool is_shown = value != NULL && !option->is_secret;
    ml_error_set(
        reading->error,
        "%s%s" SHOWN ": %s%s",
        option->name,
        is_shown ? "=" : "",
        is_shown ? value : "",
        why[0] != '\0' ? why : ml_option_wants(option, wants),
        why[0] != '\0' ? "" : " is wanted"
    );
    return false;
}

static bool read_word(
    struct reading *reading, const struct ml_option *option, const char *value, unsigned *out_place
) {
    size_t count = 0;
    for (; option->words[count] != NULL; count++) {
        if (strcmp(value, option->words[count]) == 0) {
            *out_place = (unsigned)(count + option->least);
            return true;
        }
    }
    const char *near = ml_suggest(value, option->words, count);
    if (near == NULL) {
        return refuse(reading, option, value, "");
    }
    char wants[ML_OPTION_WANTS_BYTES];
    char why[ML_OPTION_WANTS_BYTES + ML_SUGGEST_WORD_MAX + sizeof(" is wanted; did you mean ''?")];
    (void)snprintf(
        why, sizeof(why), "%s is wanted; did you mean '%s'?", ml_option_wants(option, wants), near
    );
    return refuse(reading, option, value, why);
}

static bool is_regex(struct reading *reading, const struct ml_option *option, const char *value) {
    regex_t regex;
    char why[256];
    const int error_number = regcomp(&regex, value, REG_EXTENDED | REG_NOSUB);
    if (error_number != 0) {
        const int start = snprintf(why, sizeof(why), "this is no regular expression: ");
        (void)regerror(error_number, &regex, why + start, sizeof(why) - (size_t)start);
        return refuse(reading, option, value, why);
    }
    regfree(&regex);
    return true;
}

/* A number within the option's bounds, in the units of what it is stored in. */
static bool read_number(const struct ml_option *option, const char *value, uint64_t *out_number) {
    const uint64_t holds = option->kind == ML_OPTION_SIZE ? UINT64_MAX : UINT32_MAX;
    const uint64_t most = option->most > 0 ? option->most : holds;
    uint64_t number = 0;
    bool fine = false;
    if (option->kind == ML_OPTION_SIZE) {
        fine = ml_size_read(value, &number);
    } else if (option->kind == ML_OPTION_COUNT) {
        fine = ml_count_read(value, UINT32_MAX, &number);
    } else {
        fine = ml_duration_read(value, &number) && number % 1000 == 0;
        number /= 1000;
    }
    *out_number = number;
    return fine && number >= option->least && number <= most;
}

/* What a value becomes. */
union stored {
    bool flag;
    unsigned word;
    uint32_t count;
    uint64_t bytes;
    struct ml_time time;
    const char *text;
};

/* False: it is refused; the error message may be set already. */
static bool read_value(
    struct reading *reading,
    const struct ml_option *option,
    const char *value,
    union stored *out,
    size_t *out_bytes
) {
    uint64_t number = 0;
    *out_bytes = sizeof(const char *);
    out->text = value;
    switch (option->kind) {
    case ML_OPTION_WORD:
        *out_bytes = sizeof(unsigned);
        return read_word(reading, option, value, &out->word);
    case ML_OPTION_SIZE:
        *out_bytes = sizeof(uint64_t);
        return read_number(option, value, &out->bytes);
    case ML_OPTION_COUNT:
    case ML_OPTION_SECONDS: {
        const bool fine = read_number(option, value, &number);
        *out_bytes = sizeof(uint32_t);
        out->count = (uint32_t)number;
        return fine;
    }
    case ML_OPTION_TIME:
        *out_bytes = sizeof(struct ml_time);
        return ml_time_read(value, &out->time);
    case ML_OPTION_TEXT:
        return option->most == 0 || strlen(value) <= option->most;
    case ML_OPTION_PATH:
        return value[0] != '\0';
    default:
        return is_regex(reading, option, value);
    }
}

/* One of several that exclude each other: those that are stored in one place. */
static bool choose(struct reading *reading, const struct ml_option *option) {
    const struct ml_option_table *table = reading->table;
    const unsigned chosen = (unsigned)option->least;
    unsigned before = 0;
    memcpy(&before, reading->to + option->offset, sizeof(before));
    for (size_t i = 0; i < table->options_count && before != 0 && before != chosen; i++) {
        const struct ml_option *other = &table->options[i];
        const bool was_in_advance = (reading->defaulted >> i & 1) != 0;
        if (other->kind == ML_OPTION_CHOICE && other->offset == option->offset &&
            other->least == before && !was_in_advance) {
            ml_error_set(
                reading->error,
                "%s and %s are different things: one of them",
                other->name,
                option->name
            );
            return false;
        }
    }
    memcpy(reading->to + option->offset, &chosen, sizeof(chosen));
    return true;
}

/* As if the flag had not been said. Of several that exclude each other another one stays. */
static void take_back(struct reading *reading, const struct ml_option *option) {
    char *stored = reading->to + option->offset;
    unsigned chosen = 0;
    reading->given &= ~(UINT64_C(1) << (option - reading->table->options));
    if (option->kind == ML_OPTION_FLAG) {
        *(bool *)(void *)stored = false;
        return;
    }
    memcpy(&chosen, stored, sizeof(chosen));
    if (chosen == option->least) {
        memset(stored, 0, sizeof(chosen));
    }
}

static bool take(struct reading *reading, const struct ml_option *option, const char *value) {
    struct ml_error_message why = {.text = ""};
    union stored stored;
    size_t count_bytes = 0;
    switch (option->kind) {
    case ML_OPTION_FLAG:
        *(bool *)(void *)(reading->to + option->offset) = true;
        return true;
    case ML_OPTION_CHOICE:
        return choose(reading, option);
    case ML_OPTION_OWN:
    case ML_OPTION_ACTION:
        return option->read(reading->to, value, &why) || refuse(reading, option, value, why.text);
    default:
        break;
    }
    if (!read_value(reading, option, value, &stored, &count_bytes)) {
        return refuse(reading, option, value, "");
    }
    memcpy(reading->to + option->offset, &stored, count_bytes);
    return true;
}

bool ml_option_has_value(const struct ml_option *option) {
    return option->kind != ML_OPTION_FLAG && option->kind != ML_OPTION_CHOICE &&
           option->kind != ML_OPTION_ACTION;
}

/* The option at words[*at]; *at moves behind it and its value. *out_help: it is --help. */
static bool read_option(struct reading *reading, char *const *words, size_t *at, bool *out_help) {
    const char *word = words[(*at)++];
    const size_t name_count = strcspn(word, "=");
    const char *value = word[name_count] == '=' ? word + name_count + 1 : NULL;
    bool is_off = false;
    const struct ml_option *option = find(reading->table, word, name_count, &is_off);
    if (option == NULL) {
        return unknown_option(reading, word, name_count);
    }
    if (!ml_option_has_value(option) && value != NULL) {
        ml_error_set(reading->error, "%.*s takes no value", (int)name_count, word);
        return false;
    }
    if (is_off) {
        take_back(reading, option);
        return true;
    }
    *out_help = option == &ml_option_help;
    if (*out_help) {
        return true;
    }
    const bool may_lack = option->kind == ML_OPTION_OWN && option->is_value_optional;
    if (ml_option_has_value(option) && !may_lack && value == NULL) {
        value = words[*at];
        if (value == NULL || strcmp(value, "--") == 0) {
            char wants[ML_OPTION_WANTS_BYTES];
            ml_error_set(
                reading->error,
                "%s needs a value: %s is wanted",
                option->name,
                ml_option_wants(option, wants)
            );
            return false;
        }
        (*at)++;
    }
    reading->given |= UINT64_C(1) << (option - reading->table->options);
    const bool done = take(reading, option, value);
    reading->defaulted &= ~(UINT64_C(1) << (option - reading->table->options));
    return done;
}

/* A word that is no option. */
static bool read_operand(struct reading *reading, const char *word) {
    const struct ml_option_table *table = reading->table;
    char *stored = reading->to + table->operands_offset;
    const size_t at = reading->operands_count++;
    if (table->operands == ML_OPERANDS_NONE || at == table->operands_most) {
        ml_error_set(
            reading->error,
            "'" SHOWN "' is one word too many: %s %s %s",
            word,
            table->program,
            table->name,
            table->usage
        );
        return false;
    }
    if (table->operands == ML_OPERANDS_FILES) {
        memcpy(stored + at * sizeof(word), &word, sizeof(word));
        return true;
    }
    struct ml_pids *pids = (struct ml_pids *)(void *)stored;
    uint64_t pid = 0;
    if (!ml_count_read(word, INT_MAX, &pid) || pid == 0) {
        ml_error_set(reading->error, "'" SHOWN "' is not a process id", word);
        return false;
    }
    pids->items[pids->count++] = (uint32_t)pid;
    return true;
}

static bool read_words(struct reading *reading, char *const *words, bool *out_help) {
    const bool is_command = reading->table->operands == ML_OPERANDS_COMMAND;
    bool are_options = true;
    size_t at = 0;
    while (words[at] != NULL) {
        const char *word = words[at];
        const bool is_option = are_options && word[0] == '-' && word[1] != '\0';
        if (is_option && strcmp(word, "--") == 0) {
            are_options = false;
            at++;
        } else if (is_option) {
            if (!read_option(reading, words, &at, out_help) || *out_help) {
                return *out_help;
            }
        } else if (is_command) {
            break;
        } else if (!read_operand(reading, words[at++])) {
            return false;
        }
    }
    if (is_command) {
        char *const *command = words + at;
        memcpy(reading->to + reading->table->operands_offset, &command, sizeof(command));
        reading->operands_count = command[0] != NULL && command[0][0] != '\0' ? 1 : 0;
    }
    if (reading->operands_count < reading->table->operands_least) {
        ml_error_set(reading->error, "%s", reading->table->operands_missing);
        return false;
    }
    return true;
}

/* The words that a file of the user has for the command. */
static bool read_defaults(struct reading *reading) {
    struct ml_error_message *error = reading->error;
    struct ml_error_message why = {.text = ""};
    bool fine = true;
    reading->error = &why;
    for (size_t i = 0; fine && i < in_advance_count; i++) {
        char *const words[] = {(char *)(uintptr_t)in_advance[i].word, NULL};
        bool help = false;
        size_t at = 0;
        fine = read_option(reading, words, &at, &help);
        if (help) {
            ml_error_set(&why, "--help is no default");
            fine = false;
        }
        if (!fine) {
            ml_error_set(error, "%s: %s", in_advance[i].origin, why.text);
        }
    }
    reading->error = error;
    reading->defaulted = reading->given;
    return fine;
}

enum ml_option_outcome ml_option_table_read(
    const struct ml_option_table *table,
    char *const *words,
    void *to,
    uint64_t *out_given,
    struct ml_error_message *error
) {
    struct reading reading = {.table = table, .to = to, .error = error};
    bool help = false;
    const bool fine = read_defaults(&reading) && read_words(&reading, words, &help);
    if (out_given != NULL) {
        *out_given = reading.given;
    }
    return !fine ? ML_OPTIONS_WRONG : help ? ML_OPTIONS_HELP : ML_OPTIONS_READ;
}

/* A row of what is in force; `word` NULL: nothing was said. */
static void explain(
    const struct ml_option_table *table,
    const struct ml_option *option,
    const char *word,
    const char *value,
    const char *origin,
    FILE *out
) {
    const char *equals = word != NULL ? strchr(word, '=') : NULL;
    bool is_off = false;
    if (word != NULL) {
        (void)find(table, word, strcspn(word, "="), &is_off);
    }
    const char *shown = equals != NULL  ? equals + 1
                        : value != NULL ? value
                        : is_off        ? "off"
                        : word != NULL  ? "on"
                                        : "";
    (void)fprintf(out, "  %-32s  ", option->name);
    ml_printable_put_text(out, option->is_secret && word != NULL ? "(secret)" : shown);
    (void)fputs(word != NULL ? "  " : "", out);
    ml_printable_put_text(out, origin);
    (void)fputc('\n', out);
}

/* The rows of an option in words; *out_has: there are some. False: one is no option's. */
static bool explain_words(
    struct reading *reading,
    const struct ml_option *option,
    char *const *words,
    FILE *out,
    bool *out_has
) {
    for (size_t i = 0; words[i] != NULL && strcmp(words[i], "--") != 0; i++) {
        const size_t count = strcspn(words[i], "=");
        if (words[i][0] != '-') {
            continue;
        }
        bool is_off = false;
        const struct ml_option *found = find(reading->table, words[i], count, &is_off);
        if (found == NULL) {
            return unknown_option(reading, words[i], count);
        }
        const bool takes_next =
            words[i][count] == '\0' && ml_option_has_value(found) && !found->is_value_optional;
        if (found == option) {
            explain(
                reading->table,
                option,
                words[i],
                takes_next ? words[i + 1] : NULL,
                "command line",
                out
            );
            *out_has = true;
        }
        i += takes_next && words[i + 1] != NULL;
    }
    return true;
}

bool ml_option_table_explain(
    const struct ml_option_table *table,
    char *const *words,
    FILE *out,
    struct ml_error_message *error
) {
    struct reading reading = {.table = table, .error = error};
    for (size_t i = 0; i < in_advance_count; i++) {
        const size_t count = strcspn(in_advance[i].word, "=");
        struct ml_error_message why = {.text = ""};
        bool is_off = false;
        reading.error = &why;
        if (find(table, in_advance[i].word, count, &is_off) == NULL) {
            (void)unknown_option(&reading, in_advance[i].word, count);
            ml_error_set(error, "%s: %s", in_advance[i].origin, why.text);
            return false;
        }
        reading.error = error;
    }
    for (size_t row = 0; row < table->options_count; row++) {
        const struct ml_option *option = &table->options[row];
        bool has = false;
        if (option->help == NULL) {
            continue; /* it is not for people */
        }
        for (size_t i = 0; i < in_advance_count; i++) {
            const char *word = in_advance[i].word;
            bool is_off = false;
            if (find(table, word, strcspn(word, "="), &is_off) == option) {
                explain(table, option, in_advance[i].word, NULL, in_advance[i].origin, out);
                has = true;
            }
        }
        if (!explain_words(&reading, option, words, out, &has)) {
            return false;
        }
        if (!has) {
            explain(table, option, NULL, NULL, "default", out);
        }
    }
    return true;
}

bool ml_option_given(const struct ml_option_table *table, uint64_t given, const char *name) {
    bool is_off = false;
    const struct ml_option *option = find(table, name, strlen(name), &is_off);
    if (option == NULL || option == &ml_option_help) {
        abort(); /* the command asks for what its table does not have */
    }
    return (given >> (option - table->options) & 1) != 0;
}
