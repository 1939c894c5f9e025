#include <stdio.h>
#include <string.h>

#include "tools/command.h"
#include "tools/elf_allocators.h"
#include "tools/report.h"

static const char help[] =
    "memlog report [--json|--csv|--summary] [--by=WHAT] [--metric=METRIC] [--sort=ORDER]\n"
    "              [--focus=REGEX] [--ignore=REGEX] [--show=REGEX] [--hide=REGEX] [--plumbing]\n"
    "              [--limit=N] [--pid=PID] [--dump=N] [--ended=yes|no] DUMP\n"
    "\n"
    "Tell who allocated what: the whole process tree, each process, and the stacks that hold "
    "most.\n"
    "\n"
    "  --by=WHAT        instead of stacks: function, module, thread, size or process\n"
    "  --metric=METRIC  one list, of what is live, peak or total (all that was ever allocated)\n"
    "  --sort=ORDER     bytes (default), blocks, temporary (blocks freed as the next thing that\n"
    "                   their thread did); with --by=function or module also cumulative\n"
    "  --focus=REGEX    stacks alone in which a function, source file or module matches\n"
    "  --ignore=REGEX   no stack in which one matches\n"
    "  --show=REGEX     of each stack the frames alone that match\n"
    "  --hide=REGEX     of each stack the frames that do not match\n"
    "  --plumbing       operator new, std::, g_malloc and the like at a stack's inner end are "
    "left\n"
    "                   out of the text, and count for their caller; show them\n"
    "  --json           everything, for programs (the form is in the manual: one object, exact\n"
    "                   numbers); with --by the rows\n"
    "  --csv            the list alone, for spreadsheets: rows or stacks\n"
    "  --summary        a dozen lines, as at the end of a run\n"
    "  --limit=N        at most N lines of each list (text: 5 stacks or 20 rows; else all)\n"
    "  --pid=PID        this process alone, as if it were the tree\n"
    "  --dump=N         of several dumps in one file (cat A B) the Nth (default: the last)\n"
    "  --ended=yes|no   count what ended processes left as live, or never (default: only where\n"
    "                   nothing runs any more)\n"
    "\n"
    "live       allocated and not freed at the dump, by processes that run\n"
    "left       what processes held when they ended, or when their recording was stopped\n"
    "peak       what was live at the moment when the tree held most, not the sum of peaks\n"
    "allocated  everything ever allocated\n"
    "\n"
    "Shares are always of the whole dump. Expressions are POSIX extended ones, as of grep -E.\n"
    "\n"
    "Example: memlog report --by=function --sort=cumulative "
    "memlog.sqlite3.1234/0001.exit.pftrace\n";

/* The words as they stood there. */
struct words {
    const char *by, *metric, *order, *limit, *pid, *dump, *ended;
    bool json, csv, summary;
};

/* The place of `value` in `names`; 0 when it is not given. False after a complaint. */
static bool choose(
    const struct ml_command *command,
    const char *option,
    const char *value,
    const char *const *names,
    size_t count,
    size_t *out_at
) {
    *out_at = 0;
    for (size_t i = 0; value && i < count; i++) {
        if (strcmp(value, names[i]) == 0) {
            *out_at = i;
            return true;
        }
    }
    if (value) {
        ml_command_complain_of_value(command, option, value, names, count);
    }
    return !value;
}

/* What the lists are about. ML_EXIT_OK, or ML_EXIT_USAGE after a complaint. */
static int
understand(const struct ml_command *command, const struct words *words, struct ml_report *report) {
    static const char *const kinds[] = {"function", "module", "thread", "size", "process"};
    static const char *const orders[] = {"bytes", "cumulative", "blocks", "temporary"};
    size_t by = 0;
    size_t order = 0;

    if (!choose(command, "--by", words->by, kinds, 5, &by) ||
        !choose(command, "--sort", words->order, orders, 4, &order) ||
        ml_command_metric(command, words->metric, &report->metric) != ML_EXIT_OK) {
        return ML_EXIT_USAGE;
    }
    report->by = (enum ml_breakdown_by)by;
    report->order = (enum ml_breakdown_order)order;
    if (report->order == ML_ORDER_CUMULATIVE && (!words->by || report->by > ML_BY_MODULE)) {
        return ml_command_complain(command, "--sort=cumulative is for --by=function or module");
    }
    if (report->order == ML_ORDER_TEMPORARY && !words->metric) {
        report->metric = ML_METRIC_TOTAL; /* nothing of them is live */
    }
    if (words->json + words->csv + words->summary > 1) {
        return ml_command_complain(
            command, "--json, --csv and --summary are different things: one of them"
        );
    }
    if (words->summary && (words->by || words->order || words->metric)) {
        return ml_command_complain(command, "--summary is always the same: no list with it");
    }
    if (words->by) {
        report->list = ML_LIST_ROWS;
    } else if (words->metric || words->order) {
        report->list = ML_LIST_STACKS;
    }
    if (words->json && report->list == ML_LIST_STACKS) {
        return ml_command_complain(command, "--json has all stacks by live bytes; sort them there");
    }
    return ML_EXIT_OK;
}

