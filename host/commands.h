/* `memlog ps` and `memlog dump`: what a person says to a running host. Room: host. Context: their
 * own process.
 *
 * One rule: stdout is data, stderr is talk. */
#ifndef MEMLOG_HOST_COMMANDS_H
#define MEMLOG_HOST_COMMANDS_H

#include <stdio.h>

/* Carry out a command with the words behind it (NULL-terminated). Returns the exit
 * code. */
int ml_command_ps(char *const *words);
int ml_command_dump(char *const *words);

/* A string as JSON writes it, quotes included; bytes that are no UTF-8 become U+FFFD. */
void ml_json_string(FILE *out, const char *bytes, size_t count_bytes);

#endif
