#include "host/fleet/options.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"

enum {
    LEAST_EVERY_S = 10,
    MOST_EVERY_S = 30 * 86400,
    EVERY_S = 3600,
    DAY_MS = 86400000,
    OPERANDS_MOST = ML_FLEET_WORDS
};

const char *const ml_fleet_questions[ML_FLEET_QUESTIONS + 1] = {
    "programs", "builds", "top", "flame", "diff", "hosts", "reports", "report", "watch", NULL};
const char *const ml_fleet_metrics[4] = {"live", "peak", "total", NULL};

/* http:// or https://, a host, and nothing that is no part of an address. */
static bool is_url(const char *value, struct ml_error_message *why) {
    const char *rest = strncmp(value, "http://", 7) == 0    ? value + 7
                       : strncmp(value, "https://", 8) == 0 ? value + 8
                                                            : NULL;
    if (rest == NULL || rest[0] == '\0' || rest[0] == '/') {
        ml_error_set(why, "http://HOST:PORT or https://HOST:PORT");
        return false;
    }
    for (const char *at = value; *at != '\0'; at++) {
        if (!isgraph((unsigned char)*at)) {
            ml_error_set(why, "an address without blanks and control characters");
            return false;
        }
    }
    if (rest[strcspn(rest, "/@")] == '@') {
        ml_error_set(why, "an address without name and password; a token comes out of a file");
        return false;
    }
    return true;
}

static bool read_at(void *to, const char *value, struct ml_error_message *why) {
    struct ml_fleet_options *options = to;
    size_t count = strlen(value);
    if (!is_url(value, why)) {
        return false;
    }
    while (count > 0 && value[count - 1] == '/') {
        count--;
    }
    if (strpbrk(value, "?#") != NULL || count >= sizeof(options->at_text)) {
        ml_error_set(why, "the address alone, http://HOST:PORT or https://HOST:PORT");
        return false;
    }
    memcpy(options->at_text, value, count);
    options->at_text[count] = '\0';
    options->at = options->at_text;
    return true;
}

static bool read_webhook(void *to, const char *value, struct ml_error_message *why) {
    ((struct ml_fleet_options *)to)->webhook = value;
    return is_url(value, why);
}

static bool read_listen(void *to, const char *value, struct ml_error_message *why) {
    return ml_page_place_parse(value, &((struct ml_fleet_options *)to)->listen, why) == ML_OK;
}

static bool read_stack(void *to, const char *value, struct ml_error_message *why) {
    ((struct ml_fleet_options *)to)->stack = value;
    if (value[0] == '\0' || strspn(value, "0123456789") != strlen(value)) {
        ml_error_set(why, "the number of a stack, as top and diff tell it");
        return false;
    }
    return true;
}

#define TO_TEXT(member) ML_TEXT_TO(struct ml_fleet_options, member)
#define TO_PATH(member) ML_PATH_TO(struct ml_fleet_options, member)
#define TO_FLAG(member) ML_FLAG_TO(struct ml_fleet_options, member)

static const struct ml_option options_list[] = {
    {.name = "--at",
     ML_READ_BY(read_at),
     .value = "URL",
     .group = "Where to ask",
     .help = "the collector (http://127.0.0.1:8765)"},
    {.name = "--token-file",
     TO_PATH(token_file),
     .value = "FILE",
     .help = "a token that may read: in its first line, or a collector's own file of them"},
    {.name = "--ca",
     TO_PATH(ca),
     .value = "FILE",
     .help = "who has signed the collector's certificate, PEM (the system's authorities)"},
    {.name = "--program",
     TO_TEXT(program),
     .value = "NAME",
     .group = "What to ask about",
     .help = "that program"},
    {.name = "--build",
     TO_TEXT(build),
     .value = "BUILD",
     .help = "that build: its id, the beginning of it, or its version; none: without an id"},
    {.name = "--other", TO_TEXT(other), .value = "BUILD", .help = "of diff: the build after it"},
    {.name = "--host",
     TO_TEXT(host),
     .value = "NAME",
     .help = "that machine's, where a question asks single dumps"},
    {.name = "--stack",
     ML_READ_BY(read_stack),
     .value = "NUMBER",
     .help = "of hosts and reports: those that have that stack of top, flame or diff"},
    {.name = "--metric",
     ML_OPTION_TO(ML_OPTION_WORD, unsigned, struct ml_fleet_options, metric),
     .words = ml_fleet_metrics,
     .help = "what counts: live (default), at the peak, or all that was allocated"},
    {.name = "--control", TO_FLAG(control), .help = "dumps by chance alone"},
    {.name = "--from",
     ML_TIME_TO(struct ml_fleet_options, from),
     .value = "TIME",
     .help = "from then on: 2026-11-21T10:02, 10:02, -2h; top and flame count whole weeks"},
    {.name = "--until",
     ML_TIME_TO(struct ml_fleet_options, until),
     .value = "TIME",
     .help = "up to then (now)"},
    {.name = "--limit",
     ML_COUNT_TO(struct ml_fleet_options, limit),
     .least = 1,
     .most = ML_FLEET_LIMIT_MOST,
     .value = "N",
     .help = "so many rows (30); of flame --json and --folded the largest functions (all)"},
    {.name = "--folded",
     TO_FLAG(folded),
     .group = "How to answer",
     .help = "of flame: a line for each stack, as flame graph tools read it"},
    {.name = "--json", TO_FLAG(json), .help = "the collector's answer, for programs"},
    {.name = "--every",
     ML_SECONDS_TO(struct ml_fleet_options, every_s),
     .least = LEAST_EVERY_S,
     .most = MOST_EVERY_S,
     .value = "TIME",
     .group = "How to watch",
     .help = "how often builds are compared (1h)"},
    {.name = "--once", TO_FLAG(once), .help = "compare once, and end: with 4 where a stack grew"},
    {.name = "--webhook",
     ML_READ_BY(read_webhook),
     .is_secret = true, /* many such services have no other secret than the address */
     .value = "URL",
     .help = "where each new finding is sent, as JSON"},
    {.name = "--webhook-token-file",
     TO_PATH(webhook_token_file),
     .value = "FILE",
     .help = "the token that is shown there, in its first line"},
    {.name = "--webhook-ca",
     TO_PATH(webhook_ca),
     .value = "FILE",
     .help = "who has signed its certificate, PEM"},
    {.name = "--state",
     TO_PATH(state),
     .value = "FILE",
     .help = "what was told already, and what is still to be sent (memlog-fleet-watch.json)"},
    {.name = "--listen",
     ML_READ_BY(read_listen),
     .value = "[ADDRESS:]PORT",
     .help = "where Prometheus finds /metrics"},
    {.name = "--remote", TO_FLAG(is_remote), .help = "other machines may reach it there"},
    {.name = "--quiet", .short_name = "-q", TO_FLAG(quiet), .help = "say nothing but errors"},
};

