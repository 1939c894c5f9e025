/* Run-times whose functions have no names, and what would give them some. */
#include <string.h>

#include "base/scripts/script_names.h"
#include "ipc/wire/event.h"
#include "tools/analyzer/report/internal.h"

enum { HINTS_MAX = 16 }; /* run-times that are known */

/* One run-time's processes. */
struct hint {
    const struct ml_script_names *names;
    const char *program;
    size_t processes;
    bool is_asked; /* one of them was asked to tell names, and there are none */
};

static bool
was_asked(const struct ml_profile_process *process, const struct ml_script_names *names) {
    for (size_t i = 0; i < process->arguments_count; i++) {
        if (ml_script_names_asked(names, process->arguments[i].bytes)) {
            return true;
        }
    }
    return false;
}

static bool has_scripts(const struct ml_stacks *stacks, size_t process) {
    const struct ml_profile_process *one = &stacks->profile->processes[process];

    for (size_t i = 0; i < one->nodes_count; i++) {
        if (one->nodes[i].frame == ML_FRAME_SCRIPT) {
            return true;
        }
    }
    for (size_t i = 0; i < stacks->places_count; i++) {
        if (stacks->places[i].process == process + 1 && stacks->places[i].symbols_count > 0) {
            return true; /* from a map that was written after the dump */
        }
    }
    return false;
}

static size_t hints_collect(const struct ml_stacks *stacks, struct hint hints[HINTS_MAX]) {
    size_t count = 0;

    for (size_t i = 0; i < stacks->profile->processes_count; i++) {
        const struct ml_profile_process *process = &stacks->profile->processes[i];
        const struct ml_script_names *names = ml_script_names_of(process->exe_path.bytes);
        size_t at = 0;

        if (!names || process->nodes_count == 0 || has_scripts(stacks, i)) {
            continue;
        }
        while (at < count && hints[at].names != names) {
            at++;
        }
        if (at == HINTS_MAX) {
            break;
        }
        if (at == count) {
            hints[count++] =
                (struct hint){.names = names, .program = basename(process->exe_path.bytes)};
        }
        hints[at].processes += process->folded_processes > 0 ? process->folded_processes : 1;
        hints[at].is_asked = hints[at].is_asked || was_asked(process, names);
    }
    return count;
}

void ml_report_script_hints(const struct ml_report_page *page) {
    struct hint hints[HINTS_MAX];
    const size_t count = hints_collect(page->report->stacks, hints);

    for (size_t i = 0; i < count; i++) {
        const struct hint *hint = &hints[i];
        if (i == 0) {
            ml_report_heading(page, "Scripts", "whose functions have no names");
        }
        fputs("  ", page->out);
        ml_report_put(page, hint->program);
        if (hint->processes > 1) {
            fprintf(page->out, ", %zu processes", hint->processes);
        }
        if (hint->is_asked) {
            fprintf(
                page->out,
                ": %s functions: it was told to name them, and its file was not found\n",
                hint->names->language
            );
        } else {
            fprintf(
                page->out,
                ": %s functions: %s names them\n",
                hint->names->language,
                hint->names->how
            );
        }
    }
}
