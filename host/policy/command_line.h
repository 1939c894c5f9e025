/* A process's command line. Room: host. Context: any; the value is its owner's.
 *
 * One rule: a process controls its own command line (/proc/PID/cmdline). It serves policy and
 * people, never identity. */
#ifndef MEMLOG_HOST_POLICY_COMMAND_LINE_H
#define MEMLOG_HOST_POLICY_COMMAND_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "ipc/wire/ml_status.h"

/* Bounds of what is kept. The kernel allows 128 KiB an argument and 2 MiB in all. Except for the
 * total, they are those of ClientInfo.command_line in heap_service.mojom. */
enum {
    ML_COMMAND_LINE_MAX_ARGUMENTS = 4096,
    ML_COMMAND_LINE_MAX_ARGUMENT_BYTES = 4096,
    ML_COMMAND_LINE_MAX_BYTES = 128 * 1024
};

/* All zero is an empty command line. */
struct ml_command_line {
    char **arguments; /* count pointers and a NULL, one block with the bytes they point to */
    size_t count;
    char *joined; /* the arguments with one blank between each */
};

/* Make one from the NUL-separated bytes of /proc/PID/cmdline. A last argument without its NUL
 * counts. What exceeds the bounds is cut. Errors: ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status
ml_command_line_from_bytes(struct ml_command_line *out_line, const char *bytes, size_t count_bytes);

/* Make one from an argv. Errors: ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status
ml_command_line_from_argv(struct ml_command_line *out_line, char *const *argv);

bool ml_command_line_equal(const struct ml_command_line *left, const struct ml_command_line *right);

/* Free the arguments and make the command line empty. */
void ml_command_line_fini(struct ml_command_line *line);

#endif
