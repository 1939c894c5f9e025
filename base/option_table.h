/* The options of a sub-command: one constant table of each, one parser, one help. Room: base.
 * Context: start of a program; caller's storage.
 *
 * One rule: nothing is guessed and nothing is ignored. An unknown option or value is refused, with
 * an error message that names the option, the value, and what is accepted. */
#ifndef MEMLOG_BASE_OPTION_TABLE_H
#define MEMLOG_BASE_OPTION_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error_message.h"
#include "base/time_text.h"

/* What an option's value is, and what it is stored as. */
enum ml_option_kind {
    ML_OPTION_FLAG = 0, /* no value; bool */
    ML_OPTION_CHOICE,   /* no value; an enum that becomes `least`: one of several, none of them 0 */
    ML_OPTION_WORD,     /* an enum: the place in `words`, the first one's being `least` */
    ML_OPTION_SIZE,     /* base/size.h; uint64_t, bytes */
    ML_OPTION_COUNT,    /* uint32_t */
    ML_OPTION_SECONDS,  /* base/time_text.h; uint32_t, whole seconds */
    ML_OPTION_TIME,     /* base/time_text.h; struct ml_time */
    ML_OPTION_TEXT,     /* const char *; of at most `most` bytes */
    ML_OPTION_PATH,     /* const char *; not empty */
    ML_OPTION_REGEX,    /* const char *; POSIX extended */
    ML_OPTION_OWN,      /* whatever `read` makes of it */
    ML_OPTION_ACTION,   /* no value; `read` does it */
    ML_OPTION_KIND_COUNT
};

struct ml_option {
    const char *name;       /* "--limit" */
    const char *short_name; /* "-o"; NULL: none */
    enum ml_option_kind kind;
    size_t offset;            /* of what it is stored in, in the command's struct */
    uint64_t least, most;     /* of a size, a count or seconds; most 0: as much as it holds */
    const char *const *words; /* NULL behind the last */
    const char *value;        /* how help calls the value; NULL: by its words */
    const char *wants;        /* what is accepted, in front of "is wanted"; NULL: by its kind */
    const char *help;         /* one line of any length; NULL: it is not for people */
    const char *group;        /* a heading that begins with it; NULL: that of the one before */
    bool is_value_optional;   /* `read` gets NULL without one */
    bool is_secret;           /* error messages do not repeat the value */

    /* Into the command's struct. False, with or without words about it: it is refused. */
    bool (*read)(void *to, const char *value, struct ml_error_message *why);
};

/* kind and offset of an option, with a check that the member is what the kind stores. */
#define ML_OPTION_TO(kind_, stored, type, member)                                                  \
    .kind = (kind_), .offset = offsetof(type, member) + _Generic(((type *)0)->member, stored : 0)
#define ML_FLAG_TO(type, member) ML_OPTION_TO(ML_OPTION_FLAG, bool, type, member)
#define ML_CHOICE_TO(type, member, value)                                                          \
    ML_OPTION_TO(ML_OPTION_CHOICE, unsigned, type, member), .least = (value)
#define ML_WORD_TO(type, member) ML_OPTION_TO(ML_OPTION_WORD, unsigned, type, member)
#define ML_SIZE_TO(type, member) ML_OPTION_TO(ML_OPTION_SIZE, uint64_t, type, member)
#define ML_COUNT_TO(type, member) ML_OPTION_TO(ML_OPTION_COUNT, uint32_t, type, member)
#define ML_SECONDS_TO(type, member) ML_OPTION_TO(ML_OPTION_SECONDS, uint32_t, type, member)
#define ML_TIME_TO(type, member) ML_OPTION_TO(ML_OPTION_TIME, struct ml_time, type, member)
#define ML_TEXT_TO(type, member) ML_OPTION_TO(ML_OPTION_TEXT, const char *, type, member)
#define ML_PATH_TO(type, member) ML_OPTION_TO(ML_OPTION_PATH, const char *, type, member)
#define ML_READ_BY(function) .kind = ML_OPTION_OWN, .read = (function)
#define ML_REGEX_TO(type, member) ML_OPTION_TO(ML_OPTION_REGEX, const char *, type, member)

