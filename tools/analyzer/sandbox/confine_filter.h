/* The analyzer's sandbox with an option for tests. Room: tools (private; :confine).
 *
 * One rule: a call that is not permitted is refused. Only a line that a test names ends the
 * process.
 */
#ifndef MEMLOG_TOOLS_ANALYZER_SANDBOX_CONFINE_FILTER_H
#define MEMLOG_TOOLS_ANALYZER_SANDBOX_CONFINE_FILTER_H

#include <stdint.h>

/* ml_confine(), but the calls that line `deadly_line` of the policy permits (struct
 * ml_seccomp_line; 0: none) end the process with SIGSYS. So a test sees who uses the line. */
void ml_confine_but(const char *output_path, const char *second_path, uint32_t deadly_line);
void ml_confine_closed_but(uint32_t deadly_line);

#endif
