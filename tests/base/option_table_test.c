#include "base/option_table.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "tests/suite.h"

enum colour { COLOUR_RED, COLOUR_GREEN };
enum form { FORM_TEXT, FORM_JSON, FORM_CSV };

struct wish {
    bool loud;
    enum form form;
    enum colour colour;
    uint64_t bytes;
    uint32_t limit, every_s;
    struct ml_time from;
    const char *reason, *output, *focus;
    unsigned own;
    const char *files[2];
    struct ml_pids pids;
    char *const *command;
};

static bool read_own(void *to, const char *value, struct ml_error_message *why) {
    struct wish *wish = to;
    if (value != NULL && strcmp(value, "odd") == 0) {
        ml_error_set(why, "that is odd");
        return false;
    }
    wish->own = value == NULL ? 1 : 2;
    return value == NULL || strcmp(value, "even") == 0;
}

static const char *const colours[] = {"red", "green", NULL};

static const struct ml_option options[] = {
    {.name = "--loud", .short_name = "-l", ML_FLAG_TO(struct wish, loud), .help = "be loud"},
    {.name = "--json", ML_CHOICE_TO(struct wish, form, FORM_JSON), .help = "as JSON"},
    {.name = "--csv", ML_CHOICE_TO(struct wish, form, FORM_CSV), .help = "as CSV"},
    {.name = "--colour", ML_WORD_TO(struct wish, colour), .words = colours, .help = "its colour"},
    {.name = "--bytes",
     ML_SIZE_TO(struct wish, bytes),
     .least = 1,
     .most = 1 << 30,
     .value = "BYTES",
     .group = "Numbers",
     .help = "how large it is, in words that are many enough for more than one line of this text"},
    {.name = "--limit", ML_COUNT_TO(struct wish, limit), .least = 1, .value = "N", .help = "rows"},
    {.name = "--every",
     ML_SECONDS_TO(struct wish, every_s),
     .least = 1,
     .most = 3600,
     .value = "TIME",
     .help = "how often"},
    {.name = "--from", ML_TIME_TO(struct wish, from), .value = "TIME", .help = "since when"},
    {.name = "--reason",
     ML_TEXT_TO(struct wish, reason),
     .most = 8,
     .value = "TEXT",
     .group = "Texts",
     .help = "why"},
    {.name = "--output",
     .short_name = "-o",
     ML_PATH_TO(struct wish, output),
     .value = "FILE",
     .help = "where to"},
    {.name = "--focus", ML_REGEX_TO(struct wish, focus), .value = "REGEX", .help = "what alone"},
    {.name = "--own",
     .kind = ML_OPTION_OWN,
     .read = read_own,
     .is_value_optional = true,
     .value = "even",
     .help = "its own"},
    {.name = "--secret",
     .kind = ML_OPTION_OWN,
     .read = read_own,
     .is_secret = true,
     .value = "URL",
     .wants = "an address",
     .help = "where to, with a password"},
    {.name = "--hidden", ML_FLAG_TO(struct wish, loud)},
};

#define TABLE                                                                                      \
    .program = "memlog", .name = "wish", .summary = "wish something",                              \
    .usage = "[OPTIONS] FILE [FILE]", .about = "Wishes.", ML_OPTIONS(options), .notes = "Notes.",  \
    .example = "memlog wish --json file"

static const struct ml_option_table of_files = {
    TABLE,
    .operands = ML_OPERANDS_FILES,
    .operands_offset = offsetof(struct wish, files),
    .operands_least = 1,
    .operands_most = 2,
    .operands_missing = "no file was named",
};
static const struct ml_option_table of_pids = {
    TABLE,
    .operands = ML_OPERANDS_PIDS,
    .operands_offset = offsetof(struct wish, pids),
    .operands_most = 2,
};
static const struct ml_option_table of_command = {
    TABLE,
    .operands = ML_OPERANDS_COMMAND,
    .operands_offset = offsetof(struct wish, command),
    .operands_least = 1,
    .operands_missing = "no program given",
};
static const struct ml_option_table of_nothing = {TABLE};

static struct wish wish;
static struct ml_error_message error;
static uint64_t given;