static void say(const struct words *words, const struct ml_report *report) {
    const struct ml_report_style style = ml_command_style();

    if (words->json) {
        ml_report_json(report, stdout);
    } else if (words->csv) {
        ml_report_csv(report, stdout);
    } else if (words->summary) {
        ml_report_summary(report, &style, stdout);
    } else {
        ml_report_text(report, &style, stdout);
    }
}

static int tell(
    const struct ml_command *command,
    const struct words *words,
    const struct ml_loaded *loaded,
    struct ml_report *report
) {
    struct ml_breakdown breakdown = {0};
    enum ml_status status = ML_OK;
    int exit_code = ML_EXIT_FAILED;

    report->profile = &loaded->profile;
    report->stacks = &loaded->stacks;
    report->breakdown = &breakdown;
    if (report->list == ML_LIST_ROWS) {
        status =
            ml_breakdown_init(&breakdown, &loaded->stacks, report->by, report->is_plumbing_shown);
        ml_breakdown_sort(&breakdown, report->metric, report->order);
    }
    if (status == ML_OK) {
        say(words, report);
        exit_code = ml_command_finish(command);
    } else {
        ml_command_say(command, "%s", ml_status_text(status));
    }
    ml_breakdown_fini(&breakdown);
    report->breakdown = NULL;
    return exit_code;
}

static int run(const struct ml_command *command, int argc, char **argv) {
    struct ml_report report = {0};
    struct words words = {0};
    struct ml_load load = {.keeps_own_live = true, .takes_unrecorded = true};
    struct ml_loaded loaded;
    uint64_t limit = 0;
    bool go_on = false;
    const struct ml_option options[] = {
        {.name = "--json", .out_given = &words.json},
        {.name = "--csv", .out_given = &words.csv},
        {.name = "--summary", .out_given = &words.summary},
        {.name = "--plumbing", .out_given = &report.is_plumbing_shown},
        {.name = "--by", .out_value = &words.by},
        {.name = "--metric", .out_value = &words.metric},
        {.name = "--sort", .out_value = &words.order},
        {.name = "--focus", .out_value = &load.sift.focus},
        {.name = "--ignore", .out_value = &load.sift.ignore},
        {.name = "--show", .out_value = &load.sift.show},
        {.name = "--hide", .out_value = &load.sift.hide},
        {.name = "--limit", .out_value = &words.limit},
        {.name = "--pid", .out_value = &words.pid},
        {.name = "--dump", .out_value = &words.dump},
        {.name = "--ended", .out_value = &words.ended},
    };
    int exit_code = ml_command_arguments(
        command, argc, argv, options, sizeof options / sizeof options[0], &load.path, 1, &go_on
    );

    if (!go_on) {
        return exit_code;
    }
    if (understand(command, &words, &report) != ML_EXIT_OK ||
        ml_command_limit(command, words.limit, &limit) != ML_EXIT_OK ||
        ml_command_pid(command, words.pid, &load.pid) != ML_EXIT_OK ||
        ml_command_dump(command, words.dump, &load.dump) != ML_EXIT_OK ||
        ml_command_ended(command, words.ended, &load.ended) != ML_EXIT_OK ||
        ml_command_sift(command, &load.sift) != ML_EXIT_OK) {
        return ML_EXIT_USAGE;
    }
    report.limit = limit;
    report.file_path = load.path;
    report.pid = load.pid;
    report.is_sifted = ml_sift_is_any(&load.sift);
    if (report.is_sifted && report.list == ML_LIST_ROWS && report.by == ML_BY_SIZE) {
        return ml_command_complain(
            command,
            "sizes are known of all stacks together: no --focus and the like with --by=size"
        );
    }
    exit_code = ml_command_load(command, &load, &loaded);
    if (exit_code == ML_EXIT_OK) {
        ml_elf_allocators_look(&loaded.profile);
        exit_code = tell(command, &words, &loaded, &report);
    }
    ml_loaded_fini(&loaded);
    return exit_code;
}

const struct ml_command ml_command_report = {
    .name = "report",
    .summary = "who allocated what, as text or JSON",
    .help = help,
    .run = run,
};