/* What stands beside the options. */
enum ml_operand_kind {
    ML_OPERANDS_NONE = 0,
    ML_OPERANDS_FILES,  /* const char *[most] */
    ML_OPERANDS_PIDS,   /* struct ml_pids */
    ML_OPERANDS_COMMAND /* char *const *: the first word that is no option, and all behind it */
};

enum { ML_PIDS_MAX = 1024 };

struct ml_pids {
    uint32_t items[ML_PIDS_MAX];
    uint32_t count;
};

/* No table has more. */
enum { ML_OPTIONS_MAX = 64 };

struct ml_option_table {
    const char *program; /* "memlog" */
    const char *name;    /* of the sub-command */
    const char *summary; /* one line, for the list of all */
    const char *usage;   /* behind the name: "[OPTIONS] DUMP" */
    const char *about;   /* what it does; lines of any length, each a paragraph's; NULL: nothing */
    const struct ml_option *options; /* without --help, which every command has */
    size_t options_count;
    enum ml_operand_kind operands;
    size_t operands_offset;
    size_t operands_least, operands_most;
    const char *operands_missing; /* what to say where there are fewer */
    const char *notes;            /* as `about`, behind the options; NULL: none */
    const char *example;          /* command lines */
};

#define ML_OPTIONS(array) .options = (array), .options_count = sizeof(array) / sizeof((array)[0])

/* A command has no more in advance. */
enum { ML_OPTION_DEFAULTS_MAX = 128 };

/* An option of a command that its user has set in advance. */
struct ml_option_default {
    const char *origin; /* "FILE:LINE": error messages begin with it */
    const char *word;   /* "--name=value", "--flag" */
};

/* Let the next reading take these in front of the command's own words, checked as those are. What
 * is given by words wins: also over one that excludes it. At the start of a program, for the one
 * command that it carries out.
 *
 * Owner: borrowed for the program's life. */
void ml_option_defaults(const struct ml_option_default *defaults, size_t count);

/* The same out of a program's words, where memlog puts what its user has set in front of all:
 * --default FILE:LINE --name=value. At most ML_OPTION_DEFAULTS_MAX; returns the words behind. */
char **ml_option_defaults_of(
    char **words, struct ml_option_default out_defaults[ML_OPTION_DEFAULTS_MAX], size_t *out_count
);

/* What is in force of a table: each option, its value, and where that comes from, among them words
 * of a command line. False: one of them is none of the table's; there is an error message. */
bool ml_option_table_explain(
    const struct ml_option_table *table,
    char *const *words,
    FILE *out,
    struct ml_error_message *error
);

enum ml_option_outcome {
    ML_OPTIONS_READ = 0,
    ML_OPTIONS_HELP, /* help was asked for: nothing behind that was looked at */
    ML_OPTIONS_WRONG /* there is an error message */
};

/* Read the words behind a sub-command's name into its struct `to`, which holds the defaults.
 *
 * Shape:  "--name", "--name=value", "--name value", the same with "-n"; "--no-name" takes a flag
 * --name back, and "--name" a flag --no-name; options and operands in any order, no options behind
 * "--"; NULL-terminated. *out_given has a bit for each option that was
 * given (ml_option_given); may be NULL. Owner: the words are borrowed for the struct's life.
 */
enum ml_option_outcome ml_option_table_read(
    const struct ml_option_table *table,
    char *const *words,
    void *to,
    uint64_t *out_given,
    struct ml_error_message *error
);

/* Whether the option of that name, which the table has, was given. */
bool ml_option_given(const struct ml_option_table *table, uint64_t given, const char *name);

/* All of --help, in 80 columns. */
void ml_option_table_help(const struct ml_option_table *table, FILE *out);

/* The table as one line of JSON, from which man pages and completions are made. */
void ml_option_table_dump(const struct ml_option_table *table, FILE *out);

#endif
