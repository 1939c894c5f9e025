#include "tools/analyzer/cli/command.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/input_file.h"
#include "base/printable.h"
#include "base/size.h"
#include "tools/analyzer/cli/newest.h"
#include "tools/analyzer/cli/progress.h"
#include "tools/analyzer/cli/suppress.h"
#include "tools/analyzer/helpers/cache_keeper.h"
#include "tools/analyzer/helpers/fetcher.h"
#include "tools/analyzer/helpers/helper.h"
#include "tools/analyzer/helpers/process_files.h"
#include "tools/analyzer/model/trace_reader.h"
#include "tools/analyzer/sandbox/confine.h"
#include "tools/analyzer/stacks/prune.h"
#include "tools/analyzer/stacks/types.h"

/* See ml_command_be_bare(). */
static bool is_bare;

void ml_command_be_bare(void) {
    is_bare = true;
}

bool ml_command_is_bare(void) {
    return is_bare;
}

/* `path` may be NULL. */
static void
say(const struct ml_command *command, const char *path, const char *format, va_list arguments) {
    char line[3 * PATH_MAX] = "";
    size_t used = 0;

    ml_command_progress_erase();
    if (path && !is_bare) {
        used = (size_t)snprintf(line, sizeof line, "%.*s: ", PATH_MAX, path);
    }
    (void)vsnprintf(line + used, sizeof line - used, format, arguments);
    ml_printable_clean(line);
    fprintf(
        stderr,
        "%s%s%s%s\n",
        is_bare ? "" : "memlog ",
        is_bare ? "" : command->table.name,
        is_bare ? "" : ": ",
        line
    );
}

void ml_command_say(const struct ml_command *command, const char *format, ...) {
    va_list arguments;

    va_start(arguments, format);
    say(command, NULL, format, arguments);
    va_end(arguments);
}

void ml_command_say_of(
    const struct ml_command *command, const char *path, const char *format, ...
) {
    va_list arguments;

    va_start(arguments, format);
    say(command, path, format, arguments);
    va_end(arguments);
}

int ml_command_fail(const struct ml_command *command, const char *error) {
    ml_command_say(command, "%s", error);
    fprintf(stderr, "Try 'memlog %s --help'.\n", command->table.name);
    return ML_EXIT_USAGE;
}

const char *const ml_metric_words[] = {"live", "peak", "total", "resident", "waste", "alone", NULL};
const char *const ml_moment_words[] = {"dump", "peak", NULL};
const char *const ml_ended_words[] = {"yes", "no", NULL};

/* What operands became instead; kept as long as the program runs. */
enum { FOUND_MAX = 512 };
static char *found[FOUND_MAX];
static size_t found_count;

/* `word` is a folder, or NULL: no dump was named. NULL after an error message. */
static const char *newest_of(const struct ml_command *command, const char *word) {
    char path[PATH_MAX];
    if (word ? !ml_newest_in(word, path) : !ml_newest_here(path)) {
        if (word) {
            ml_command_say_of(
                command, word, "there is no dump in this directory, no *.pftrace file of memlog"
            );
        } else {
            (void)ml_command_fail(command, ML_NO_DUMP_WAS_NAMED);
        }
        return NULL;
    }
    if (found_count == FOUND_MAX || !(found[found_count] = strdup(path))) {
        ml_command_say(command, "no memory");
        return NULL;
    }
    ml_command_say(command, "reading %s", path);
    return found[found_count++];
}

const char *ml_command_newest(const struct ml_command *command) {
    return newest_of(command, NULL);
}

const char *ml_command_newest_in(const struct ml_command *command, const char *folder) {
    return newest_of(command, folder);
}

/* Let folders be their newest dumps. False after an error message. */
static bool find_dumps(const struct ml_command *command, void *request, int *out_exit_code) {
    const struct ml_option_table *table = &command->table;
    const char **words = (const char **)(void *)((char *)request + table->operands_offset);
    const size_t first = command->dumps == ML_DUMPS_BEHIND_FIRST ? 1 : 0;
    for (size_t i = first; i < table->operands_most; i++) {
        const bool lacks = i == first && !words[i] && command->dumps != ML_DUMPS_ALL;
        if (!lacks && !words[i]) {
            break;
        }
        if (lacks || ml_newest_is_folder(words[i])) {
            const char *path = newest_of(command, words[i]);
            if (!path) {
                *out_exit_code = lacks ? ML_EXIT_USAGE : ML_EXIT_FAILED;
                return false;
            }
            words[i] = path;
        }
    }
    return true;
}

