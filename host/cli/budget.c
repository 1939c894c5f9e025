#include "host/cli/budget.h"

#include <stdio.h>

#include "host/cli/analyzer.h"
#include "host/cli/run.h"
#include "host/process/log.h"

/* tools/analyzer/cli/command.h */
enum { EXIT_BROKEN = 3, EXIT_UNSURE = 4 };

enum { WORD_BYTES = 4200 };

/* Hold `what` (a dump, or an option) against the budget, and return the analyzer's exit code. */
static int
ask(const struct ml_options *options,
    const struct ml_inherited *inherited,
    const char *what,
    bool quiet) {
    char budget[WORD_BYTES];
    char base[WORD_BYTES];
    char suppressions[WORD_BYTES];
    const char *words[6] = {"check", budget, what};
    size_t count = 3;
    (void)snprintf(budget, sizeof(budget), "--budget=%s", options->budget);
    if (options->budget_base != NULL) {
        (void)snprintf(base, sizeof(base), "--base=%s", options->budget_base);
        words[count++] = base;
    }
    if (options->budget_suppressions != NULL) {
        (void)snprintf(
            suppressions, sizeof(suppressions), "--suppressions=%s", options->budget_suppressions
        );
        words[count++] = suppressions;
    }
    return ml_analyzer_run(inherited, words, quiet);
}

bool ml_budget_is_good(const struct ml_options *options) {
    return options->budget == NULL || ask(options, NULL, "--validate", false) == 0;
}

int ml_budget_exit_code(
    const struct ml_options *options, const struct ml_inherited *inherited, const char *dump_path
) {
    if (options->budget == NULL) {
        return 0;
    }
    if (dump_path[0] == '\0') {
        ml_say_error("there is no dump to hold against %s", options->budget);
        return ML_EXIT_FAILED;
    }
    const int code = ask(options, inherited, dump_path, options->quiet);
    return code == 0 || code == EXIT_BROKEN || code == EXIT_UNSURE ? code : ML_EXIT_FAILED;
}
