#include "host/policy/command_line.h"

#include <argz.h>
#include <stdlib.h>
#include <string.h>

static size_t count_arguments(const char *bytes, size_t count_bytes) {
    size_t count = 0;
    for (size_t pos = 0; pos < count_bytes && count < ML_COMMAND_LINE_MAX_ARGUMENTS; count++) {
        pos += strnlen(bytes + pos, count_bytes - pos) + 1;
    }
    return count;
}

enum ml_status ml_command_line_from_bytes(
    struct ml_command_line *out_line, const char *bytes, size_t count_bytes
) {
    if (count_bytes > ML_COMMAND_LINE_MAX_BYTES) {
        count_bytes = ML_COMMAND_LINE_MAX_BYTES;
    }
    size_t count = count_arguments(bytes, count_bytes);
    size_t pointers_bytes = (count + 1) * sizeof(char *);
    /* The arguments with a NUL each, and the joined form, which is as long. */
    char *block = malloc(pointers_bytes + 2 * (count_bytes + count + 1));
    if (block == NULL) {
        return ML_ENV_MEMORY;
    }
    char **arguments = (char **)(void *)block;
    char *text = block + pointers_bytes;
    char *joined = text + count_bytes + count + 1;
    char *join = joined;
    size_t pos = 0;
    for (size_t i = 0; i < count; i++) {
        size_t argument = strnlen(bytes + pos, count_bytes - pos);
        size_t kept = argument < ML_COMMAND_LINE_MAX_ARGUMENT_BYTES
                          ? argument
                          : (size_t)ML_COMMAND_LINE_MAX_ARGUMENT_BYTES;
        arguments[i] = text;
        memcpy(text, bytes + pos, kept);
        text[kept] = '\0';
        text += kept + 1;
        if (i > 0) {
            *join++ = ' ';
        }
        memcpy(join, bytes + pos, kept);
        join += kept;
        pos += argument + 1;
    }
    arguments[count] = NULL;
    *join = '\0';
    *out_line = (struct ml_command_line){.arguments = arguments, .count = count, .joined = joined};
    return ML_OK;
}

enum ml_status ml_command_line_from_argv(struct ml_command_line *out_line, char *const *argv) {
    char *bytes = NULL;
    size_t count_bytes = 0;
    if (argz_create(argv, &bytes, &count_bytes) != 0) {
        return ML_ENV_MEMORY;
    }
    const enum ml_status status = ml_command_line_from_bytes(out_line, bytes, count_bytes);
    free(bytes);
    return status;
}

bool ml_command_line_equal(
    const struct ml_command_line *left, const struct ml_command_line *right
) {
    if (left->count != right->count) {
        return false;
    }
    for (size_t i = 0; i < left->count; i++) {
        if (strcmp(left->arguments[i], right->arguments[i]) != 0) {
            return false;
        }
    }
    return true;
}

void ml_command_line_fini(struct ml_command_line *line) {
    free(line->arguments);
    *line = (struct ml_command_line){.arguments = NULL, .count = 0, .joined = NULL};
}
