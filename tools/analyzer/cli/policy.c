#include "tools/analyzer/cli/policy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/input_file.h"

/* The bytes of a policy. NULL: there is a message. Owner: free. */
static char *read_text(const struct ml_command *command, const char *name, size_t *out_count) {
    const char *built_in = ml_policy_built_in(name);
    bool is_stream = false;
    FILE *file = NULL;
    char *bytes = NULL;

    if (built_in) {
        *out_count = strlen(built_in);
        bytes = strdup(built_in);
        if (!bytes) {
            ml_command_say(command, "%s", ml_status_text(ML_ENV_MEMORY));
        }
        return bytes;
    }
    file = ml_input_open(name, &is_stream);
    if (!file) {
        ml_command_say_of(
            command,
            name,
            errno == ENOENT ? "%s; policies are l0, l1, l2 and files" : "%s",
            ml_input_trouble(errno)
        );
        return NULL;
    }
    bytes = malloc(ML_POLICY_MAX_BYTES + 2);
    if (bytes) {
        *out_count = fread(bytes, 1, ML_POLICY_MAX_BYTES + 1, file); /* one more: it is too large */
    }
    if (!bytes || ferror(file)) {
        ml_command_say_of(
            command, name, "%s", bytes ? "it cannot be read" : ml_status_text(ML_ENV_MEMORY)
        );
        free(bytes);
        bytes = NULL;
    }
    fclose(file);
    return bytes;
}

int ml_command_policy(
    const struct ml_command *command, const char *name, struct ml_policy *out_policy
) {
    struct ml_error_message error = {.text = ""};
    size_t count = 0;
    char *bytes = read_text(command, name, &count);
    bool done = false;

    *out_policy = (struct ml_policy){0};
    if (!bytes) {
        return ML_EXIT_FAILED;
    }
    done = ml_policy_read(out_policy, bytes, count, name, &error);
    if (!done) {
        ml_command_say(command, "%s", error.text);
    }
    free(bytes);
    return done ? ML_EXIT_OK : ML_EXIT_USAGE;
}

int ml_command_show_policy(const struct ml_command *command, const char *name) {
    size_t count = 0;
    char *bytes = read_text(command, name, &count);

    if (!bytes) {
        return ML_EXIT_FAILED;
    }
    fwrite(bytes, 1, count, stdout);
    free(bytes);
    return ml_command_finish(command);
}
