#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "tools/analyzer/budget/verdict.h"
#include "tools/analyzer/cli/command.h"
#include "tools/analyzer/cli/suppress.h"
#include "tools/analyzer/formats/flame.h"
#include "tools/analyzer/formats/pprof.h"
#include "tools/analyzer/report/diff.h"
#include "tools/analyzer/report/report.h"

enum form { FORM_TEXT, FORM_JSON, FORM_LEAKS, FORM_HTML, FORM_PPROF };

struct request {
    enum form form;
    enum ml_metric metric;
    const char *output;
    enum ml_ended ended;
    uint32_t limit;
    const char *files[ML_DIFF_SIDES];
    const char *heap;
    const char *suppressions;
    struct ml_frame_filter filter;
    enum ml_grouping grouping;
    struct ml_budget_limit growth; /* is_growth: there is one */
};

/* The figure is chosen behind it, by --metric. */
static bool read_limit(void *to, const char *value, struct ml_error_message *why) {
    struct request *request = to;

    (void)why;
    request->growth = (struct ml_budget_limit){.is_growth = true};
    return ml_budget_limit_read(&request->growth, value);
}

static const struct ml_option options[] = {
    {.name = "--json",
     ML_CHOICE_TO(struct request, form, FORM_JSON),
     .help = "every stack with its figures in both, largest change first; types and heaps, where "
             "either dump has some"},
    {.name = "--html",
     ML_CHOICE_TO(struct request, form, FORM_HTML),
     .help = "a flame graph: what grew is orange, what shrank blue; processes are paired by pid "
             "and name, else by role and command line"},
    {.name = "--pprof",
     ML_CHOICE_TO(struct request, form, FORM_PPROF),
     .help = "for pprof, as its -diff_base makes it: FROM's samples are negative, with the label "
             "pprof::base"},
    {.name = "--leaks",
     ML_CHOICE_TO(struct request, form, FORM_LEAKS),
     .help = "what grew alone, in the JSON form of catapult's diff_heap_profiler; of one dump all "
             "that was never freed"},
    ML_ROW_OUTPUT(struct request, output, "where to (default: stdout)"),
    ML_ROW_METRIC(
        struct request,
        metric,
        "what the change is counted in (default: live bytes; in text and HTML those of the peak "
        "where "
        "they changed far more)"
    ),
    ML_ROW_LIMIT(struct request, limit, "at most N stacks of each list (text: 5, JSON: all)"),
    ML_ROW_HEAP(struct request, heap),
    ML_ROWS_FRAME_FILTER(struct request, filter),
    ML_ROW_BY(struct request, grouping),
    ML_ROW_ENDED(struct request, ended),
    ML_ROW_SUPPRESSIONS(struct request, suppressions),
    {.name = "--fail-if-grew",
     ML_READ_BY(read_limit),
     .value = "SIZE|PERCENT%",
     .wants = "a size or a share, such as 1M or 5%,",
     .help = "end with 3 where --metric of all stacks that are compared grew by more, and with 4 "
             "where that cannot be told for sure"},
};

static enum ml_status add_groups(
    const struct request *request, const struct ml_report sides[ML_DIFF_SIDES], struct ml_diff *diff
) {
    const struct ml_stacks *from = sides[ML_DIFF_FROM].stacks;
    const struct ml_stacks *to = sides[ML_DIFF_TO].stacks;
    const enum ml_metric metric = request->metric;
    const enum ml_status status = ml_diff_groups_init(&diff->types, from, to, ML_BY_TYPE, metric);

    /* Of one heap the others are gone. */
    return status == ML_OK && !request->heap
               ? ml_diff_groups_init(&diff->heaps, from, to, ML_BY_HEAP, metric)
               : status;
}

