#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/input_file.h"
#include "tools/analyzer/cli/command.h"
#include "tools/analyzer/cli/join.h"
#include "tools/analyzer/formats/chrome_trace.h"
#include "tools/analyzer/formats/collapsed.h"
#include "tools/analyzer/formats/flame.h"
#include "tools/analyzer/formats/heap_text.h"
#include "tools/analyzer/formats/pprof.h"
#include "tools/analyzer/sqlite/file.h"
#include "tools/analyzer/report/report.h"

/* In the order of form_words. */
enum to { TO_PERFETTO, TO_PPROF, TO_HEAP, TO_CHROME, TO_COLLAPSED, TO_SQLITE, TO_JSON, TO_HTML };

/* Of one run; a recording has fewer. */
enum { DUMPS_MAX = 256 };

struct request {
    enum to to;
    const char *files[DUMPS_MAX + 1];
    const char *output, *before;
    enum ml_metric metric;
    struct ml_load load;
    const struct ml_loaded *earlier; /* of `before`, if it has what is shown */
};

static const char *const form_words[] = {
    "perfetto", "pprof", "heap", "chrome", "collapsed", "sqlite", "json", "html", NULL};

static const struct ml_option options[] = {
    {.name = "--to",
     ML_WORD_TO(struct request, to),
     .value = "FORMAT",
     .words = form_words,
     .help = "what it becomes (below):"},
    ML_ROW_OUTPUT(struct request, output, "where to (default: stdout)"),
    ML_ROW_PID(struct request, load.pid, "this process only"),
    ML_ROW_HEAP(struct request, load.heap),
    ML_ROW_METRIC(
        struct request,
        metric,
        "which bytes (chrome, collapsed; html and pprof show it first; the others hold more than "
        "one); default live; of pages: resident, waste or alone"
    ),
    ML_ROW_BY(struct request, load.grouping),
    {.name = "--before",
     ML_PATH_TO(struct request, before),
     .value = "DUMP",
     .help = "what changed since an earlier dump, as pprof's -base does (pprof)"},
    ML_ROW_PRUNE(struct request, load.prune_bytes),
    ML_ROW_DUMP(struct request, load.dump),
    ML_ROW_ENDED(struct request, load.ended),
};

static enum ml_status
write_pprof(const struct request *request, const struct ml_loaded *loaded, FILE *out) {
    const bool has_before = request->before && !request->earlier->is_lacking;
    const struct ml_stacks *before = has_before ? &request->earlier->stacks : NULL;

    return ml_pprof_write_diff(&loaded->stacks, before, ML_PPROF_BASE, request->metric, out);
}

static enum ml_status
write_heap(const struct request *request, const struct ml_loaded *loaded, FILE *out) {
    (void)request;
    return ml_heap_text_write(&loaded->stacks, out);
}

static enum ml_status
write_chrome(const struct request *request, const struct ml_loaded *loaded, FILE *out) {
    const bool is_alone = request->load.dump != 0 || loaded->is_stream ||
                          loaded->profile.dumps_count == 0; /* cut before the first ends */
    const size_t count = is_alone ? 1 : loaded->profile.dumps_count;
    struct ml_chrome_dump *dumps = calloc(count, sizeof *dumps);
    struct ml_loaded *others = calloc(count, sizeof *others);
    struct ml_load load = request->load;
    bool done = dumps && others;
    enum ml_status status = ML_ENV_MEMORY;

    for (size_t i = 0; done && i < count; i++) {
        const bool is_last = i + 1 == count; /* which is loaded already */
        load.dump = (uint32_t)i + 1;
        load.may_lack_heap = !is_last;
        done = is_last || ml_command_load(&ml_command_convert, &load, &others[i]) == ML_EXIT_OK;
        dumps[i] = (struct ml_chrome_dump
        ){.stacks = is_last ? &loaded->stacks : &others[i].stacks,
          .lists_unrecorded = true,
          .tells_heaps = true,
          .lists_regions = load.prune_bytes == 0,
          .needed_modules_only = load.prune_bytes > 0};
    }
    if (done) {
        status = ml_chrome_trace_write(dumps, count, request->metric, out);
    }
    for (size_t i = 0; others && i + 1 < count; i++) {
        ml_loaded_fini(&others[i]);
    }
    free(dumps);
    free(others);
    return status;
}

