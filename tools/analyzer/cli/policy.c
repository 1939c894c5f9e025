#include "tools/analyzer/cli/policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/analyzer/cli/text_file.h"

/* The bytes of a policy. NULL: there is a message. Owner: free. */
static char *read_text(const struct ml_command *command, const char *name, size_t *out_count) {
    const char *built_in = ml_policy_built_in(name);
    char *bytes = NULL;

    if (built_in) {
        *out_count = strlen(built_in);
        bytes = strdup(built_in);
        if (!bytes) {
            ml_command_say(command, "%s", ml_status_text(ML_ENV_MEMORY));
        }
        return bytes;
    }
    return ml_command_text_file(
        command, name, ML_POLICY_MAX_BYTES, "policies are l0, l1, l2 and files", out_count
    );
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