bool ml_command_read(
    const struct ml_command *command,
    char *const *words,
    void *request,
    uint64_t *out_given,
    int *out_exit_code
) {
    struct ml_error_message error = {.text = ""};

    *out_exit_code = ML_EXIT_OK;
    switch (ml_option_table_read(&command->table, words, request, out_given, &error)) {
    case ML_OPTIONS_READ:
        return command->dumps == ML_DUMPS_NONE || find_dumps(command, request, out_exit_code);
    case ML_OPTIONS_HELP:
        ml_option_table_help(&command->table, stdout);
        *out_exit_code = ml_command_finish(command);
        return false;
    default:
        *out_exit_code = ml_command_fail(command, error.text);
        return false;
    }
}

/* Width of lines when stdout is no terminal, and the maximum: longer lines are hard to read. */
enum { WIDTH_DEFAULT = 100, WIDTH_MIN = 60, WIDTH_MAX = 200 };

static bool is_set(const char *name) {
    const char *value = getenv(name);

    return value && value[0];
}

struct ml_report_style ml_command_style(void) {
    struct ml_report_style style = {.width = WIDTH_DEFAULT};
    const char *terminal = getenv("TERM");
    bool is_terminal = isatty(STDOUT_FILENO) && (!terminal || strcmp(terminal, "dumb") != 0);
    uint64_t columns = 0;
    struct winsize size;

    style.colour = (is_terminal || is_set("CLICOLOR_FORCE")) && !is_set("NO_COLOR");
    if (is_set("COLUMNS") && ml_count_read(getenv("COLUMNS"), UINT_MAX, &columns)) {
        style.width = (unsigned)columns;
    } else if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        style.width = size.ws_col;
    }
    style.width = style.width < WIDTH_MIN ? WIDTH_MIN : style.width;
    style.width = style.width > WIDTH_MAX ? WIDTH_MAX : style.width;
    return style;
}

int ml_command_finish(const struct ml_command *command) {
    if (fflush(stdout) == 0 && !ferror(stdout)) {
        return ML_EXIT_OK;
    }
    ml_command_say(command, "stdout cannot be written");
    return ML_EXIT_FAILED;
}

int ml_command_written(const struct ml_command *command, const char *path, enum ml_status status) {
    if (status == ML_OK) {
        return ML_EXIT_OK;
    }
    ml_command_say_of(
        command,
        path ? path : "stdout",
        "%s",
        status == ML_ENV_SYSTEM && errno != 0 ? strerror(errno) : ml_status_text(status)
    );
    return ML_EXIT_FAILED;
}

static void warn_of_partial(
    const struct ml_command *command, const char *path, const struct ml_profile *profile
) {
    if (profile->damaged) {
        ml_command_say(
            command,
            "%s is damaged at byte %" PRIu64 " (%s); what can be trusted is shown",
            path,
            profile->bad_at,
            profile->bad_is ? profile->bad_is : "tables that refer to missing ones"
        );
    } else if (profile->truncated) {
        ml_command_say(command, "%s was cut off before its end; what is there is shown", path);
    }
}

/* Report that a file cannot be read, by errno, and where dumps are. */
static void say_unreadable(const struct ml_command *command, const char *path) {
    const int error = errno;
    const char *next = "";

    if (error == ENOENT) {
        next = "; dumps are the *.pftrace files in the output folder of memlog run";
    }
    ml_command_say_of(command, path, "%s%s", ml_input_trouble(error), next);
}

static bool
read_file(const struct ml_command *command, const struct ml_load *load, struct ml_loaded *loaded) {
    struct ml_profile *profile = &loaded->profile;
    const bool is_stdin = strcmp(load->path, "-") == 0;
    FILE *file = is_stdin ? stdin : ml_input_open(load->path, &loaded->is_stream);
    enum ml_status status = ML_OK;

    if (!file) {
        say_unreadable(command, load->path);
        return false;
    }
    loaded->is_stream = loaded->is_stream || is_stdin;
    errno = 0;
    status = ml_trace_read(file, load->dump, profile);
    if (status == ML_ENV_SYSTEM) {
        say_unreadable(command, load->path);
    } else if (status == ML_ENV_MISSING && profile->dumps_count > 0) {
        ml_command_say_of(
            command,
            load->path,
            "there is no dump %" PRIu32 " in it, but %" PRIu32 "",
            load->dump,
            profile->dumps_count
        );
    } else if (status != ML_OK) {
        ml_command_say_of(command, load->path, "%s", ml_trace_read_advice(status));
    } else {
        warn_of_partial(command, load->path, profile);
        if (profile->dumps_count > 1 && load->dump == 0) {
            ml_command_say(
                command,
                "%s holds %" PRIu32 " dumps, this is the last; --dump=N shows others",
                load->path,
                profile->dumps_count
            );
        }
    }
    if (!is_stdin) {
        fclose(file);
    }
    return status == ML_OK;
}

