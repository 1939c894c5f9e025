#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/input_file.h"
#include "tools/chrome_trace.h"
#include "tools/collapsed.h"
#include "tools/command.h"
#include "tools/flame.h"
#include "tools/heap_text.h"
#include "tools/pprof.h"
#include "tools/report.h"
#include "tools/sqlite_file.h"

static const char help[] =
    "memlog convert --to=FORMAT [-o FILE] [--pid=PID] [--metric=METRIC] [--prune=BYTES]\n"
    "               [--dump=N] DUMP\n"
    "\n"
    "Turn a dump into what other tools read.\n"
    "\n"
    "  --to=pprof      gzipped profile.proto, for go tool pprof, speedscope, Pyroscope ...\n"
    "  --to=heap       gperftools' text heap profile, for google-pprof and jeprof\n"
    "  --to=chrome     gzipped memory-infra JSON (heaps_v2), for chrome://tracing\n"
    "  --to=collapsed  one stack a line, for flamegraph.pl, inferno, speedscope\n"
    "  --to=perfetto   the dump itself with the names that were found (= memlog symbolize -o "
    "FILE)\n"
    "  --to=sqlite     a database with the names of Perfetto's tables, for sqlite3\n"
    "  --to=json       what memlog report --json prints\n"
    "  --to=html       one page with a flame graph (= memlog flamegraph)\n"
    "  -o FILE         where to (default: stdout); --output=FILE likewise\n"
    "  --pid=PID       this process only\n"
    "  --metric=METRIC live (default), peak or total bytes (chrome, collapsed; html and pprof show "
    "it\n"
    "                  first; the others hold more than one)\n"
    "  --before=DUMP   what changed since an earlier dump, as pprof's -base does (pprof)\n"
    "  --prune=BYTES   leave out stacks that hold less than BYTES (16K is Chromium's), live and at "
    "the\n"
    "                  peak, and fewer than 1,024 blocks: they become <other>, sums stay\n"
    "  --dump=N        of several dumps in one file (cat A B) the Nth (default: the last; chrome "
    "shows\n"
    "                  them all)\n"
    "  --ended=yes|no  count what ended processes left as live, or never (default: only where "
    "nothing\n"
    "                  runs any more)\n"
    "\n"
    "Example: memlog convert --to=pprof -o heap.pb.gz memlog.sqlite3.1234/0001.exit.pftrace\n"
    "         pprof -http=: heap.pb.gz\n";

struct request {
    const char *to, *output, *pid, *metric_text, *prune, *dump, *before, *ended, *file;
    enum ml_metric metric;
    struct ml_load load;
    const struct ml_loaded *earlier; /* of `before`, if it has what is shown */
};

static enum ml_status
write_pprof(const struct request *request, const struct ml_loaded *loaded, FILE *out) {
    const struct ml_pprof_side after = {.profile = &loaded->profile, .stacks = &loaded->stacks};
    const struct ml_pprof_side before = {
        .profile = &request->earlier->profile, .stacks = &request->earlier->stacks};
    const bool has_before = request->before && !request->earlier->is_lacking;

    return ml_pprof_write_diff(
        &after, has_before ? &before : NULL, ML_PPROF_BASE, request->metric, out
    );
}

static enum ml_status
write_heap(const struct request *request, const struct ml_loaded *loaded, FILE *out) {
    (void)request;
    return ml_heap_text_write(&loaded->profile, &loaded->stacks, out);
}

