#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/analyzer/cli/command.h"
#include "tools/analyzer/cli/progress.h"
#include "tools/analyzer/cli/suppress.h"
#include "tools/analyzer/report/report.h"
#include "tools/analyzer/screen/screen.h"
#include "tools/analyzer/symbols/elf_allocators.h"

enum form { FORM_SCREEN, FORM_FULL, FORM_JSON, FORM_CSV, FORM_SUMMARY };

struct request {
    enum form form;
    struct ml_load load;
    struct ml_report report;
    uint32_t limit;
    struct ml_pids pids;
};

/* "1,22,333": for `memlog top`. */
static bool read_pids(void *to, const char *value, struct ml_error_message *why) {
    struct ml_pids *pids = &((struct request *)to)->pids;
    bool goes_on = true;

    (void)why;
    pids->count = 0;
    while (goes_on) {
        char *end = NULL;
        const unsigned long pid = strtoul(value, &end, 10);
        if (end == value || !isdigit((unsigned char)value[0]) || pid == 0 || pid > INT_MAX ||
            pids->count == ML_PIDS_MAX) {
            return false;
        }
        pids->items[pids->count++] = (uint32_t)pid;
        goes_on = *end == ',';
        value = goes_on ? end + 1 : end;
    }
    return value[0] == '\0';
}

static const char *const kinds[] = {
    "function",
    "module",
    "thread",
    "size",
    "process",
    "type",
    "heap",
    "scope",
    "file",
    "line",
    NULL};
static const char *const orders[] = {"bytes", "cumulative", "blocks", "temporary", NULL};

static const struct ml_option options[] = {
    {.name = "--by",
     ML_WORD_TO(struct request, report.by),
     .value = "WHAT",
     .words = kinds,
     .group = "Which list",
     .help = "instead of stacks:"},
    ML_ROW_METRIC(
        struct request,
        report.metric,
        "one list, of what is live, at the peak, or ever allocated; of live blocks what is "
        "resident, "
        "what their pages waste, or pages on which a stack's blocks lie alone (text with --by: "
        "peak where hardly anything is live, else live)"
    ),
    {.name = "--sort",
     ML_WORD_TO(struct request, report.order),
     .value = "ORDER",
     .words = orders,
     .help = "bytes (default); temporary: blocks freed as the next thing that their thread did; "
             "with --by=function, module, file, line or scope also cumulative:"},
    ML_ROWS_FRAME_FILTER(struct request, load.filter),
    {.name = "--plumbing",
     ML_FLAG_TO(struct request, report.is_every_frame_shown),
     .help = "operator new, std::, g_malloc and the like at a stack's inner end are left out of "
             "the text, and count for their caller; show them"},
    ML_ROW_LIMIT(
        struct request, limit, "at most N lines of each list (text: 5 stacks or 20 rows; else all)"
    ),
    ML_ROW_PID(struct request, load.pid, "this process alone, as if it were the tree"),
    {.name = "--pids", ML_READ_BY(read_pids), .value = "PID,...", .wants = "process ids"},
    ML_ROW_HEAP(struct request, load.heap),
    ML_ROW_DUMP(struct request, load.dump),
    ML_ROW_ENDED(struct request, load.ended),
    ML_ROW_SUPPRESSIONS(struct request, load.suppressions),
    {.name = "--full",
     ML_CHOICE_TO(struct request, form, FORM_FULL),
     .group = "Form",
     .help = "all that people read: every process, stacks frame by frame, what is missing and why"},
    {.name = "--json",
     ML_CHOICE_TO(struct request, form, FORM_JSON),
     .help = "everything, for programs: one object, exact numbers; with --by the rows"},
    {.name = "--csv",
     ML_CHOICE_TO(struct request, form, FORM_CSV),
     .help = "the list alone, for spreadsheets: rows or stacks"},
    {.name = "--summary",
     ML_CHOICE_TO(struct request, form, FORM_SUMMARY),
     .help = "the first screen, as at the end of a run"},
};

/* The subject of the lists, by the options. ML_EXIT_OK, or ML_EXIT_USAGE after an error message.
 */
static int understand(const struct ml_command *command, struct request *request, uint64_t given) {
    const bool by = ml_option_given(&command->table, given, "--by");
    const bool metric = ml_option_given(&command->table, given, "--metric");
    const bool sort = ml_option_given(&command->table, given, "--sort");
    struct ml_report *report = &request->report;

    if (report->order == ML_ORDER_CUMULATIVE && (!by || !ml_breakdown_is_of_frames(report->by))) {
        return ml_command_fail(
            command, "--sort=cumulative is for --by=function, module, file, line or scope"
        );
    }
    if (report->order == ML_ORDER_TEMPORARY && !metric) {
        report->metric = ML_METRIC_TOTAL; /* nothing of them is live */
    }
    if (request->form == FORM_SUMMARY && (by || sort || metric)) {
        return ml_command_fail(command, "--summary is always the same: no list with it");
    }
    if (by) {
        report->list = ML_LIST_ROWS;
    } else if (metric || sort) {
        report->list = ML_LIST_STACKS;
    }
    if (request->form == FORM_JSON && report->list == ML_LIST_STACKS) {
        return ml_command_fail(command, "--json has all stacks by live bytes; sort them there");
    }
    request->load.pids = request->pids.count > 0 ? &request->pids : NULL;
    request->load.finds_types =
        report->list == ML_LIST_ROWS ? report->by == ML_BY_TYPE : request->form == FORM_JSON;
    report->limit = request->limit;
    report->file_path = request->load.path;
    report->pid = request->load.pid;
    if (ml_frame_filter_is_any(&request->load.filter) && report->list == ML_LIST_ROWS &&
        (report->by == ML_BY_SIZE || report->by == ML_BY_HEAP)) {
        return ml_command_fail(
            command,
            "sizes and heaps are known of all stacks together: no --focus and the like with "
            "--by=size or heap"
        );
    }
    if (request->load.heap && by && report->by == ML_BY_HEAP) {
        return ml_command_fail(command, "--by=heap lists all heaps: no --heap with it");
    }
    return ML_EXIT_OK;
}

