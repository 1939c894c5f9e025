/* Shows a long answer in the reader's pager, as git does. Room: host. Context: the main thread of a
 * command that reads dumps, before it becomes the analyzer.
 *
 * One rule: only who sits before a terminal gets a pager. Pipes, files and exit codes are as
 * without one. */
#ifndef MEMLOG_HOST_TERMINAL_PAGER_H
#define MEMLOG_HOST_TERMINAL_PAGER_H

/* Start the pager for a command whose words these are (the command's name first, NULL-terminated),
 * if stdout is a terminal and the command prints text to it: MEMLOG_PAGER, else PAGER, else less.
 * "" or "cat" is none.
 *
 * Returns -1: go on, with stdout into the pager or unchanged. Else the process has waited for both,
 * and this is the exit code to end with: the command's own. */
int ml_pager_start(char *const *words);

#endif
