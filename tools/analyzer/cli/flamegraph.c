#include <stdio.h>
#include <unistd.h>

#include "tools/analyzer/cli/command.h"
#include "tools/analyzer/formats/flame.h"

struct request {
    enum ml_metric metric;
    const char *output;
    struct ml_load load;
};

static const struct ml_option options[] = {
    ML_ROW_OUTPUT(struct request, output, "where to (default: stdout)"),
    ML_ROW_METRIC(
        struct request,
        metric,
        "what is shown first (default: live, or the peak where hardly anything is live)"
    ),
    ML_ROW_PID(struct request, load.pid, "this process only"),
    ML_ROW_HEAP(struct request, load.heap),
    ML_ROW_BY(struct request, load.grouping),
    ML_ROW_PRUNE(struct request, load.prune_bytes),
    ML_ROWS_FRAME_FILTER(struct request, load.filter),
    ML_ROW_DUMP(struct request, load.dump),
    ML_ROW_ENDED(struct request, load.ended),
};

static int run(const struct ml_command *command, char *const *words) {
    struct request request = {.load = {.processes = ML_LOAD_OWN}};
    struct ml_loaded loaded;
    struct ml_output output;
    enum ml_status status = ML_OK;
    uint64_t given = 0;
    int exit_code = ML_EXIT_OK;

    if (!ml_command_read(command, words, &request, &given, &exit_code)) {
        return exit_code;
    }
    if (!request.output && isatty(STDOUT_FILENO)) {
        return ml_command_fail(command, "a page is not for a terminal: say -o FILE.html");
    }
    request.load.output_path = request.output;
    exit_code = ml_command_load(command, &request.load, &loaded);
    if (exit_code == ML_EXIT_OK && !ml_option_given(&command->table, given, "--metric")) {
        request.metric = ml_metric_telling(&loaded.profile.tree);
    }
    if (exit_code == ML_EXIT_OK &&
        !ml_command_knows(command, request.load.path, &loaded, request.metric)) {
        exit_code = ML_EXIT_LACKING;
    }
    if (exit_code == ML_EXIT_OK) {
        status = ml_output_open(&output, request.output);
        if (status == ML_OK) {
            status = ml_output_close(
                &output, ml_flame_write(&loaded.stacks, NULL, request.metric, output.file)
            );
        }
        exit_code = ml_command_written(command, request.output, status);
    }
    ml_loaded_fini(&loaded);
    return exit_code;
}

const struct ml_command ml_command_flamegraph = {
    .table =
        {.program = "memlog",
         .name = "flamegraph",
         .summary = "one HTML page with a flame graph",
         .usage = "[OPTIONS] [DUMP]",
         .about = "Draws a dump as a flame graph: one HTML page that opens anywhere and asks "
                  "nobody for anything. In it: every process or all, live, peak and total, bytes "
                  "and blocks, search, zoom, inverted stacks. The address bar holds what is shown.",
         ML_OPTIONS(options),
         ML_OPERANDS_NEWEST(struct request, load.path, 1),
         .notes = "Shares in it are of what is drawn. Expressions are POSIX extended ones, as of "
                  "grep -E.",
         .example = "memlog flamegraph -o heap.html memlog.sqlite3.1234/0001.exit.pftrace"},
    .dumps = ML_DUMPS_OR_NEWEST,
    .run = run,
};