/* What stands below stacks, or below the rows. */
static enum ml_groups_of groups_of(const struct request *request) {
    const struct ml_report *report = &request->report;

    if (request->form != FORM_JSON) {
        return ML_GROUPS_NONE;
    }
    if (report->list != ML_LIST_ROWS) {
        return ML_GROUPS_OF_STACKS;
    }
    return report->by == ML_BY_TYPE   ? ML_GROUPS_OF_TYPES
           : report->by == ML_BY_HEAP ? ML_GROUPS_OF_HEAPS
                                      : ML_GROUPS_NONE;
}

static void say(enum form form, const struct ml_report *report) {
    const struct ml_report_style style = ml_command_style();

    switch (form) {
    case FORM_JSON:
        ml_report_json(report, stdout);
        break;
    case FORM_CSV:
        ml_report_csv(report, stdout);
        break;
    case FORM_SUMMARY:
        ml_screen(report, &style, true, stdout);
        break;
    case FORM_SCREEN:
        if (report->list == ML_LIST_USUAL) {
            ml_screen(report, &style, false, stdout);
            break;
        }
        /* fall through */
    default:
        ml_report_text(report, &style, stdout);
    }
}

static int
tell(const struct ml_command *command, struct request *request, const struct ml_loaded *loaded) {
    struct ml_report *report = &request->report;
    const struct ml_suppressed *suppressed = &loaded->suppressed;
    struct ml_breakdown breakdown = {0};
    enum ml_status status = ML_OK;
    int exit_code = ML_EXIT_FAILED;

    report->profile = &loaded->profile;
    report->stacks = &loaded->stacks;
    report->groups = &loaded->groups;
    report->suppressed = suppressed->rules ? suppressed : NULL;
    report->breakdown = &breakdown;
    if (report->list == ML_LIST_ROWS) {
        ml_command_progress_begin();
        status = ml_breakdown_init(
            &breakdown, &loaded->stacks, report->by, report->is_every_frame_shown
        );
        ml_command_progress_end();
        ml_breakdown_sort(&breakdown, report->metric, report->order);
    }
    if (status == ML_OK) {
        ml_command_progress_resume(stdout);
        say(request->form, report);
        ml_command_progress_end();
        if (request->form != FORM_JSON) { /* which has it itself */
            FILE *out = request->form == FORM_CSV ? stderr : stdout;
            ml_command_tell_suppressed(&suppressed, NULL, 1, out);
        }
        exit_code = ml_command_finish(command);
    } else {
        ml_command_say(command, "%s", ml_status_text(status));
    }
    ml_breakdown_fini(&breakdown);
    report->breakdown = NULL;
    return exit_code;
}

/* Rows that people read begin with what tells most, as graphs do. Programs get what they got; of
 * types that blocks themselves tell the peak is not known. */
static bool is_for_choice(const struct request *request) {
    const struct ml_report *report = &request->report;

    return (request->form == FORM_SCREEN || request->form == FORM_FULL) &&
           report->list == ML_LIST_ROWS && report->by != ML_BY_TYPE &&
           report->order != ML_ORDER_TEMPORARY;
}

static int run(const struct ml_command *command, char *const *words) {
    struct request request = {.load = {.processes = ML_LOAD_OWN, .takes_unrecorded = true}};
    struct ml_loaded loaded;
    uint64_t given = 0;
    int exit_code = ML_EXIT_OK;

    if (!ml_command_read(command, words, &request, &given, &exit_code)) {
        return exit_code;
    }
    exit_code = understand(command, &request, given);
    if (exit_code != ML_EXIT_OK) {
        return exit_code;
    }
    request.load.groups = groups_of(&request);
    exit_code = ml_command_load(command, &request.load, &loaded);
    if (exit_code == ML_EXIT_OK && is_for_choice(&request) &&
        !ml_option_given(&command->table, given, "--metric")) {
        request.report.metric = ml_metric_telling(&loaded.profile.tree);
    }
    if (exit_code == ML_EXIT_OK &&
        !ml_command_knows(command, request.load.path, &loaded, request.report.metric)) {
        exit_code = ML_EXIT_LACKING;
    }
    if (exit_code == ML_EXIT_OK) {
        ml_elf_allocators_look(&loaded.profile);
        exit_code = tell(command, &request, &loaded);
    }
    ml_loaded_fini(&loaded);
    return exit_code;
}

const struct ml_command ml_command_report = {
    .table =
        {.program = "memlog",
         .name = "report",
         .summary = "who holds which memory, as text or JSON",
         .usage = "[OPTIONS] [DUMP]",
         .about = "Tells who allocated what: the whole process tree, each process, and the stacks "
                  "that hold most.",
         ML_OPTIONS(options),
         ML_OPERANDS_NEWEST(struct request, load.path, 1),
         .notes = "  live       allocated and not freed at the dump, by processes that run\n"
                  "  left       what processes held when they ended, or their recording did\n"
                  "  peak       what was live at the moment when the tree held most, not the sum\n"
                  "             of peaks\n"
                  "  allocated  everything ever allocated\n"
                  "\n"
                  "Shares are always of the whole dump. Expressions are POSIX extended ones, as of "
                  "grep -E.",
         .example = "memlog report --by=function memlog.sqlite3.1234/0001.exit.pftrace"},
    .dumps = ML_DUMPS_OR_NEWEST,
    .run = run,
};
