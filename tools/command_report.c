#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tools/command.h"
#include "tools/report.h"

/* Lines fit this when stdout is no terminal, and never grow beyond the maximum: nobody reads across
 * a whole wide screen. */
enum { WIDTH_DEFAULT = 100, WIDTH_MIN = 60, WIDTH_MAX = 120 };

static const char help[] =
    "memlog report [--json] [--summary] [--limit=N] DUMP\n"
    "\n"
    "Tell who allocated what: the whole process tree, each process, and the stacks that hold "
    "most.\n"
    "\n"
    "  --json      everything, for programs (the form is in the manual: one object, exact "
    "numbers)\n"
    "  --summary   a dozen lines, as at the end of a run\n"
    "  --limit=N   at most N stacks of each list (text: 5, JSON: all)\n"
    "\n"
    "live       allocated and not freed at the dump; of an ended process: at its end\n"
    "peak       what was live at the moment when the tree held most, not the sum of peaks\n"
    "allocated  everything ever allocated\n"
    "\n"
    "Example: memlog report --limit=20 memlog.sqlite3.1234/0001.exit.pftrace\n";

static bool is_set(const char *name) {
    const char *value = getenv(name);

    return value && value[0];
}

static struct ml_report_style style_of(int fd) {
    struct ml_report_style style = {.width = WIDTH_DEFAULT};
    const char *terminal = getenv("TERM");
    bool is_terminal = isatty(fd) && (!terminal || strcmp(terminal, "dumb") != 0);
    unsigned long columns = 0;
    struct winsize size;

    style.colour = (is_terminal || is_set("CLICOLOR_FORCE")) && !is_set("NO_COLOR");
    if (is_set("COLUMNS") && ml_number_read(getenv("COLUMNS"), UINT_MAX, &columns)) {
        style.width = (unsigned)columns;
    } else if (isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        style.width = size.ws_col;
    }
    style.width = style.width < WIDTH_MIN ? WIDTH_MIN : style.width;
    style.width = style.width > WIDTH_MAX ? WIDTH_MAX : style.width;
    return style;
}

static int run(const struct ml_command *command, int argc, char **argv) {
    const char *limit = NULL;
    const char *file = NULL;
    bool json = false;
    bool summary = false;
    bool go_on = false;
    unsigned long limit_number = 0;
    const struct ml_option options[] = {
        {.name = "--json", .out_given = &json},
        {.name = "--summary", .out_given = &summary},
        {.name = "--limit", .out_value = &limit},
    };
    struct ml_loaded loaded;
    int exit_code = ml_command_arguments(command, argc, argv, options, 3, &file, &go_on);

    if (!go_on) {
        return exit_code;
    }
    if (limit && (!ml_number_read(limit, UINT_MAX, &limit_number) || limit_number == 0)) {
        return ml_command_complain(command, "--limit wants a number from 1 on");
    }
    if (json && summary) {
        return ml_command_complain(command, "--json and --summary are two things: one of them");
    }
    exit_code = ML_EXIT_FAILED;
    if (ml_command_load(command, file, &loaded)) {
        const struct ml_report report = {
            .profile = &loaded.profile,
            .stacks = &loaded.stacks,
            .file_path = file,
            .limit = limit_number,
        };
        const struct ml_report_style style = style_of(STDOUT_FILENO);

        if (json) {
            ml_report_json(&report, stdout);
        } else if (summary) {
            ml_report_summary(&report, &style, stdout);
        } else {
            ml_report_text(&report, &style, stdout);
        }
        if (fflush(stdout) == 0 && !ferror(stdout)) {
            exit_code = ML_EXIT_OK;
        } else {
            fprintf(stderr, "memlog %s: stdout cannot be written\n", command->name);
        }
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
