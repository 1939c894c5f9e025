/* Sub-commands that send a request to a running host: `memlog ps`, `top`, `dump`, `start`, `stop`,
 * `rate`, `env`, `upload`; and `doctor` and `page`. Room: host. Context: their own process.
 *
 * One rule: data goes to stdout, messages to people go to stderr. */
#ifndef MEMLOG_HOST_CLI_COMMANDS_H
#define MEMLOG_HOST_CLI_COMMANDS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json_writer.h"
#include "base/option_table.h"
#include "mojom_like_idl/runtime/layout.h"

struct ml_channel;

/* Carry out a command. `words` are the arguments after its name, NULL-terminated. Returns the exit
 * code. */
int ml_command_ps(char *const *words);
int ml_command_top(char *const *words);
int ml_command_dump(char *const *words);
int ml_command_start(char *const *words);
int ml_command_stop(char *const *words);
int ml_command_rate(char *const *words);
int ml_command_env(char *const *words);
int ml_command_doctor(char *const *words);
int ml_command_page(char *const *words);
int ml_command_upload(char *const *words);

extern const struct ml_option_table ml_ps_table;
extern const struct ml_option_table ml_top_table;
extern const struct ml_option_table ml_dump_table;
extern const struct ml_option_table ml_start_table;
extern const struct ml_option_table ml_stop_table;
extern const struct ml_option_table ml_rate_table;
extern const struct ml_option_table ml_env_table;
extern const struct ml_option_table ml_doctor_table;
extern const struct ml_option_table ml_page_table;
extern const struct ml_option_table ml_upload_table;

/* Options of several commands. Each is stored in a member of the command's struct. */
#define ML_ROW_HOST(type, member)                                                                  \
    {                                                                                              \
        .name = "--host", ML_PATH_TO(type, member), .value = "PATH",                               \
        .help = "the running memlog whose command socket is PATH (default: this user's newest)"    \
    }
#define ML_ROW_JSON(type, member)                                                                  \
    { .name = "--json", ML_FLAG_TO(type, member), .help = "as JSON, for programs" }
#define ML_OPERANDS_PROCESSES(type, member)                                                        \
    .operands = ML_OPERANDS_PIDS, .operands_offset = offsetof(type, member),                       \
    .operands_most = ML_PIDS_MAX

/* Read a command's arguments. False: --help or an error message was printed, and *out_exit_code is
 * set. `out_given` is that of ml_option_table_read(). */
bool ml_commands_read(
    const struct ml_option_table *table,
    char *const *words,
    void *to,
    uint64_t *out_given,
    int *out_exit_code
);

/* Print what is wrong with a command line, and where help is. Returns ML_EXIT_USAGE. */
int ml_commands_wrong(const struct ml_option_table *table, const char *error);

/* Write a member of a JSON object whose value is a string of a message. */
void ml_commands_json_member(struct ml_json *json, const char *name, struct ml_string value);

/* Write a path and a newline to stdout. A terminal gets printable text, a program the bytes as they
 * are. */
void ml_commands_put_path(const char *bytes, size_t count_bytes);

/* Take a dump of one process of this user's newest host. False: there is none, and stderr says why.
 */
bool ml_commands_dump_process(uint32_t pid, char out_path[PATH_MAX]);

/* Connect to the newest host of this user, or to the one whose command socket is `path`. The
 * channel has no loop. NULL: there is no such host, and stderr says so. Owner: free with
 * ml_channel_free. */
struct ml_channel *ml_commands_reach_host(const char *path);

#endif
