#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/command.h"
#include "tools/diff.h"
#include "tools/flame.h"
#include "tools/pprof.h"
#include "tools/report.h"

static const char help[] =
    "memlog diff [--json|--leaks|--html|--pprof] [-o FILE] [--metric=METRIC] [--limit=N] FROM TO\n"
    "\n"
    "Tell what changed between two dumps, of one run or of two, also of two builds: stacks are\n"
    "told by their functions. What grew stands first.\n"
    "\n"
    "  --json           every stack with its figures in both, largest change first\n"
    "  --html           a flame graph: what grew is orange, what shrank blue; processes are "
    "paired\n"
    "                   by pid and name, else by role and command line\n"
    "  --pprof          for pprof, as its -diff_base makes it: FROM's samples are negative, with "
    "the\n"
    "                   label pprof::base\n"
    "  --leaks          what grew alone, in the JSON form of catapult's diff_heap_profiler\n"
    "  -o FILE          where to (default: stdout)\n"
    "  --metric=METRIC  what the change is counted in: live (default), peak or total bytes\n"
    "  --limit=N        at most N stacks of each list (text: 5, JSON: all)\n"
    "\n"
    "Example: memlog diff --html -o grown.html 0001.manual.pftrace 0002.exit.pftrace\n";

enum form { FORM_TEXT, FORM_JSON, FORM_LEAKS, FORM_HTML, FORM_PPROF };

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
        } else if (request->form == FORM_LEAKS) {
            ml_report_diff_leaks(sides, &diff, request->metric, out);
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

static enum ml_status write_pprof(const struct ml_report sides[ML_DIFF_SIDES], FILE *out) {
    struct ml_pprof_side of[ML_DIFF_SIDES];

    for (int i = 0; i < ML_DIFF_SIDES; i++) {
        of[i] = (struct ml_pprof_side){.profile = sides[i].profile, .stacks = sides[i].stacks};
    }
    return ml_pprof_write_diff(
        &of[ML_DIFF_TO], &of[ML_DIFF_FROM], ML_PPROF_DIFF_BASE, ML_METRIC_LIVE, out
    );
}

static enum ml_status
write_form(const struct request *request, const struct ml_report sides[ML_DIFF_SIDES], FILE *out) {
    switch (request->form) {
    case FORM_HTML:
        return write_page(request, sides, out);
    case FORM_PPROF:
        return write_pprof(sides, out);
    default:
        return write_rows(request, sides, out);
    }
}

static int
say(const struct ml_command *command,
    const struct request *request,
    const struct ml_report sides[ML_DIFF_SIDES]) {
    struct ml_output output;
    enum ml_status status = ml_output_open(&output, request->output);

    if (status == ML_OK) {
        status = ml_output_close(&output, write_form(request, sides, output.file));
    }
    return ml_command_written(command, request->output, status);
}

static int run(const struct ml_command *command, int argc, char **argv) {
    const char *limit = NULL;
    const char *metric_text = NULL;
    const char *files[ML_DIFF_SIDES] = {NULL};
    bool forms[] = {
        [FORM_TEXT] = false,
        [FORM_JSON] = false,
        [FORM_LEAKS] = false,
        [FORM_HTML] = false,
        [FORM_PPROF] = false};
    int forms_count = 0;
    bool go_on = false;
    unsigned long limit_number = 0;
    struct request request = {.form = FORM_TEXT};
    const struct ml_option options[] = {
        {.name = "--json", .out_given = &forms[FORM_JSON]},
        {.name = "--leaks", .out_given = &forms[FORM_LEAKS]},
        {.name = "--html", .out_given = &forms[FORM_HTML]},
        {.name = "--pprof", .out_given = &forms[FORM_PPROF]},
        {.name = "--output", .short_name = "-o", .out_value = &request.output},
        {.name = "--limit", .out_value = &limit},
        {.name = "--metric", .out_value = &metric_text},
    };
    struct ml_loaded loaded[ML_DIFF_SIDES];
    int exit_code =
        ml_command_arguments(command, argc, argv, options, 7, files, ML_DIFF_SIDES, &go_on);

    if (go_on) {
        exit_code = ml_command_limit(command, limit, &limit_number);
    }
    if (go_on && exit_code == ML_EXIT_OK) {
        exit_code = ml_command_metric(command, metric_text, &request.metric);
    }
    if (!go_on || exit_code != ML_EXIT_OK) {
        return exit_code;
    }
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (forms[i]) {
            request.form = (enum form)i;
            forms_count++;
        }
    }
    if (forms_count > 1) {
        return ml_command_complain(
            command, "--json, --leaks, --html and --pprof are different things: one of them"
        );
    }
    if (request.form >= FORM_HTML && !request.output && isatty(STDOUT_FILENO)) {
        return ml_command_complain(command, "this is not for a terminal: say -o FILE");
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
