/* `memlog check`: dumps beside a budget. Room: tools. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/input_file.h"
#include "tools/analyzer/budget/output.h"
#include "tools/analyzer/cli/command.h"
#include "tools/analyzer/cli/newest.h"
#include "tools/analyzer/cli/suppress.h"
#include "tools/analyzer/cli/text_file.h"

/* More runs of one program tell nothing more of its noise. */
enum { DUMPS_MAX = 256, BASES_MAX = 64 };

enum { NOW, BASE, SIDES };

/* What was left out of the dumps, for as long as they are judged. */
struct told {
    struct ml_suppressed suppressed[DUMPS_MAX + BASES_MAX];
    const char *files[DUMPS_MAX + BASES_MAX];
    size_t count;
};

struct request {
    struct told *told;
    const char *budget, *junit, *sarif, *suppressions;
    bool is_budget_alone;
    const char *bases[BASES_MAX];
    size_t bases_count;
    const char *files[DUMPS_MAX + 1];
};

static bool read_base(void *to, const char *value, struct ml_error_message *why) {
    struct request *request = to;

    if (request->bases_count == BASES_MAX) {
        ml_error_set(why, "there are more than %d", BASES_MAX);
        return false;
    }
    request->bases[request->bases_count++] = value;
    return value[0] != '\0';
}

static const struct ml_option options[] = {
    {.name = "--budget",
     ML_PATH_TO(struct request, budget),
     .value = "FILE",
     .help = "the rules, in JSON: docs/budgets.md lists their keys"},
    {.name = "--base",
     ML_READ_BY(read_base),
     .value = "DUMP",
     .wants = "a dump or a folder of one",
     .help = "what growth is counted from; of several their median. Repeatable"},
    {.name = "--junit",
     ML_PATH_TO(struct request, junit),
     .value = "FILE",
     .help = "write JUnit's XML, too: a broken rule is a failure, one that is not sure an error"},
    {.name = "--sarif",
     ML_PATH_TO(struct request, sarif),
     .value = "FILE",
     .help = "write SARIF 2.1.0, too: at the line of the function where it is known"},
    ML_ROW_SUPPRESSIONS(struct request, suppressions),
    {.name = "--validate",
     ML_FLAG_TO(struct request, is_budget_alone),
     .help = "read the budget, and look whether the base is there, but judge nothing"},
};

static int read_budget(
    const struct ml_command *command,
    const struct request *request,
    struct ml_budget_rules *out_budget
) {
    struct ml_error_message error = {.text = ""};
    size_t count = 0;
    char *bytes = ml_command_text_file(
        command, request->budget, ML_BUDGET_MAX_BYTES, "docs/budgets.md has one to copy", &count
    );
    bool done = false;

    if (!bytes) {
        return ML_EXIT_USAGE;
    }
    done = ml_budget_read(out_budget, bytes, count, request->budget, &error);
    if (!done) {
        ml_command_say(command, "%s", error.text);
    }
    free(bytes);
    return done ? ML_EXIT_OK : ML_EXIT_USAGE;
}

static bool asks_for_types(const struct ml_budget_rules *budget) {
    for (size_t i = 0; i < budget->rules_count; i++) {
        if (budget->rules[i].has[ML_BUDGET_TYPE]) {
            return true;
        }
    }
    return false;
}

/* Dumps are read one by one: each may be large. */
static int add_dump(
    const struct ml_command *command,
    const struct request *request,
    const struct ml_budget_rules *budget,
    const char *path,
    struct ml_budget_side *side
) {
    const struct ml_load load = {
        .path = path,
        .output_path = request->junit,
        .second_output_path = request->sarif,
        .suppressions = request->suppressions,
        .processes = ML_LOAD_OWN,
        .takes_unrecorded = true,
        .finds_types = asks_for_types(budget)};
    struct ml_budget_dump *dump = &side->dumps[side->count];
    struct ml_loaded loaded;
    int exit_code = ML_EXIT_OK;

    *dump = (struct ml_budget_dump
    ){.file = path, .values = calloc(ml_budget_limits(budget) + 1, sizeof *dump->values)};
    side->count++;
    exit_code = ml_command_load(command, &load, &loaded);
    if (exit_code == ML_EXIT_OK &&
        (!dump->values || !ml_budget_measure(budget, &loaded.stacks, dump->values))) {
        ml_command_say_of(command, path, "%s", ml_status_text(ML_ENV_MEMORY));
        exit_code = ML_EXIT_FAILED;
    }
    if (loaded.suppressed.rules) {
        request->told->files[request->told->count] = path;
        request->told->suppressed[request->told->count++] = loaded.suppressed;
        loaded.suppressed = (struct ml_suppressed){.rules = NULL};
    }
    ml_loaded_fini(&loaded);
    return exit_code;
}

