#include <stdio.h>
#include <string.h>

#include "tools/command.h"
#include "tools/diff.h"
#include "tools/report.h"

static const char help[] =
    "memlog diff [--json] [--metric=METRIC] [--limit=N] FROM TO\n"
    "\n"
    "Tell what changed between two dumps, of one run or of two, also of two builds: stacks are\n"
    "told by their functions. What grew stands first.\n"
    "\n"
    "  --json           every stack with its figures in both, largest change first\n"
    "  --metric=METRIC  what the change is counted in: live (default), peak or total bytes\n"
    "  --limit=N        at most N stacks of each list (text: 5, JSON: all)\n"
    "\n"
    "Example: memlog diff 0001.manual.pftrace 0002.exit.pftrace\n";

static int
say(const struct ml_command *command,
    const struct ml_report sides[ML_DIFF_SIDES],
    enum ml_metric metric,
    bool json) {
    const struct ml_report_style style = ml_command_style();
    struct ml_diff diff;
    int exit_code = ML_EXIT_FAILED;

    if (ml_diff_init(&diff, sides[ML_DIFF_FROM].stacks, sides[ML_DIFF_TO].stacks) != ML_OK) {
        fprintf(stderr, "memlog %s: %s\n", command->name, ml_status_text(ML_ENV_MEMORY));
    } else {
        ml_report_diff_sort(&diff, metric);
        if (json) {
            ml_report_diff_json(sides, &diff, stdout);
        } else {
            ml_report_diff_text(sides, &diff, metric, &style, stdout);
        }
        exit_code = ml_command_finish(command);
    }
    ml_diff_fini(&diff);
    return exit_code;
}

static int run(const struct ml_command *command, int argc, char **argv) {
    const char *limit = NULL;
    const char *metric_text = NULL;
    const char *files[ML_DIFF_SIDES] = {NULL};
    bool json = false;
    bool go_on = false;
    unsigned long limit_number = 0;
    enum ml_metric metric = ML_METRIC_LIVE;
    const struct ml_option options[] = {
        {.name = "--json", .out_given = &json},
        {.name = "--limit", .out_value = &limit},
        {.name = "--metric", .out_value = &metric_text},
    };
    struct ml_loaded loaded[ML_DIFF_SIDES];
    int exit_code =
        ml_command_arguments(command, argc, argv, options, 3, files, ML_DIFF_SIDES, &go_on);

    if (go_on) {
        exit_code = ml_command_limit(command, limit, &limit_number);
    }
    if (go_on && exit_code == ML_EXIT_OK) {
        exit_code = ml_command_metric(command, metric_text, &metric);
    }
    if (!go_on || exit_code != ML_EXIT_OK) {
        return exit_code;
    }
    memset(loaded, 0, sizeof loaded); /* the second is not touched when the first cannot be read */
    exit_code = ML_EXIT_FAILED;
    if (ml_command_load(command, files[0], NULL, &loaded[0]) &&
        ml_command_load(command, files[1], NULL, &loaded[1])) {
        struct ml_report sides[ML_DIFF_SIDES];
        for (int i = 0; i < ML_DIFF_SIDES; i++) {
            sides[i] = (struct ml_report){
                .profile = &loaded[i].profile,
                .stacks = &loaded[i].stacks,
                .file_path = files[i],
                .limit = limit_number,
            };
        }
        exit_code = say(command, sides, metric, json);
    }
    ml_loaded_fini(&loaded[0]);
    ml_loaded_fini(&loaded[1]);
    return exit_code;
}

const struct ml_command ml_command_diff = {
    .name = "diff",
    .summary = "what changed between two dumps",
    .help = help,
    .run = run,
};
