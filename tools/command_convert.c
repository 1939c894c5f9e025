#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/collapsed.h"
#include "tools/command.h"
#include "tools/pprof.h"
#include "tools/report.h"

static const char help[] =
    "memlog convert --to=FORMAT [-o FILE] [--pid=PID] [--metric=METRIC] DUMP\n"
    "\n"
    "Turn a dump into what other tools read.\n"
    "\n"
    "  --to=pprof      gzipped profile.proto, for go tool pprof, speedscope, Pyroscope ...\n"
    "  --to=collapsed  one stack a line, for flamegraph.pl, inferno, speedscope\n"
    "  --to=json       what memlog report --json prints\n"
    "  -o FILE         where to (default: stdout)\n"
    "  --pid=PID       this process only (pprof, collapsed)\n"
    "  --metric=METRIC live (default), peak or total bytes (collapsed; pprof holds live and "
    "total)\n"
    "\n"
    "Example: memlog convert --to=pprof -o heap.pb.gz memlog.sqlite3.1234/0001.exit.pftrace\n"
    "         pprof -http=: heap.pb.gz\n";

struct request {
    const char *to, *output, *pid_text, *metric_text, *file;
    uint32_t pid; /* 0: all */
    enum ml_metric metric;
};

enum form { FORM_PPROF, FORM_COLLAPSED, FORM_JSON, FORM_COUNT };
static const char *const form_names[FORM_COUNT] = {"pprof", "collapsed", "json"};

/* Check what was asked for. ML_EXIT_OK, or the exit code after a complaint. */
static int
request_check(const struct ml_command *command, struct request *request, enum form *out_form) {
    unsigned long pid = 0;
    size_t form = 0;

    if (!request->to) {
        return ml_command_complain(command, "--to=FORMAT is missing: pprof, collapsed or json");
    }
    while (form < FORM_COUNT && strcmp(request->to, form_names[form]) != 0) {
        form++;
    }
    if (form == FORM_COUNT) {
        return ml_command_complain_of_value(command, "--to", request->to, form_names, FORM_COUNT);
    }
    if (request->pid_text && (!ml_number_read(request->pid_text, UINT32_MAX, &pid) || pid == 0)) {
        return ml_command_complain(command, "--pid wants a process's number");
    }
    if (request->metric_text && form != FORM_COLLAPSED) {
        return ml_command_complain(
            command, "--metric goes with --to=collapsed only; the other forms hold every metric"
        );
    }
    if (request->pid_text && form == FORM_JSON) {
        return ml_command_complain(command, "--pid goes with --to=pprof and --to=collapsed only");
    }
    request->pid = (uint32_t)pid;
    *out_form = (enum form)form;
    return ml_command_metric(command, request->metric_text, &request->metric);
}

static enum ml_status write_form(
    const struct request *request, enum form form, const struct ml_loaded *loaded, FILE *out
) {
    const struct ml_report report = {
        .profile = &loaded->profile, .stacks = &loaded->stacks, .file_path = request->file};
    enum ml_status status = ML_OK;

    switch (form) {
    case FORM_PPROF:
        status = ml_pprof_write(&loaded->profile, &loaded->stacks, request->pid, out);
        break;
    case FORM_COLLAPSED:
        status = ml_collapsed_write(
            &loaded->profile, &loaded->stacks, request->metric, request->pid, out
        );
        break;
    default:
        ml_report_json(&report, out);
        break;
    }
    return status == ML_OK && (fflush(out) != 0 || ferror(out)) ? ML_ENV_SYSTEM : status;
}

static bool has_pid(const struct ml_profile *profile, uint32_t pid) {
    for (size_t i = 0; i < profile->processes_count; i++) {
        if (profile->processes[i].pid == pid) {
            return true;
        }
    }
    return false;
}

/* A device or pipe takes the bytes as they come; to rename over it would destroy it. */
static bool is_special(const char *path) {
    struct stat status;

    return stat(path, &status) == 0 && !S_ISREG(status.st_mode);
}

/* Write under a temporary name and rename: what was there stays until the new file is whole. */
static int convert_to(
    const struct ml_command *command,
    const struct request *request,
    enum form form,
    const struct ml_loaded *loaded
) {
    const char *target = request->output ? request->output : "stdout";
    bool is_stdout = !request->output || strcmp(request->output, "-") == 0 ||
                     strcmp(request->output, "/dev/stdout") == 0;
    bool is_renamed = !is_stdout && !is_special(request->output);
    char temporary[PATH_MAX];
    enum ml_status status = ML_ENV_SYSTEM;
    FILE *out = stdout;

    if (!is_stdout) {
        int count = snprintf(
            temporary, sizeof temporary, "%s%s", request->output, is_renamed ? ".part" : ""
        );
        out = count < (int)sizeof temporary ? fopen(temporary, "we") : NULL;
    }
    if (out) {
        status = write_form(request, form, loaded, out);
    }
    if (out && !is_stdout) {
        if (fclose(out) != 0 && status == ML_OK) {
            status = ML_ENV_SYSTEM;
        }
        if (is_renamed && status == ML_OK && rename(temporary, request->output) != 0) {
            status = ML_ENV_SYSTEM;
        }
        if (is_renamed && status != ML_OK) {
            unlink(temporary);
        }
    }
    if (status != ML_OK) {
        fprintf(
            stderr,
            "memlog %s: %s: %s\n",
            command->name,
            target,
            status == ML_ENV_SYSTEM && errno != 0 ? strerror(errno) : ml_status_text(status)
        );
        return ML_EXIT_FAILED;
    }
    return ML_EXIT_OK;
}

static int run(const struct ml_command *command, int argc, char **argv) {
    struct request request = {0};
    const struct ml_option options[] = {
        {.name = "--to", .out_value = &request.to},
        {.name = "--output", .short_name = "-o", .out_value = &request.output},
        {.name = "--pid", .out_value = &request.pid_text},
        {.name = "--metric", .out_value = &request.metric_text},
    };
    enum form form = FORM_PPROF;
    struct ml_loaded loaded;
    bool go_on = false;
    int exit_code = ml_command_arguments(command, argc, argv, options, 4, &request.file, 1, &go_on);

    if (go_on) {
        exit_code = request_check(command, &request, &form);
    }
    if (!go_on || exit_code != ML_EXIT_OK) {
        return exit_code;
    }
    if (form == FORM_PPROF && !request.output && isatty(STDOUT_FILENO)) {
        return ml_command_complain(command, "pprof's form is binary: say -o FILE");
    }
    exit_code = ML_EXIT_FAILED;
    if (!ml_command_load(command, request.file, request.output, &loaded)) {
        /* said */
    } else if (request.pid != 0 && !has_pid(&loaded.profile, request.pid)) {
        fprintf(
            stderr,
            "memlog %s: %s: no process %s in it; memlog report lists them\n",
            command->name,
            request.file,
            request.pid_text
        );
    } else {
        exit_code = convert_to(command, &request, form, &loaded);
    }
    ml_loaded_fini(&loaded);
    return exit_code;
}

const struct ml_command ml_command_convert = {
    .name = "convert",
    .summary = "into what other tools read",
    .help = help,
    .run = run,
};