/* Read the words of one line, parted by blanks. */
static enum ml_option_outcome parse(const struct ml_option_table *table, const char *words) {
    static char line[512];
    static char *arguments[32];
    size_t count = 0;
    ck_assert_uint_lt(strlen(words), sizeof(line));
    memcpy(line, words, strlen(words) + 1);
    for (char *word = strtok(line, " "); word != NULL; word = strtok(NULL, " ")) {
        arguments[count++] = word;
    }
    arguments[count] = NULL;
    wish = (struct wish){.reason = ""};
    error = (struct ml_error_message){.text = ""};
    const enum ml_option_outcome outcome =
        ml_option_table_read(table, arguments, &wish, &given, &error);
    ck_assert_int_eq(outcome == ML_OPTIONS_WRONG, error.text[0] != '\0');
    return outcome;
}

START_TEST(stores_each_kind_where_the_table_says) {
    ck_assert_int_eq(
        parse(
            &of_files,
            "-l --json --colour=green --bytes=16KiB --limit 7 a --every=2m --from -5m "
            "--reason=because -o out --focus=^x --own=even -- --loud"
        ),
        ML_OPTIONS_READ
    );
    ck_assert(wish.loud);
    ck_assert_int_eq(wish.form, FORM_JSON);
    ck_assert_int_eq(wish.colour, COLOUR_GREEN);
    ck_assert_uint_eq(wish.bytes, 16384);
    ck_assert_uint_eq(wish.limit, 7);
    ck_assert_uint_eq(wish.every_s, 120);
    ck_assert_int_eq(wish.from.from, ML_TIME_BEFORE_END);
    ck_assert_uint_eq(wish.from.ms, 300000);
    ck_assert_str_eq(wish.reason, "because");
    ck_assert_str_eq(wish.output, "out");
    ck_assert_str_eq(wish.focus, "^x");
    ck_assert_uint_eq(wish.own, 2);
    ck_assert_str_eq(wish.files[0], "a");
    ck_assert_str_eq(wish.files[1], "--loud");
    ck_assert(ml_option_given(&of_files, given, "--limit"));
    ck_assert(!ml_option_given(&of_files, given, "--csv"));
}
END_TEST

START_TEST(what_was_not_given_stays_as_it_was) {
    ck_assert_int_eq(parse(&of_files, "a"), ML_OPTIONS_READ);
    ck_assert(!wish.loud && wish.output == NULL && wish.limit == 0);
    ck_assert_str_eq(wish.reason, "");
    ck_assert_uint_eq(given, 0);
    ck_assert_int_eq(parse(&of_files, "--own - --loud"), ML_OPTIONS_READ);
    ck_assert_uint_eq(wish.own, 1); /* an optional value is no word of its own */
    ck_assert_str_eq(wish.files[0], "-");
}
END_TEST

START_TEST(operands_are_files_processes_or_a_command) {
    ck_assert_int_eq(parse(&of_pids, "12 --json 13"), ML_OPTIONS_READ);
    ck_assert_uint_eq(wish.pids.count, 2);
    ck_assert_uint_eq(wish.pids.items[1], 13);
    ck_assert_int_eq(parse(&of_command, "--json ls --csv"), ML_OPTIONS_READ);
    ck_assert_str_eq(wish.command[0], "ls");
    ck_assert_str_eq(wish.command[1], "--csv");
    ck_assert_int_eq(wish.form, FORM_JSON);
    ck_assert_int_eq(parse(&of_command, "--json -- -x"), ML_OPTIONS_READ);
    ck_assert_str_eq(wish.command[0], "-x");
    ck_assert_int_eq(parse(&of_nothing, "--"), ML_OPTIONS_READ);
}
END_TEST

START_TEST(help_ends_the_reading) {
    ck_assert_int_eq(parse(&of_files, "--json --help --nonsense"), ML_OPTIONS_HELP);
    ck_assert_int_eq(parse(&of_command, "-h"), ML_OPTIONS_HELP);
    ck_assert_int_eq(parse(&of_command, "ls --help"), ML_OPTIONS_READ);
}
END_TEST

