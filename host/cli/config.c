#include "host/cli/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/printable.h"
#include "host/cli/commands.h"
#include "host/cli/run.h"
#include "host/cli/subcommand.h"
#include "host/policy/config_file.h"
#include "host/policy/options.h"
#include "host/process/launcher.h"
#include "host/process/log.h"
#include "host/process/paths.h"

/* What else memlog-analyzer and memlog ask the environment for. */
static const char *const other_keys[] = {
    "PERFETTO_PROGUARD_MAP",
    "DEBUGINFOD_URLS",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
    "PAGER",
    "NO_COLOR",
    "CLICOLOR_FORCE",
    "COLUMNS"};
enum { OTHER_KEYS = sizeof(other_keys) / sizeof(other_keys[0]) };

/* Read once; the options of the command borrow from it. */
static struct ml_config config;
static struct ml_option_default defaults[ML_OPTION_DEFAULTS_MAX];
static size_t defaults_count;
static bool is_skipped;

void ml_config_skip(void) {
    is_skipped = true;
}

static bool is_command(const char *name) {
    const struct ml_subcommand *command = ml_subcommand_find(name);
    return command != NULL &&
           (command->kind != ML_SUBCOMMAND_HELP && command->kind != ML_SUBCOMMAND_VERSION);
}

static bool load(void) {
    struct ml_error_message error = {.text = ""};
    if (!ml_config_load(&config, is_command, &error)) {
        ml_say_error("%s", error.text);
        return false;
    }
    return true;
}

bool ml_config_apply(const char *command) {
    if (is_skipped || !is_command(command)) {
        return true;
    }
    if (!load()) {
        return false;
    }
    if (config.is_refused) {
        ml_say_error("%s is not read: %s", config.path, config.unread);
    }
    defaults_count = ml_config_of(&config, command, defaults);
    ml_option_defaults(defaults, defaults_count);
    return true;
}

int ml_config_become(const char *file, char *const *argv) {
    static char option[] = "--default";
    struct ml_error_message error = {.text = ""};
    char path[PATH_MAX];
    size_t words = 0;
    if (ml_paths_find(file, path, &error) != ML_OK) {
        ml_say_error("%s", error.text);
        return ML_EXIT_FAILED;
    }
    while (argv[words] != NULL) {
        words++;
    }
    char **all = calloc(words + 3 * defaults_count + 1, sizeof(*all));
    if (all == NULL) {
        ml_say_error("no memory");
        return ML_EXIT_FAILED;
    }
    size_t at = 0;
    all[at++] = argv[0];
    for (size_t i = 0; i < defaults_count; i++) {
        all[at++] = option;
        all[at++] = (char *)(uintptr_t)defaults[i].origin; /* exec changes none of them */
        all[at++] = (char *)(uintptr_t)defaults[i].word;
    }
    memcpy(all + at, argv + 1, (words - 1) * sizeof(*all));
    ml_launcher_forget_loader(environ);
    (void)execv(path, all);
    ml_say_error("%s: cannot be run", path);
    free(all);
    return ML_EXIT_FAILED;
}

int ml_config_become_analyzer(char *const *argv) {
    return ml_config_become(ML_ANALYZER_FILE, argv);
}

struct arguments {
    char *const *command;
};

const struct ml_option_table ml_config_table = {
    .program = "memlog",
    .name = "config",
    .summary = "which defaults are in force, and where they come from",
    .usage = "[COMMAND [OPTIONS]]",
    .about =
        "Shows what ~/.config/memlog/config says, or $XDG_CONFIG_HOME/memlog/config, and which "
        "keys of the environment count. With a command it shows each of its options: as the "
        "command line has it, the file, or neither.",
    .operands = ML_OPERANDS_COMMAND,
    .operands_offset = offsetof(struct arguments, command),
    .notes = "The file has sections of commands, [run] or [run attach], and in them long options "
             "without dashes: memlog-sampling-rate = 64K. What the command line says wins, "
             "and --no-FLAG takes a flag back. Lines that begin with # are comments. A broken line "
             "ends the command. 'memlog --no-config "
             "COMMAND' does without the file, and so does root where it is another user's.",
    .example = "memlog config run --no-page",
};

static void show_file(void) {
    (void)fputs("file  ", stdout);
    ml_printable_put_text(stdout, config.path[0] != '\0' ? config.path : "(none)");
    (void)printf(
        "%s%s\n",
        config.unread != NULL ? ": not read, " : "",
        config.unread != NULL ? config.unread : ""
    );
    for (size_t i = 0; i < config.count; i++) {
        (void)printf("  [%s] ", config.lines[i].sections);
        ml_printable_put_text(stdout, config.lines[i].word);
        (void)fputs("  ", stdout);
        ml_printable_put_text(stdout, config.lines[i].origin);
        (void)putchar('\n');
    }
}

static void show_keys(const char *const *keys, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const char *value = getenv(keys[i]);
        if (value != NULL) {
            (void)printf("  %s=", keys[i]);
            ml_printable_put_text(stdout, value);
            (void)putchar('\n');
        }
    }
}

static void show_environment(void) {
    (void)puts("environment");
    show_keys(ml_environment_keys, ML_ENVIRONMENT_KEYS);
    show_keys(other_keys, OTHER_KEYS);
}

/* Each option of a command. The exit code. */
static int show_command(char *const *words) {
    static char name[] = "memlog";
    static char option[] = "--explain";
    struct ml_error_message error = {.text = ""};
    const struct ml_subcommand *command = ml_subcommand_find(words[0]);
    if (!is_command(words[0])) {
        ml_say_error("'%s' is no command; 'memlog help' lists them", words[0]);
        return ML_EXIT_USAGE;
    }
    defaults_count = ml_config_of(&config, words[0], defaults);
    ml_option_defaults(defaults, defaults_count);
    if (command->kind != ML_SUBCOMMAND_ANALYZER) {
        return ml_option_table_explain(command->options, words + 1, stdout, &error)
                   ? 0
                   : ml_commands_wrong(&ml_config_table, error.text);
    }
    size_t count = 0;
    while (words[count] != NULL) {
        count++;
    }
    char **argv = calloc(count + 3, sizeof(*argv));
    if (argv == NULL || fflush(stdout) != 0) {
        free(argv);
        return ML_EXIT_FAILED;
    }
    argv[0] = name;
    argv[1] = option;
    memcpy(argv + 2, words, count * sizeof(*argv));
    const int exit_code = ml_config_become_analyzer(argv);
    free(argv);
    return exit_code;
}

int ml_command_config(char *const *words) {
    struct arguments arguments = {.command = NULL};
    int exit_code = 0;
    if (!ml_commands_read(&ml_config_table, words, &arguments, NULL, &exit_code)) {
        return exit_code;
    }
    if (is_skipped) {
        config.unread = "--no-config was said";
    } else if (!load()) {
        return ML_EXIT_USAGE;
    }
    if (arguments.command[0] != NULL) {
        return show_command(arguments.command);
    }
    show_file();
    show_environment();
    return 0;
}
