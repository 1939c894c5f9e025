/* memlog-analyzer: everything that reads dumps. Started by memlog for its sub-commands. Room:
 * tools. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/printable.h"
#include "base/suggest.h"
#include "base/watched.h"
#include "tools/analyzer/cli/command.h"
#include "tools/analyzer/helpers/watched.h"

static const struct ml_command *const commands[] = {
    &ml_command_report,
    &ml_command_convert,
    &ml_command_diff,
    &ml_command_check,
    &ml_command_flamegraph,
    &ml_command_symbolize,
    &ml_command_suspects,
    &ml_command_timeline,
    &ml_command_components,
    &ml_command_expand,
    &ml_command_list,
    &ml_command_entries,
    &ml_command_container_names,
    &ml_command_page_data,
    &ml_command_place_names,
    &ml_command_report_rows,
    &ml_command_upload,
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static void list_commands(FILE *out) {
    fputs("memlog-analyzer COMMAND [OPTIONS] DUMP: reads dumps; memlog starts it.\n\n", out);
    for (size_t i = 0; i < COMMANDS; i++) {
        fprintf(out, "  %-15s  %s\n", commands[i]->table.name, commands[i]->table.summary);
    }
    fputs("\nmemlog-analyzer COMMAND --help tells more.\n", out);
}

/* False: there are too many. */
static bool take_defaults(int *argc, char ***argv) {
    static struct ml_option_default defaults[ML_OPTION_DEFAULTS_MAX];
    size_t count = 0;

    if (*argc == 0) {
        return true;
    }
    char **words = ml_option_defaults_of(*argv + 1, defaults, &count);
    *argc -= (int)(words - (*argv + 1));
    *argv = words - 1;
    ml_option_defaults(defaults, count);
    return words[0] == NULL || strcmp(words[0], "--default") != 0;
}

/* For `memlog config`. */
static int explain(const struct ml_command *command, char *const *words) {
    struct ml_error_message error = {.text = ""};

    if (!ml_option_table_explain(&command->table, words, stdout, &error)) {
        return ml_command_fail(command, error.text);
    }
    return ml_command_finish(command);
}

int main(int argc, char **argv) {
    const char *names[COMMANDS];
    const char *nearest = NULL;

    if (argc > 1 && strcmp(argv[1], ML_WATCHED_WORD) == 0) {
        ml_watched_begin(ML_WATCHED_FD);
        argc--;
        argv++;
    }
    if (argc > 1 && strcmp(argv[1], "--bare") == 0) {
        ml_command_be_bare();
        argc--;
        argv++;
    }
    if (!take_defaults(&argc, &argv)) {
        fputs("memlog-analyzer: too many defaults\n", stderr);
        return ML_EXIT_USAGE;
    }
    const bool explains = argc > 1 && strcmp(argv[1], "--explain") == 0;
    argc -= explains;
    argv += explains;
    (void)umask(S_IRWXG | S_IRWXO); /* files with a profile are readable by their user only */
    if (argc < 2) {
        list_commands(stderr);
        return ML_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        list_commands(stdout);
        return ML_EXIT_OK;
    }
    for (size_t i = 0; strcmp(argv[1], "--dump-options") == 0 && i < COMMANDS; i++) {
        ml_option_table_dump(&commands[i]->table, stdout);
    }
    if (strcmp(argv[1], "--dump-options") == 0) {
        return ML_EXIT_OK;
    }
    for (size_t i = 0; i < COMMANDS; i++) {
        names[i] = commands[i]->table.name;
        if (strcmp(argv[1], names[i]) == 0 && explains) {
            return explain(commands[i], argv + 2);
        }
        if (strcmp(argv[1], names[i]) == 0) {
            const int exit_code = commands[i]->run(commands[i], argv + 2);
            ml_command_say_losses(commands[i]);
            return exit_code;
        }
    }
    nearest = ml_suggest(argv[1], names, COMMANDS);
    fputs("memlog-analyzer: unknown command '", stderr);
    ml_printable_put_text(stderr, argv[1]);
    fprintf(stderr, nearest ? "'; did you mean '%s'?" : "'", nearest);
    fputs("\nTry 'memlog-analyzer --help'.\n", stderr);
    return ML_EXIT_USAGE;
}
