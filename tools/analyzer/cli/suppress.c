#include "tools/analyzer/cli/suppress.h"

#include <stdlib.h>

#include "tools/analyzer/cli/text_file.h"

const struct ml_suppressions *
ml_command_suppressions(const struct ml_command *command, const char *path) {
    static struct ml_suppressions suppressions;
    struct ml_error_message error = {.text = ""};
    size_t count = 0;

    if (suppressions.file) {
        return &suppressions;
    }
    char *bytes = ml_command_text_file(
        command,
        path,
        ML_SUPPRESSIONS_MAX_BYTES,
        "docs/reading-a-report.md tells what stands in it",
        &count
    );
    if (!bytes) {
        return NULL;
    }
    if (!ml_suppressions_read(&suppressions, bytes, count, path, &error)) {
        ml_command_say(command, "%s", error.text);
        ml_suppressions_fini(&suppressions);
    }
    free(bytes);
    return suppressions.file ? &suppressions : NULL;
}

void ml_command_tell_suppressed(
    const struct ml_suppressed *const *suppressed, const char *const *where, size_t count, FILE *out
) {
    if (count == 0 || !suppressed[0]->rules) {
        return;
    }
    putc('\n', out);
    for (size_t i = 0; i < count; i++) {
        ml_suppressed_text(suppressed[i], where ? where[i] : NULL, out);
    }
    ml_suppressed_unused(suppressed, count, out);
}