static enum ml_status
write_rows(const struct request *request, const struct ml_report sides[ML_DIFF_SIDES], FILE *out) {
    const struct ml_report_style style = ml_command_style();
    struct ml_diff diff;
    enum ml_status status =
        ml_diff_init(&diff, sides[ML_DIFF_FROM].stacks, sides[ML_DIFF_TO].stacks);

    if (status == ML_OK && request->form != FORM_LEAKS) {
        status = add_groups(request, sides, &diff);
    }
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
write_form(const struct request *request, const struct ml_report sides[ML_DIFF_SIDES], FILE *out) {
    const struct ml_stacks *from = sides[ML_DIFF_FROM].stacks;
    const struct ml_stacks *to = sides[ML_DIFF_TO].stacks;

    switch (request->form) {
    case FORM_HTML:
        return ml_flame_write(to, from, request->metric, out);
    case FORM_PPROF:
        return ml_pprof_write_diff(to, from, ML_PPROF_DIFF_BASE, ML_METRIC_LIVE, out);
    default:
        return write_rows(request, sides, out);
    }
}

/* JSON has it itself, other forms have no place for it. */
static void
tell_suppressed(const struct request *request, const struct ml_report sides[ML_DIFF_SIDES]) {
    static const char *const where[] = {"FROM", "TO"};
    const struct ml_suppressed *const both[] = {
        sides[ML_DIFF_FROM].suppressed, sides[ML_DIFF_TO].suppressed};
    FILE *out = request->form == FORM_TEXT && !request->output ? stdout : stderr;

    if (!request->suppressions || request->form == FORM_JSON) {
        return;
    }
    if (request->files[ML_DIFF_TO]) {
        ml_command_tell_suppressed(both, where, ML_DIFF_SIDES, out);
    } else {
        ml_command_tell_suppressed(&both[ML_DIFF_TO], NULL, 1, out);
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
        tell_suppressed(request, sides);
    }
    return ml_command_written(command, request->output, status);
}

static int load_sides(
    const struct ml_command *command,
    const struct request *request,
    struct ml_loaded loaded[ML_DIFF_SIDES],
    struct ml_report out_reports[ML_DIFF_SIDES]
) {
    struct ml_load loads[ML_DIFF_SIDES];
    const bool is_one = !request->files[ML_DIFF_TO];

    for (int side = 0; side < ML_DIFF_SIDES; side++) {
        const char *path = request->files[is_one ? 0 : side];
        loads[side] = (struct ml_load
        ){.path = path,
          .output_path = request->output,
          .heap = request->heap,
          .may_lack_heap = side == 0,
          .filter = request->filter,
          .grouping = request->grouping,
          .ended = request->ended,
          .suppressions = request->suppressions,
          .finds_types = request->form == FORM_TEXT || request->form == FORM_JSON,
          .processes = request->form == FORM_PPROF ? ML_LOAD_AS_TREE : ML_LOAD_OWN};
        out_reports[side] = (struct ml_report){
            .profile = &loaded[side].profile,
            .stacks = &loaded[side].stacks,
            .suppressed = request->suppressions ? &loaded[side].suppressed : NULL,
            .file_path = path,
            .limit = request->limit,
        };
    }
    if (is_one) {
        loaded[ML_DIFF_FROM].stacks.profile =
            &loaded[ML_DIFF_FROM].profile; /* with nothing in it */
        loads[ML_DIFF_TO].may_lack_heap = false;
        return ml_command_load(command, &loads[ML_DIFF_TO], &loaded[ML_DIFF_TO]);
    }
    return ml_command_load_pair(command, loads, loaded);
}

/* What changed most is what people look for: where all was freed at both ends, the peak. */
static enum ml_metric largest_change(const struct ml_report sides[ML_DIFF_SIDES]) {
    enum { FAR_MORE = 10 };
    const struct ml_profile_totals *from = &sides[ML_DIFF_FROM].profile->tree;
    const struct ml_profile_totals *to = &sides[ML_DIFF_TO].profile->tree;
    const double live = (double)to->live_bytes - (double)from->live_bytes;
    const double peak = (double)to->peak_bytes - (double)from->peak_bytes;

    return fabs(peak) > FAR_MORE * fabs(live) ? ML_METRIC_PEAK : ML_METRIC_LIVE;
}

/* Judge what grew; the sentence is for people. The exit code. */
static int judge(
    const struct ml_command *command,
    const struct request *request,
    const struct ml_report reports[ML_DIFF_SIDES]
) {
    static const enum ml_budget_figure figures[] = {
        [ML_METRIC_LIVE] = ML_BUDGET_LEFT_BYTES,
        [ML_METRIC_PEAK] = ML_BUDGET_PEAK_BYTES,
        [ML_METRIC_TOTAL] = ML_BUDGET_TOTAL_BYTES};
    char name[] = "--fail-if-grew";
    struct ml_budget_rule rule = {
        .name = name, .is_of_all_stacks = true, .limits = {request->growth}, .limits_count = 1};
    const struct ml_budget_rules budget = {.rules = &rule, .rules_count = 1};
    struct ml_budget_value values[ML_DIFF_SIDES];
    struct ml_budget_dump dumps[ML_DIFF_SIDES];
    struct ml_budget_side sides[ML_DIFF_SIDES];
    struct ml_budget_verdicts verdicts = {.results = NULL};
    int exit_code = ML_EXIT_FAILED;
    bool done = true;

    rule.limits[0].figure = figures[request->metric];
    for (int side = 0; side < ML_DIFF_SIDES; side++) {
        values[side] = (struct ml_budget_value){.is_known = false};
        dumps[side] =
            (struct ml_budget_dump){.file = reports[side].file_path, .values = &values[side]};
        sides[side] = (struct ml_budget_side){.dumps = &dumps[side], .count = 1};
        done = done && ml_budget_measure(&budget, reports[side].stacks, &values[side]);
    }
    if (done &&
        ml_budget_judge(&budget, name, &sides[ML_DIFF_TO], &sides[ML_DIFF_FROM], &verdicts)) {
        const struct ml_budget_result *result = &verdicts.results[0];
        char text[ML_BUDGET_SENTENCE_BYTES];
        static const int codes[ML_VERDICTS] = {
            [ML_VERDICT_HELD] = ML_EXIT_OK,
            [ML_VERDICT_UNSURE] = ML_EXIT_UNSURE,
            [ML_VERDICT_BROKEN] = ML_EXIT_BROKEN};
        ml_command_say(
            command, "%s: %s", ml_verdict_name(result->verdict), ml_budget_sentence(result, text)
        );
        exit_code = codes[result->verdict];
    } else {
        ml_command_say(command, "%s", ml_status_text(ML_ENV_MEMORY));
    }
    ml_budget_verdicts_fini(&verdicts);
    ml_budget_values_clear(values, ML_DIFF_SIDES);
    return exit_code;
}

static int run(const struct ml_command *command, char *const *words) {
    struct request request = {.form = FORM_TEXT};
    struct ml_loaded loaded[ML_DIFF_SIDES] = {0};
    struct ml_report sides[ML_DIFF_SIDES];
    uint64_t given = 0;
    int exit_code = ML_EXIT_OK;

    if (!ml_command_read(command, words, &request, &given, &exit_code)) {
        return exit_code;
    }
    if (request.form >= FORM_HTML && !request.output && isatty(STDOUT_FILENO)) {
        return ml_command_fail(command, "this is not for a terminal: say -o FILE");
    }
    if (request.grouping != ML_GROUP_NONE && request.form != FORM_HTML) {
        return ml_command_fail(command, "--by goes with --html only");
    }
    if (!request.files[ML_DIFF_TO] && request.form != FORM_LEAKS) {
        return ml_command_fail(
            command, "two dumps are compared: FROM and TO; one is for --leaks alone"
        );
    }
    if (request.growth.is_growth &&
        (!request.files[ML_DIFF_TO] || request.metric > ML_METRIC_TOTAL)) {
        return ml_command_fail(
            command, "--fail-if-grew goes with two dumps, and with live, peak or total"
        );
    }
    exit_code = load_sides(command, &request, loaded, sides);
    for (int side = request.files[ML_DIFF_TO] ? ML_DIFF_FROM : ML_DIFF_TO;
         exit_code == ML_EXIT_OK && side < ML_DIFF_SIDES;
         side++) {
        if (!ml_command_knows(command, sides[side].file_path, &loaded[side], request.metric)) {
            exit_code = ML_EXIT_LACKING;
        }
    }
    if (exit_code == ML_EXIT_OK && (request.form == FORM_TEXT || request.form == FORM_HTML) &&
        !request.growth.is_growth && !ml_option_given(&command->table, given, "--metric")) {
        request.metric = largest_change(sides); /* a verdict is always of the same figure */
    }
    if (exit_code == ML_EXIT_OK) {
        exit_code = say(command, &request, sides);
    } else if (exit_code == ML_EXIT_LACKING && request.growth.is_growth) {
        exit_code = ML_EXIT_UNSURE; /* what is not there cannot have grown, nor be called held */
    }
    if (exit_code == ML_EXIT_OK && request.growth.is_growth) {
        exit_code = judge(command, &request, sides);
    }
    ml_loaded_fini(&loaded[ML_DIFF_FROM]);
    ml_loaded_fini(&loaded[ML_DIFF_TO]);
    return exit_code;
}

const struct ml_command ml_command_diff = {
    .table =
        {.program = "memlog",
         .name = "diff",
         .summary = "what changed between two dumps",
         .usage = "[OPTIONS] FROM TO | --leaks DUMP",
         .about = "Tells what changed between two dumps, of one run or of two, also of two "
                  "builds: stacks are told by their functions. What grew stands first.",
         ML_OPTIONS(options),
         .operands = ML_OPERANDS_FILES,
         .operands_offset = offsetof(struct request, files),
         .operands_least = 1,
         .operands_most = ML_DIFF_SIDES,
         .operands_missing = "two dumps are compared: FROM and TO",
         .notes = "Figures of processes and of all together are those of the whole dumps, "
                  "whatever is asked for. Expressions are POSIX extended ones, as of grep -E.",
         .example = "memlog diff --html -o grown.html 0001.manual.pftrace 0002.exit.pftrace"},
    .dumps = ML_DUMPS_ALL,
    .run = run,
};
