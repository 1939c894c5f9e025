#include <stdio.h>

#include "tools/command.h"
#include "tools/report.h"

static const char help[] =
    "memlog report [--json] [--summary] [--limit=N] [--pid=PID] [--dump=N] DUMP\n"
    "\n"
    "Tell who allocated what: the whole process tree, each process, and the stacks that hold "
    "most.\n"
    "\n"
    "  --json      everything, for programs (the form is in the manual: one object, exact "
    "numbers)\n"
    "  --summary   a dozen lines, as at the end of a run\n"
    "  --limit=N   at most N stacks of each list (text: 5, JSON: all)\n"
    "  --pid=PID   this process alone, as if it were the tree\n"
    "  --dump=N    of several dumps in one file (cat A B) the Nth (default: the last)\n"
    "\n"
    "live       allocated and not freed at the dump; of an ended process: at its end\n"
    "peak       what was live at the moment when the tree held most, not the sum of peaks\n"
    "allocated  everything ever allocated\n"
    "\n"
    "Example: memlog report --limit=20 memlog.sqlite3.1234/0001.exit.pftrace\n";

static int run(const struct ml_command *command, int argc, char **argv) {
    const char *limit = NULL;
    const char *pid_text = NULL;
    const char *dump = NULL;
    const char *file = NULL;
    bool json = false;
    bool summary = false;
    bool go_on = false;
    unsigned long limit_number = 0;
    const struct ml_option options[] = {
        {.name = "--json", .out_given = &json},
        {.name = "--summary", .out_given = &summary},
        {.name = "--limit", .out_value = &limit},
        {.name = "--pid", .out_value = &pid_text},
        {.name = "--dump", .out_value = &dump},
    };
    struct ml_load load = {0};
    struct ml_loaded loaded;
    int exit_code = ml_command_arguments(command, argc, argv, options, 5, &file, 1, &go_on);

    if (!go_on) {
        return exit_code;
    }
    exit_code = ml_command_limit(command, limit, &limit_number);
    if (exit_code == ML_EXIT_OK) {
        exit_code = ml_command_pid(command, pid_text, &load.pid);
    }
    if (exit_code == ML_EXIT_OK) {
        exit_code = ml_command_dump(command, dump, &load.dump);
    }
    if (exit_code != ML_EXIT_OK) {
        return exit_code;
    }
    if (json && summary) {
        return ml_command_complain(command, "--json and --summary are two things: one of them");
    }
    load.path = file;
    exit_code = ML_EXIT_FAILED;
    if (ml_command_load(command, &load, &loaded)) {
        const struct ml_report report = {
            .profile = &loaded.profile,
            .stacks = &loaded.stacks,
            .file_path = file,
            .limit = limit_number,
        };
        const struct ml_report_style style = ml_command_style();

        if (json) {
            ml_report_json(&report, stdout);
        } else if (summary) {
            ml_report_summary(&report, &style, stdout);
        } else {
            ml_report_text(&report, &style, stdout);
        }
        exit_code = ml_command_finish(command);
    }
    ml_loaded_fini(&loaded);
    return exit_code;
}

const struct ml_command ml_command_report = {
    .name = "report",
    .summary = "who allocated what, as text or JSON",
    .help = help,
    .run = run,
};
