#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "tools/command.h"
#include "tools/timeline.h"

static const char help[] =
    "memlog timeline [--from=TIME] [--to=TIME] [--pid=PID] [--json|--csv|--html] [-o FILE]\n"
    "                [--points=N] [--no-stacks] [--limit=N] [--dump=N] DUMP\n"
    "\n"
    "What was live when, of every process and of all together, and what grew: the stacks that\n"
    "hold most are followed while the program runs, so the answer needs no second dump. What was\n"
    "just now is known each 250 ms (stacks each second), what is long ago ever more coarsely: a\n"
    "128th of its age or better (stacks a 32nd). A time counts as the nearest that is known.\n"
    "\n"
    "  --from=TIME, --to=TIME  look at that time only: 10:02, 10:02:30 or\n"
    "                          2026-11-21T10:02:30Z (all UTC), +5m (since the start), -5m (before\n"
    "                          the end)\n"
    "  --pid=PID               this process only\n"
    "  --json, --csv           every point, for programs\n"
    "  --html                  a page with a curve for each process\n"
    "  -o FILE                 where to (default: stdout); --output=FILE likewise\n"
    "  --points=N              at most so many points of each series (--json, --csv); of more "
    "than\n"
    "                          20 processes in JSON 20 times as many together\n"
    "  --no-stacks             without the points of stacks (--json)\n"
    "  --limit=N               so many rows of each list\n"
    "  --dump=N                of several dumps in one file (cat A B) the Nth (default: the last)\n"
    "\n"
    "In JSON a point is [until ms since 1970, least, most and last live bytes, bytes and blocks\n"
    "allocated until then] (a stack's without the last two), from the end of the one before it.\n"
    "\n"
    "Example: memlog timeline --from=-5m memlog.sqlite3.1234/0001.exit.pftrace\n";

enum form { FORM_TEXT, FORM_JSON, FORM_CSV, FORM_HTML, FORMS };

struct request {
    enum form form;
    const char *pid, *dump, *limit_text, *points_text, *output;
    uint64_t limit, points;
    bool no_stacks;
    struct ml_timeline_wish wish;
};

static void
write_form(const struct request *request, const struct ml_timeline *timeline, FILE *out) {
    switch (request->form) {
    case FORM_JSON:
        ml_timeline_json(timeline, request->points, !request->no_stacks, out);
        break;
    case FORM_CSV:
        ml_timeline_csv(timeline, request->points, out);
        break;
    case FORM_HTML:
        ml_timeline_html(timeline, out);
        break;
    default: {
        const struct ml_report_style style = ml_command_style();
        ml_timeline_text(timeline, &style, out);
    }
    }
}

static int
say(const struct ml_command *command,
    const struct request *request,
    const struct ml_load *load,
    const struct ml_loaded *loaded) {
    const struct ml_report report = {
        .profile = &loaded->profile,
        .stacks = &loaded->stacks,
        .file_path = load->path,
        .limit = request->limit};
    struct ml_timeline timeline;
    struct ml_output output;
    const char *complaint = "";
    enum ml_status status = ml_timeline_init(&timeline, &report, &request->wish, &complaint);

    if (status == ML_PEER_FORM) {
        ml_timeline_fini(&timeline);
        return ml_command_complain(command, complaint);
    }
    if (status == ML_ENV_MISSING) {
        ml_command_say_of(command, load->path, "%s", complaint);
        ml_timeline_fini(&timeline);
        return ML_EXIT_LACKING;
    }
    if (status == ML_OK) {
        status = ml_output_open(&output, request->output);
    }
    if (status == ML_OK) {
        write_form(request, &timeline, output.file);
        status = ml_output_close(&output, ML_OK);
    }
    ml_timeline_fini(&timeline);
    return ml_command_written(command, request->output, status);
}

/* What the words say. ML_EXIT_OK, or the exit code. */
static int understand(
    const struct ml_command *command,
    struct request *request,
    const bool forms[FORMS],
    struct ml_load *out_load
) {
    int forms_count = 0;
    int exit_code = ml_command_pid(command, request->pid, &out_load->pid);

    for (int i = 0; i < FORMS; i++) {
        request->form = forms[i] ? (enum form)i : request->form;
        forms_count += forms[i];
    }
    if (forms_count > 1) {
        return ml_command_complain(
            command, "--json, --csv and --html are different things: one of them"
        );
    }
    if (request->form == FORM_HTML && !request->output && isatty(STDOUT_FILENO)) {
        return ml_command_complain(command, "a page is not for a terminal: say -o FILE.html");
    }
    if (request->points_text &&
        (!ml_count_read(request->points_text, 1000000, &request->points) || request->points < 2)) {
        return ml_command_complain(command, "--points wants a number from 2 on");
    }
    if (exit_code == ML_EXIT_OK) {
        exit_code = ml_command_dump(command, request->dump, &out_load->dump);
    }
    if (exit_code == ML_EXIT_OK) {
        exit_code = ml_command_limit(command, request->limit_text, &request->limit);
    }
    out_load->output_path = request->output;
    out_load->series_only = true;
    return exit_code;
}

static int run(const struct ml_command *command, int argc, char **argv) {
    struct request request = {.form = FORM_TEXT};
    bool forms[FORMS] = {false};
    const struct ml_option options[] = {
        {.name = "--from", .out_value = &request.wish.from},
        {.name = "--to", .out_value = &request.wish.to},
        {.name = "--pid", .out_value = &request.pid},
        {.name = "--json", .out_given = &forms[FORM_JSON]},
        {.name = "--csv", .out_given = &forms[FORM_CSV]},
        {.name = "--html", .out_given = &forms[FORM_HTML]},
        {.name = "--output", .short_name = "-o", .out_value = &request.output},
        {.name = "--points", .out_value = &request.points_text},
        {.name = "--no-stacks", .out_given = &request.no_stacks},
        {.name = "--limit", .out_value = &request.limit_text},
        {.name = "--dump", .out_value = &request.dump},
    };
    struct ml_load load = {.keeps_own_live = true};
    struct ml_loaded loaded;
    bool go_on = false;
    int exit_code = ml_command_arguments(
        command, argc, argv, options, sizeof options / sizeof options[0], &load.path, 1, &go_on
    );

    if (go_on) {
        exit_code = understand(command, &request, forms, &load);
    }
    if (!go_on || exit_code != ML_EXIT_OK) {
        return exit_code;
    }
    exit_code = ml_command_load(command, &load, &loaded);
    if (exit_code == ML_EXIT_OK) {
        exit_code = say(command, &request, &load, &loaded);
    }
    ml_loaded_fini(&loaded);
    return exit_code;
}

const struct ml_command ml_command_timeline = {
    .name = "timeline",
    .summary = "what was live when, and what grew",
    .help = help,
    .run = run,
};
