#include <stdio.h>
#include <string.h>

#include "tools/command.h"
#include "tools/flame.h"
#include "tools/report.h"

static const char help[] =
    "memlog-analyzer page-data [--processes | --metric=METRIC] [--pid=PID | --role=ROLE]\n"
    "                          [--before=DUMP] DUMP\n"
    "\n"
    "What the live page shows of a dump, as JSON on stdout; memlog starts it for that.\n"
    "\n"
    "  --processes      who they are and what they hold; else the frames of a flame graph\n"
    "  --metric=METRIC  what is shown first: live (default), peak or total\n"
    "  --pid=PID        this process only\n"
    "  --role=ROLE      processes of this role only\n"
    "  --before=DUMP    what changed since that dump\n"
    "\n"
    "Example: memlog-analyzer page-data --role=renderer memlog.sqlite3.1234/0001.exit.pftrace\n";

/* What a browser lays out and draws at once without a pause. */
enum { PAGE_FRAMES_MAX = 7500 };

struct request {
    const char *pid, *role, *metric_text, *before, *file;
    bool processes;
    enum ml_metric metric;
};

static enum ml_status write_data(
    const struct request *request, const struct ml_loaded *after, const struct ml_loaded *before
) {
    const struct ml_flame_side sides[] = {
        {.profile = &after->profile, .stacks = &after->stacks},
        {.profile = &before->profile, .stacks = &before->stacks},
    };

    if (request->processes) {
        const struct ml_report report = {
            .profile = &after->profile, .stacks = &after->stacks, .file_path = request->file};
        ml_report_json_processes(&report, stdout);
        return ML_OK;
    }
    return ml_flame_write_data(
        &sides[0],
        request->before && !before->is_lacking ? &sides[1] : NULL,
        request->metric,
        PAGE_FRAMES_MAX,
        stdout
    );
}

static int run(const struct ml_command *command, int argc, char **argv) {
    struct request request = {.processes = false};
    const struct ml_option options[] = {
        {.name = "--pid", .out_value = &request.pid},
        {.name = "--role", .out_value = &request.role},
        {.name = "--metric", .out_value = &request.metric_text},
        {.name = "--before", .out_value = &request.before},
        {.name = "--processes", .out_given = &request.processes},
    };
    struct ml_load loads[2] = {{.keeps_own_live = true}, {0}};
    struct ml_load *load = &loads[0];
    struct ml_loaded loaded[2];
    bool go_on = false;
    int exit_code = ml_command_arguments(command, argc, argv, options, 5, &request.file, 1, &go_on);

    if (go_on) {
        exit_code = ml_command_pid(command, request.pid, &load->pid);
    }
    if (go_on && exit_code == ML_EXIT_OK) {
        exit_code = ml_command_metric(command, request.metric_text, &request.metric);
    }
    if (!go_on || exit_code != ML_EXIT_OK) {
        return exit_code;
    }
    load->role = request.role;
    load->path = request.file;
    loads[1] = *load;
    loads[1].path = request.before;
    loads[1].may_lack = true;
    memset(loaded, 0, sizeof loaded);
    exit_code = request.before ? ml_command_load_pair(command, loads, loaded)
                               : ml_command_load(command, load, &loaded[0]);
    if (exit_code == ML_EXIT_OK) {
        exit_code = ml_command_written(command, NULL, write_data(&request, &loaded[0], &loaded[1]));
    }
    ml_loaded_fini(&loaded[0]);
    ml_loaded_fini(&loaded[1]);
    return exit_code == ML_EXIT_OK ? ml_command_finish(command) : exit_code;
}

const struct ml_command ml_command_page_data = {
    .name = "page-data",
    .summary = "what the live page shows of a dump",
    .help = help,
    .run = run,
};