const struct ml_option_table ml_fleet_table = {
    .program = "memlog",
    .name = "fleet",
    .summary = "ask a collector what holds memory on many machines, and watch it",
    .usage = "QUESTION [PROGRAM [BUILD [OTHER]]] [OPTIONS]",
    .about = "Asks 'memlog collect'. A question is one of these:\n"
             "programs: all programs that reports came of.\n"
             "builds PROGRAM: its builds, the newest first.\n"
             "top [PROGRAM [BUILD]]: stacks that hold most.\n"
             "flame [PROGRAM [BUILD]]: the tree of all stacks.\n"
             "diff PROGRAM [BUILD OTHER]: stacks that grew and shrank between two builds, the "
             "newest two where none are said.\n"
             "hosts PROGRAM [BUILD]: machines, and which of them deviate; --stack=NUMBER has those "
             "of a stack.\n"
             "reports [PROGRAM [BUILD]]: single reports.\n"
             "report GUID: one of them, with its stacks.\n"
             "watch [PROGRAM]: compares each program's newest build with the one before, again and "
             "again, and tells what grew.",
    ML_OPTIONS(options_list),
    .operands = ML_OPERANDS_FILES,
    .operands_offset = offsetof(struct ml_fleet_options, words),
    .operands_least = 1,
    .operands_most = OPERANDS_MOST,
    .operands_missing = "say what to ask: programs, builds, top, flame, diff, hosts, reports, "
                        "report or watch",
    .notes = "Ends with 0, with 1 where the collector cannot be asked, with 3 where it has nothing "
             "of that name, and watch --once with 4 where a stack grew.",
    .example = "memlog fleet top python3 --token-file=fleet.db.tokens",
};

struct ml_fleet_options ml_fleet_options_default(void) {
    return (struct ml_fleet_options
    ){.at = "http://127.0.0.1:8765", .every_s = EVERY_S, .state = "memlog-fleet-watch.json"};
}

/* What each question understands besides --at, --token-file and --ca. */
static const struct {
    unsigned words_most; /* behind its name */
    const char *options;
} fits[ML_FLEET_QUESTIONS] = {
    [ML_FLEET_PROGRAMS] = {0, " --program --build --host --control --from --until --limit --json "},
    [ML_FLEET_BUILDS] = {1, " --program --build --host --control --from --until --limit --json "},
    [ML_FLEET_TOP] = {2, " --program --build --metric --control --from --until --limit --json "},
    [ML_FLEET_FLAME] =
        {2, " --program --build --metric --control --from --until --limit --folded --json "},
    [ML_FLEET_DIFF] =
        {3, " --program --build --other --host --metric --from --until --limit --json "},
    [ML_FLEET_HOSTS] =
        {2, " --program --build --host --stack --control --from --until --limit --json "},
    [ML_FLEET_REPORTS] =
        {2, " --program --build --host --stack --control --from --until --limit --json "},
    [ML_FLEET_REPORT] = {1, " --limit --json "},
    [ML_FLEET_WATCH] =
        {1,
         " --program --every --once --webhook --webhook-token-file --webhook-ca --state --listen "
         "--remote --quiet "},
};

