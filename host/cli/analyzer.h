/* Runs the analyzer for a command of the host. Room: host. Context: the main thread, while no loop
 * looks after children.
 *
 * One rule: what the analyzer says while a program runs comes out on stderr, as stdout is the
 * program's. */
#ifndef MEMLOG_HOST_CLI_ANALYZER_H
#define MEMLOG_HOST_CLI_ANALYZER_H

#include <stdbool.h>

#include "host/process/launcher.h"

enum { ML_ANALYZER_WORDS_MAX = 8 };

/* Put a new dump's path in the place of a process id, which is the last word of `memlog suspects`;
 * other words stay as they are. False: there is no such dump, and stderr says why. */
bool ml_analyzer_dump_process(char **words);

/* Run it with these words, NULL-terminated: a sub-command, its options and files, and wait for its
 * end. `quiet`: it says nothing. Returns its exit code; -1: it could not be run or was killed, and
 * stderr says why where that is known. `inherited` may be NULL. */
int ml_analyzer_run(const struct ml_inherited *inherited, const char *const *words, bool quiet);

#endif
