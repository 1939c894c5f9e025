/* Progress of a command on the terminal of its user. Room: tools. Context: main's thread.
 *
 * One rule: stdout never gets a byte of it, and stderr only where it is a terminal that can erase a
 * line and whose user waits for this program. */
#ifndef MEMLOG_TOOLS_ANALYZER_CLI_PROGRESS_H
#define MEMLOG_TOOLS_ANALYZER_CLI_PROGRESS_H

#include <stdio.h>

/* Begin to look at the work, if stderr is such a terminal. In front of the sandbox, and again for
 * more work. */
void ml_command_progress_begin(void);

/* Look at how the answer is written; not if it goes to a terminal, where it would be between. */
void ml_command_progress_resume(FILE *answer);

/* Erase the line, which is written again when the work goes on: in front of a message. */
void ml_command_progress_erase(void);

/* Erase it and look no more: in front of an answer. */
void ml_command_progress_end(void);

#endif
