/* The syscalls that the analyzer may make in its sandbox. Room: tools (private; :confine). Context:
 * constant data.
 *
 * One rule: the table is generated from tools/analyzer/sandbox/policy, where each line has its
 * reason. */
#ifndef MEMLOG_TOOLS_ANALYZER_SANDBOX_CONFINE_POLICY_H
#define MEMLOG_TOOLS_ANALYZER_SANDBOX_CONFINE_POLICY_H

#include "base/seccomp/policy.h"

#define ML_CONFINE_WRITING (O_ACCMODE | O_CREAT | O_TRUNC) /* of open's flags */

/* The files, in the order in which tools/BUILD.gn names them. */
enum ml_confine_file { ML_CONFINE_ALWAYS, ML_CONFINE_READING, ML_CONFINE_TO_WRITE };

extern const struct ml_seccomp_policy ml_analyzer_policy;

#endif
