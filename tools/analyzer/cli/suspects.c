#include <stdbool.h>

#include "tools/analyzer/cli/command.h"
#include "tools/analyzer/cli/suppress.h"
#include "tools/analyzer/growth/suspects.h"
#include "tools/analyzer/report/timeline.h"

struct request {
    bool is_json;
    uint32_t limit;
    struct ml_load load;
};

static const struct ml_option options[] = {
    ML_ROW_PID(struct request, load.pid, "this process only"),
    {.name = "--json",
     ML_FLAG_TO(struct request, is_json),
     .help = "every function that was followed, with its verdict, for programs"},
    ML_ROW_LIMIT(struct request, limit, "so many functions of each list (default: 5)"),
    ML_ROW_DUMP(struct request, load.dump),
    ML_ROW_SUPPRESSIONS(struct request, load.suppressions),
};

static int
say(const struct ml_command *command, const struct request *request, const struct ml_loaded *loaded
) {
    const struct ml_suppressed *suppressed = &loaded->suppressed;
    const struct ml_report report = {
        .profile = &loaded->profile,
        .stacks = &loaded->stacks,
        .suppressed = suppressed->rules ? suppressed : NULL,
        .file_path = request->load.path,
        .limit = request->limit};
    struct ml_suspects suspects;
    const enum ml_status status = ml_suspects_init(&suspects, &report);

    if (status == ML_ENV_MISSING) {
        const bool is_any = loaded->profile.processes_count > 0;
        ml_command_say_of(
            command,
            request->load.path,
            "%s",
            is_any ? ML_TIMELINE_NONE : "no process was recorded; memlog report tells why"
        );
        ml_suspects_fini(&suspects);
        return ML_EXIT_LACKING;
    }
    if (status != ML_OK) {
        ml_suspects_fini(&suspects);
        return ml_command_written(command, NULL, status);
    }
    if (request->is_json) {
        ml_suspects_json(&suspects, stdout);
    } else {
        const struct ml_report_style style = ml_command_style();
        ml_suspects_text(&suspects, &style, stdout);
        ml_command_tell_suppressed(&suppressed, NULL, 1, stdout);
    }
    ml_suspects_fini(&suspects);
    return ml_command_finish(command);
}

static int run(const struct ml_command *command, char *const *words) {
    struct request request = {.load = {.processes = ML_LOAD_OWN}};
    struct ml_loaded loaded;
    int exit_code = ML_EXIT_OK;

    if (!ml_command_read(command, words, &request, NULL, &exit_code)) {
        return exit_code;
    }
    exit_code = ml_command_load(command, &request.load, &loaded);
    if (exit_code == ML_EXIT_OK) {
        exit_code = say(command, &request, &loaded);
    }
    ml_loaded_fini(&loaded);
    return exit_code;
}

const struct ml_command ml_command_suspects = {
    .table =
        {.program = "memlog",
         .name = "suspects",
         .summary = "which functions' memory grows steadily, as leaks do",
         .usage = "[OPTIONS] [DUMP|PID]",
         .about =
             "Which functions' memory grows steadily, as leaks do: how fast, since when, and how "
             "sure that is. What fills and levels off, as caches do, is told apart. It rests on "
             "the timeline of one dump, so no second one is needed; 11 seconds of recording are "
             "the least, and minutes tell more. Of a process that is being recorded (PID) a dump "
             "is taken first.",
         ML_OPTIONS(options),
         ML_OPERANDS_NEWEST(struct request, load.path, 1),
         .notes =
             "The time is cut into 17 parts, and of each the least that was held counts. Growth is "
             "steady where at least 15 of the 16 steps between them go up by much the same. Of "
             "heaps that go up and down by chance, fewer than one in 1,000 looks like that. What "
             "is not named may leak all the same, too little or too rarely for the time recorded.",
         .example = "memlog suspects memlog.sqlite3.1234/0001.exit.pftrace"},
    .dumps = ML_DUMPS_OR_NEWEST,
    .run = run,
};
