#include "tools/analyzer/cli/text_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/input_file.h"

char *ml_command_text_file(
    const struct ml_command *command,
    const char *path,
    size_t most_bytes,
    const char *hint,
    size_t *out_count
) {
    bool is_stream = false;
    FILE *file = ml_input_open(path, &is_stream);
    char *bytes = NULL;

    if (!file) {
        const char *trouble = ml_input_trouble(errno);
        const bool is_missing = errno == ENOENT;
        ml_command_say_of(
            command, path, "%s%s%s", trouble, is_missing ? "; " : "", is_missing ? hint : ""
        );
        return NULL;
    }
    bytes = malloc(most_bytes + 1);
    if (bytes) {
        *out_count = fread(bytes, 1, most_bytes + 1, file); /* one more: it is too large */
    }
    if (!bytes || ferror(file)) {
        ml_command_say_of(
            command, path, "%s", bytes ? "it cannot be read" : ml_status_text(ML_ENV_MEMORY)
        );
        free(bytes);
        bytes = NULL;
    }
    fclose(file);
    return bytes;
}