static enum ml_status
write_collapsed(const struct request *request, const struct ml_loaded *loaded, FILE *out) {
    return ml_collapsed_write(&loaded->stacks, request->metric, out);
}

static enum ml_status
write_sqlite(const struct request *request, const struct ml_loaded *loaded, FILE *out) {
    (void)request;
    return ml_sqlite_file_write(&loaded->stacks, out);
}

static enum ml_status
write_json(const struct request *request, const struct ml_loaded *loaded, FILE *out) {
    const struct ml_report report = {
        .profile = &loaded->profile,
        .stacks = &loaded->stacks,
        .groups = &loaded->groups,
        .file_path = request->load.path};

    ml_report_json(&report, out);
    return ML_OK;
}

static enum ml_status
write_html(const struct request *request, const struct ml_loaded *loaded, FILE *out) {
    return ml_flame_write(&loaded->stacks, NULL, request->metric, out);
}

static enum ml_status
write_perfetto(const struct request *request, const struct ml_loaded *loaded, FILE *out) {
    size_t places = 0;

    return ml_command_write_symbolized(request->load.path, loaded, out, &places);
}

/* A form that a dump can take. */
struct form {
    enum ml_status (*write)(const struct request *, const struct ml_loaded *, FILE *);
    bool has_metric; /* shows one at a time */
    bool has_order;  /* shows frames alone */
    bool is_binary;  /* not for a terminal */
    bool lists_all;  /* also of processes without a profile */
    bool takes_many; /* dumps */
    enum ml_load_processes processes;
};

static const struct form forms[] = {
    [TO_PERFETTO] = {.write = write_perfetto, .is_binary = true, .takes_many = true},
    [TO_PPROF] = {.write = write_pprof, .has_metric = true, .is_binary = true},
    [TO_HEAP] = {.write = write_heap},
    [TO_CHROME] = {.write = write_chrome, .has_metric = true, .is_binary = true},
    [TO_COLLAPSED] = {.write = write_collapsed, .has_metric = true, .has_order = true},
    [TO_SQLITE] = {.write = write_sqlite, .is_binary = true, .lists_all = true, .takes_many = true},
    [TO_JSON] = {.write = write_json, .lists_all = true, .processes = ML_LOAD_OWN},
    [TO_HTML] =
        {.write = write_html, .has_metric = true, .has_order = true, .processes = ML_LOAD_OWN},
};

/* Check what was asked for. ML_EXIT_OK, or the exit code after an error message. */
static int check(const struct ml_command *command, struct request *request, uint64_t given) {
    const struct form *form = &forms[request->to];
    const struct ml_load *load = &request->load;

    if (!ml_option_given(&command->table, given, "--to")) {
        return ml_command_fail(
            command,
            "--to=FORMAT is missing: perfetto, pprof, heap, chrome, collapsed, sqlite, json or html"
        );
    }
    if (ml_option_given(&command->table, given, "--metric") && !form->has_metric) {
        return ml_command_fail(
            command,
            "--metric goes with --to=pprof, chrome, collapsed and html only; the other forms hold "
            "more than one"
        );
    }
    if (load->grouping != ML_GROUP_NONE && !form->has_order) {
        return ml_command_fail(
            command,
            "--by goes with --to=collapsed and html only; the other forms name heap and "
            "type of each stack"
        );
    }
    if (request->to == TO_PPROF && request->metric == ML_METRIC_ALONE) {
        return ml_command_fail(
            command, "--metric=alone: pprof's samples have resident and waste, not alone"
        );
    }
    if (request->before && request->to != TO_PPROF) {
        return ml_command_fail(
            command, "--before goes with --to=pprof only; memlog diff --html shows what changed"
        );
    }
    if (request->files[1] && !form->takes_many) {
        return ml_command_fail(
            command, "only --to=perfetto and --to=sqlite take more than one dump: those of one run"
        );
    }
    if (request->files[1] && load->dump) {
        return ml_command_fail(
            command, "--dump goes with one file; of several all dumps are taken"
        );
    }
    if (request->to == TO_PERFETTO && (load->pid || load->heap || load->prune_bytes || load->dump ||
                                       load->ended || strcmp(load->path, "-") == 0)) {
        return ml_command_fail(
            command,
            "--to=perfetto is dump files as they stand: no --pid, --heap, --prune, --dump or "
            "--ended, not stdin"
        );
    }
    if (form->is_binary && !request->output && isatty(STDOUT_FILENO)) {
        return ml_command_fail(command, "this form is binary: say -o FILE");
    }
    request->load.processes = form->processes;
    request->load.takes_unrecorded = form->lists_all;
    request->load.finds_types =
        request->to == TO_JSON || request->to == TO_CHROME || request->to == TO_PPROF;
    request->load.groups = request->to == TO_JSON ? ML_GROUPS_OF_STACKS : ML_GROUPS_NONE;
    request->load.output_path = request->output;
    return ML_EXIT_OK;
}

