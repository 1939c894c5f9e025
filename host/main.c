/* The program `memlog`: finds the sub-command and hands over. Room: host. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/cli/analyzer.h"
#include "host/cli/attach.h"
#include "host/cli/commands.h"
#include "host/cli/config.h"
#include "host/terminal/pager.h"
#include "host/cli/run.h"
#include "host/cli/subcommand.h"
#include "host/cli/version.h"
#include "host/policy/options.h"
#include "host/process/log.h"
#include "host/process/paths.h"

static int usage_error(const char *text) {
    ml_say_error("%s", text);
    return ML_EXIT_USAGE;
}

static bool asks_for_help(char *const *arguments) {
    return arguments[0] != NULL &&
           (strcmp(arguments[0], "--help") == 0 || strcmp(arguments[0], "-h") == 0);
}

/* `memlog upload --dry-run DUMP` reads a dump and speaks to no host. */
static bool asks_for_dry_run(char *const *arguments) {
    for (size_t i = 0; arguments[i] != NULL; i++) {
        if (strcmp(arguments[i], "--dry-run") == 0) {
            return true;
        }
    }
    return false;
}

/* `memlog run` or `memlog attach`. */
static int do_run(bool attaches, char *const *arguments) {
    const struct ml_option_table *table = attaches ? &ml_attach_table : &ml_run_table;
    struct ml_error_message error = {.text = ""};
    struct ml_options options;
    if (ml_options_init(&options) != ML_OK) {
        return usage_error("no memory");
    }
    int exit_code = 0;
    const enum ml_status status = attaches ? ml_options_parse_attach(&options, arguments, &error)
                                           : ml_options_parse(&options, arguments, &error);
    if (status != ML_OK) {
        exit_code = ml_commands_wrong(table, error.text);
    } else if (options.help) {
        ml_option_table_help(table, stdout);
    } else if (ml_options_check_environment(environ, &error) != ML_OK) {
        exit_code = usage_error(error.text);
    } else {
        exit_code = attaches ? ml_attach(&options) : ml_run(&options, environ);
    }
    ml_options_fini(&options);
    return exit_code;
}

static int unknown_command(const char *name) {
    const char *near = ml_subcommand_suggest(name);
    if (near != NULL) {
        ml_say_error("unknown command '%s'; did you mean '%s'?", name, near);
    } else {
        ml_say_error("unknown command '%s'; 'memlog help' lists them", name);
    }
    return ML_EXIT_USAGE;
}

static int do_help(char **argv) {
    const char *name = argv[1];
    if (name == NULL || asks_for_help(argv + 1)) {
        ml_subcommand_overview(stdout);
        return 0;
    }
    static char help[] = "--help";
    static char dump_options[] = "--dump-options";
    if (strcmp(name, dump_options) == 0) {
        char *analyzer_argv[] = {argv[0], dump_options, NULL};
        ml_subcommand_dump(stdout);
        return fflush(stdout) == 0 ? ml_config_become_analyzer(analyzer_argv) : ML_EXIT_FAILED;
    }
    const struct ml_subcommand *command = ml_subcommand_find(name);
    if (command == NULL) {
        return unknown_command(name);
    }
    if (command->kind == ML_SUBCOMMAND_ANALYZER) {
        char *analyzer_argv[] = {argv[0], argv[1], help, NULL};
        return ml_config_become_analyzer(analyzer_argv);
    }
    if (command->options != NULL) {
        ml_option_table_help(command->options, stdout);
    }
    return 0;
}

/* `memlog collect`: a package of its own has the program. */
static int do_collect(const struct ml_option_table *table, char **argv) {
    struct ml_error_message error = {.text = ""};
    char path[PATH_MAX];
    if (ml_paths_find(ML_COLLECT_FILE, path, &error) != ML_ENV_MISSING) {
        return ml_config_become(ML_COLLECT_FILE, argv);
    }
    if (asks_for_help(argv + 2)) {
        ml_option_table_help(table, stdout);
        return 0;
    }
    ml_say_error("%s; Debian's package memlog-collect has it", error.text);
    return ML_EXIT_FAILED;
}

static int do_command(int argc, char **argv) {
    if (argc < 2) {
        ml_subcommand_overview(stderr);
        return ML_EXIT_USAGE;
    }
    const struct ml_subcommand *command = ml_subcommand_find(argv[1]);
    if (command == NULL) {
        return unknown_command(argv[1]);
    }
    const bool is_config = command->options == &ml_config_table; /* it reads the file itself */
    const bool is_dry = strcmp(argv[1], "upload") == 0 && asks_for_dry_run(argv + 2);
    if (!is_config && !is_dry && !ml_config_apply(argv[1])) {
        return ML_EXIT_USAGE;
    }
    if (is_dry) {
        return ml_config_become_analyzer(argv);
    }
    switch (command->kind) {
    case ML_SUBCOMMAND_RUN:
        return do_run(false, argv + 2);
    case ML_SUBCOMMAND_ATTACH:
        return do_run(true, argv + 2);
    case ML_SUBCOMMAND_ANALYZER: {
        if (!ml_analyzer_dump_process(argv + 1)) {
            return ML_EXIT_FAILED;
        }
        const int paged = ml_pager_start(argv + 1);
        return paged >= 0 ? paged : ml_config_become_analyzer(argv);
    }
    case ML_SUBCOMMAND_COLLECT:
        return do_collect(command->options, argv);
    case ML_SUBCOMMAND_FLEET:
        return ml_config_become(ML_FLEET_FILE, argv);
    case ML_SUBCOMMAND_HELP:
        return do_help(argv + 1);
    case ML_SUBCOMMAND_VERSION:
        ml_version_say(stdout);
        return 0;
    case ML_SUBCOMMAND_HOST:
        return command->run(argv + 2);
    }
    abort(); /* every kind is above */
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "--no-config") == 0) {
        ml_config_skip();
        argv[1] = argv[0];
        argc--;
        argv++;
    }
    const int exit_code = do_command(argc, argv);
    if (fflush(stdout) != 0 || ferror(stdout) != 0) { /* ours alone: `run` writes nothing to it */
        ml_say_error("stdout cannot be written");
        return exit_code != 0 ? exit_code : ML_EXIT_FAILED;
    }
    return exit_code;
}
