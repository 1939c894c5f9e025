/* Whether functions of scripts have names: what the run-time is told, or has told. */
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/scripts/script_names.h"
#include "host/cli/doctor_internal.h"
#include "host/policy/command_line.h"
#include "host/process/code_files.h"
#include "host/process/info.h"

static bool was_asked(const struct ml_script_names *names, char *const *arguments, size_t count) {
    for (size_t i = 1; i < count; i++) {
        if (ml_script_names_asked(names, arguments[i])) {
            return true;
        }
    }
    return false;
}

static void tell(struct ml_findings *findings, const struct ml_script_names *names, bool is_asked) {
    if (is_asked) {
        ml_doctor_find(
            findings,
            ML_DOCTOR_OK,
            "names",
            "%s functions: the run-time is asked to name them",
            names->language
        );
    } else {
        ml_doctor_find(
            findings,
            ML_DOCTOR_NOTE,
            "names",
            "%s functions have no names in stacks: %s names them",
            names->language,
            names->how
        );
    }
}

void ml_doctor_scripts(
    struct ml_findings *findings, const char *executable, char *const *arguments
) {
    char resolved[PATH_MAX]; /* "python3" is a link to what has a version */
    const bool is_found = realpath(executable, resolved) != NULL;
    const struct ml_script_names *names = ml_script_names_of(is_found ? resolved : executable);
    size_t count = 0;
    while (arguments[count] != NULL) {
        count++;
    }
    if (names != NULL) {
        tell(findings, names, was_asked(names, arguments, count));
    }
}

void ml_doctor_scripts_of(struct ml_findings *findings, uint32_t pid) {
    char executable[PATH_MAX];
    struct ml_command_line line = {.count = 0};
    struct ml_code_files files = {.inner_pid = 0};
    ml_process_executable((pid_t)pid, executable, sizeof(executable));
    const struct ml_script_names *names = ml_script_names_of(executable);
    ml_code_files_look(&files, (pid_t)pid);
    const int map_fd = ml_code_files_perf_map(&files, 0);
    const int dump_fd = ml_code_files_jit_dump(&files, 0);
    if (map_fd >= 0 || dump_fd >= 0) {
        ml_doctor_find(
            findings,
            ML_DOCTOR_OK,
            "names",
            "its run-time tells names of its functions in %s-%d.%s",
            dump_fd >= 0 ? "jit" : "/tmp/perf",
            (int)files.inner_pid,
            dump_fd >= 0 ? "dump" : "map"
        );
    } else if (names != NULL && ml_process_command_line((pid_t)pid, &line) == ML_OK) {
        tell(findings, names, was_asked(names, line.arguments, line.count));
        ml_command_line_fini(&line);
    }
    if (map_fd >= 0) {
        (void)close(map_fd);
    }
    if (dump_fd >= 0) {
        (void)close(dump_fd);
    }
    ml_code_files_fini(&files);
}
