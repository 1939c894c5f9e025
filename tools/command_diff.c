#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/command.h"
#include "tools/diff.h"
#include "tools/flame.h"
#include "tools/report.h"

static const char help[] =
    "memlog diff [--json|--html] [-o FILE] [--metric=METRIC] [--limit=N] FROM TO\n"
    "\n"
    "Tell what changed between two dumps, of one run or of two, also of two builds: stacks are\n"
    "told by their functions. What grew stands first.\n"
    "\n"
    "  --json           every stack with its figures in both, largest change first\n"
    "  --html           a flame graph: what grew is orange, what shrank blue; processes are "
    "paired\n"
    "                   by pid and name, else by role and command line\n"
    "  -o FILE          where to (default: stdout)\n"
    "  --metric=METRIC  what the change is counted in: live (default), peak or total bytes\n"
    "  --limit=N        at most N stacks of each list (text: 5, JSON: all)\n"
    "\n"
    "Example: memlog diff --html -o grown.html 0001.manual.pftrace 0002.exit.pftrace\n";

enum form { FORM_TEXT, FORM_JSON, FORM_HTML };

struct request {
    enum form form;
    enum ml_metric metric;
    const char *output;
};

static enum ml_status
write_rows(const struct request *request, const struct ml_report sides[ML_DIFF_SIDES], FILE *out) {
    const struct ml_report_style style = ml_command_style();
    struct ml_diff diff;
    enum ml_status status =
        ml_diff_init(&diff, sides[ML_DIFF_FROM].stacks, sides[ML_DIFF_TO].stacks);

    if (status == ML_OK) {
        ml_report_diff_sort(&diff, request->metric);
        if (request->form == FORM_JSON) {
            ml_report_diff_json(sides, &diff, out);
        } else {
            ml_report_diff_text(sides, &diff, request->metric, &style, out);
        }
    }
    ml_diff_fini(&diff);
    return status;
}

static enum ml_status
write_page(const struct request *request, const struct ml_report sides[ML_DIFF_SIDES], FILE *out) {
    struct ml_flame_side flames[ML_DIFF_SIDES];

    for (int i = 0; i < ML_DIFF_SIDES; i++) {
        flames[i] = (struct ml_flame_side){.profile = sides[i].profile, .stacks = sides[i].stacks};
    }
    return ml_flame_write(&flames[ML_DIFF_TO], &flames[ML_DIFF_FROM], request->metric, out);
}

static int
say(const struct ml_command *command,
    const struct request *request,
    const struct ml_report sides[ML_DIFF_SIDES]) {
    struct ml_output output;
    enum ml_status status = ml_output_open(&output, request->output);

    if (status == ML_OK) {
        status = request->form == FORM_HTML ? write_page(request, sides, output.file)
                                            : write_rows(request, sides, output.file);
        status = ml_output_close(&output, status);
    }
    return ml_command_written(command, request->output, status);
}

static int run(const struct ml_command *command, int argc, char **argv) {
    const char *limit = NULL;
    const char *metric_text = NULL;
    const char *files[ML_DIFF_SIDES] = {NULL};
    bool json = false;
    bool html = false;
    bool go_on = false;
    unsigned long limit_number = 0;
    struct request request = {.form = FORM_TEXT};
    const struct ml_option options[] = {
        {.name = "--json", .out_given = &json},
        {.name = "--html", .out_given = &html},
        {.name = "--output", .short_name = "-o", .out_value = &request.output},
        {.name = "--limit", .out_value = &limit},
        {.name = "--metric", .out_value = &metric_text},
    };
    struct ml_loaded loaded[ML_DIFF_SIDES];
    int exit_code =
        ml_command_arguments(command, argc, argv, options, 5, files, ML_DIFF_SIDES, &go_on);

    if (go_on) {
        exit_code = ml_command_limit(command, limit, &limit_number);
    }
    if (go_on && exit_code == ML_EXIT_OK) {
        exit_code = ml_command_metric(command, metric_text, &request.metric);
    }
    if (!go_on || exit_code != ML_EXIT_OK) {
        return exit_code;
    }
    if (json && html) {
        return ml_command_complain(command, "--json and --html are two things: one of them");
    }
    if (json || html) {
        request.form = json ? FORM_JSON : FORM_HTML;
    }
    if (html && !request.output && isatty(STDOUT_FILENO)) {
        return ml_command_complain(command, "a page is not for a terminal: say -o FILE.html");
    }
    memset(loaded, 0, sizeof loaded); /* the second is not touched when the first cannot be read */
    exit_code = ML_EXIT_FAILED;
    if (ml_command_load(
            command, &(struct ml_load){.path = files[0], .output_path = request.output}, &loaded[0]
        ) &&
        ml_command_load(
            command, &(struct ml_load){.path = files[1], .output_path = request.output}, &loaded[1]
        )) {
        struct ml_report sides[ML_DIFF_SIDES];
        for (int i = 0; i < ML_DIFF_SIDES; i++) {
            sides[i] = (struct ml_report){
                .profile = &loaded[i].profile,
                .stacks = &loaded[i].stacks,
                .file_path = files[i],
                .limit = limit_number,
            };
        }
        exit_code = say(command, &request, sides);
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
