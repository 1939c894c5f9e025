/* The syscalls that the service may make. Room: service (:sandbox). Context: constant data.
 *
 * One rule: the table is generated from service/sandbox/policy/syscalls.policy, where each line has
 * its reason. */
#ifndef MEMLOG_SERVICE_SANDBOX_POLICY_POLICY_H
#define MEMLOG_SERVICE_SANDBOX_POLICY_POLICY_H

#include "base/seccomp/policy.h"
#include "service/sandbox/host_fd.h" /* HOST, in the policy's words */

extern const struct ml_seccomp_policy ml_service_policy;

#endif