static bool understands(enum ml_fleet_question question, const char *option) {
    static const char always[] = " --at --token-file --ca --quiet ";
    char word[64];
    (void)snprintf(word, sizeof(word), " %.60s ", option);
    return strstr(always, word) != NULL || strstr(fits[question].options, word) != NULL;
}

static bool read_question(struct ml_fleet_options *options, struct ml_error_message *error) {
    for (unsigned i = 0; i < ML_FLEET_QUESTIONS; i++) {
        if (strcmp(options->words[0], ml_fleet_questions[i]) == 0) {
            options->question = (enum ml_fleet_question)i;
            return true;
        }
    }
    const char *near = ml_suggest(options->words[0], ml_fleet_questions, ML_FLEET_QUESTIONS);
    if (near != NULL) {
        ml_error_set(error, "'%.64s' is no question; did you mean '%s'?", options->words[0], near);
    } else {
        ml_error_set(
            error,
            "'%.64s' is no question; they are programs, builds, top, flame, diff, hosts, reports, "
            "report and watch",
            options->words[0]
        );
    }
    return false;
}

/* A word that stands where an option could stand, too. */
static bool settle_word(
    const char *word, const char **option, const char *name, struct ml_error_message *error
) {
    if (word != NULL && *option != NULL && strcmp(word, *option) != 0) {
        ml_error_set(error, "'%.64s' and %s=%.64s say two different things", word, name, *option);
        return false;
    }
    *option = word != NULL ? word : *option;
    return true;
}

static bool settle_words(struct ml_fleet_options *options, struct ml_error_message *error) {
    const enum ml_fleet_question question = options->question;
    for (size_t i = fits[question].words_most + 1; i < ML_FLEET_WORDS; i++) {
        if (options->words[i] != NULL) {
            ml_error_set(
                error,
                "'%.64s' is one word too many for %s",
                options->words[i],
                ml_fleet_questions[question]
            );
            return false;
        }
    }
    if (question == ML_FLEET_REPORT) {
        options->guid = options->words[1];
        return true;
    }
    return settle_word(options->words[1], &options->program, "--program", error) &&
           settle_word(options->words[2], &options->build, "--build", error) &&
           settle_word(options->words[3], &options->other, "--other", error);
}

/* NULL: nothing is missing. */
static const char *missing(const struct ml_fleet_options *options) {
    switch (options->question) {
    case ML_FLEET_BUILDS:
    case ML_FLEET_DIFF:
        if (options->program == NULL) {
            return "say of which program: 'memlog fleet programs' lists them";
        }
        if (options->question == ML_FLEET_DIFF &&
            (options->build == NULL) != (options->other == NULL)) {
            return "say both builds, or neither for the newest two: 'memlog fleet builds' lists "
                   "them";
        }
        return NULL;
    case ML_FLEET_HOSTS:
        return options->program == NULL && options->stack == NULL
                   ? "say of which program, or of which stack: --stack=NUMBER"
                   : NULL;
    case ML_FLEET_REPORT:
        return options->guid == NULL ? "say which report: 'memlog fleet reports' lists them" : NULL;
    case ML_FLEET_WATCH:
        if (options->listen.kind != ML_PAGE_NONE && !ml_page_place_is_local(&options->listen) &&
            !options->is_remote) {
            return "other machines would reach /metrics there: say --remote, too";
        }
        return options->once && options->listen.kind != ML_PAGE_NONE
                   ? "--once ends before anybody could ask: without --listen"
                   : NULL;
    default:
        return options->json && options->folded ? "--json or --folded" : NULL;
    }
}

bool ml_fleet_options_settle(
    struct ml_fleet_options *options, uint64_t given, struct ml_error_message *error
) {
    if (!read_question(options, error)) {
        return false;
    }
    for (size_t i = 0; i < ml_fleet_table.options_count; i++) {
        const char *name = options_list[i].name;
        if (ml_option_given(&ml_fleet_table, given, name) &&
            !understands(options->question, name)) {
            ml_error_set(
                error, "%s says nothing to %s", name, ml_fleet_questions[options->question]
            );
            return false;
        }
    }
    if (options->from.from == ML_TIME_AFTER_START || options->until.from == ML_TIME_AFTER_START) {
        ml_error_set(error, "a time behind nothing: -2h is two hours ago");
        return false;
    }
    if (!settle_words(options, error)) {
        return false;
    }
    const char *wrong = missing(options);
    if (wrong != NULL) {
        ml_error_set(error, "%s", wrong);
    }
    return wrong == NULL;
}

uint64_t ml_fleet_time_ms(struct ml_time time, uint64_t now_ms) {
    const uint64_t midnight = now_ms - now_ms % DAY_MS;
    switch (time.from) {
    case ML_TIME_OF_1970:
        return time.ms;
    case ML_TIME_OF_DAY:
        return midnight + time.ms <= now_ms ? midnight + time.ms : midnight + time.ms - DAY_MS;
    case ML_TIME_BEFORE_END:
        return time.ms < now_ms ? now_ms - time.ms : 1;
    case ML_TIME_NONE:
    case ML_TIME_AFTER_START:
        break;
    }
    return 0;
}
