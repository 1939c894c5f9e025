#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "tools/analyzer/cli/command.h"
#include "tools/analyzer/report/timeline.h"

enum form { FORM_TEXT, FORM_JSON, FORM_CSV, FORM_HTML };

struct request {
    enum form form;
    const char *output;
    uint32_t limit, points;
    bool no_stacks;
    struct ml_timeline_span span;
    struct ml_load load;
};

static const struct ml_option options[] = {
    {.name = "--from",
     ML_TIME_TO(struct request, span.from),
     .value = "TIME",
     .help = "look at what came after that time only"},
    {.name = "--to",
     ML_TIME_TO(struct request, span.to),
     .value = "TIME",
     .help = "look at what came before it only"},
    ML_ROW_PID(struct request, load.pid, "this process only"),
    {.name = "--json",
     ML_CHOICE_TO(struct request, form, FORM_JSON),
     .help = "every point, for programs"},
    {.name = "--csv", ML_CHOICE_TO(struct request, form, FORM_CSV), .help = "likewise"},
    {.name = "--html",
     ML_CHOICE_TO(struct request, form, FORM_HTML),
     .help = "a page with a curve for each process"},
    ML_ROW_OUTPUT(struct request, output, "where to (default: stdout)"),
    {.name = "--points",
     ML_COUNT_TO(struct request, points),
     .least = 2,
     .most = 1000000,
     .value = "N",
     .help = "at most so many points of each series (--json, --csv); of more than 20 processes in "
             "JSON 20 times as many together"},
    {.name = "--no-stacks",
     ML_FLAG_TO(struct request, no_stacks),
     .help = "without the points of stacks (--json)"},
    ML_ROW_LIMIT(struct request, limit, "so many rows of each list"),
    ML_ROW_DUMP(struct request, load.dump),
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
say(const struct ml_command *command, const struct request *request, const struct ml_loaded *loaded
) {
    const struct ml_report report = {
        .profile = &loaded->profile,
        .stacks = &loaded->stacks,
        .file_path = request->load.path,
        .limit = request->limit};
    struct ml_timeline timeline;
    struct ml_output output;
    const char *error = "";
    enum ml_status status = ml_timeline_init(&timeline, &report, &request->span, &error);

    if (status == ML_PEER_FORM) {
        ml_timeline_fini(&timeline);
        return ml_command_fail(command, error);
    }
    if (status == ML_ENV_MISSING) {
        ml_command_say_of(command, request->load.path, "%s", error);
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

static int run(const struct ml_command *command, char *const *words) {
    struct request request = {.load = {.processes = ML_LOAD_SERIES}};
    struct ml_loaded loaded;
    int exit_code = ML_EXIT_OK;

    if (!ml_command_read(command, words, &request, NULL, &exit_code)) {
        return exit_code;
    }
    if (request.form == FORM_HTML && !request.output && isatty(STDOUT_FILENO)) {
        return ml_command_fail(command, "a page is not for a terminal: say -o FILE.html");
    }
    request.load.output_path = request.output;
    exit_code = ml_command_load(command, &request.load, &loaded);
    if (exit_code == ML_EXIT_OK) {
        exit_code = say(command, &request, &loaded);
    }
    ml_loaded_fini(&loaded);
    return exit_code;
}

const struct ml_command ml_command_timeline = {
    .table =
        {.program = "memlog",
         .name = "timeline",
         .summary = "what was live when, and what grew",
         .usage = "[OPTIONS] [DUMP]",
         .about =
             "What was live when, of every process and of all together, and what grew: the stacks "
             "that hold most are followed while the program runs, so the answer needs no second "
             "dump. What was just now is known each 250 ms (stacks each second), what is long ago "
             "ever more coarsely: a 128th of its age or better (stacks a 32nd). A time counts as "
             "the nearest that is known.",
         ML_OPTIONS(options),
         ML_OPERANDS_NEWEST(struct request, load.path, 1),
         .notes = "A TIME is 10:02, 10:02:30 or 2026-11-21T10:02:30Z (all UTC), +5m (since the "
                  "start) or -5m (before the end).\n"
                  "\n"
                  "In JSON a point is [until ms since 1970, least, most and last live bytes, bytes "
                  "and blocks allocated until then] (a stack's without the last two), from the end "
                  "of the one before it.",
         .example = "memlog timeline --from=-5m memlog.sqlite3.1234/0001.exit.pftrace"},
    .dumps = ML_DUMPS_OR_NEWEST,
    .run = run,
};
