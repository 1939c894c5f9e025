/* Two commands that show what stands behind components: expand and list. Room: tools. */
#include <stdio.h>

#include "tools/analyzer/cli/command.h"
#include "tools/analyzer/cli/policy.h"
#include "tools/analyzer/report/component_table.h"

enum { DEPTH = 8 };

struct request {
    const char *policy;
    bool is_csv;
    uint32_t depth, pid;
    enum ml_ended ended;
    enum ml_moment moment;
    const char *words[3]; /* COMPONENT DUMP, or DUMP */
};

static const struct ml_option expand_options[] = {
    ML_ROW_POLICY(struct request, policy),
    {.name = "--depth",
     ML_COUNT_TO(struct request, depth),
     .least = 1,
     .value = "N",
     .help = "at most N frames of a stack (default: 8)"},
    ML_ROW_PID(struct request, pid, "this process only"),
    ML_ROW_ENDED(struct request, ended),
    ML_ROW_MOMENT(struct request, moment),
};

static const struct ml_option list_options[] = {
    ML_ROW_POLICY(struct request, policy),
    {.name = "--csv",
     ML_FLAG_TO(struct request, is_csv),
     .help = "comma-separated values, with all figures and whole stacks"},
    ML_ROW_PID(struct request, pid, "this process only"),
    ML_ROW_ENDED(struct request, ended),
    ML_ROW_MOMENT(struct request, moment),
};

static int write_expanded(
    const struct ml_command *command,
    const struct request *request,
    const struct ml_component_table *table,
    const struct ml_stacks *stacks
) {
    const struct ml_report_style style = ml_command_style();
    const enum ml_status status =
        ml_component_expand(table, stacks, request->words[0], request->depth, &style, stdout);

    if (status == ML_ENV_MISSING) {
        ml_command_say_of(
            command,
            request->words[1],
            "nothing is in component '%s'; memlog components lists them",
            request->words[0]
        );
        return ML_EXIT_LACKING;
    }
    return ml_command_written(command, NULL, status);
}

static int write_listed(
    const struct ml_command *command,
    const struct request *request,
    const struct ml_component_table *table,
    const struct ml_stacks *stacks
) {
    const struct ml_report_style style = ml_command_style();

    return ml_command_written(
        command,
        NULL,
        request->is_csv ? ml_component_rows_csv(table, stacks, stdout)
                        : ml_component_rows(table, stacks, &style, stdout)
    );
}

/* Load the dump and write. */
static int tell(
    const struct ml_command *command,
    const struct request *request,
    const char *path,
    struct ml_policy *policy
) {
    const struct ml_load load = {
        .path = path,
        .pid = request->pid,
        .ended = request->ended,
        .moment = request->moment,
        .processes = ML_LOAD_OWN,
        .takes_unrecorded = true};
    struct ml_component_table table;
    struct ml_loaded loaded;
    int exit_code = ml_command_load(command, &load, &loaded);

    if (!ml_component_table_init(&table, policy)) {
        ml_command_say(command, "%s", ml_status_text(ML_ENV_MEMORY));
        exit_code = ML_EXIT_FAILED;
    }
    if (exit_code == ML_EXIT_OK) {
        exit_code = request->words[1] ? write_expanded(command, request, &table, &loaded.stacks)
                                      : write_listed(command, request, &table, &loaded.stacks);
    }
    ml_component_table_fini(&table);
    ml_loaded_fini(&loaded);
    return exit_code == ML_EXIT_OK ? ml_command_finish(command) : exit_code;
}

static int run(const struct ml_command *command, char *const *words) {
    struct request request = {.policy = "l0", .depth = DEPTH, .moment = ML_MOMENT_BEST};
    const struct ml_load confined = {.path = NULL};
    struct ml_policy policy = {0};
    int exit_code = ML_EXIT_OK;

    if (!ml_command_read(command, words, &request, NULL, &exit_code)) {
        return exit_code;
    }
    ml_command_confine(&confined);
    exit_code = ml_command_policy(command, request.policy, &policy);
    if (exit_code == ML_EXIT_OK) {
        exit_code = tell(
            command, &request, request.words[1] ? request.words[1] : request.words[0], &policy
        );
    }
    ml_policy_fini(&policy);
    return exit_code;
}

const struct ml_command ml_command_expand = {
    .table =
        {.program = "memlog",
         .name = "expand",
         .summary = "whose stacks hold a component",
         .usage = "[OPTIONS] COMPONENT [DUMP]",
         .about = "Shows the stacks that hold a component of 'memlog components', as a tree from "
                  "the innermost function outwards. Memory without a stack is told by its mapping.",
         ML_OPTIONS(expand_options),
         .operands = ML_OPERANDS_FILES,
         .operands_offset = offsetof(struct request, words),
         .operands_least = 1,
         .operands_most = 2,
         .operands_missing = "which component? memlog components lists them",
         .example =
             "memlog expand --policy=l1 'python arenas' memlog.python3.99/0001.exit.pftrace"},
    .dumps = ML_DUMPS_BEHIND_FIRST,
    .run = run,
};

const struct ml_command ml_command_list = {
    .table =
        {.program = "memlog",
         .name = "list",
         .summary = "all of a process's memory, row by row",
         .usage = "[OPTIONS] [DUMP]",
         .about = "Lists all memory of the processes, one row for each owner, stack and kind of "
                  "mapping, with the component that the policy sorts it into.",
         ML_OPTIONS(list_options),
         ML_OPERANDS_NEWEST(struct request, words, 1),
         .example = "memlog list --policy=l2 memlog.sqlite3.1234/0001.exit.pftrace"},
    .dumps = ML_DUMPS_OR_NEWEST,
    .run = run,
};
