/* The analyzer's sandbox, with a choice that only tests make. Room: tools (private; :confine).
 *
 * One rule: what is not permitted is refused; what ends the process is a line that a test asks for.
 */
#ifndef MEMLOG_TOOLS_ANALYZER_SANDBOX_CONFINE_FILTER_H
#define MEMLOG_TOOLS_ANALYZER_SANDBOX_CONFINE_FILTER_H

#include <stdint.h>

/* ml_confine(), but the calls that line `deadly_line` of the policy permits (struct
 * ml_seccomp_line; 0: of none) end the process with SIGSYS: so it is seen who uses the line. */
void ml_confine_but(const char *output_path, uint32_t deadly_line);

#endif