/* Write the form of what was loaded; the exit code. */
static int write_form(
    const struct ml_command *command, const struct request *request, const struct ml_loaded *loaded
) {
    const struct form *form = &forms[request->to];
    struct ml_output output;
    enum ml_status status = ML_OK;

    if (request->to == TO_PERFETTO && loaded->is_stream) {
        ml_command_say_of(command, request->load.path, "%s", ml_input_trouble(ESPIPE));
        return ML_EXIT_FAILED;
    }
    status = ml_output_open(&output, request->output);
    if (status == ML_OK) {
        status = ml_output_close(&output, form->write(request, loaded, output.file));
    }
    return ml_command_written(command, request->output, status);
}

static int run(const struct ml_command *command, char *const *words) {
    struct request request = {0};
    struct ml_loaded loaded[2];
    uint64_t given = 0;
    int exit_code = ML_EXIT_OK;

    if (!ml_command_read(command, words, &request, &given, &exit_code)) {
        return exit_code;
    }
    request.load.path = request.files[0];
    exit_code = check(command, &request, given);
    if (exit_code != ML_EXIT_OK) {
        return exit_code;
    }
    if (request.files[1]) {
        request.load.may_lack = true; /* a process need not be in all */
        return ml_command_join(
            command,
            &request.load,
            request.files,
            request.to == TO_SQLITE ? ML_JOIN_DATABASE : ML_JOIN_TRACE
        );
    }
    exit_code = ml_command_load_with(command, &request.load, request.before, loaded);
    request.earlier = &loaded[1];
    if (exit_code == ML_EXIT_OK &&
        !ml_command_knows(command, request.load.path, &loaded[0], request.metric)) {
        exit_code = ML_EXIT_LACKING;
    }
    if (exit_code == ML_EXIT_OK) {
        /* `cat A B` adds their cumulative figures up, for Perfetto's tools. */
        const bool is_series =
            request.to == TO_PERFETTO && !loaded[0].is_stream && loaded[0].profile.dumps_count > 1;
        exit_code = is_series
                        ? ml_command_join(command, &request.load, request.files, ML_JOIN_TRACE)
                        : write_form(command, &request, &loaded[0]);
    }
    ml_loaded_fini(&loaded[0]);
    ml_loaded_fini(&loaded[1]);
    return exit_code;
}

const struct ml_command ml_command_convert = {
    .table =
        {.program = "memlog",
         .name = "convert",
         .summary = "turn a dump into another format",
         .usage = "--to=FORMAT [OPTIONS] [DUMP...]",
         .about = "Turns a dump into what other tools read.",
         ML_OPTIONS(options),
         ML_OPERANDS_NEWEST(struct request, files, DUMPS_MAX),
         .notes =
             "Formats:\n"
             "  pprof      gzipped profile.proto, for go tool pprof, speedscope, Pyroscope ...\n"
             "  heap       gperftools' text heap profile, for google-pprof and jeprof\n"
             "  chrome     gzipped memory-infra JSON (heaps_v2), for chrome://tracing; shows\n"
             "             all dumps of a file\n"
             "  collapsed  one stack a line, for flamegraph.pl, inferno, speedscope\n"
             "  perfetto   the dump itself with the names that were found (= memlog\n"
             "             symbolize -o FILE); of several dumps of one run a single trace\n"
             "  sqlite     a database with the names of Perfetto's tables, for sqlite3; of\n"
             "             several dumps of one run with all of them\n"
             "  json       what memlog report --json prints\n"
             "  html       one page with a flame graph (= memlog flamegraph)",
         .example = "memlog convert --to=pprof -o heap.pb.gz "
                    "memlog.sqlite3.1234/0001.exit.pftrace\n"
                    "pprof -http=: heap.pb.gz"},
    .dumps = ML_DUMPS_OR_NEWEST,
    .run = run,
};