static void tell_suppressed(const struct told *told) {
    const struct ml_suppressed *all[DUMPS_MAX + BASES_MAX];

    for (size_t i = 0; i < told->count; i++) {
        all[i] = &told->suppressed[i];
    }
    ml_command_tell_suppressed(all, told->count > 1 ? told->files : NULL, told->count, stdout);
}

static int write_one(
    const struct ml_command *command,
    const char *path,
    void (*put)(const struct ml_budget_verdicts *verdicts, FILE *out),
    const struct ml_budget_verdicts *verdicts
) {
    struct ml_output output;
    enum ml_status status = ML_OK;

    if (!path) {
        return ML_EXIT_OK;
    }
    status = ml_output_open(&output, path);
    if (status == ML_OK) {
        put(verdicts, output.file);
        status = ml_output_close(&output, ML_OK);
    }
    return ml_command_written(command, path, status);
}

static int tell(
    const struct ml_command *command,
    const struct request *request,
    const struct ml_budget_verdicts *verdicts
) {
    int exit_code = write_one(command, request->junit, ml_budget_junit, verdicts);

    if (exit_code == ML_EXIT_OK) {
        exit_code = write_one(command, request->sarif, ml_budget_sarif, verdicts);
    }
    ml_budget_text(verdicts, stdout);
    tell_suppressed(request->told);
    if (exit_code == ML_EXIT_OK) {
        exit_code = ml_command_finish(command);
    }
    if (exit_code != ML_EXIT_OK) {
        return exit_code;
    }
    return verdicts->of[ML_VERDICT_BROKEN] > 0   ? ML_EXIT_BROKEN
           : verdicts->of[ML_VERDICT_UNSURE] > 0 ? ML_EXIT_UNSURE
                                                 : ML_EXIT_OK;
}

static int check(
    const struct ml_command *command,
    const struct request *request,
    const struct ml_budget_rules *budget,
    struct ml_budget_side sides[SIDES]
) {
    struct ml_budget_verdicts verdicts;
    int exit_code = ML_EXIT_OK;

    for (size_t i = 0; exit_code == ML_EXIT_OK && i < request->bases_count; i++) {
        exit_code = add_dump(command, request, budget, request->bases[i], &sides[BASE]);
    }
    for (size_t i = 0; exit_code == ML_EXIT_OK && request->files[i]; i++) {
        exit_code = add_dump(command, request, budget, request->files[i], &sides[NOW]);
    }
    if (exit_code != ML_EXIT_OK) {
        return exit_code;
    }
    if (ml_budget_judge(budget, request->budget, &sides[NOW], &sides[BASE], &verdicts)) {
        exit_code = tell(command, request, &verdicts);
    } else {
        ml_command_say(command, "%s", ml_status_text(ML_ENV_MEMORY));
        exit_code = ML_EXIT_FAILED;
    }
    ml_budget_verdicts_fini(&verdicts);
    return exit_code;
}

/* Whether known leaks can be read and the dumps to compare with are there, before a run that may
 * take long. */
static int look_for_files(const struct ml_command *command, const struct request *request) {
    if (request->suppressions && !ml_command_suppressions(command, request->suppressions)) {
        return ML_EXIT_USAGE;
    }
    for (size_t i = 0; i < request->bases_count; i++) {
        const char *base = request->bases[i];
        bool is_stream = false;
        char newest[PATH_MAX];
        if (ml_newest_is_folder(base) && ml_newest_in(base, newest)) {
            continue;
        }
        FILE *file = ml_input_open(base, &is_stream);
        if (!file) {
            ml_command_say_of(command, base, "%s", ml_input_trouble(errno));
            return ML_EXIT_USAGE;
        }
        fclose(file);
    }
    return ML_EXIT_OK;
}

