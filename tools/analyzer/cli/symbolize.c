#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/input_file.h"
#include "base/printable.h"
#include "tools/analyzer/cli/command.h"
#include "tools/analyzer/formats/chrome_symbolize.h"
#include "tools/analyzer/formats/symbol_packets.h"
#include "tools/analyzer/model/trace_deobfuscation.h"

struct request {
    struct ml_load load;
    const char *target;
    bool is_symbols_only;
};

static const struct ml_option options[] = {
    ML_ROW_OUTPUT(struct request, target, "write the dump with its names here instead"),
    {.name = "--symbols-only",
     ML_FLAG_TO(struct request, is_symbols_only),
     .help = "write the names alone: cat DUMP NAMES is the dump with its names"},
    {.name = "--alternative-dirs",
     ML_TEXT_TO(struct request, load.alternative_dirs),
     .value = "DEVICE@HOST[:...]",
     .help = "what was recorded below DEVICE lies below HOST here"},
    {.name = "--use-breakpad-symbols",
     ML_TEXT_TO(struct request, load.breakpad_dirs),
     .value = "DIR[:...]",
     .help = "where no DWARF is found, Breakpad's symbol files: DIR/NAME/ID/NAME.sym, DIR/NAME.sym "
             "or DIR/NAME.breakpad"},
};

enum { COPY_BYTES = 64 * 1024 };

/* The first `count_bytes` bytes of the file. */
static enum ml_status copy(const char *path, uint64_t count_bytes, FILE *out) {
    const int fd = ml_input_regular(path);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    char bytes[COPY_BYTES];
    bool done = file != NULL;

    while (done && count_bytes > 0) {
        size_t wanted = count_bytes < sizeof bytes ? (size_t)count_bytes : sizeof bytes;
        size_t got = fread(bytes, 1, wanted, file);
        done = got > 0 && fwrite(bytes, 1, got, out) == got;
        count_bytes -= got;
    }
    if (file) {
        fclose(file);
    }
    return done ? ML_OK : ML_ENV_SYSTEM;
}

/* The names alone. */
static enum ml_status write_symbols(const struct ml_loaded *loaded, FILE *out, size_t *out_places) {
    enum ml_status status = ml_symbol_packets_write(&loaded->stacks, out, out_places);

    if (status == ML_OK) {
        ml_trace_deobfuscation_write(&loaded->profile.deobfuscation, out);
    }
    return status;
}

enum ml_status ml_command_write_symbolized(
    const char *path, const struct ml_loaded *loaded, FILE *out, size_t *out_places
) {
    enum ml_status status = copy(path, loaded->profile.whole_bytes, out);

    *out_places = 0;
    return status == ML_OK ? write_symbols(loaded, out, out_places) : status;
}

/* A file without names, with its build id and the reason. */
static void
say_nameless(void *context, const char *path, const char *build_id_hex, const char *trouble) {
    const struct ml_command *command = context;

    fprintf(stderr, "memlog %s: no names for ", command->table.name);
    ml_printable_put_text(stderr, path);
    fputs(" (build id ", stderr);
    ml_printable_put_text(stderr, build_id_hex);
    fprintf(stderr, "): %s\n", trouble);
}

static void list_nameless(const struct ml_command *command, const struct ml_stacks *stacks) {
    for (size_t i = 0; i < stacks->files_count; i++) {
        const struct ml_code_file *file = &stacks->files[i];
        char hex[ML_PROFILE_HEX_BYTES];

        if (!file->is_symbolized && file->trouble) {
            (void)ml_profile_hex(file->build_id, hex);
            say_nameless(
                (void *)(uintptr_t)command, file->path.bytes, hex[0] ? hex : "none", file->trouble
            );
        }
    }
}

static int write_names(
    const struct ml_command *command, const struct request *request, const struct ml_loaded *loaded
) {
    struct ml_output output;
    size_t places = 0;
    enum ml_status status = ml_output_open(&output, request->target);
    int exit_code = ML_EXIT_OK;

    if (status == ML_OK) {
        status =
            request->is_symbols_only
                ? write_symbols(loaded, output.file, &places)
                : ml_command_write_symbolized(request->load.path, loaded, output.file, &places);
        status = ml_output_close(&output, status);
    }
    exit_code = ml_command_written(command, request->target, status);
    if (exit_code == ML_EXIT_OK) {
        list_nameless(command, &loaded->stacks);
        ml_command_say(command, "names for %zu more places", places);
    }
    return exit_code;
}

static bool is_chrome_trace(const char *path) {
    size_t count = strlen(path);

    return (count > 5 && strcmp(path + count - 5, ".json") == 0) ||
           (count > 8 && strcmp(path + count - 8, ".json.gz") == 0);
}

