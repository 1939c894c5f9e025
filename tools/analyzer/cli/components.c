#include <stdio.h>
#include <unistd.h>

#include "tools/analyzer/cli/command.h"
#include "tools/analyzer/cli/policy.h"
#include "tools/analyzer/report/component_table.h"

/* More dumps are no table for people. */
enum { DUMPS_MAX = 256, LIMIT = 40 };

enum form { FORM_TEXT, FORM_JSON, FORM_CSV, FORM_HTML };

static const char *const figure_words[] = {"pss", "rss", "private", "swap", NULL};

struct request {
    const char *policy;
    enum form form;
    enum ml_figure figure;
    const char *output;
    bool is_shown; /* the policy alone */
    uint32_t pid, limit;
    enum ml_ended ended;
    enum ml_moment moment;
    const char *files[DUMPS_MAX + 1];
};

static const struct ml_option options[] = {
    ML_ROW_POLICY(struct request, policy),
    {.name = "--show-policy",
     ML_FLAG_TO(struct request, is_shown),
     .help = "print the policy, to copy and change it"},
    {.name = "--json",
     ML_CHOICE_TO(struct request, form, FORM_JSON),
     .help = "every process of every dump, in bytes"},
    {.name = "--csv",
     ML_CHOICE_TO(struct request, form, FORM_CSV),
     .help = "the same for spreadsheets, a column for each component"},
    {.name = "--html", ML_CHOICE_TO(struct request, form, FORM_HTML), .help = "a stacked chart"},
    ML_ROW_OUTPUT(struct request, output, "where to (default: stdout)"),
    ML_ROW_PID(struct request, pid, "this process only"),
    {.name = "--figure",
     ML_WORD_TO(struct request, figure),
     .words = figure_words,
     .help = "what several dumps, JSON, CSV and chart show (default: pss, each page shared out "
             "among its processes)"},
    ML_ROW_LIMIT(struct request, limit, "at most N components as text (default: 40)"),
    ML_ROW_ENDED(struct request, ended),
    ML_ROW_MOMENT(struct request, moment),
};

static enum ml_status
write_form(const struct request *request, const struct ml_component_table *table, FILE *out) {
    const struct ml_component_view view = {
        .table = table,
        .policy = request->policy,
        .figure = request->figure,
        .limit = request->limit};
    const struct ml_report_style style = ml_command_style();

    switch (request->form) {
    case FORM_JSON:
        ml_components_json(&view, out);
        return ML_OK;
    case FORM_CSV:
        ml_components_csv(&view, out);
        return ML_OK;
    case FORM_HTML:
        return ml_components_html(&view, out);
    default:
        return ml_components_text(&view, &style, out);
    }
}

/* Dumps are read one by one: each may be large. */
static int add_dump(
    const struct ml_command *command,
    const struct request *request,
    const char *path,
    struct ml_component_table *table
) {
    const struct ml_load load = {
        .path = path,
        .output_path = request->output,
        .pid = request->pid,
        .ended = request->ended,
        .moment = request->moment,
        .processes = ML_LOAD_OWN,
        .takes_unrecorded = true,
        .is_nameless = !ml_policy_needs_names(table->policy)};
    struct ml_loaded loaded;
    int exit_code = ml_command_load(command, &load, &loaded);

    if (exit_code == ML_EXIT_OK && !ml_component_table_add(table, &loaded.stacks, path)) {
        ml_command_say_of(command, path, "%s", ml_status_text(ML_ENV_MEMORY));
        exit_code = ML_EXIT_FAILED;
    }
    ml_loaded_fini(&loaded);
    return exit_code;
}

/* No line has any figures. */
static bool is_empty(const struct ml_component_table *table) {
    return table->lines_count == table->dumps_count;
}

static int tell(
    const struct ml_command *command,
    const struct request *request,
    const struct ml_component_table *table
) {
    struct ml_output output;
    enum ml_status status = ML_OK;

    if (is_empty(table)) {
        ml_command_say(command, "no process's memory was read; memlog run --help tells of --whole");
        return ML_EXIT_LACKING;
    }
    status = ml_output_open(&output, request->output);
    if (status == ML_OK) {
        status = ml_output_close(&output, write_form(request, table, output.file));
    }
    return ml_command_written(command, request->output, status);
}

static int run(const struct ml_command *command, char *const *words) {
    struct request request = {.policy = "l0", .limit = LIMIT, .moment = ML_MOMENT_BEST};
    struct ml_component_table table = {0};
    struct ml_policy policy = {0};
    int exit_code = ML_EXIT_OK;

    if (!ml_command_read(command, words, &request, NULL, &exit_code)) {
        return exit_code;
    }
    if (!request.files[0] && !request.is_shown) {
        request.files[0] = ml_command_newest(command);
        if (!request.files[0]) {
            return ML_EXIT_USAGE;
        }
    }
    if (request.form == FORM_HTML && !request.output && isatty(STDOUT_FILENO)) {
        return ml_command_fail(command, "a page is not for a terminal: say -o FILE.html");
    }
    const struct ml_load confined = {.output_path = request.output};
    ml_command_confine(&confined);
    if (request.is_shown) {
        return ml_command_show_policy(command, request.policy);
    }
    exit_code = ml_command_policy(command, request.policy, &policy);
    if (exit_code == ML_EXIT_OK && !ml_component_table_init(&table, &policy)) {
        ml_command_say(command, "%s", ml_status_text(ML_ENV_MEMORY));
        exit_code = ML_EXIT_FAILED;
    }
    for (size_t i = 0; exit_code == ML_EXIT_OK && request.files[i]; i++) {
        exit_code = add_dump(command, &request, request.files[i], &table);
    }
    if (exit_code == ML_EXIT_OK) {
        exit_code = tell(command, &request, &table);
    }
    ml_component_table_fini(&table);
    ml_policy_fini(&policy);
    return exit_code;
}

const struct ml_command ml_command_components = {
    .table =
        {.program = "memlog",
         .name = "components",
         .summary = "what all of a process's memory is made of",
         .usage = "[OPTIONS] [DUMP...]",
         .about = "Sorts all memory of the processes, not the heap alone, into components that add "
                  "up to the kernel's figure. What is left is printed as the remainder. Of several "
                  "dumps there is a column each.",
         ML_OPTIONS(options),
         .operands = ML_OPERANDS_FILES,
         .operands_offset = offsetof(struct request, files),
         .operands_most = DUMPS_MAX,
         .notes = "Figures are those of /proc/PID/smaps: pss is resident memory in which each page "
                  "is shared out among the processes that have it, so that it adds up over a tree.",
         .example = "memlog components --policy=l1 memlog.sqlite3.1234/0001.exit.pftrace"},
    .dumps = ML_DUMPS_ALL,
    .run = run,
};