static enum ml_status
write_chrome(const struct request *request, const struct ml_loaded *loaded, FILE *out) {
    const bool is_alone = request->dump || loaded->is_stream ||
                          loaded->profile.dumps_count == 0; /* cut before the first ends */
    const size_t count = is_alone ? 1 : loaded->profile.dumps_count;
    struct ml_chrome_dump *dumps = calloc(count, sizeof *dumps);
    struct ml_loaded *others = calloc(count, sizeof *others);
    struct ml_load load = request->load;
    bool done = dumps && others;
    enum ml_status status = ML_ENV_MEMORY;

    /* The last is loaded already. */
    for (size_t i = 0; done && i + 1 < count; i++) {
        load.dump = (uint32_t)i + 1;
        done = ml_command_load(&ml_command_convert, &load, &others[i]) == ML_EXIT_OK;
        dumps[i] = (struct ml_chrome_dump
        ){.profile = &others[i].profile,
          .stacks = &others[i].stacks,
          .needed_modules_only = load.prune_bytes > 0};
    }
    if (done) {
        dumps[count - 1] = (struct ml_chrome_dump
        ){.profile = &loaded->profile,
          .stacks = &loaded->stacks,
          .needed_modules_only = load.prune_bytes > 0};
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
    return ml_collapsed_write(&loaded->profile, &loaded->stacks, request->metric, out);
}

static enum ml_status
write_sqlite(const struct request *request, const struct ml_loaded *loaded, FILE *out) {
    (void)request;
    return ml_sqlite_file_write(&loaded->profile, &loaded->stacks, out);
}

static enum ml_status
write_json(const struct request *request, const struct ml_loaded *loaded, FILE *out) {
    const struct ml_report report = {
        .profile = &loaded->profile, .stacks = &loaded->stacks, .file_path = request->file};

    ml_report_json(&report, out);
    return ML_OK;
}

static enum ml_status
write_html(const struct request *request, const struct ml_loaded *loaded, FILE *out) {
    const struct ml_flame_side side = {.profile = &loaded->profile, .stacks = &loaded->stacks};

    return ml_flame_write(&side, NULL, request->metric, out);
}

static enum ml_status
write_perfetto(const struct request *request, const struct ml_loaded *loaded, FILE *out) {
    size_t places = 0;

    return ml_command_write_symbolized(request->file, loaded, out, &places);
}

/* A form that a dump can take. */
struct form {
    const char *name;
    enum ml_status (*write)(const struct request *, const struct ml_loaded *, FILE *);
    bool has_metric; /* shows one at a time */
    bool is_binary;  /* not for a terminal */
    bool is_whole;   /* cannot leave anything out */
    bool is_signed;  /* can say that something shrank */
    bool has_own;    /* tells of each process apart: an ended one as it ended */
    bool lists_all;  /* also of processes without a profile */
};

static const struct form forms[] = {
    {.name = "perfetto", .write = write_perfetto, .is_binary = true, .is_whole = true},
    {.name = "pprof",
     .write = write_pprof,
     .has_metric = true,
     .is_binary = true,
     .is_signed = true},
    {.name = "heap", .write = write_heap},
    {.name = "chrome", .write = write_chrome, .has_metric = true, .is_binary = true},
    {.name = "collapsed", .write = write_collapsed, .has_metric = true},
    {.name = "sqlite", .write = write_sqlite, .is_binary = true},
    {.name = "json", .write = write_json, .has_own = true, .lists_all = true},
    {.name = "html", .write = write_html, .has_metric = true, .has_own = true},
};
enum { FORMS_COUNT = sizeof forms / sizeof forms[0] };

static const struct form *form_find(const char *name) {
    for (size_t i = 0; i < FORMS_COUNT; i++) {
        if (strcmp(name, forms[i].name) == 0) {
            return &forms[i];
        }
    }
    return NULL;
}

/* Check what was asked for. ML_EXIT_OK, or the exit code after a complaint. */
static int request_check(
    const struct ml_command *command,
    struct request *request,
    const struct form **out_form,
    struct ml_load *out_load
) {
    const char *names[FORMS_COUNT];
    int exit_code = ML_EXIT_OK;

    for (size_t i = 0; i < FORMS_COUNT; i++) {
        names[i] = forms[i].name;
    }
    if (!request->to) {
        return ml_command_complain(
            command,
            "--to=FORMAT is missing: perfetto, pprof, heap, chrome, collapsed, sqlite, json or html"
        );
    }
    *out_form = form_find(request->to);
    if (!*out_form) {
        return ml_command_complain_of_value(command, "--to", request->to, names, FORMS_COUNT);
    }
    if (request->metric_text && !(*out_form)->has_metric) {
        return ml_command_complain(
            command,
            "--metric goes with --to=pprof, chrome, collapsed and html only; the other forms hold "
            "more than one"
        );
    }
    if (request->before && !(*out_form)->is_signed) {
        return ml_command_complain(
            command, "--before goes with --to=pprof only; memlog diff --html shows what changed"
        );
    }
    if ((*out_form)->is_whole && (request->pid || request->prune || request->dump ||
                                  request->ended || strcmp(request->file, "-") == 0)) {
        return ml_command_complain(
            command,
            "--to=perfetto is a dump file as it stands: no --pid, --prune, --dump or --ended, not "
            "stdin"
        );
    }
    if ((*out_form)->is_binary && !request->output && isatty(STDOUT_FILENO)) {
        return ml_command_complain(command, "this form is binary: say -o FILE");
    }
    exit_code = ml_command_pid(command, request->pid, &out_load->pid);
    if (exit_code == ML_EXIT_OK) {
        exit_code = ml_command_prune(command, request->prune, &out_load->prune_bytes);
    }
    if (exit_code == ML_EXIT_OK) {
        exit_code = ml_command_dump(command, request->dump, &out_load->dump);
    }
    if (exit_code == ML_EXIT_OK) {
        exit_code = ml_command_ended(command, request->ended, &out_load->ended);
        out_load->keeps_own_live = (*out_form)->has_own;
        out_load->takes_unrecorded = (*out_form)->lists_all;
    }
    if (exit_code == ML_EXIT_OK) {
        exit_code = ml_command_metric(command, request->metric_text, &request->metric);
    }
    return exit_code;
}

static int run(const struct ml_command *command, int argc, char **argv) {
    struct request request = {0};
    const struct ml_option options[] = {
        {.name = "--to", .out_value = &request.to},
        {.name = "--output", .short_name = "-o", .out_value = &request.output},
        {.name = "--pid", .out_value = &request.pid},
        {.name = "--metric", .out_value = &request.metric_text},
        {.name = "--prune", .out_value = &request.prune},
        {.name = "--dump", .out_value = &request.dump},
        {.name = "--before", .out_value = &request.before},
        {.name = "--ended", .out_value = &request.ended},
    };
    const struct form *form = NULL;
    struct ml_load loads[2];
    struct ml_loaded loaded[2] = {{.is_lacking = false}, {.is_lacking = false}};
    struct ml_output output;
    enum ml_status status = ML_OK;
    bool go_on = false;
    int exit_code = ml_command_arguments(command, argc, argv, options, 8, &request.file, 1, &go_on);

    if (go_on) {
        exit_code = request_check(command, &request, &form, &request.load);
    }
    if (!go_on || exit_code != ML_EXIT_OK) {
        return exit_code;
    }
    request.load.path = request.file;
    request.load.output_path = request.output;
    loads[0] = loads[1] = request.load;
    loads[1].path = request.before;
    loads[1].dump = 0;
    loads[1].may_lack = true;
    exit_code = request.before ? ml_command_load_pair(command, loads, loaded)
                               : ml_command_load(command, &loads[0], &loaded[0]);
    if (exit_code == ML_EXIT_OK && form->is_whole && loaded[0].is_stream) {
        ml_command_say_of(command, request.file, "%s", ml_input_trouble(ESPIPE));
        exit_code = ML_EXIT_FAILED;
    }
    if (exit_code == ML_EXIT_OK) {
        request.earlier = &loaded[1];
        status = ml_output_open(&output, request.output);
        if (status == ML_OK) {
            status = ml_output_close(&output, form->write(&request, &loaded[0], output.file));
        }
        exit_code = ml_command_written(command, request.output, status);
    }
    ml_loaded_fini(&loaded[0]);
    ml_loaded_fini(&loaded[1]);
    return exit_code;
}

const struct ml_command ml_command_convert = {
    .name = "convert",
    .summary = "into what other tools read",
    .help = help,
    .run = run,
};