void ml_command_confine(const struct ml_load *load) {
    if (load->is_fetching) {
        (void)ml_fetcher_start();
    }
    ml_process_files_start();
    if (!load->is_of_processes) {
        (void)ml_cache_keeper_start();
    }
    ml_command_progress_begin();
    ml_confine(load->output_path, load->second_output_path);
}

struct ml_symbolizer *ml_command_symbolizer(const struct ml_load *load) {
    static char cache[ML_SYMBOL_CACHE_BYTES];
    struct ml_symbolizer_options options = {.fetch = NULL};

    ml_symbol_search_environment(&options.search, cache);
    options.search.alternative_dirs = load->alternative_dirs;
    options.search.breakpad_dirs = load->breakpad_dirs;
    options.search.process_file = ml_process_files_get;
    options.search.kept_roots = ml_process_files_roots_count();
    options.search.is_process_only = load->is_of_processes;
    options.fetch = load->is_fetching && ml_fetcher_start() ? ml_fetcher_get : NULL;
    if (!load->is_of_processes) {
        options.cache_folder = ml_cache_keeper_start(); /* it was checked before the sandbox */
        options.keep = ml_cache_keeper_keep;
    }
    return ml_symbolizer_new(&options);
}

static enum ml_status stacks_make(const struct ml_load *load, struct ml_loaded *loaded) {
    const bool finds_types = load->finds_types || ml_grouping_tells_types(load->grouping);
    enum ml_status status = ML_OK;

    if (load->processes == ML_LOAD_SERIES && !ml_profile_keep_series(&loaded->profile)) {
        return ML_ENV_MEMORY;
    }
    status = ml_stacks_init(&loaded->stacks, &loaded->profile);
    loaded->symbolizer = ml_command_symbolizer(load);
    if (!loaded->symbolizer) {
        status = ML_ENV_MEMORY;
    }
    if (status == ML_OK && finds_types) {
        status = ml_stacks_find_classes(&loaded->stacks, &loaded->profile, loaded->symbolizer);
    }
    if (status == ML_OK) {
        status = ml_stacks_prune(&loaded->stacks, load->prune_bytes);
    }
    if (status == ML_OK && !load->is_nameless) {
        status = ml_stacks_symbolize(&loaded->stacks, loaded->symbolizer);
    }
    if (status == ML_OK && finds_types) {
        status = ml_stacks_find_types(&loaded->stacks, &loaded->profile);
    }
    if (status == ML_OK && loaded->suppressions) {
        status = ml_suppress(
            loaded->suppressions, &loaded->profile, &loaded->stacks, &loaded->suppressed
        );
    }
    if (status == ML_OK && ml_frame_filter_is_any(&load->filter)) {
        status = ml_stacks_filter_frames(&loaded->stacks, &load->filter);
    }
    if (status == ML_OK) {
        status = ml_stacks_regroup(&loaded->stacks, load->grouping);
    }
    if (status == ML_OK) {
        status = ml_groups_init(&loaded->groups, &loaded->stacks, load->groups);
    }
    return status;
}

/* PACKAGE=FILE as in Perfetto. Errors in it are reported, and the dump is shown without it. */
static void read_proguard_map(
    const struct ml_command *command, struct ml_deobfuscation *names, const char *piece, int length
) {
    char text[PATH_MAX];
    char *path = NULL;
    size_t strange = 0;

    snprintf(text, sizeof text, "%.*s", length, piece);
    path = strchr(text, '=');
    if (!path || path == text) {
        ml_command_say(
            command, "MEMLOG_PROGUARD_MAP: '%s' is not PACKAGE=FILE; no names by it", text
        );
        return;
    }
    *path++ = '\0';
    if (ml_deobfuscation_read(names, text, path, &strange) != ML_OK) {
        ml_command_say_of(command, path, "%s; no names by it", strerror(errno));
    } else if (strange > 0) {
        ml_command_say_of(command, path, "%zu lines are none of a ProGuard map", strange);
    }
}