/* A trace of `memlog convert --to=chrome`. */
static int symbolize_chrome(const struct ml_command *command, const struct ml_load *load) {
    struct ml_symbolizer *symbolizer = NULL;
    struct ml_output output;
    enum ml_status status = ML_OK;
    size_t places = 0;
    const int fd = ml_input_regular(load->path);

    if (fd < 0) {
        ml_command_say_of(command, load->path, "%s", ml_input_trouble(errno));
        return ML_EXIT_FAILED;
    }
    (void)close(fd);
    ml_command_confine(load);
    symbolizer = ml_command_symbolizer(load);
    status = symbolizer ? ml_output_open(&output, load->output_path) : ML_ENV_MEMORY;
    if (status == ML_OK) {
        status = ml_chrome_symbolize(
            load->path, symbolizer, say_nameless, (void *)(uintptr_t)command, output.file, &places
        );
        status = ml_output_close(&output, status);
    }
    ml_symbolizer_free(symbolizer);
    if (status == ML_PEER_FORM || status == ML_PEER_LIMIT || status == ML_ENV_MISSING) {
        ml_command_say_of(
            command,
            load->path,
            "%s",
            status == ML_PEER_FORM ? "this is no JSON; dumps are *.pftrace files"
            : status == ML_PEER_LIMIT
                ? "more JSON than memory should hold; memlog symbolize of the "
                  "dump, then memlog convert --to=chrome gives the same"
                : "there is no heap in it that memlog convert --to=chrome wrote"
        );
        return ML_EXIT_FAILED;
    }
    if (ml_command_written(command, load->output_path, status) != ML_EXIT_OK) {
        return ML_EXIT_FAILED;
    }
    ml_command_say(command, "names for %zu more places", places);
    return ML_EXIT_OK;
}

static int run(const struct ml_command *command, char *const *words) {
    struct request request = {.load = {.is_fetching = true}};
    struct ml_loaded loaded;
    int exit_code = ML_EXIT_OK;

    if (!ml_command_read(command, words, &request, NULL, &exit_code)) {
        return exit_code;
    }
    if (strcmp(request.load.path, "-") == 0 && !request.is_symbols_only) {
        return ml_command_fail(command, "a dump from stdin can only give --symbols-only");
    }
    if (request.is_symbols_only && !request.target && isatty(STDOUT_FILENO)) {
        return ml_command_fail(command, "names are binary: say -o FILE");
    }
    if (!request.target && !request.is_symbols_only) {
        request.target = request.load.path;
    }
    request.load.output_path = request.target;
    if (is_chrome_trace(request.load.path)) {
        return request.is_symbols_only
                   ? ml_command_fail(command, "a Chrome trace takes its names inside; say -o FILE")
                   : symbolize_chrome(command, &request.load);
    }
    exit_code = ml_command_load(command, &request.load, &loaded);
    if (exit_code == ML_EXIT_OK) {
        if (loaded.is_stream && !request.is_symbols_only) {
            ml_command_say_of(command, request.load.path, "%s", ml_input_trouble(ESPIPE));
            exit_code = ML_EXIT_FAILED;
        } else {
            exit_code = write_names(command, &request, &loaded);
        }
    }
    ml_loaded_fini(&loaded);
    return exit_code;
}

const struct ml_command ml_command_symbolize = {
    .table =
        {.program = "memlog",
         .name = "symbolize",
         .summary = "add function names to a dump",
         .usage = "[OPTIONS] DUMP",
         .about = "Adds the names of functions, files and lines to a dump, so that it has them "
                  "wherever it goes and is read at once. Without -o the dump itself gets them, "
                  "behind what it holds.\n"
                  "\n"
                  "So does a trace of memlog convert --to=chrome, FILE.json or FILE.json.gz.",
         ML_OPTIONS(options),
         ML_OPERANDS_DUMPS(struct request, load.path, 1),
         .notes =
             "Names come from the recorded file, its debug file (.gnu_debuglink, .debug, "
             "/usr/lib/debug, also .gnu_debugdata in it), the folders of MEMLOG_BINARY_PATH (or "
             "PERFETTO_BINARY_PATH; with MEMLOG_SYMBOLIZER_MODE=index whatever lies below them), "
             "and from the servers of DEBUGINFOD_URLS if that is set; of code made at run time "
             "from /tmp/perf-PID.map. A file of another build id gives none. What has no names is "
             "listed with the reason.\n"
             "\n"
             "MEMLOG_PROGUARD_MAP=PACKAGE=FILE[:...] (or PERFETTO_PROGUARD_MAP) names the maps of "
             "ProGuard or R8: classes and methods in code of that package (a process or file with "
             "it in its name) are called what they were before, here and in every other view; the "
             "dump gets the maps, too.\n"
             "\n"
             "Names that were found are kept by build id for every later view, at most 256 MiB of "
             "them, in $XDG_CACHE_HOME/memlog or ~/.cache/memlog; MEMLOG_SYMBOL_CACHE=DIR is "
             "another folder, off none.",
         .example = "memlog symbolize memlog.sqlite3.1234/0001.exit.pftrace"},
    .dumps = ML_DUMPS_ALL,
    .run = run,
};