static const struct {
    const struct ml_option_table *table;
    const char *words, *says;
} wrong[] = {
    {&of_files, "--limt=3 a", "unknown option '--limt'; did you mean '--limit'?"},
    {&of_files, "--frobnicate a", "unknown option '--frobnicate'"},
    {&of_files, "-x a", "unknown option '-x'"},
    {&of_files, "--hepl", "did you mean '--help'?"},
    {&of_files, "--loud=1 a", "--loud takes no value"},
    {&of_files, "--help=1", "--help takes no value"},
    {&of_files, "a --limit", "--limit needs a value: a whole number from 1 on is wanted"},
    {&of_files, "--limit -- a", "--limit needs a value"},
    {&of_files, "--json --csv a", "--json and --csv are different things: one of them"},
    {&of_files, "--colour=geen a", "--colour=geen: red or green is wanted; did you mean 'green'?"},
    {&of_files, "--colour=xxxxxxx a", "--colour=xxxxxxx: red or green is wanted"},
    {&of_files, "--colour= a", "--colour=: red or green is wanted"},
    {&of_files,
     "--bytes=0 a",
     "--bytes=0: a size in bytes from 1 to 1G (K, M, G or T behind it: times 1024) is wanted"},
    {&of_files, "--bytes=2G a", "--bytes=2G: a size in bytes from 1 to 1G"},
    {&of_files, "--bytes=16KX a", "--bytes=16KX: a size in bytes"},
    {&of_files, "--limit=0 a", "--limit=0: a whole number from 1 on is wanted"},
    {&of_files, "--limit=4294967296 a", "--limit=4294967296: a whole number"},
    {&of_files, "--limit=1K a", "--limit=1K: a whole number"},
    {&of_files, "--every=2h a", "--every=2h: a time in whole seconds from 1 to 3600"},
    {&of_files, "--every=1.5 a", "--every=1.5: a time in whole seconds"},
    {&of_files, "--every=0 a", "--every=0: a time in whole seconds"},
    {&of_files, "--from=yesterday a", "--from=yesterday: a time (10:02, "},
    {&of_files, "--reason=123456789 a", "--reason=123456789: a text of at most 8 bytes is wanted"},
    {&of_files, "-o= a", "--output=: the name of a file or folder is wanted"},
    {&of_files, "--focus=[ a", "--focus=[: this is no regular expression: "},
    {&of_files, "--own=odd a", "--own=odd: that is odd"},
    {&of_files, "--own=5 a", "--own=5: even is wanted"},
    {&of_files, "--secret=hush a", "--secret: an address is wanted"},
    {&of_files, "--json", "no file was named"},
    {&of_files, "a b c", "'c' is one word too many: memlog wish [OPTIONS] FILE [FILE]"},
    {&of_pids, "0", "'0' is not a process id"},
    {&of_pids, "x", "'x' is not a process id"},
    {&of_pids, "2147483648", "is not a process id"},
    {&of_pids, "1 2 3", "'3' is one word too many"},
    {&of_command, "--json", "no program given"},
    {&of_command, "--", "no program given"},
    {&of_nothing, "a", "'a' is one word too many"},
};

START_TEST(what_is_wrong_is_named_with_what_is_accepted) {
    ck_assert_int_eq(parse(wrong[_i].table, wrong[_i].words), ML_OPTIONS_WRONG);
    ck_assert_msg(
        strstr(error.text, wrong[_i].says) != NULL, "%s: %s", wrong[_i].words, error.text
    );
    ck_assert_ptr_null(strstr(error.text, "hush"));
}
END_TEST

START_TEST(an_empty_word_is_no_program) {
    char *words[] = {(char[]){""}, NULL};
    error = (struct ml_error_message){.text = ""};
    ck_assert_int_eq(
        ml_option_table_read(&of_command, words, &wish, NULL, &error), ML_OPTIONS_WRONG
    );
}
END_TEST

static char *written(void (*write)(const struct ml_option_table *, FILE *)) {
    char *text = NULL;
    size_t count = 0;
    FILE *out = open_memstream(&text, &count);
    write(&of_files, out);
    ck_assert_int_eq(fclose(out), 0);
    return text;
}

