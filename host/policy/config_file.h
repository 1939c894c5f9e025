/* The user's own defaults: ~/.config/memlog/config, or $XDG_CONFIG_HOME/memlog/config. Room: host.
 * Context: start of the program.
 *
 * One rule: it is read only where nobody but this user can have written it. Options that others
 * write could send them profiles. */
#ifndef MEMLOG_HOST_POLICY_CONFIG_FILE_H
#define MEMLOG_HOST_POLICY_CONFIG_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error_message.h"
#include "base/option_table.h"

enum { ML_CONFIG_MAX_BYTES = 64 << 10, ML_CONFIG_LINES_MAX = ML_OPTION_DEFAULTS_MAX };

struct ml_config_line {
    char *sections; /* the commands that it is for, with a blank between them */
    char *origin;   /* "FILE:LINE" */
    char *word;     /* "--name=value" */
};

struct ml_config {
    char path[PATH_MAX]; /* "": there is no place for one */
    const char *unread;  /* why it is not read; NULL: it was */
    bool is_refused;     /* it is there, and somebody else may have written it */
    struct ml_config_line *lines;
    size_t count;
};

/* Read it. `is_command` tells names of commands. An absent or refused file is no error: `unread`
 * says so. False: a line is broken, and the error message begins with file and line; _fini is
 * needed even then. */
bool ml_config_load(
    struct ml_config *config, bool (*is_command)(const char *name), struct ml_error_message *error
);
void ml_config_fini(struct ml_config *config);

/* The lines for a command, borrowed, at most ML_OPTION_DEFAULTS_MAX. Returns their number. */
size_t ml_config_of(
    const struct ml_config *config,
    const char *command,
    struct ml_option_default out_defaults[ML_OPTION_DEFAULTS_MAX]
);

#endif
