#include "host/cli/subcommand.h"

#include <string.h>

#include "base/suggest.h"
#include "host/cli/commands.h"
#include "host/cli/config.h"
#include "host/collect/options.h"
#include "host/fleet/options.h"
#include "host/policy/options.h"

static const struct ml_option_table help_table = {
    .program = "memlog",
    .name = "help",
    .summary = "this list, or the help of one command",
    .usage = "[COMMAND]",
    .example = "memlog help run",
};

#define OF_HOST(table, run_)                                                                       \
    { .kind = ML_SUBCOMMAND_HOST, .options = &(table), .run = (run_) }
#define OF_ANALYZER(name_, summary_)                                                               \
    { .name = (name_), .kind = ML_SUBCOMMAND_ANALYZER, .summary = (summary_) }

static const struct ml_subcommand subcommands[] = {
    {.kind = ML_SUBCOMMAND_RUN, .options = &ml_run_table},
    {.kind = ML_SUBCOMMAND_ATTACH, .options = &ml_attach_table},
    OF_HOST(ml_ps_table, ml_command_ps),
    OF_HOST(ml_top_table, ml_command_top),
    OF_HOST(ml_dump_table, ml_command_dump),
    OF_HOST(ml_start_table, ml_command_start),
    OF_HOST(ml_stop_table, ml_command_stop),
    OF_HOST(ml_rate_table, ml_command_rate),
    OF_ANALYZER("report", "who holds which memory, as text or JSON"),
    OF_ANALYZER("convert", "turn a dump into another format"),
    OF_ANALYZER("diff", "what changed between two dumps"),
    OF_ANALYZER("check", "hold dumps against a budget, for build servers"),
    OF_ANALYZER("flamegraph", "one HTML page with a flame graph"),
    OF_ANALYZER("symbolize", "add function names to a dump"),
    OF_ANALYZER("suspects", "which functions' memory grows steadily, as leaks do"),
    OF_ANALYZER("timeline", "what was live when, and what grew"),
    OF_ANALYZER("components", "what all of a process's memory is made of"),
    OF_ANALYZER("expand", "whose stacks hold a component"),
    OF_ANALYZER("list", "all of a process's memory, row by row"),
    OF_HOST(ml_upload_table, ml_command_upload),
    OF_HOST(ml_page_table, ml_command_page),
    {.kind = ML_SUBCOMMAND_COLLECT, .options = &ml_collect_table},
    {.kind = ML_SUBCOMMAND_FLEET, .options = &ml_fleet_table},
    OF_HOST(ml_env_table, ml_command_env),
    OF_HOST(ml_doctor_table, ml_command_doctor),
    OF_HOST(ml_config_table, ml_command_config),
    {.kind = ML_SUBCOMMAND_HELP, .options = &help_table},
    {.name = "--help", .kind = ML_SUBCOMMAND_HELP},
    {.name = "-h", .kind = ML_SUBCOMMAND_HELP},
    {.name = "--version", .kind = ML_SUBCOMMAND_VERSION},
    {.name = "version", .kind = ML_SUBCOMMAND_VERSION},
};
enum { SUBCOMMANDS_COUNT = sizeof(subcommands) / sizeof(subcommands[0]) };

static const char *name_of(const struct ml_subcommand *command) {
    return command->options != NULL ? command->options->name : command->name;
}

const struct ml_subcommand *ml_subcommand_find(const char *name) {
    for (size_t i = 0; i < SUBCOMMANDS_COUNT; i++) {
        if (strcmp(name, name_of(&subcommands[i])) == 0) {
            return &subcommands[i];
        }
    }
    return NULL;
}

/* What other tools call it, and what is near to a command that does something else. */
static const char *other_word(const char *name) {
    static const char *const words[][2] = {
        {"record", "run"},       {"profile", "run"},       {"exec", "run"},
        {"start-run", "run"},    {"show", "report"},       {"print", "report"},
        {"analyze", "report"},   {"summary", "report"},    {"leaks", "suspects"},
        {"stacks", "report"},    {"view", "page"},         {"ui", "page"},
        {"web", "page"},         {"serve", "page"},        {"flame", "flamegraph"},
        {"graph", "flamegraph"}, {"svg", "flamegraph"},    {"compare", "diff"},
        {"export", "convert"},   {"snapshot", "dump"},     {"list-processes", "ps"},
        {"live", "top"},         {"detach", "stop"},       {"budget", "check"},
        {"history", "timeline"}, {"memory", "components"}, {"options", "config"},
        {"receive", "collect"},  {"collector", "collect"}};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(name, words[i][0]) == 0) {
            return words[i][1];
        }
    }
    return NULL;
}

const char *ml_subcommand_suggest(const char *name) {
    const char *known = other_word(name);
    if (known != NULL) {
        return known;
    }
    const char *names[SUBCOMMANDS_COUNT];
    for (size_t i = 0; i < SUBCOMMANDS_COUNT; i++) {
        names[i] = name_of(&subcommands[i]);
    }
    return ml_suggest(name, names, SUBCOMMANDS_COUNT);
}

void ml_subcommand_overview(FILE *out) {
    (void)fputs(
        "memlog shows who holds which memory, over whole process trees.\n"
        "\n"
        "Usage: memlog COMMAND [OPTIONS]\n"
        "\n",
        out
    );
    for (size_t i = 0; i < SUBCOMMANDS_COUNT; i++) {
        const struct ml_subcommand *command = &subcommands[i];
        const char *summary =
            command->options != NULL ? command->options->summary : command->summary;
        if (summary != NULL) {
            (void)fprintf(out, "  %-11s %s\n", name_of(command), summary);
        }
    }
    (void)fputs(
        "\n"
        "'memlog COMMAND --help' explains one command; 'memlog --version' names it.\n"
        "'memlog --no-config COMMAND' does without the defaults of ~/.config/memlog/config.\n"
        "\n"
        "Example:\n"
        "  memlog run -- python3 program.py\n",
        out
    );
}

void ml_subcommand_dump(FILE *out) {
    for (size_t i = 0; i < SUBCOMMANDS_COUNT; i++) {
        if (subcommands[i].options != NULL) {
            ml_option_table_dump(subcommands[i].options, out);
        }
    }
}