/* What the words alone cannot say: a budget is needed, and folders stand for their newest dump.
 * ML_EXIT_OK, or the exit code. */
static int complete(const struct ml_command *command, struct request *request) {
    if (!request->budget) {
        return ml_command_fail(command, "which budget? --budget=FILE names it");
    }
    if (!request->files[0] && !request->is_budget_alone) {
        request->files[0] = ml_command_newest(command);
        return request->files[0] ? ML_EXIT_OK : ML_EXIT_USAGE;
    }
    for (size_t i = 0; !request->is_budget_alone && i < request->bases_count; i++) {
        if (ml_newest_is_folder(request->bases[i])) {
            request->bases[i] = ml_command_newest_in(command, request->bases[i]);
        }
        if (!request->bases[i]) {
            return ML_EXIT_FAILED;
        }
    }
    return ML_EXIT_OK;
}

static int judge_all(const struct ml_command *command, char *const *words, struct told *told) {
    struct request request = {.told = told};
    struct ml_budget_dump dumps[SIDES][DUMPS_MAX] = {{{.file = NULL}}};
    struct ml_budget_side sides[SIDES] = {{.dumps = dumps[NOW]}, {.dumps = dumps[BASE]}};
    struct ml_budget_rules budget = {0};
    int exit_code = ML_EXIT_OK;

    if (!ml_command_read(command, words, &request, NULL, &exit_code)) {
        return exit_code;
    }
    exit_code = complete(command, &request);
    if (exit_code != ML_EXIT_OK) {
        return exit_code;
    }
    const struct ml_load confined = {
        .output_path = request.junit, .second_output_path = request.sarif};
    ml_command_confine(&confined);
    exit_code = read_budget(command, &request, &budget);
    if (exit_code == ML_EXIT_OK) {
        exit_code = request.is_budget_alone ? look_for_files(command, &request)
                                            : check(command, &request, &budget, sides);
    }
    for (size_t side = 0; side < SIDES; side++) {
        for (size_t i = 0; i < sides[side].count; i++) {
            if (dumps[side][i].values) {
                ml_budget_values_clear(dumps[side][i].values, ml_budget_limits(&budget));
            }
            free(dumps[side][i].values);
        }
    }
    ml_budget_fini(&budget);
    return exit_code;
}

static int run(const struct ml_command *command, char *const *words) {
    struct told *told = calloc(1, sizeof *told);
    int exit_code = ML_EXIT_FAILED;

    if (!told) {
        ml_command_say(command, "%s", ml_status_text(ML_ENV_MEMORY));
        return exit_code;
    }
    exit_code = judge_all(command, words, told);
    for (size_t i = 0; i < told->count; i++) {
        ml_suppressed_fini(&told->suppressed[i]);
    }
    free(told);
    return exit_code;
}

const struct ml_command ml_command_check = {
    .table =
        {.program = "memlog",
         .name = "check",
         .summary = "hold dumps against a budget, for build servers",
         .usage = "[OPTIONS] --budget=FILE [DUMP...]",
         .about = "Tells for each rule of a budget whether it is held or broken, by how much, and "
                  "who holds the memory. Several dumps are several runs of one program: each rule "
                  "is judged by their median.",
         ML_OPTIONS(options),
         .operands = ML_OPERANDS_FILES,
         .operands_offset = offsetof(struct request, files),
         .operands_most = DUMPS_MAX,
         .notes = "Exit code: 0 all rules are held; 3 one is broken; 4 none is broken, but one can "
                  "be called neither, as events were lost or the profile is sampled; 1 a dump "
                  "cannot be read; 2 the budget or the options were not understood.",
         .example = "memlog check --budget=budget.json --junit=memory.xml memlog.server.1234"},
    .dumps = ML_DUMPS_ALL,
    .run = run,
};
