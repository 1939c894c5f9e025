/* The seccomp filter, from the table that base/seccomp/generate.py makes of
 * service/sandbox/policy/syscalls.policy. */
#include <seccomp.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/seccomp/policy.h"
#include "service/sandbox/internal.h"
#include "service/sandbox/policy/policy.h"

static uint32_t action(const void *left_out_line, const struct ml_seccomp_line *line) {
    return line->line == *(const uint32_t *)left_out_line ? SCMP_ACT_KILL_PROCESS : SCMP_ACT_ALLOW;
}

bool ml_sandbox_filter(uint32_t left_out_line, struct ml_sandbox_report *report) {
    const struct ml_seccomp_choice choice = {
        .refused = SCMP_ACT_KILL_PROCESS, .action = action, .context = &left_out_line};
    const int answer = ml_seccomp_load(&ml_service_policy, &choice);
    if (answer != 0) {
        ml_sandbox_miss(report, "seccomp filter", -answer);
        return false;
    }
    return true;
}