START_TEST(help_is_made_of_the_table) {
    char *text = written(ml_option_table_help);
    ck_assert_str_eq(
        text,
        "Usage: memlog wish [OPTIONS] FILE [FILE]\n"
        "\n"
        "Wishes.\n"
        "\n"
        "Options:\n"
        "  -l, --loud           be loud\n"
        "  --json               as JSON\n"
        "  --csv                as CSV\n"
        "  --colour=red|green   its colour\n"
        "\n"
        "Numbers:\n"
        "  --bytes=BYTES        how large it is, in words that are many enough for more\n"
        "                       than one line of this text\n"
        "  --limit=N            rows\n"
        "  --every=TIME         how often\n"
        "  --from=TIME          since when\n"
        "\n"
        "Texts:\n"
        "  --reason=TEXT        why\n"
        "  -o, --output=FILE    where to\n"
        "  --focus=REGEX        what alone\n"
        "  --own[=even]         its own\n"
        "  --secret=URL         where to, with a password\n"
        "  -h, --help           this text\n"
        "  --no-FLAG            take back a flag, as if it had not been said: --no-loud,\n"
        "                       where the config file has --loud\n"
        "\n"
        "Notes.\n"
        "\n"
        "Example:\n"
        "  memlog wish --json file\n"
    );
    free(text);
}
END_TEST

START_TEST(a_dump_of_the_table_is_one_line_of_json) {
    char *text = written(ml_option_table_dump);
    ck_assert_ptr_eq(strchr(text, '\n'), text + strlen(text) - 1);
    ck_assert_ptr_nonnull(strstr(text, "\"command\":\"wish\""));
    ck_assert_ptr_nonnull(strstr(text, "{\"name\":\"--output\",\"short\":\"-o\",\"kind\":\"path\"")
    );
    ck_assert_ptr_nonnull(strstr(text, "\"words\":[\"red\",\"green\"]"));
    ck_assert_ptr_nonnull(strstr(text, "\"short\":\"-l\",\"negative\":\"--no-loud\""));
    ck_assert_ptr_null(strstr(text, "--hidden"));
    free(text);
}
END_TEST

static const struct ml_option_default in_advance[] = {
    {.origin = "mine:3", .word = "--limit=7"},
    {.origin = "mine:4", .word = "--json"},
    {.origin = "mine:5", .word = "--loud"},
};

START_TEST(what_stands_in_a_file_comes_before_the_words) {
    ml_option_defaults(in_advance, 3);
    ck_assert_int_eq(parse(&of_files, "a"), ML_OPTIONS_READ);
    ck_assert(wish.loud);
    ck_assert_uint_eq(wish.limit, 7);
    ck_assert_int_eq(wish.form, FORM_JSON);
    ck_assert(ml_option_given(&of_files, given, "--limit"));
    ck_assert_int_eq(parse(&of_files, "--limit=2 --csv a"), ML_OPTIONS_READ);
    ck_assert_uint_eq(wish.limit, 2);
    ck_assert_int_eq(wish.form, FORM_CSV); /* it excludes --json, and wins */
    ck_assert_int_eq(parse(&of_files, "--json --csv a"), ML_OPTIONS_WRONG);
    ml_option_defaults(NULL, 0);
}
END_TEST

START_TEST(a_flag_is_taken_back_by_its_negative_form) {
    ml_option_defaults(in_advance, 3);
    ck_assert_int_eq(parse(&of_files, "--no-loud --no-json a"), ML_OPTIONS_READ);
    ck_assert(!wish.loud);
    ck_assert_int_eq(wish.form, FORM_TEXT);
    ck_assert(!ml_option_given(&of_files, given, "--loud"));
    ck_assert(!ml_option_given(&of_files, given, "--json"));
    /* The last word counts, and of several that exclude each other the other one stays. */
    ck_assert_int_eq(parse(&of_files, "--no-loud --loud --no-csv a"), ML_OPTIONS_READ);
    ck_assert(wish.loud);
    ck_assert_int_eq(wish.form, FORM_JSON);
    ck_assert_int_eq(parse(&of_files, "--no-json --csv a"), ML_OPTIONS_READ);
    ck_assert_int_eq(wish.form, FORM_CSV);
    ck_assert_int_eq(parse(&of_files, "--no-limit a"), ML_OPTIONS_WRONG); /* it is no flag */
    ck_assert_int_eq(parse(&of_files, "--no-help a"), ML_OPTIONS_WRONG);
    ck_assert_int_eq(parse(&of_files, "--no-loud=1 a"), ML_OPTIONS_WRONG);
    ck_assert_str_eq(error.text, "--no-loud takes no value");
    ml_option_defaults(NULL, 0);
}
END_TEST

