#include "tools/analyzer/cli/join.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/input_file.h"
#include "tools/analyzer/formats/symbol_packets.h"
#include "tools/analyzer/model/trace_deobfuscation.h"
#include "tools/analyzer/perfetto/join.h"
#include "tools/analyzer/progress/progress.h"
#include "tools/analyzer/sqlite/many.h"

/* The dumps while they are put together. */
struct joining {
    const struct ml_command *command;
    const struct ml_load *load;
    struct ml_join *join;
    FILE *names; /* packets with names, which come last */
    char *names_bytes;
    size_t names_count;
    struct ml_string_table told; /* whose names are among them */
    struct ml_sqlite_many *many; /* as a database; NULL: as a trace */
    bool has_any;                /* of what was asked for */
};

static int say_status(const struct joining *joining, const char *path, enum ml_status status) {
    ml_command_say_of(joining->command, path, "%s", ml_status_text(status));
    return ML_EXIT_FAILED;
}

static enum ml_status learn_trace(
    struct joining *joining, const char *path, uint32_t number, const struct ml_loaded *loaded
) {
    const enum ml_status status = ml_join_learn(joining->join, &loaded->profile, path, number);

    return status == ML_OK
               ? ml_symbol_packets_write_new(&loaded->stacks, &joining->told, joining->names)
               : status;
}

/* Take a dump that was read. The exit code. */
static int
learn(struct joining *joining, const char *path, uint32_t number, const struct ml_loaded *loaded) {
    enum ml_status status = ML_OK;

    if (loaded->is_stream) {
        ml_command_say_of(joining->command, path, "%s", ml_input_trouble(ESPIPE));
        return ML_EXIT_FAILED;
    }
    if (loaded->is_lacking) {
        return ML_EXIT_OK;
    }
    joining->has_any = true;
    status = joining->many ? ml_sqlite_many_add(joining->many, &loaded->stacks)
                           : learn_trace(joining, path, number, loaded);
    if (status == ML_PEER_STATE) {
        ml_command_say_of(
            joining->command,
            path,
            "it is of another run than the dumps before: those of one run go together"
        );
        return ML_EXIT_FAILED;
    }
    return status == ML_OK ? ML_EXIT_OK : say_status(joining, path, status);
}

/* Read all dumps of a file. The exit code. */
static int learn_file(struct joining *joining, const char *path) {
    struct ml_load load = *joining->load;
    uint32_t count = 1;
    int exit_code = ML_EXIT_OK;

    load.path = path;
    for (uint32_t i = 1; exit_code == ML_EXIT_OK && i <= count; i++) {
        struct ml_loaded loaded;
        load.dump = i;
        exit_code = ml_command_load(joining->command, &load, &loaded);
        if (exit_code == ML_EXIT_OK) {
            exit_code = learn(joining, path, i, &loaded);
            count = loaded.profile.dumps_count;
            if (i == count) { /* the environment's; what dumps have stays in its place */
                ml_trace_deobfuscation_write(&loaded.profile.deobfuscation, joining->names);
            }
        }
        ml_loaded_fini(&loaded);
    }
    return exit_code;
}

/* The whole file. Owner: free. NULL: errno says why. */
static uint8_t *read_all(const char *path, size_t *out_count) {
    const int fd = ml_input_regular(path);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    const bool is_sized = file && fseeko(file, 0, SEEK_END) == 0;
    const off_t size = is_sized ? ftello(file) : -1;
    uint8_t *bytes = size >= 0 ? malloc((size_t)size + 1) : NULL;

    *out_count = 0;
    if (bytes) {
        rewind(file);
        *out_count = fread(bytes, 1, (size_t)size, file);
    }
    if (file) {
        fclose(file);
    }
    return bytes;
}

static enum ml_status write_dumps(const struct joining *joining, FILE *out) {
    enum ml_status status = ML_OK;
    size_t count = 0;
    const struct ml_join_dump *dumps = ml_join_settle(joining->join, &count);

    if (!dumps) {
        return ML_ENV_MEMORY;
    }
    for (size_t i = 0; status == ML_OK && i < count; i++) {
        size_t count_bytes = 0;
        ml_progress_pieces("Joining dumps", i, count, dumps[i].path);
        uint8_t *bytes = read_all(dumps[i].path, &count_bytes);
        status = bytes ? ml_join_write(joining->join, bytes, count_bytes, out) : ML_ENV_SYSTEM;
        free(bytes);
    }
    if (status == ML_OK) {
        fwrite(joining->names_bytes, 1, joining->names_count, out);
    }
    return status;
}

static int write_all(struct joining *joining) {
    struct ml_output output;
    enum ml_status status = ML_OK;

    if (fclose(joining->names) != 0) {
        status = ML_ENV_MEMORY;
    }
    joining->names = NULL;
    if (status == ML_OK) {
        status = ml_output_open(&output, joining->load->output_path);
        if (status == ML_OK) {
            status = ml_output_close(
                &output,
                joining->many ? ml_sqlite_many_write(joining->many, output.file)
                              : write_dumps(joining, output.file)
            );
        }
    }
    return ml_command_written(joining->command, joining->load->output_path, status);
}

int ml_command_join(
    const struct ml_command *command,
    const struct ml_load *load,
    const char *const *files,
    enum ml_join_form form
) {
    const bool is_database = form == ML_JOIN_DATABASE;
    struct joining joining = {
        .command = command,
        .load = load,
        .join = ml_join_new(),
        .many = is_database ? ml_sqlite_many_new() : NULL};
    int exit_code = ML_EXIT_OK;

    joining.names = open_memstream(&joining.names_bytes, &joining.names_count);
    if (!joining.join || !joining.names || (is_database && !joining.many)) {
        exit_code = say_status(&joining, files[0], ML_ENV_MEMORY);
    }
    for (size_t i = 0; exit_code == ML_EXIT_OK && files[i]; i++) {
        exit_code = learn_file(&joining, files[i]);
    }
    if (exit_code == ML_EXIT_OK && !joining.has_any) {
        ml_command_say(command, "none of these dumps has the requested process");
        exit_code = ML_EXIT_LACKING;
    }
    if (exit_code == ML_EXIT_OK) {
        exit_code = write_all(&joining);
    }
    if (joining.names) {
        fclose(joining.names);
    }
    free(joining.names_bytes);
    ml_string_table_fini(&joining.told);
    ml_join_free(joining.join);
    ml_sqlite_many_free(joining.many);
    return exit_code;
}
