/* `memlog ps`, `dump`, `start`, `stop`, `rate`, `env`, `upload`: what a person says to a running
 * host; `doctor`, `page`. Room: host. Context: their own process.
 *
 * One rule: stdout is data, stderr is talk. */
#ifndef MEMLOG_HOST_COMMANDS_H
#define MEMLOG_HOST_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>

struct ml_channel;

/* Carry out a command with the words behind it (NULL-terminated). Returns the exit
 * code. */
int ml_command_ps(char *const *words);
int ml_command_dump(char *const *words);
int ml_command_start(char *const *words);
int ml_command_stop(char *const *words);
int ml_command_rate(char *const *words);
int ml_command_env(char *const *words);
int ml_command_doctor(char *const *words);
int ml_command_page(char *const *words);
int ml_command_upload(char *const *words);

/* Say that an option is not known, and the nearest that is. Returns false. */
bool ml_commands_unknown(const char *word, const char *const *known, size_t known_count);

/* Write a string to stdout as JSON has it, quotes included. */
void ml_commands_json_text(const char *bytes, size_t count_bytes);

/* Write a path to stdout, and a line's end: as it is for programs, printable for a terminal. */
void ml_commands_put_path(const char *bytes, size_t count_bytes);

/* A channel without a loop to the newest host of this user, or to the one whose command socket is
 * `path`. NULL: there is none, which was said on stderr. Owner: ml_channel_free. */
struct ml_channel *ml_commands_reach_host(const char *path);

#endif