/* The maps that the environment names, after those in the dump. */
static bool read_proguard_maps(const struct ml_command *command, struct ml_deobfuscation *names) {
    const char *list = getenv("MEMLOG_PROGUARD_MAP");

    if (!list || !list[0]) {
        list = getenv("PERFETTO_PROGUARD_MAP");
    }
    while (list && *list) {
        size_t length = strcspn(list, ":");
        if (length > 0 && length < PATH_MAX) {
            read_proguard_map(command, names, list, (int)length);
        }
        list += length + (list[length] == ':');
    }
    return ml_deobfuscation_finish(names);
}

/* Report that there is no profile of the requested process, and why; `one`: it is listed. */
static void say_unrecorded(
    const struct ml_command *command,
    const struct ml_load *load,
    const struct ml_profile *profile,
    const struct ml_profile_process *one
) {
    const char *reason = one ? one->not_recorded_reason.bytes : "";

    if (one) {
        ml_command_say_of(
            command,
            load->path,
            "process %" PRIu32 " (%s) was not recorded%s%s; memlog report --pid=%" PRIu32
            " says what is known of it",
            load->pid,
            one->name.bytes,
            reason[0] ? ": " : "",
            reason,
            load->pid
        );
        return;
    }
    for (size_t i = 0; i < profile->not_profiled_count; i++) {
        if (profile->not_profiled[i].pid == load->pid) {
            ml_command_say_of(
                command,
                load->path,
                "process %" PRIu32 " (%s) ran without memlog: %s",
                load->pid,
                profile->not_profiled[i].path.bytes,
                profile->not_profiled[i].reason.bytes
            );
            return;
        }
    }
    ml_command_say_of(
        command, load->path, "no process %" PRIu32 " in it; memlog report lists them", load->pid
    );
}

/* Keep only the requested processes. False: there are none, which is reported unless permitted. */
static bool
narrow(const struct ml_command *command, const struct ml_load *load, struct ml_profile *profile) {
    if (load->pid != 0) {
        const bool is_there = ml_profile_select(profile, load->pid);
        if (!is_there || (profile->processes_count == 0 && !load->takes_unrecorded)) {
            if (!load->may_lack) {
                say_unrecorded(
                    command,
                    load,
                    profile,
                    is_there ? &profile->others[profile->others_count - 1] : NULL
                );
            }
            return false;
        }
    }
    if (load->pids && !ml_profile_select_pids(profile, load->pids->items, load->pids->count)) {
        ml_command_say_of(command, load->path, "none of these processes is in it");
        return false;
    }
    if (load->heap && !ml_profile_choose_heap(profile, load->heap) && !load->may_lack_heap) {
        ml_command_say_of(
            command,
            load->path,
            "no process has a heap %s; memlog report --by=heap lists them",
            load->heap
        );
        return false;
    }
    if (load->role && !ml_profile_select_role(profile, load->role)) {
        if (!load->may_lack) {
            ml_command_say_of(command, load->path, "no process of role %s in it", load->role);
        }
        return false;
    }
    return true;
}

/* Go to the requested moment. False: it was not read, which is reported. */
static bool
go_back(const struct ml_command *command, const struct ml_load *load, struct ml_profile *profile) {
    const bool is_best = load->moment == ML_MOMENT_BEST && load->pid == 0 &&
                         load->ended == ML_ENDED_ALONE && profile->processes_count > 1 &&
                         !ml_profile_anyone_runs(profile);

    if (load->moment == ML_MOMENT_DUMP || (load->moment == ML_MOMENT_BEST && !is_best) ||
        ml_profile_move_to_tree_peak(profile) || is_best) {
        return true;
    }
    ml_command_say_of(
        command,
        load->path,
        "%s read when all processes together had most private memory",
        load->pid != 0 ? "that process was not" : "no process was"
    );
    return false;
}

/* Read it and keep only the requested processes; is_lacking if they may be missing and are. Returns
 * the exit code. */
