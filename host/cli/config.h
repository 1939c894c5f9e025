/* The user's defaults, before a command and by `memlog config`. Room: host. Context: the start of
 * memlog.
 *
 * One rule: a broken file ends the command, as what it meant to say is not known. */
#ifndef MEMLOG_HOST_CLI_CONFIG_H
#define MEMLOG_HOST_CLI_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/option_table.h"

extern const struct ml_option_table ml_config_table;
int ml_command_config(char *const *words);

/* Do without the file: --no-config. */
void ml_config_skip(void);

/* Let the command's options begin with the user's defaults. False: the file is broken, and stderr
 * says where. */
bool ml_config_apply(const char *command);

/* Become one of memlog's other programs (host/process/paths.h), or the analyzer, with these words,
 * argv[0] in front; the defaults that were applied go with them. Returns an exit code where that
 * fails. */
int ml_config_become(const char *file, char *const *argv);
int ml_config_become_analyzer(char *const *argv);

#endif
