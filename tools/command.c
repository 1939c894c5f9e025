#include "tools/command.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/trace_reader.h"

enum { OPTIONS_MAX = 16 };

int ml_command_complain(const struct ml_command *command, const char *complaint) {
    fprintf(
        stderr, "memlog %s: %s\nTry 'memlog %s --help'.\n", command->name, complaint, command->name
    );
    return ML_EXIT_USAGE;
}

int ml_command_arguments(
    const struct ml_command *command,
    int argc,
    char **argv,
    const struct ml_option *options,
    size_t options_count,
    const char **out_file,
    bool *out_go_on
) {
    struct ml_option all[OPTIONS_MAX];
    char memory[ML_COMPLAINT_BYTES];
    const char *complaint = NULL;
    size_t files_count = 0;
    bool help = false;

    *out_go_on = false;
    memcpy(all, options, options_count * sizeof *options);
    all[options_count++] =
        (struct ml_option){.name = "--help", .short_name = "-h", .out_given = &help};
    complaint =
        ml_arguments_read(argc, argv, all, options_count, out_file, 1, &files_count, memory);
    if (help) {
        fputs(command->help, stdout);
        return ML_EXIT_OK;
    }
    if (!complaint && files_count == 0) {
        complaint =
            "no dump was named; dumps are the *.pftrace files in the output folder of memlog "
            "run";
    }
    if (complaint) {
        return ml_command_complain(command, complaint);
    }
    *out_go_on = true;
    return ML_EXIT_OK;
}

static void warn_of_partial(
    const struct ml_command *command, const char *path, const struct ml_profile *profile
) {
    if (profile->damaged) {
        fprintf(
            stderr,
            "memlog %s: %s is damaged at byte %" PRIu64 " (%s); what can be trusted is shown\n",
            command->name,
            path,
            profile->bad_at,
            profile->bad_is ? profile->bad_is : "tables that refer to missing ones"
        );
    } else if (profile->truncated) {
        fprintf(
            stderr,
            "memlog %s: %s was cut off before its end; what is there is shown\n",
            command->name,
            path
        );
    }
}

static bool
read_file(const struct ml_command *command, const char *path, struct ml_profile *profile) {
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *file = is_stdin ? stdin : fopen(path, "re");
    enum ml_status status = ML_OK;

    if (!file) {
        fprintf(stderr, "memlog %s: %s: %s\n", command->name, path, strerror(errno));
        return false;
    }
    errno = 0;
    status = ml_trace_read(file, profile);
    if (status == ML_ENV_SYSTEM) {
        fprintf(stderr, "memlog %s: %s: %s\n", command->name, path, strerror(errno));
    } else if (status != ML_OK) {
        fprintf(stderr, "memlog %s: %s: %s\n", command->name, path, ml_trace_read_advice(status));
    } else {
        warn_of_partial(command, path, profile);
    }
    if (!is_stdin) {
        fclose(file);
    }
    return status == ML_OK;
}

bool ml_command_load(
    const struct ml_command *command, const char *path, struct ml_loaded *out_loaded
) {
    enum ml_status status = ML_OK;

    *out_loaded = (struct ml_loaded){0};
    if (!read_file(command, path, &out_loaded->profile)) {
        return false;
    }
    out_loaded->symbolizer = ml_symbolizer_new(NULL);
    status = ml_stacks_init(&out_loaded->stacks, &out_loaded->profile);
    if (status == ML_OK && out_loaded->symbolizer) {
        status = ml_stacks_symbolize(&out_loaded->stacks, out_loaded->symbolizer);
    }
    if (status != ML_OK || !out_loaded->symbolizer) {
        fprintf(stderr, "memlog %s: %s: %s\n", command->name, path, ml_status_text(ML_ENV_MEMORY));
        return false;
    }
    return true;
}

void ml_loaded_fini(struct ml_loaded *loaded) {
    ml_stacks_fini(&loaded->stacks);
    ml_symbolizer_free(loaded->symbolizer);
    ml_profile_fini(&loaded->profile);
}