START_TEST(a_flag_that_says_no_is_taken_back_without_it) {
    static const struct ml_option quiet[] = {
        {.name = "--no-noise", ML_FLAG_TO(struct wish, loud), .help = "be quiet"}};
    static const struct ml_option_table table = {
        .program = "memlog", .name = "wish", .usage = "", .example = "", ML_OPTIONS(quiet)};
    ck_assert_int_eq(parse(&table, "--no-noise"), ML_OPTIONS_READ);
    ck_assert(wish.loud);
    ck_assert_int_eq(parse(&table, "--no-noise --noise"), ML_OPTIONS_READ);
    ck_assert(!wish.loud);
}
END_TEST

START_TEST(what_is_wrong_in_a_file_is_named_with_its_line) {
    static const struct {
        struct ml_option_default one;
        const char *error;
    } cases[] = {
        {{"mine:3", "--limit=x"}, "mine:3: --limit=x: a whole number"},
        {{"mine:4", "--limit"}, "mine:4: --limit needs a value"},
        {{"mine:5", "--limt=3"}, "mine:5: unknown option '--limt'; did you mean '--limit'?"},
        {{"mine:6", "--loud=1"}, "mine:6: --loud takes no value"},
        {{"mine:7", "--help"}, "mine:7: --help is no default"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ml_option_defaults(&cases[i].one, 1);
        ck_assert_int_eq(parse(&of_files, "a"), ML_OPTIONS_WRONG);
        ck_assert_msg(strstr(error.text, cases[i].error) == error.text, "%s", error.text);
    }
    ml_option_defaults(NULL, 0);
}
END_TEST

static void explain_to(const struct ml_option_table *table, FILE *out) {
    static char limit[] = "--limit", number[] = "2", colour[] = "--colour=green", end[] = "--",
                json[] = "--json", quiet[] = "--no-loud";
    char *const words[] = {limit, number, colour, quiet, end, json, NULL};
    ck_assert_msg(ml_option_table_explain(table, words, out, &error), "%s", error.text);
}

START_TEST(each_option_is_told_with_where_its_value_comes_from) {
    ml_option_defaults(in_advance, 1);
    error = (struct ml_error_message){.text = ""};
    char *text = written(explain_to);
    ck_assert_ptr_nonnull(strstr(text, " 7  mine:3\n"));
    ck_assert_ptr_nonnull(strstr(text, " 2  command line\n"));
    ck_assert_ptr_nonnull(strstr(text, " green  command line\n"));
    ck_assert_ptr_nonnull(strstr(text, "  --json                            default\n"));
    ck_assert_ptr_nonnull(strstr(text, "  --loud                            off  command line\n"));
    ck_assert_ptr_null(strstr(text, "--hidden"));
    free(text);
    static char wrong_word[] = "--limt";
    char *const words[] = {wrong_word, NULL};
    ck_assert(!ml_option_table_explain(&of_files, words, stdout, &error));
    ck_assert_ptr_nonnull(strstr(error.text, "did you mean '--limit'?"));
    ml_option_defaults(NULL, 0);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("option_table");
    tcase_add_test(tcase, stores_each_kind_where_the_table_says);
    tcase_add_test(tcase, what_was_not_given_stays_as_it_was);
    tcase_add_test(tcase, operands_are_files_processes_or_a_command);
    tcase_add_test(tcase, help_ends_the_reading);
    tcase_add_loop_test(
        tcase,
        what_is_wrong_is_named_with_what_is_accepted,
        0,
        (int)(sizeof(wrong) / sizeof(wrong[0]))
    );
    tcase_add_test(tcase, an_empty_word_is_no_program);
    tcase_add_test(tcase, help_is_made_of_the_table);
    tcase_add_test(tcase, a_dump_of_the_table_is_one_line_of_json);
    tcase_add_test(tcase, what_stands_in_a_file_comes_before_the_words);
    tcase_add_test(tcase, a_flag_is_taken_back_by_its_negative_form);
    tcase_add_test(tcase, a_flag_that_says_no_is_taken_back_without_it);
    tcase_add_test(tcase, what_is_wrong_in_a_file_is_named_with_its_line);
    tcase_add_test(tcase, each_option_is_told_with_where_its_value_comes_from);
    return run_suite("base/option_table", tcase);
}
