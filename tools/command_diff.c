#include <stdio.h>
#include <unistd.h>

#include "tools/command.h"
#include "tools/diff.h"
#include "tools/flame.h"
#include "tools/pprof.h"
#include "tools/report.h"

static const char help[] =
    "memlog diff [--json|--leaks|--html|--pprof] [-o FILE] [--metric=METRIC] [--limit=N]\n"
    "            [--ended=yes|no]\n"
    "            [--focus=REGEX] [--ignore=REGEX] [--show=REGEX] [--hide=REGEX] FROM TO\n"
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
    "  -o FILE          where to (default: stdout); --output=FILE likewise\n"
    "  --metric=METRIC  what the change is counted in: live (default), peak or total bytes\n"
    "  --limit=N        at most N stacks of each list (text: 5, JSON: all)\n"
    "  --focus=REGEX    stacks alone in which a function, source file or module matches\n"
    "  --ignore=REGEX   no stack in which one matches\n"
    "  --show=REGEX     of each stack the frames alone that match\n"
    "  --hide=REGEX     of each stack the frames that do not match\n"
    "  --ended=yes|no   count what ended processes left as live, or never (default: where nothing\n"
    "                   runs any more in one of the dumps)\n"
    "\n"
    "Figures of processes and of all together are those of the whole dumps, whatever is asked\n"
    "for. Expressions are POSIX extended ones, as of grep -E.\n"
    "\n"
    "Example: memlog diff --html -o grown.html 0001.manual.pftrace 0002.exit.pftrace\n";

enum form { FORM_TEXT, FORM_JSON, FORM_LEAKS, FORM_HTML, FORM_PPROF, FORMS };

struct request {
    enum form form;
    enum ml_metric metric;
    const char *output;
    const char *limit_text, *metric_text, *ended_text;
    enum ml_ended ended;
    uint64_t limit;
    const char *files[ML_DIFF_SIDES];
    struct ml_sift sift;
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
        flames[i] = (struct ml_flame_side
        ){.profile = sides[i].profile, .stacks = sides[i].stacks, .is_sifted = sides[i].is_sifted};
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

/* What the words say. ML_EXIT_OK, or the exit code. */
static int
understand(const struct ml_command *command, struct request *request, const bool forms[FORMS]) {
    int forms_count = 0;
    int exit_code = ml_command_limit(command, request->limit_text, &request->limit);

    if (exit_code == ML_EXIT_OK) {
        exit_code = ml_command_metric(command, request->metric_text, &request->metric);
    }
    if (exit_code == ML_EXIT_OK) {
        exit_code = ml_command_ended(command, request->ended_text, &request->ended);
    }
    if (exit_code == ML_EXIT_OK) {
        exit_code = ml_command_sift(command, &request->sift);
    }
    for (int i = 0; i < FORMS; i++) {
        request->form = forms[i] ? (enum form)i : request->form;
        forms_count += forms[i];
    }
    if (exit_code == ML_EXIT_OK && forms_count > 1) {
        return ml_command_complain(
            command, "--json, --leaks, --html and --pprof are different things: one of them"
        );
    }
    if (exit_code == ML_EXIT_OK && request->form >= FORM_HTML && !request->output &&
        isatty(STDOUT_FILENO)) {
        return ml_command_complain(command, "this is not for a terminal: say -o FILE");
    }
    return exit_code;
}

static int load_sides(
    const struct ml_command *command,
    const struct request *request,
    struct ml_loaded loaded[ML_DIFF_SIDES],
    struct ml_report out_reports[ML_DIFF_SIDES]
) {
    struct ml_load loads[ML_DIFF_SIDES];

    for (int side = 0; side < ML_DIFF_SIDES; side++) {
        loads[side] = (struct ml_load
        ){.path = request->files[side],
          .output_path = request->output,
          .sift = request->sift,
          .ended = request->ended,
          .keeps_own_live = request->form != FORM_PPROF};
        out_reports[side] = (struct ml_report){
            .profile = &loaded[side].profile,
            .stacks = &loaded[side].stacks,
            .file_path = request->files[side],
            .limit = request->limit,
            .is_sifted = ml_sift_is_any(&request->sift),
        };
    }
    return ml_command_load_pair(command, loads, loaded);
}

static int run(const struct ml_command *command, int argc, char **argv) {
    struct request request = {.form = FORM_TEXT};
    bool forms[FORMS] = {false};
    const struct ml_option options[] = {
        {.name = "--json", .out_given = &forms[FORM_JSON]},
        {.name = "--leaks", .out_given = &forms[FORM_LEAKS]},
        {.name = "--html", .out_given = &forms[FORM_HTML]},
        {.name = "--pprof", .out_given = &forms[FORM_PPROF]},
        {.name = "--output", .short_name = "-o", .out_value = &request.output},
        {.name = "--limit", .out_value = &request.limit_text},
        {.name = "--metric", .out_value = &request.metric_text},
        {.name = "--ended", .out_value = &request.ended_text},
        {.name = "--focus", .out_value = &request.sift.focus},
        {.name = "--ignore", .out_value = &request.sift.ignore},
        {.name = "--show", .out_value = &request.sift.show},
        {.name = "--hide", .out_value = &request.sift.hide},
    };
    struct ml_loaded loaded[ML_DIFF_SIDES] = {0};
    struct ml_report sides[ML_DIFF_SIDES];
    bool go_on = false;
    int exit_code = ml_command_arguments(
        command,
        argc,
        argv,
        options,
        sizeof options / sizeof options[0],
        request.files,
        ML_DIFF_SIDES,
        &go_on
    );

    if (go_on) {
        exit_code = understand(command, &request, forms);
    }
    if (!go_on || exit_code != ML_EXIT_OK) {
        return exit_code;
    }
    exit_code = load_sides(command, &request, loaded, sides);
    if (exit_code == ML_EXIT_OK) {
        exit_code = say(command, &request, sides);
    }
    ml_loaded_fini(&loaded[ML_DIFF_FROM]);
    ml_loaded_fini(&loaded[ML_DIFF_TO]);
    return exit_code;
}

const struct ml_command ml_command_diff = {
    .name = "diff",
    .summary = "what changed between two dumps",
    .help = help,
    .run = run,
};
