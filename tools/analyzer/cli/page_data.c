#include <stdio.h>
#include <string.h>

#include "tools/analyzer/cli/command.h"
#include "tools/analyzer/formats/flame.h"
#include "tools/analyzer/report/report.h"
#include "tools/analyzer/whole/data.h"

/* What a browser lays out and draws at once without a pause. */
enum { PAGE_FRAMES_MAX = 7500 };

enum form { FORM_FRAMES, FORM_PROCESSES, FORM_MEMORY, FORM_METRICS };

struct request {
    const char *before;
    enum form form;
    enum ml_metric metric;
    struct ml_load load;
};

static const struct ml_option options[] = {
    {.name = "--processes",
     ML_CHOICE_TO(struct request, form, FORM_PROCESSES),
     .help = "who they are and what they hold; else the frames of a flame graph"},
    {.name = "--memory",
     ML_CHOICE_TO(struct request, form, FORM_MEMORY),
     .help = "what their private memory is made of"},
    {.name = "--metrics",
     ML_CHOICE_TO(struct request, form, FORM_METRICS),
     .help = "the same for Prometheus"},
    ML_ROW_METRIC(
        struct request,
        metric,
        "what is shown first (default: live, or the peak where nothing runs and hardly anything "
        "was "
        "left)"
    ),
    ML_ROW_PID(struct request, load.pid, "this process only"),
    {.name = "--role",
     ML_TEXT_TO(struct request, load.role),
     .value = "ROLE",
     .help = "processes of this role only"},
    ML_ROW_BY(struct request, load.grouping),
    {.name = "--before",
     ML_PATH_TO(struct request, before),
     .value = "DUMP",
     .help = "what changed since that dump"},
};

static enum ml_status write_data(
    const struct request *request, const struct ml_loaded *after, const struct ml_loaded *before
) {
    const struct ml_report report = {
        .profile = &after->profile, .stacks = &after->stacks, .file_path = request->load.path};

    switch (request->form) {
    case FORM_PROCESSES:
        ml_report_json_processes(&report, stdout);
        return ML_OK;
    case FORM_MEMORY:
        ml_whole_json(&after->profile, stdout);
        return ML_OK;
    case FORM_METRICS:
        ml_whole_metrics(&after->profile, stdout);
        return ML_OK;
    case FORM_FRAMES:
        break;
    }
    return ml_flame_write_data(
        &after->stacks,
        request->before && !before->is_lacking ? &before->stacks : NULL,
        request->metric,
        PAGE_FRAMES_MAX,
        stdout
    );
}

static int run(const struct ml_command *command, char *const *words) {
    struct request request = {.load = {.processes = ML_LOAD_OWN}};
    struct ml_loaded loaded[2];
    uint64_t given = 0;
    int exit_code = ML_EXIT_OK;

    if (!ml_command_read(command, words, &request, &given, &exit_code)) {
        return exit_code;
    }
    if (request.form == FORM_MEMORY || request.form == FORM_METRICS) {
        request.load.takes_unrecorded = true;
        request.load.is_nameless = true; /* it is asked for every few seconds */
    }
    exit_code = ml_command_load_with(command, &request.load, request.before, loaded);
    /* Of what runs it is always what is live: a view must not turn to another figure by itself. */
    if (exit_code == ML_EXIT_OK && !ml_option_given(&command->table, given, "--metric") &&
        !ml_profile_anyone_runs(&loaded[0].profile)) {
        request.metric = ml_metric_telling(&loaded[0].profile.tree);
    }
    if (exit_code == ML_EXIT_OK &&
        !ml_command_knows(command, request.load.path, &loaded[0], request.metric)) {
        exit_code = ML_EXIT_LACKING;
    }
    if (exit_code == ML_EXIT_OK) {
        exit_code = ml_command_written(command, NULL, write_data(&request, &loaded[0], &loaded[1]));
    }
    ml_loaded_fini(&loaded[0]);
    ml_loaded_fini(&loaded[1]);
    return exit_code == ML_EXIT_OK ? ml_command_finish(command) : exit_code;
}

const struct ml_command ml_command_page_data = {
    .table =
        {.program = "memlog-analyzer",
         .name = "page-data",
         .summary = "what the live page shows of a dump",
         .usage = "[OPTIONS] DUMP",
         .about = "What the live page shows of a dump, as JSON on stdout; memlog starts it for "
                  "that.",
         ML_OPTIONS(options),
         ML_OPERANDS_DUMPS(struct request, load.path, 1),
         .example = "memlog-analyzer page-data --role=renderer "
                    "memlog.sqlite3.1234/0001.exit.pftrace"},
    .run = run,
};
