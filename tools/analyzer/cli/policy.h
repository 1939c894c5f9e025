/* The policy that a command names: one of memlog's, or a file. Room: tools. Context: one thread.
 *
 * One rule: a file is read in the sandbox, as a dump is. */
#ifndef MEMLOG_TOOLS_ANALYZER_CLI_POLICY_H
#define MEMLOG_TOOLS_ANALYZER_CLI_POLICY_H

#include <stdbool.h>

#include "tools/analyzer/cli/command.h"
#include "tools/analyzer/memory/policy.h"

#define ML_ROW_POLICY(type, member)                                                                \
    {                                                                                              \
        .name = "--policy", ML_PATH_TO(type, member), .value = "l0|l1|l2|FILE",                    \
        .help =                                                                                    \
            "the rules that sort memory into components: l0 by kind (default), l1 by run-time, "   \
            "l2 by library, or a file of your own or of dmprof's"                                  \
    }

/* Read it. ML_EXIT_OK, or the exit code after a message. ml_policy_fini() is needed even then. */
int ml_command_policy(
    const struct ml_command *command, const char *name, struct ml_policy *out_policy
);

/* Print its text. The exit code. */
int ml_command_show_policy(const struct ml_command *command, const char *name);

#endif
