#include "tools/analyzer/cli/output.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/analyzer/cli/progress.h"

/* To rename over it would destroy it. */
static bool is_special(const char *path) {
    struct stat status;

    return stat(path, &status) == 0 && !S_ISREG(status.st_mode);
}

/* Create a new file, following no link; remove one that an earlier run has left. */
static FILE *new_file(const char *path) {
    FILE *file = fopen(path, "wxe");
    if (!file && errno == EEXIST && unlink(path) == 0) {
        file = fopen(path, "wxe");
    }
    return file;
}

static enum ml_status open_output(struct ml_output *output, const char *path) {
    int count = 0;

    *output = (struct ml_output){.file = stdout};
    if (!path || strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0) {
        return ML_OK;
    }
    output->path = path;
    output->is_renamed = !is_special(path);
    count = snprintf(
        output->temporary, sizeof output->temporary, "%s%s", path, output->is_renamed ? ".part" : ""
    );
    if (count >= (int)sizeof output->temporary) {
        errno = ENAMETOOLONG;
        output->file = NULL;
    } else {
        output->file = output->is_renamed ? new_file(output->temporary) : fopen(path, "we");
    }
    return output->file ? ML_OK : ML_ENV_SYSTEM;
}

enum ml_status ml_output_open(struct ml_output *output, const char *path) {
    const enum ml_status status = open_output(output, path);

    if (status == ML_OK) {
        ml_command_progress_resume(output->file);
    }
    return status;
}

enum ml_status ml_output_close(struct ml_output *output, enum ml_status status) {
    ml_command_progress_end();
    bool done = fflush(output->file) == 0 && !ferror(output->file);

    if (output->path && fclose(output->file) != 0) {
        done = false;
    }
    if (status == ML_OK && !done) {
        status = ML_ENV_SYSTEM;
    }
    if (output->is_renamed && status == ML_OK && rename(output->temporary, output->path) != 0) {
        status = ML_ENV_SYSTEM;
    }
    if (output->is_renamed && status != ML_OK) {
        unlink(output->temporary);
    }
    return status;
}
