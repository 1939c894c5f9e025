#include <stdio.h>
#include <unistd.h>

#include "tools/command.h"
#include "tools/flame.h"

static const char help[] =
    "memlog flamegraph [-o FILE.html] [--pid=PID] [--metric=METRIC] [--prune=BYTES] [--dump=N]\n"
    "                  [--ended=yes|no]\n"
    "                  [--focus=REGEX] [--ignore=REGEX] [--show=REGEX] [--hide=REGEX] DUMP\n"
    "\n"
    "Draw a dump as a flame graph: one HTML page that opens anywhere and asks nobody for "
    "anything.\n"
    "In it: every process or all, live, peak and total, bytes and blocks, search, zoom, inverted\n"
    "stacks. The address bar holds what is shown.\n"
    "\n"
    "  -o FILE          where to (default: stdout); --output=FILE likewise\n"
    "  --pid=PID        this process only\n"
    "  --metric=METRIC  what is shown first: live (default), peak or total\n"
    "  --prune=BYTES    leave out stacks that hold less; they become <other>, sums stay\n"
    "  --focus=REGEX    stacks alone in which a function, source file or module matches\n"
    "  --ignore=REGEX   no stack in which one matches\n"
    "  --show=REGEX     of each stack the frames alone that match\n"
    "  --hide=REGEX     of each stack the frames that do not match\n"
    "  --dump=N         of several dumps in one file (cat A B) the Nth (default: the last)\n"
    "  --ended=yes|no   count what ended processes left as live, or never (default: only where\n"
    "                   nothing runs any more)\n"
    "\n"
    "Shares in it are of what is drawn. Expressions are POSIX extended ones, as of grep -E.\n"
    "\n"
    "Example: memlog flamegraph -o heap.html memlog.sqlite3.1234/0001.exit.pftrace\n";

static int run(const struct ml_command *command, int argc, char **argv) {
    const char *output_path = NULL;
    const char *pid = NULL;
    const char *metric_text = NULL;
    const char *prune = NULL;
    const char *dump = NULL;
    const char *ended = NULL;
    struct ml_load load = {.keeps_own_live = true};
    const struct ml_option options[] = {
        {.name = "--output", .short_name = "-o", .out_value = &output_path},
        {.name = "--pid", .out_value = &pid},
        {.name = "--metric", .out_value = &metric_text},
        {.name = "--prune", .out_value = &prune},
        {.name = "--dump", .out_value = &dump},
        {.name = "--ended", .out_value = &ended},
        {.name = "--focus", .out_value = &load.sift.focus},
        {.name = "--ignore", .out_value = &load.sift.ignore},
        {.name = "--show", .out_value = &load.sift.show},
        {.name = "--hide", .out_value = &load.sift.hide},
    };
    enum ml_metric metric = ML_METRIC_LIVE;
    struct ml_loaded loaded;
    struct ml_output output;
    enum ml_status status = ML_OK;
    bool go_on = false;
    int exit_code = ml_command_arguments(command, argc, argv, options, 10, &load.path, 1, &go_on);

    if (go_on && !output_path && isatty(STDOUT_FILENO)) {
        return ml_command_complain(command, "a page is not for a terminal: say -o FILE.html");
    }
    if (go_on) {
        exit_code = ml_command_pid(command, pid, &load.pid);
    }
    if (go_on && exit_code == ML_EXIT_OK) {
        exit_code = ml_command_metric(command, metric_text, &metric);
    }
    if (go_on && exit_code == ML_EXIT_OK) {
        exit_code = ml_command_prune(command, prune, &load.prune_bytes);
    }
    if (go_on && exit_code == ML_EXIT_OK) {
        exit_code = ml_command_dump(command, dump, &load.dump);
    }
    if (go_on && exit_code == ML_EXIT_OK) {
        exit_code = ml_command_ended(command, ended, &load.ended);
    }
    if (go_on && exit_code == ML_EXIT_OK) {
        exit_code = ml_command_sift(command, &load.sift);
    }
    if (!go_on || exit_code != ML_EXIT_OK) {
        return exit_code;
    }
    load.output_path = output_path;
    exit_code = ml_command_load(command, &load, &loaded);
    if (exit_code == ML_EXIT_OK) {
        const struct ml_flame_side side = {
            .profile = &loaded.profile,
            .stacks = &loaded.stacks,
            .is_sifted = ml_sift_is_any(&load.sift),
        };
        status = ml_output_open(&output, output_path);
        if (status == ML_OK) {
            status = ml_output_close(&output, ml_flame_write(&side, NULL, metric, output.file));
        }
        exit_code = ml_command_written(command, output_path, status);
    }
    ml_loaded_fini(&loaded);
    return exit_code;
}

const struct ml_command ml_command_flamegraph = {
    .name = "flamegraph",
    .summary = "one HTML page with a flame graph",
    .help = help,
    .run = run,
};