static int read_profile(
    const struct ml_command *command, const struct ml_load *load, struct ml_loaded *loaded
) {
    ml_command_confine(load);
    *loaded = (struct ml_loaded){0};
    if (load->suppressions) {
        loaded->suppressions = ml_command_suppressions(command, load->suppressions);
        if (!loaded->suppressions) {
            return ML_EXIT_USAGE;
        }
    }
    if (!read_file(command, load, loaded)) {
        return ML_EXIT_FAILED;
    }
    if (!narrow(command, load, &loaded->profile)) {
        loaded->is_lacking = true;
        return load->may_lack ? ML_EXIT_OK : ML_EXIT_LACKING;
    }
    ml_profile_show_ended(&loaded->profile, load->ended);
    if (!go_back(command, load, &loaded->profile)) {
        loaded->is_lacking = true;
        return ML_EXIT_LACKING;
    }
    return ML_EXIT_OK;
}

/* Stacks and names of a profile that was read. The exit code. */
static int
make_views(const struct ml_command *command, const struct ml_load *load, struct ml_loaded *loaded) {
    if (loaded->is_lacking) {
        return ML_EXIT_OK;
    }
    if (load->processes == ML_LOAD_AS_TREE) {
        ml_profile_forget_hidden(&loaded->profile);
    }
    if (!read_proguard_maps(command, &loaded->profile.deobfuscation) ||
        stacks_make(load, loaded) != ML_OK) {
        ml_command_say_of(command, load->path, "%s", ml_status_text(ML_ENV_MEMORY));
        return ML_EXIT_FAILED;
    }
    return ML_EXIT_OK;
}

int ml_command_load(
    const struct ml_command *command, const struct ml_load *load, struct ml_loaded *out_loaded
) {
    int exit_code = read_profile(command, load, out_loaded);

    if (exit_code == ML_EXIT_OK) {
        exit_code = make_views(command, load, out_loaded);
    }
    ml_command_progress_end();
    return exit_code;
}

int ml_command_load_pair(
    const struct ml_command *command, const struct ml_load loads[2], struct ml_loaded out_loaded[2]
) {
    struct ml_profile *profiles[2] = {&out_loaded[0].profile, &out_loaded[1].profile};
    int exit_code = ML_EXIT_OK;

    /* Read both first: a pipe cannot be read again. */
    for (int i = 0; i < 2 && exit_code == ML_EXIT_OK; i++) {
        exit_code = read_profile(command, &loads[i], &out_loaded[i]);
    }
    if (exit_code == ML_EXIT_OK && !out_loaded[0].is_lacking && !out_loaded[1].is_lacking &&
        profiles[0]->is_ended_shown != profiles[1]->is_ended_shown) {
        ml_profile_show_ended(profiles[profiles[0]->is_ended_shown], ML_ENDED_SHOWN);
    }
    for (int i = 0; i < 2 && exit_code == ML_EXIT_OK; i++) {
        exit_code = make_views(command, &loads[i], &out_loaded[i]);
    }
    ml_command_progress_end();
    return exit_code;
}

int ml_command_load_with(
    const struct ml_command *command,
    const struct ml_load *load,
    const char *before,
    struct ml_loaded out_loaded[2]
) {
    struct ml_load loads[2] = {*load, *load};

    out_loaded[1] = (struct ml_loaded){0};
    loads[1].path = before;
    loads[1].dump = 0;
    loads[1].may_lack = true;
    return before ? ml_command_load_pair(command, loads, out_loaded)
                  : ml_command_load(command, load, &out_loaded[0]);
}

void ml_command_say_losses(const struct ml_command *command) {
    const char *lost = NULL;

    for (size_t i = 0; (lost = ml_helper_lost(i)) != NULL; i++) {
        if (lost[0]) {
            ml_command_say(command, "a process that it had started was ended: %s", lost);
        }
    }
}

bool ml_command_knows(
    const struct ml_command *command,
    const char *path,
    const struct ml_loaded *loaded,
    enum ml_metric metric
) {
    const struct ml_profile *profile = &loaded->profile;
    const bool is_known = metric == ML_METRIC_RESIDENT
                              ? ml_profile_knows_pages(profile)
                              : !ml_metric_is_of_pages(metric) || ml_profile_knows_waste(profile);

    if (!is_known) {
        ml_command_say_of(
            command,
            path,
            "--metric=%s is not known in this dump: it was not told which pages are resident, or "
            "not every block on them was recorded",
            ml_metric_words[metric]
        );
    }
    return is_known;
}

void ml_loaded_fini(struct ml_loaded *loaded) {
    ml_groups_fini(&loaded->groups);
    ml_suppressed_fini(&loaded->suppressed);
    ml_stacks_fini(&loaded->stacks);
    ml_symbolizer_free(loaded->symbolizer);
    ml_profile_fini(&loaded->profile);
}
